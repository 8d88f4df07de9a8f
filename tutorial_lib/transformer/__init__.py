"""The Transformer: blocks of attention and small networks, and models made of them.

Vaswani et al. (2017), with the norm before or after each layer. ``blocks`` is one step
of the stream of tokens, ``models`` the translator.
"""

from tutorial_lib.transformer.blocks import (
    DecoderBlock,
    EncoderBlock,
    PositionwiseFeedForward,
    Residual,
)
from tutorial_lib.transformer.models import Decoder, Encoder, Transformer

__all__ = [
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "PositionwiseFeedForward",
    "Residual",
    "Transformer",
]
