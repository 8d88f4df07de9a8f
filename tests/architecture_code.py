"""The library's code for each part of the Transformer's diagram."""

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.decoding import greedy
from tutorial_lib.masks import causal_mask, length_mask
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.transformer import blocks, models

CODE = {
    "model": models.Transformer,
    "encoder": models.Encoder,
    "decoder": models.Decoder,
    "encoder block": blocks.EncoderBlock,
    "decoder block": blocks.DecoderBlock,
    "embedding": models.Embedding,
    "position": SinusoidalEncoding,
    "attention": MultiHeadAttention,
    "length mask": length_mask,
    "causal mask": causal_mask,
    "feed-forward": blocks.PositionwiseFeedForward,
    "residual": blocks.Residual,
    "softmax": greedy,
}
