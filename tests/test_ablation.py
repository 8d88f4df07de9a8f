"""What an answer depends on, against numbers worked by hand."""

import copy

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import AdditiveAttention, MultiHeadAttention
from tutorial_lib.gpt import GPTBlock
from tutorial_lib.interpret import (
    ablate_head,
    attention_knockout,
    counterfactual,
    gradient_times_input,
    occlusion,
    record_attention,
    rollout,
)
from tutorial_lib.windows import SwinBlock


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def linear_answer(inputs):
    """Answer 1 · first + 2 · second + 3 · third token."""
    return inputs.float() @ torch.tensor([1.0, 2.0, 3.0])


def test_rollout_of_one_layer_is_half_of_it_and_half_what_was_there():
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    result = rollout([weights[None, None]])
    assert torch.equal(result, torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]))


def test_rollout_multiplies_later_layers_from_the_left():
    one, other = torch.rand(2, 3, 4, 5, 5, generator=torch.manual_seed(0)).softmax(-1)
    halves = [(w.mean(1) + torch.eye(5)) / 2 for w in (one, other)]
    assert torch.allclose(rollout([one, other]), halves[1] @ halves[0])
    assert torch.equal(rollout({"one": one, "other": other}), rollout([one, other]))
    assert torch.equal(rollout([one.numpy(), other.numpy()]), rollout([one, other]))
    assert torch.allclose(rollout([one, other]).sum(-1), torch.ones(3, 5))


@pytest.mark.parametrize(
    "maps",
    [
        [],
        [torch.ones(1, 1, 2, 3)],
        [torch.ones(2, 2, 2)],
        [torch.ones(1, 1, 2, 2), torch.ones(5, 1, 2, 2)],
    ],
    ids=["none", "of two sentences", "without a batch", "of two batches"],
)
def test_rollout_refuses_maps_that_do_not_multiply(maps):
    with pytest.raises(ValueError, match="self-attention"):
        rollout(maps)


def test_an_answer_that_is_not_one_number_for_each_text_is_refused():
    tokens = torch.ones(2, 3)
    for answer in (torch.sum, torch.clone):
        with pytest.raises(ValueError, match=r"for each text, \(2,\), got"):
            occlusion(answer, tokens, 0.0)


def test_a_counterfactual_says_by_how_much_the_answer_drops():
    inputs = torch.tensor([[5, 5, 5], [1, 2, 3]])
    others = torch.tensor([[4, 5, 3]])
    result = counterfactual(linear_answer, inputs, others)
    assert result.tolist() == [[1, 0, 6], [-3, -6, 0]]


def test_occlusion_covers_with_a_number_and_leaves_the_inputs_alone():
    inputs = torch.tensor([[5, 5, 5]])
    assert occlusion(linear_answer, inputs, 0).tolist() == [[5, 10, 15]]
    assert inputs.tolist() == [[5, 5, 5]]


def test_occlusion_covers_patches_with_patches():
    patches = torch.ones(2, 3, 4)
    result = occlusion(lambda x: x.sum(dim=(1, 2)), patches, torch.zeros(4))
    assert torch.equal(result, torch.full((2, 3), 4.0))


def test_gradient_times_input_is_exact_for_what_is_linear():
    embedding = nn.Embedding(6, 4)
    tokens = torch.tensor([[0, 3, 3], [1, 2, 5]])
    gradient = torch.arange(12.0).view(3, 4)

    def answer(tokens):
        return (embedding(tokens) * gradient).sum(dim=(1, 2))

    result = gradient_times_input(answer, tokens, embedding)
    assert not result.requires_grad
    expected = (embedding.weight[tokens] * gradient).sum(-1)
    assert torch.allclose(result, expected, atol=1e-5)
    assert embedding.weight.grad is None and not embedding._forward_hooks
    with torch.no_grad():
        assert torch.equal(gradient_times_input(answer, tokens, embedding), result)


def test_gradient_times_input_needs_no_parameter_that_learns():
    embedding = nn.Embedding(6, 4).requires_grad_(False)
    tokens = torch.tensor([[0, 3, 3]])
    result = gradient_times_input(
        lambda tokens: embedding(tokens).sum(dim=(1, 2)), tokens, embedding
    )
    torch.testing.assert_close(result, embedding(tokens).sum(-1))


@torch.inference_mode()
def test_gradient_times_input_needs_gradients():
    embedding = nn.Embedding(6, 4)
    with pytest.raises(ValueError, match="leave out inference_mode"):
        gradient_times_input(
            lambda tokens: embedding(tokens).sum(dim=(1, 2)),
            torch.tensor([[0, 3]]),
            embedding,
        )


def test_gradient_times_input_refuses_a_layer_that_does_not_run():
    tokens = torch.ones(1, 3)
    with pytest.raises(ValueError, match="ran 0 times"):
        gradient_times_input(linear_answer, tokens, nn.Embedding(2, 2))


def test_gradient_times_input_refuses_a_layer_that_returns_a_tuple():
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.randn(1, 3, 4)
    with pytest.raises(ValueError, match="MultiheadAttention returns a tuple"):
        gradient_times_input(lambda x: layer(x, x, x)[0].sum(), x, layer)


class Attention(nn.Module):
    """A layer with heads, and with the method that a knockout replaces."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)

    def forward(self, queries, keys, values, mask=None):
        Q = self.split_heads(self.W_Q(queries))
        K = self.split_heads(self.W_K(keys))
        V = self.split_heads(self.W_V(values))
        return self.attend(Q, K, V, mask)

    def split_heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def attend(self, Q, K, V, mask):
        context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
        return self.W_O(context.transpose(1, 2).flatten(2))


def test_an_ablated_head_adds_nothing_and_then_it_is_back():
    layer = Attention(6, 3)
    x = torch.randn(1, 4, 6)
    before = layer(x, x, x)
    weight = layer.W_O.weight.clone()
    with ablate_head(layer.W_O, 1, 3), torch.no_grad():
        without = layer(x, x, x)
        layer.W_V.weight[2:4] = 100  # its values count no more
        assert torch.equal(layer(x, x, x), without)
    assert torch.equal(layer.W_O.weight, weight)
    assert not torch.equal(before, without)


def test_the_heads_of_torch_s_own_layer_are_ablated_alike():
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    x = torch.randn(1, 4, 6)
    layer.out_proj.bias.data.zero_()
    parts = []
    for head in (0, 1):
        with ablate_head(layer.out_proj, head, 2), torch.no_grad():
            parts.append(layer(x, x, x)[0])
    assert torch.allclose(sum(parts), layer(x, x, x)[0], atol=1e-6)


def test_a_head_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="0 to 1"), ablate_head(nn.Linear(4, 4), 2, 2):
        pass


@pytest.mark.parametrize("num_heads", [3, 32])
def test_a_number_of_heads_that_the_layer_cannot_have_is_refused(num_heads):
    layer = nn.Linear(16, 16)
    message = f"not those of {num_heads} heads"
    with pytest.raises(ValueError, match=message), ablate_head(layer, 0, num_heads):
        pass


def test_what_is_no_linear_layer_is_refused():
    layer = nn.Conv1d(4, 4, 1)  # Hugging Face's Conv1D has its weight transposed
    message = "layer.out_proj: Conv1d is none"
    with pytest.raises(ValueError, match=message), ablate_head(layer, 0, 2):
        pass


MASKS = {
    "none": None,
    "key": torch.tensor([[True, False, True, True]]),
    "causal": torch.ones(4, 4, dtype=torch.bool).tril(),
    "padding": torch.tensor([[True] * 4, [True, True, True, False]])[:, None, None],
    "per head": torch.tensor([True, False]).view(1, 2, 1, 1) | (torch.arange(4) != 1),
}


@torch.no_grad()
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize(
    "axes", ["query key", "batch query key", "batch head query key"]
)
def test_what_is_knocked_out_has_weight_0_and_then_it_is_back(mask, axes):
    layer = Attention(8, 2)
    x = torch.randn(2, 4, 8)
    forbidden = torch.zeros(2, 2, 4, 4, dtype=torch.bool)
    forbidden[:, :, 3, 0] = True
    given = forbidden
    if axes == "query key":
        given = forbidden[0, 0]
    elif axes == "batch query key":
        given = forbidden[:, 0]
    else:
        forbidden[0] = False
        forbidden[:, 0] = False

    def record():
        with record_attention(layer) as maps:
            return layer(x, x, x, mask), maps[""]

    before, weights = record()
    with attention_knockout([layer], given):
        after, left = record()
    assert left.eq(0).equal(weights.eq(0) | forbidden)  # what was masked stays masked
    torch.testing.assert_close(left.sum(-1), torch.ones(2, 2, 4))
    changed = (after - before).abs().amax(-1) > 1e-5
    assert changed.equal((forbidden & weights.gt(0)).any(dim=(1, 3)))
    assert record()[0].equal(before)
    assert "attend" not in vars(layer)


def test_two_knockouts_of_one_layer_add_up():
    layer = Attention(8, 2)
    x = torch.randn(1, 3, 8)
    first = torch.tensor([True, False, False])
    second = torch.tensor([False, True, False])
    with (
        attention_knockout([layer], first.expand(3, 3)),
        attention_knockout([layer], second.expand(3, 3)),
        record_attention(layer) as maps,
    ):
        layer(x, x, x)
    assert maps[""].equal(torch.tensor([0.0, 0.0, 1.0]).expand(1, 2, 3, 3))


@pytest.mark.parametrize("layer", [nn.MultiheadAttention(8, 2), GPTBlock(8, 2)])
@pytest.mark.parametrize("listed", [True, False])
def test_a_layer_of_another_kind_is_refused(layer, listed):
    layers = [layer] if listed else layer
    message = f"{type(layer).__name__} has no method attend: give layers of the kind"
    with (
        pytest.raises(ValueError, match=message),
        attention_knockout(layers, torch.zeros(4, 4, dtype=torch.bool)),
    ):
        pass


def test_a_knockout_of_no_layer_is_refused():
    with (
        pytest.raises(ValueError, match="nothing is knocked out"),
        attention_knockout([], torch.zeros(4, 4, dtype=torch.bool)),
    ):
        pass


def test_what_is_forbidden_may_be_an_array_or_a_list():
    layer = Attention(8, 2)
    x = torch.randn(1, 3, 8)
    rows = [[True, False, False]] * 3
    for forbidden in (rows, numpy.array(rows), torch.tensor(rows).float()):
        with attention_knockout([layer], forbidden), record_attention(layer) as maps:
            layer(x, x, x)
        assert maps[""][..., 0].eq(0).all()
    message = r"forbidden \(3,\) does not fit the scores"
    with (
        pytest.raises(ValueError, match=message),
        attention_knockout([layer], torch.zeros(3, dtype=torch.bool)),
    ):
        layer(x, x, x)


def test_layers_may_come_from_a_generator():
    layer = Attention(8, 2)
    x = torch.randn(1, 3, 8)
    forbidden = torch.tensor([True, False, False]).expand(3, 3)
    with (
        attention_knockout((each for each in [layer]), forbidden),
        record_attention(layer) as maps,
    ):
        layer(x, x, x)
    assert maps[""][..., 0].eq(0).all()


def test_a_head_may_be_a_number_of_numpy():
    projection = nn.Linear(8, 8)
    with ablate_head(projection, numpy.int64(1), numpy.int64(4)):
        assert projection.weight[:, 2:4].eq(0).all()
    assert projection.weight[:, 2:4].ne(0).all()


@pytest.mark.parametrize("inside", [True, False])
def test_a_copy_that_is_made_of_a_layer_attends_to_all(inside):
    layer = Attention(8, 2)
    x = torch.randn(1, 5, 8)
    expected = layer(x, x, x)
    with attention_knockout([layer], torch.eye(5)):
        other = copy.deepcopy(layer)
        assert not layer(x, x, x).allclose(expected)
        if inside:
            assert other(x, x, x).equal(expected)
    assert other(x, x, x).equal(expected)
    assert layer(x, x, x).equal(expected)


def test_scores_without_heads_are_named_by_their_three_axes():
    layer = AdditiveAttention(8, 8, 4)
    x = torch.randn(2, 5, 8)
    with (
        pytest.raises(ValueError, match=r"\(batch, query, key\) = \(2, 5, 5\)"),
        attention_knockout(layer, torch.eye(4)),
    ):
        layer(x, x, x)


def test_a_knockout_that_does_not_fit_the_scores_is_refused():
    layer = Attention(8, 2)
    x = torch.randn(1, 5, 8)
    forbidden = torch.zeros(4, 4, dtype=torch.bool)
    message = r"forbidden \(4, 4\) does not fit the scores .* = \(1, 2, 5, 5\)"
    with (
        pytest.raises(ValueError, match=message),
        attention_knockout([layer], forbidden),
    ):
        layer(x, x, x)


def test_within_windows_a_knockout_is_the_same_for_all_windows_and_heads():
    block = SwinBlock(16, 4, side=4, window_size=2, shift=1).eval()
    images = torch.randn(4, 4, 4, 16)
    forbidden = torch.zeros(4, 4, dtype=torch.bool)
    forbidden[3, 0] = True
    with record_attention(block) as plain:
        block(images)
    with attention_knockout([block.attention], forbidden), record_attention(block) as m:
        block(images)
    weights = m["attention"]
    assert weights[..., 3, 0].eq(0).all()
    assert weights[plain["attention"] == 0].eq(0).all()
    for axes in ((1, 4, 4, 4), (4, 4, 4)):
        message = "does not fit the scores .batch, window, head, query, key. ="
        with (
            pytest.raises(ValueError, match=message),
            attention_knockout([block.attention], forbidden.expand(axes)),
        ):
            block(images)


def test_a_knockout_of_additive_attention_has_the_axes_of_its_scores():
    layer = AdditiveAttention(4, 4, 8)
    queries, keys = torch.randn(2, 1, 4), torch.randn(2, 3, 4)
    forbidden = torch.tensor([[[True, False, False]], [[False, False, True]]])
    with attention_knockout([layer], forbidden), record_attention(layer) as maps:
        layer(queries, keys, keys)
    assert maps[""].reshape(2, 1, 3).eq(0).equal(forbidden)


@pytest.mark.parametrize("num_heads", [0, 2.0, True, float("nan")])
def test_heads_are_counted_in_whole_numbers(num_heads):
    layer = nn.Linear(16, 16)
    message = "num_heads must be a positive whole number"
    with pytest.raises(ValueError, match=message), ablate_head(layer, 0, num_heads):
        pass


@pytest.mark.parametrize("head", [True, 1.0])
def test_a_head_is_a_whole_number(head):
    layer = nn.Linear(16, 16)
    message = f"head {head} does not exist"
    with pytest.raises(ValueError, match=message), ablate_head(layer, head, 2):
        pass


def test_a_weight_that_is_made_anew_is_refused():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))
    with pytest.raises(ValueError, match="anew"), ablate_head(layer, 0, 2):
        pass


def test_gradients_of_an_earlier_and_of_the_ablated_output_can_be_taken_later():
    layer = nn.Linear(4, 4)
    x = torch.rand(1, 4, requires_grad=True)
    before = layer(x)
    with ablate_head(layer, 1, 2):
        output = layer(x)
    before.sum().backward()
    assert x.grad.ne(0).all()
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient[0, 2:].eq(0).all()
    assert gradient[0, :2].ne(0).all()


@pytest.mark.parametrize(
    "forbidden",
    [
        torch.full((3, 3), 0.5),
        torch.full((3, 3), torch.nan),
        torch.zeros(3, 3).masked_fill(torch.eye(3).bool(), -torch.inf),
    ],
    ids=["weights", "nan", "additive"],
)
def test_what_is_forbidden_is_true_or_false(forbidden):
    layer = MultiHeadAttention(8, 2)
    with (
        pytest.raises(ValueError, match="forbidden must be True where"),
        attention_knockout([layer], forbidden),
    ):
        pass


def test_a_layer_needs_no_list_around_it():
    layer = MultiHeadAttention(8, 2)
    x = torch.rand(1, 3, 8)
    before = layer(x, x, x)
    with attention_knockout(layer, torch.eye(3)):
        assert not torch.allclose(layer(x, x, x), before)


class OwnAttention(MultiHeadAttention):
    def forward(self, x):
        return x


def test_a_layer_that_attends_without_attend_is_refused():
    layers = [MultiHeadAttention(8, 2), OwnAttention(8, 2)]
    x = torch.rand(1, 3, 8)
    with (
        pytest.raises(ValueError, match="nothing was knocked out in OwnAttention"),
        attention_knockout(layers, torch.eye(3)),
    ):
        layers[1](layers[0](x, x, x))


def test_a_class_is_no_layer():
    with (
        pytest.raises(ValueError, match="MultiHeadAttention is a class"),
        attention_knockout([MultiHeadAttention], torch.eye(3)),
    ):
        pass


def test_tokens_are_not_covered_with_fractions_of_one():
    tokens = torch.tensor([[1, 2, 3]])
    with pytest.raises(ValueError, match="int64, the others"):
        occlusion(linear_answer, tokens, 0.5)
