"""The library's code for each part of the Transformer's diagram."""

from tutorial_lib import transformer
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.decoding import sample
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import SinusoidalEncoding

CODE = {
    "model": transformer.Transformer,
    "encoder": transformer.TransformerEncoder,
    "decoder": transformer.TransformerDecoder,
    "encoder layer": transformer.EncoderLayer,
    "decoder layer": transformer.DecoderLayer,
    "embedding": transformer.TransformerEncoder,
    "position": SinusoidalEncoding,
    "attention": MultiHeadAttention,
    "padding mask": padding_mask,
    "causal mask": causal_mask,
    "feed-forward": transformer.FeedForward,
    "residual": transformer.EncoderLayer,
    "softmax": sample,
}
