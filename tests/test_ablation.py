"""What an answer depends on, held against numbers worked by hand."""

import pytest
import torch
from torch import nn

from tutorial_lib.ablation import (
    ablate_head,
    attention_knockout,
    counterfactual,
    gradient_times_input,
    occlusion,
    rollout,
)
from tutorial_lib.attention import KVCache, MultiHeadAttention
from tutorial_lib.gpt import GPT
from tutorial_lib.llama import GroupedQueryAttention, Llama
from tutorial_lib.masks import padding_mask
from tutorial_lib.position import ALiBi, PositionedAttention, RotaryEncoding
from tutorial_lib.recording import record_attention
from tutorial_lib.transformer import DecoderLayer, EncoderLayer


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def linear_answer(inputs):
    """Answer 1 · first + 2 · second + 3 · third token."""
    return inputs.float() @ torch.tensor([1.0, 2.0, 3.0])


def test_rollout_of_one_layer_is_half_of_it_and_half_what_was_there():
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    found = rollout([weights[None, None]])
    assert torch.equal(found, torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]))


def test_rollout_multiplies_later_layers_from_the_left():
    one, other = torch.rand(2, 3, 4, 5, 5, generator=torch.manual_seed(0)).softmax(-1)
    halves = [(w.mean(1) + torch.eye(5)) / 2 for w in (one, other)]
    assert torch.allclose(rollout([one, other]), halves[1] @ halves[0])
    assert torch.equal(rollout({"one": one, "other": other}), rollout([one, other]))
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


def test_a_counterfactual_says_by_how_much_the_answer_drops():
    inputs = torch.tensor([[5, 5, 5], [1, 2, 3]])
    others = torch.tensor([[4, 5, 3]])
    found = counterfactual(linear_answer, inputs, others)
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
    embedding = nn.Embedding(6, 4)
    tokens = torch.tensor([[0, 3, 3], [1, 2, 5]])
    gradient = torch.arange(12.0).view(3, 4)

    def answer(tokens):
        return (embedding(tokens) * gradient).sum(dim=(1, 2))

    found = gradient_times_input(answer, tokens, embedding)
    assert not found.requires_grad
    expected = (embedding.weight[tokens] * gradient).sum(-1)
    assert torch.allclose(found, expected, atol=1e-5)
    assert embedding.weight.grad is None and not embedding._forward_hooks
    with torch.no_grad():
        assert torch.equal(gradient_times_input(answer, tokens, embedding), found)


def test_gradient_times_input_refuses_a_layer_that_does_not_run():
    tokens = torch.ones(1, 3)
    with pytest.raises(ValueError, match="ran 0 times"):
        gradient_times_input(linear_answer, tokens, nn.Embedding(2, 2))


def test_an_ablated_head_adds_nothing_and_then_it_is_back():
    layer, x = MultiHeadAttention(6, 3), torch.randn(1, 4, 6)
    before, kept = layer(x, x, x), layer.W_O.weight.clone()
    with ablate_head(layer.W_O, 1, 3), torch.no_grad():
        without = layer(x, x, x)
        layer.W_V.weight[2:4] = 100  # its values are nobody's any more
        assert torch.equal(layer(x, x, x), without)
    assert torch.equal(layer.W_O.weight, kept) and not torch.equal(before, without)


def test_the_heads_of_torch_s_own_layer_are_ablated_alike():
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


@pytest.mark.parametrize("num_heads", [0, 3, 32])
def test_a_number_of_heads_that_the_layer_cannot_have_is_refused(num_heads):
    layer = nn.Linear(16, 16)
    kept = layer.weight.clone()
    said = pytest.raises(ValueError, match=f"not those of {num_heads} heads")
    with said, ablate_head(layer, 0, num_heads):
        pass
    assert layer.weight.equal(kept)


# --- Attention knockout: from the last token of the second text to its first ---------

PATHS = {
    "a layer alone": (
        MultiHeadAttention(8, 2), "", lambda layer, x, mask: layer(x, x, x, mask)
    ),
    "a layer by keywords": (
        MultiHeadAttention(8, 2), "",
        lambda layer, x, mask: layer(x, values=x, keys=x, mask=mask, causal=True),
    ),
    "with positions": (
        PositionedAttention(8, 2, position_bias=ALiBi(2)), "",
        lambda layer, x, mask: layer(x, x, x, mask, causal=True),
    ),
    "encoder layer": (
        EncoderLayer(8, 2, 16, norm_first=False), "attention",
        lambda layer, x, mask: layer(x, mask),
    ),
    "decoder's self-attention": (
        DecoderLayer(8, 2, 16, norm_first=True), "attention",
        lambda layer, x, mask: layer(x, x.flip(1), mask),
    ),
    "cross-attention": (
        DecoderLayer(8, 2, 16, norm_first=False), "cross_attention",
        lambda layer, x, mask: layer(x, x.flip(1), memory_mask=mask),
    ),
    "GPT": (
        GPT(5, 8, 2, 1, max_tokens=4), "layers.0.attention",
        lambda model, x, mask: model(tokens=TOKENS, kv_cache=KVCache()),
    ),
    "grouped queries": (
        GroupedQueryAttention(8, 2, 1, rotary=RotaryEncoding(4)), "",
        lambda layer, x, mask: layer(x, x, x, mask, causal=True),
    ),
    "Llama": (
        Llama(5, 8, 2, 1, 1, max_tokens=4), "layers.0.attention",
        lambda model, x, mask: model(TOKENS),
    ),
}  # fmt: skip
TOKENS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])
MASKS = {
    "none": None,
    "key": torch.tensor([True, False, True, True]),
    "query-key": torch.ones(4, 4, dtype=torch.bool).triu(-1) | (torch.arange(4) < 1),
    "padding": padding_mask([4, 3], 4),
    "per-head": torch.tensor([True, False]).view(1, 2, 1, 1) | (torch.arange(4) != 1),
}


@torch.no_grad()
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("heads", [[0, 1], [1]], ids=["all heads", "one head"])
def test_what_is_knocked_out_has_weight_0_and_then_it_is_back(path, mask, heads):
    model, name, run = PATHS[path]
    x, forbidden = torch.randn(2, 4, 8), torch.zeros(2, 2, 4, 4, dtype=torch.bool)
    forbidden[1, heads, 3, 0] = True

    def recorded():
        with record_attention(model) as maps:
            return run(model, x, mask), maps[name]

    before, weights = recorded()
    layers = [model.get_submodule(name)]
    with attention_knockout(layers, forbidden[:, 0] if len(heads) == 2 else forbidden):
        after, left = recorded()
    assert weights[forbidden].gt(0).all()
    assert left.eq(0).equal(weights.eq(0) | forbidden)  # what was masked stays masked
    torch.testing.assert_close(left.sum(-1), torch.ones(2, 2, 4))
    changed = (after - before).abs().amax(-1) > 1e-5
    assert changed.tolist() == [[False] * 4, [False] * 3 + [True]]
    assert recorded()[0].equal(before)
