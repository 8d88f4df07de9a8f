"""The library's code for each part of the Transformer's diagram."""

from tutorial_lib import transformer
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.decoding import generate
from tutorial_lib.masks import causal_mask, length_mask
from tutorial_lib.position import SinusoidalEncoding

CODE = {
    "model": transformer.Transformer,
    "encoder": transformer.Encoder,
    "decoder": transformer.Decoder,
    "encoder block": transformer.EncoderBlock,
    "decoder block": transformer.DecoderBlock,
    "embedding": transformer.Embedding,
    "position": SinusoidalEncoding,
    "attention": MultiHeadAttention,
    "length mask": length_mask,
    "causal mask": causal_mask,
    "feed-forward": transformer.PositionwiseFeedForward,
    "residual": transformer.Residual,
    "softmax": generate,
}
