"""One number on every path: explicit, fused, watched, cached; models are watched."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tutorial_lib.attention import (
    CausalSelfAttention,
    KVCache,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from tutorial_lib.attention_only import AttentionOnly
from tutorial_lib.gpt import GPT
from tutorial_lib.interpret import attention_knockout, record_attention
from tutorial_lib.llama import Llama
from tutorial_lib.masks import causal_mask
from tutorial_lib.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
from tutorial_lib.vit import VisionTransformer

BATCH, HEAD, QUERY, KEY = 2, 2, 3, 5
SCORES = (BATCH, HEAD, QUERY, KEY)


def explicit(layer, queries, keys, mask=None):
    """Compute what a layer computes by the function of chapter 4."""
    Q = layer.split_heads(layer.W_Q(queries))
    K = layer.split_heads(layer.W_K(keys))
    V = layer.split_heads(layer.W_V(keys))
    contexts, weights = scaled_dot_product_attention(Q, K, V, mask)
    return layer.W_O(contexts.transpose(1, 2).flatten(2)), weights


@st.composite
def shapes_of_masks(draw):
    """Draw a shape of two or more axes that broadcasts to the scores."""
    axes = [draw(st.sampled_from([1, size])) for size in SCORES]
    return tuple(axes[draw(st.integers(0, 2)) :])


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), shape=shapes_of_masks())
def test_whatever_broadcasts_is_the_same_mask_on_every_path(seed, shape):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(8, HEAD)
    queries = torch.randn(BATCH, QUERY, 8)
    keys = torch.randn(BATCH, KEY, 8)
    mask = torch.rand(shape) > 0.4
    per_head = mask[:, None] if mask.ndim == 3 else mask  # as a layer understands it
    expected, weights = explicit(layer, queries, keys, per_head)
    with record_attention(layer) as maps:
        watched = layer(queries, keys, keys, mask)
    for output in (watched, layer(queries, keys, keys, mask)):
        torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(maps[""], weights, atol=1e-6, rtol=0)


@given(batch=st.integers(0, 2), query=st.integers(0, 2), key=st.integers(0, 2))
def test_no_batch_no_query_and_no_key_have_an_answer(batch, query, key):
    layer = MultiHeadAttention(8, HEAD)
    queries = torch.randn(batch, query, 8, requires_grad=True)
    keys = torch.randn(batch, key, 8, requires_grad=True)
    expected, _ = explicit(layer, queries, keys)
    output = layer(queries, keys, keys)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    if key == 0:  # there is nothing to attend to: the last layer's bias is left
        assert output.eq(layer.W_O.bias).all()


@pytest.mark.parametrize("sizes", [[5], [1] * 5, [2, 3]])
def test_causal_attention_is_a_mask_cached_or_not(sizes):
    torch.manual_seed(0)
    layer = CausalSelfAttention(8, HEAD)
    x = torch.randn(BATCH, 5, 8)
    expected, _ = explicit(layer, x, x, causal_mask(5))
    cache = KVCache()
    pieces = [layer(piece, cache) for piece in x.split(sizes, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), expected)
    torch.testing.assert_close(layer(x), expected)


class Translation(nn.Module):
    """A Transformer as a function of source tokens alone."""

    def __init__(self):
        super().__init__()
        sizes = (13, 8, 2, 1)
        self.transformer = Transformer(
            TransformerEncoder(*sizes, d_ff=16, max_tokens=8),
            TransformerDecoder(*sizes, d_ff=16, max_tokens=8),
        )

    def forward(self, tokens):
        return self.transformer(tokens, torch.full((len(tokens),), 4), tokens)


MODELS = {
    "AttentionOnly": lambda: AttentionOnly(13, 8, 2, 1, max_tokens=8),
    "GPT": lambda: GPT(13, 8, 2, 1, max_tokens=8),
    "Llama": lambda: Llama(13, 8, 2, 1, num_kv_heads=1, d_ff=16),
    "Transformer": Translation,
    "ViT": lambda: VisionTransformer(
        8, 2, 1, d_ff=16, image_size=6, patch_size=3, num_classes=3, channels=1
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_recorded_and_knocked_out(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    inputs = torch.randint(13, (2, 4)) if name != "ViT" else torch.rand(2, 1, 6, 6)
    before = model(inputs)
    layers = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    num_tokens = 5 if name == "ViT" else 4
    forbidden = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    forbidden[[0, 2, 3], 1] = True  # causal or not
    with record_attention(model) as maps, attention_knockout(layers, forbidden):
        assert not model(inputs).allclose(before)
    assert len(maps) == len(layers)
    for weights in maps.values():
        assert weights.shape == (2, 2, num_tokens, num_tokens)
        assert weights[:, :, [0, 2, 3], 1].eq(0).all()
        torch.testing.assert_close(
            weights.sum(dim=-1), torch.ones(2, 2, num_tokens), atol=1e-5, rtol=0
        )
    assert model(inputs).equal(before)
