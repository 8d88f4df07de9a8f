"""What an answer depends on, held against numbers worked by hand."""

import pytest
import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.ablation import (
    exchange,
    gradient_times_input,
    occlusion,
    rollout,
    ablate_head,
    attention_knockout,
)
from tutorial_lib.recording import record_attention


def linear_answer(inputs):
    """Answer 1 · first + 2 · second + 3 · third token."""
    return inputs.float() @ torch.tensor([1.0, 2.0, 3.0])


def test_rollout_of_one_layer_is_half_of_it_and_half_what_was_there():
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    found = rollout([weights[None, None]])
    assert torch.equal(found, torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]))


def test_rollout_follows_a_chain_through_two_layers():
    back = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # everybody looks one back
    found = rollout([back[None, None]] * 2)[0]
    # Of the last token a quarter is the first, read through the second.
    assert torch.equal(found[2], torch.tensor([0.25, 0.5, 0.25]))


def test_rollout_multiplies_later_layers_from_the_left():
    one, other = torch.rand(2, 3, 4, 5, 5, generator=torch.manual_seed(0)).softmax(-1)
    halves = [(w.mean(1) + torch.eye(5)) / 2 for w in (one, other)]
    assert torch.allclose(rollout([one, other]), halves[1] @ halves[0])
    assert torch.allclose(rollout([one, other]).sum(-1), torch.ones(3, 5))


@pytest.mark.parametrize("maps", [[], [torch.ones(1, 1, 2, 3)]])
def test_rollout_refuses_maps_between_two_sentences_and_none(maps):
    with pytest.raises(ValueError, match="self-attention"):
        rollout(maps)


def test_exchange_says_by_how_much_the_answer_falls():
    inputs = torch.tensor([[5, 5, 5], [1, 2, 3]])
    others = torch.tensor([[4, 5, 3]])
    found = exchange(linear_answer, inputs, others)
    assert found.tolist() == [[1, 0, 6], [-3, -6, 0]]


def test_occlusion_covers_with_a_number_and_leaves_the_inputs_alone():
    inputs = torch.tensor([[5, 5, 5]])
    assert occlusion(linear_answer, inputs, 0).tolist() == [[5, 10, 15]]
    assert inputs.tolist() == [[5, 5, 5]]


def test_occlusion_covers_patches_with_patches():
    patches = torch.ones(2, 3, 4)
    found = occlusion(lambda x: x.sum(dim=(1, 2)), patches, torch.zeros(4))
    assert torch.equal(found, torch.full((2, 3), 4.0))


def test_gradient_times_input_is_exact_for_what_is_linear():
    words = nn.Embedding(6, 4)
    tokens = torch.tensor([[0, 3, 3], [1, 2, 5]])
    slope = torch.arange(12.0).view(3, 4)

    def answer(tokens):
        return (words(tokens) * slope).sum(dim=(1, 2))

    found = gradient_times_input(answer, tokens, words)
    assert torch.allclose(found, (words.weight[tokens] * slope).sum(-1), atol=1e-5)
    assert words.weight.grad is None and not words._forward_hooks
    with torch.no_grad():
        assert torch.equal(gradient_times_input(answer, tokens, words), found)


def test_gradient_times_input_refuses_a_layer_that_does_not_run():
    tokens = torch.ones(1, 3)
    with pytest.raises(ValueError, match="ran 0 times"):
        gradient_times_input(linear_answer, tokens, nn.Embedding(2, 2))


def test_without_a_head_nothing_of_it_is_written_and_then_it_is_back():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(6, 3), torch.randn(1, 4, 6)
    before, kept = layer(x, x, x), layer.W_O.weight.clone()
    with ablate_head(layer.W_O, 1, 3), torch.no_grad():
        without = layer(x, x, x)
        layer.W_V.weight[2:4] = 100  # its values are nobody's any more
        assert torch.equal(layer(x, x, x), without)
    assert torch.equal(layer.W_O.weight, kept) and not torch.equal(before, without)


def test_the_heads_of_torch_s_own_layer_are_taken_away_alike():
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(6, 2, batch_first=True), torch.randn(1, 4, 6)
    layer.out_proj.bias.data.zero_()
    parts = []
    for head in (0, 1):
        with ablate_head(layer.out_proj, head, 2), torch.no_grad():
            parts.append(layer(x, x, x)[0])
    assert torch.allclose(sum(parts), layer(x, x, x)[0], atol=1e-6)


def test_a_head_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="0 to 1"), ablate_head(nn.Linear(4, 4), 2, 2):
        pass


@pytest.mark.parametrize("mask", [None, torch.tensor([[[True, True, False]]])])
@pytest.mark.parametrize("causal", [False, True])
def test_a_look_that_is_forbidden_has_no_weight_and_then_it_is_back(mask, causal):
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(4, 2), torch.randn(2, 3, 4)
    before = layer(x, x, x, mask, causal=causal)
    hidden = torch.zeros(2, 3, 3, dtype=torch.bool)
    hidden[1, 2, 0] = True
    with torch.no_grad(), record_attention(layer) as maps:
        with attention_knockout([layer], hidden):
            changed = layer(x, x, x, mask, causal=causal)
        [weights] = maps.values()
    assert weights[1, :, 2, 0].eq(0).all() and weights[0, :, 2, 0].gt(0).all()
    if mask is not None:
        assert weights[..., 2].eq(0).all()
    assert torch.equal(changed[0], before[0]) and torch.equal(
        changed[1, :2], before[1, :2]
    )
    assert not torch.allclose(changed[1, 2], before[1, 2])
    assert torch.equal(layer(x, x, x, mask, causal=causal), before)


def test_a_mask_for_each_head_is_kept():
    layer, x = MultiHeadAttention(4, 2), torch.randn(1, 2, 4)
    mask = torch.tensor(
        [[[[True, False], [True, True]], [[False, True], [True, True]]]]
    )
    hidden = torch.tensor([[[False, False], [False, True]]])
    with (
        torch.no_grad(),
        record_attention(layer) as maps,
        attention_knockout([layer], hidden),
    ):
        layer(x, x, x, mask)
    [weights] = maps.values()
    assert weights[0, :, 0].tolist() == [[1, 0], [0, 1]]
    assert weights[0, :, 1].tolist() == [[1, 0], [1, 0]]
