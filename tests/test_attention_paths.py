"""One number on every path: explicit, fused, with positions, cached, watched or not."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorial_lib.attention import (
    AdditiveAttention,
    KVCache,
    MultiHeadAttention,
    attention_weights,
    scaled_dot_product_attention,
)
from tutorial_lib.interpret import record_attention
from tutorial_lib.masks import causal_mask
from tutorial_lib.position import (
    PositionedAttention,
    RelativePositionBias,
    RotaryEncoding,
)

BATCH, HEAD, QUERY, KEY = 2, 2, 3, 5
SCORES = (BATCH, HEAD, QUERY, KEY)
seeds = st.integers(0, 2**32)


def layers():
    """Make layers with the same weights, whose positions change no score."""
    plain, bias = MultiHeadAttention(8, HEAD), RelativePositionBias(HEAD, 2)
    positioned = PositionedAttention(8, HEAD, position_bias=bias)
    positioned.load_state_dict(plain.state_dict(), strict=False)
    return plain, positioned


def watched(layer):
    def call(*inputs, **options):
        with record_attention(layer):
            return layer(*inputs, **options)

    return call


def cached(layer):
    return lambda *inputs, **options: layer(*inputs, **options, kv_cache=KVCache())


def paths(queries, keys):
    """Return every way from tokens (batch, token, 8) to outputs, by its name."""
    plain, positioned = layers()
    Q = plain.split_heads(plain.W_Q(queries))
    K, V = (plain.split_heads(W(keys)) for W in (plain.W_K, plain.W_V))

    def join(contexts):
        return plain.W_O(contexts.transpose(1, 2).flatten(2))

    def explicit(mask=None, **options):
        return join(scaled_dot_product_attention(Q, K, V, mask, **options)[0])

    def by_weights(mask=None, **options):
        return join(attention_weights(Q, K, mask, **options) @ V)

    def fused(mask=None, causal=False):
        return join(plain.attend(Q, K, V, mask, causal))

    found = {"explicit": explicit, "weights": by_weights, "fused": fused}
    for layer in (plain, positioned):
        name = type(layer).__name__
        ways = {"": layer, "watched": watched(layer), "cached": cached(layer)}
        for way, call in ways.items():
            found[f"{name} {way}"] = partial(call, queries, keys, keys)
    return found


def sentence_of(call, *inputs, **options):
    with pytest.raises(ValueError) as refusal:
        call(*inputs, **options)
    return str(refusal.value)


@st.composite
def shapes_of_masks(draw):
    """Draw a shape that broadcasts to the scores."""
    axes = [draw(st.sampled_from([1, size])) for size in SCORES]
    return tuple(axes[draw(st.integers(0, 4)) :])


@settings(max_examples=40)
@given(seed=seeds, shape=shapes_of_masks(), square=st.booleans(), causal=st.booleans())
def test_whatever_broadcasts_is_the_same_mask_on_every_path(
    seed, shape, square, causal
):
    torch.manual_seed(seed)
    keys, queries = torch.randn(BATCH, KEY, 8), torch.randn(BATCH, QUERY, 8)
    if square:
        queries = keys
        shape = tuple(KEY if size == QUERY else size for size in shape)
    mask, causal = torch.rand(shape) > 0.4, causal and square
    per_head = mask[:, None] if mask.ndim == 3 else mask  # as a layer understands it
    seen = per_head.expand(BATCH, HEAD, queries.shape[1], KEY)
    calls = paths(queries, keys)
    expected = calls["explicit"](seen & causal_mask(KEY) if causal else seen)
    for name, call in calls.items():
        is_layer = name not in ("explicit", "weights", "fused")
        found = call(mask if is_layer else per_head, causal=causal)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (torch.ones(4).bool(), r"mask (4,) does not broadcast"),
        (torch.ones(3, 4).bool(), r"mask (3, 4) does not broadcast"),
        (torch.ones(3, 1, 1, 5).bool(), r"mask (3, 1, 1, 5) does not broadcast"),
        (torch.ones(1, 1, 1, 1, 1).bool(), r"mask (1, 1, 1, 1, 1) does not broadcast"),
        (torch.zeros(5), "mask must be boolean"),
        (torch.tensor(1), "mask must be boolean"),
    ],
    ids=lambda given: str(tuple(given.shape)) if torch.is_tensor(given) else "",
)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_what_is_no_mask_is_refused_in_one_sentence_by_all(mask, says, causal):
    x = torch.randn(BATCH, KEY, 8)
    calls = paths(x, x).values()
    [sentence] = {sentence_of(call, mask, causal=causal) for call in calls}
    assert sentence.startswith(says) and "\n" not in sentence


@pytest.mark.parametrize("mask", [None, torch.ones(QUERY, KEY).bool()])
@pytest.mark.parametrize("queries", [0, QUERY])
def test_causal_over_unequal_lengths_is_refused_in_one_sentence_by_all(mask, queries):
    x = torch.randn(BATCH, KEY, 8)
    mask = mask if mask is None else mask[:queries]
    calls = paths(x[:, :queries], x)
    calls = [call for name, call in calls.items() if "cached" not in name]
    [sentence] = {sentence_of(call, mask, causal=True) for call in calls}
    assert f"as many queries as keys, got {queries} and {KEY}:" in sentence


sizes = st.integers(0, 2)


@given(batch=sizes, query=sizes, key=sizes, mask=st.booleans(), causal=st.booleans())
def test_no_batch_no_query_and_no_key_have_an_answer(batch, query, key, mask, causal):
    causal = causal and query == key
    queries = torch.randn(batch, query, 8, requires_grad=True)
    keys = torch.randn(batch, key, 8, requires_grad=True)
    mask = torch.ones(query, key).bool() if mask else None
    calls = paths(queries, keys)
    expected = calls["explicit"](mask, causal=causal)
    assert expected.shape == (batch, query, 8)
    if key == 0:  # there is nothing to attend to: the last layer's bias is left
        assert expected.eq(expected[:1, :1]).all()
    for call in calls.values():
        found = call(mask, causal=causal)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
        options = {"retain_graph": True, "materialize_grads": True}
        gradients = torch.autograd.grad(found.sum(), (queries, keys), **options)
        assert all(gradient.isfinite().all() for gradient in gradients)
    layer = AdditiveAttention(8, 8, 4)
    found = layer(queries, keys, keys, mask)
    assert found.shape == (batch, query, 8) and found.isfinite().all()
    rotary = PositionedAttention(8, HEAD, rotary=RotaryEncoding(4))
    assert rotary(queries, keys, keys, mask, causal=causal).isfinite().all()
