"""Multi-head attention against loops, chapter 4's function, and torch's own layer."""

import pytest
import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, padding_mask, window_mask

EMPTY_ROWS = causal_mask(5) & (torch.arange(5) > 1)  # queries 0 and 1 attend to nothing
MASKS = {  # of 3 sequences, 2 heads, 5 queries and 5 keys
    "none": None,
    "query-key": window_mask(5, 1),
    "causal": causal_mask(5),
    "padding": padding_mask([5, 3, 1], 5),
    "causal-and-padding": causal_mask(5) & padding_mask([5, 3, 1], 5),
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": torch.zeros(5, 5, dtype=torch.bool),
    "empty-rows": EMPTY_ROWS,
    "empty-sequence": padding_mask([5, 3, 0], 5),
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def with_head_axis(mask):
    """Give a mask (batch, query, key) the axis that heads have."""
    if mask is not None and mask.ndim == 3:
        return mask.unsqueeze(1)
    return mask


def torch_layer(layer, d_model):
    """Build torch's multi-head attention with the weights of ours."""
    theirs = nn.MultiheadAttention(d_model, layer.num_heads, batch_first=True)
    projections = [layer.W_Q, layer.W_K, layer.W_V]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([W.weight for W in projections]))
        theirs.in_proj_bias.copy_(torch.cat([W.bias for W in projections]))
        theirs.out_proj.weight.copy_(layer.W_O.weight)
        theirs.out_proj.bias.copy_(layer.W_O.bias)
    return theirs


@pytest.mark.parametrize("name", ["none", "query-key", "causal", "padding", "per-head"])
def test_it_equals_torchs_layer_with_the_same_weights(name):
    mask = MASKS[name]
    layer = MultiHeadAttention(8, 2)
    queries, keys, values = torch.randn(3, 3, 5, 8)
    hidden = None  # torch's mask: True hides a key, (batch · head, query, key)
    if mask is not None:
        hidden = ~with_head_axis(mask).expand(3, 2, 5, 5).flatten(0, 1)
    expected, _ = torch_layer(layer, 8)(queries, keys, values, attn_mask=hidden)
    torch.testing.assert_close(layer(queries, keys, values, mask), expected)


def test_bias_false_leaves_every_bias_out():
    layer = MultiHeadAttention(8, 2, bias=False)
    assert sum(parameter.numel() for parameter in layer.parameters()) == 4 * 8 * 8
    names = [name for name, _ in layer.named_parameters()]
    assert names == ["W_Q.weight", "W_K.weight", "W_V.weight", "W_O.weight"]


def test_each_head_is_attention_with_columns_of_its_own():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(3, 5, 8)
    Q = layer.W_Q(x)
    K = layer.W_K(x)
    V = layer.W_V(x)
    heads = []
    for columns in (slice(0, 4), slice(4, 8)):
        scores = Q[..., columns] @ K[..., columns].mT / 2  # √d_k = 2
        heads.append(scores.softmax(dim=-1) @ V[..., columns])
    expected = layer.W_O(torch.cat(heads, dim=-1))
    torch.testing.assert_close(layer(x, x, x), expected)


@every_mask
def test_the_fused_function_has_outputs_and_gradients_of_the_explicit_one(mask):
    layer = MultiHeadAttention(8, 2)
    Q = torch.randn(3, 2, 5, 4, requires_grad=True)
    K = torch.randn(3, 2, 5, 4, requires_grad=True)
    V = torch.randn(3, 2, 5, 4, requires_grad=True)
    context, _ = scaled_dot_product_attention(Q, K, V, with_head_axis(mask))
    explicit = layer.W_O(context.transpose(1, 2).flatten(2))  # heads side by side
    fused = layer.attend(Q, K, V, mask)
    torch.testing.assert_close(fused, explicit)
    direction = torch.randn(fused.shape)
    expected = torch.autograd.grad((explicit * direction).sum(), [Q, K, V])
    gradients = torch.autograd.grad((fused * direction).sum(), [Q, K, V])
    for gradient, other in zip(gradients, expected, strict=True):
        assert gradient.isfinite().all()
        torch.testing.assert_close(gradient, other, atol=1e-5, rtol=1e-4)


def test_a_query_that_may_attend_to_nothing_gets_the_bias_alone():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(3, 5, 8)
    outputs = layer(x, x, x, EMPTY_ROWS)
    torch.testing.assert_close(outputs[:, :2], layer.W_O.bias.expand(3, 2, 8))


def test_a_batch_gives_what_its_sequences_give_alone():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(3, 5, 8)
    lengths = [5, 3, 1]
    together = layer(x, x, x, padding_mask(lengths, 5))
    for i, length in enumerate(lengths):
        alone = x[i : i + 1, :length]
        expected = layer(alone, alone, alone)
        torch.testing.assert_close(together[i : i + 1, :length], expected)


def test_as_many_sequences_as_heads_are_not_confused():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(2, 5, 8)
    together = layer(x, x, x, padding_mask([5, 2], 5))
    torch.testing.assert_close(together[:1], layer(x[:1], x[:1], x[:1]))


def test_there_may_be_more_keys_than_queries():
    layer = MultiHeadAttention(8, 2)
    queries = torch.randn(3, 2, 8)
    keys = torch.randn(3, 5, 8)
    outputs = layer(queries, keys, keys)
    one_by_one = [layer(query, keys, keys) for query in queries.split(1, dim=1)]
    torch.testing.assert_close(outputs, torch.cat(one_by_one, dim=1))


def test_changing_the_future_leaves_the_past():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(1, 5, 8)
    changed = x.clone()
    changed[:, 3:] += 1
    before = layer(x, x, x, causal_mask(5))
    after = layer(changed, changed, changed, causal_mask(5))
    torch.testing.assert_close(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_permuting_the_tokens_permutes_the_outputs():
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(1, 6, 8)
    order = torch.randperm(6)
    shuffled = x[:, order]
    outputs = layer(x, x, x)
    torch.testing.assert_close(layer(shuffled, shuffled, shuffled), outputs[:, order])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_finite_outputs(dtype):
    layer = MultiHeadAttention(64, 1).to(dtype)
    x = (torch.randn(1, 5, 64) * 200).to(dtype)
    outputs = layer(x, x, x, padding_mask([3], 5))
    assert outputs.dtype == dtype
    assert outputs.isfinite().all()


def test_the_inputs_stay_as_they_were():
    queries, keys, values = torch.randn(3, 3, 5, 8)
    mask = padding_mask([5, 3, 0], 5)
    before = [tensor.clone() for tensor in (queries, keys, values, mask)]
    MultiHeadAttention(8, 2)(queries, keys, values, mask)
    for tensor, copy in zip((queries, keys, values, mask), before, strict=True):
        assert tensor.equal(copy)


def test_heads_that_do_not_divide_d_model_are_refused():
    message = "num_heads must divide d_model: 4 does not divide 10"
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(10, 4)
