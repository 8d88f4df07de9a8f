"""Absolute positions: a vector for each place, added to the token that stands there.

This module knows neither what the tokens mean nor what is done with them.
"""

import torch
from torch import nn


def sinusoids(positions, d_model, *, base=10_000):
    """Turn each position into sines and cosines of ``d_model`` / 2 frequencies.

    ``positions`` (...) are numbers, whole or not; the result is (..., d_model), sines
    in the even columns and cosines in the odd. Pair i turns by base^(-2i / d_model)
    radians per position. Raises ValueError if d_model is odd.
    Vaswani et al. (2017), section 3.5.
    """
    angles = positions[..., None] * frequencies(d_model, base=base).to(positions.device)
    pairs = torch.stack((angles.sin(), angles.cos()), dim=-1)
    return pairs.flatten(-2)  # (..., d_model)


def frequencies(d_model, *, base=10_000):
    """Return the speeds of the ``d_model`` / 2 pairs, in radians per position."""
    if d_model % 2:
        raise ValueError(
            f"d_model must be even, because every frequency takes a pair of columns: "
            f"got {d_model}, use {d_model + 1}"
        )
    return base ** (-torch.arange(0, d_model, 2) / d_model)  # (d_model / 2,)


class TableEncoding(nn.Module):
    """Add a row of ``table`` (token, d_model) to every token."""

    def forward(self, x, start=0):
        """Encode tokens ``x`` (..., token, d_model), the first one at ``start``.

        Decoding step by step feeds one token at a time: ``start`` is then the number
        of tokens before it. Raises ValueError for a position beyond the table.
        """
        end = start + x.shape[-2]
        if not 0 <= start <= end <= len(self.table):
            raise ValueError(
                f"positions {start} to {end - 1} do not fit a table of "
                f"{len(self.table)}: make the encoding with a larger max_tokens"
            )
        return x + self.table[start:end]


class SinusoidalEncoding(TableEncoding):
    """Add sines and cosines of the position: Vaswani et al. (2017), section 3.5.

    The table of ``max_tokens`` positions is a buffer: it moves with the model and is
    saved with it, and nothing in it is learned. Raises ValueError if d_model is odd.
    """

    def __init__(self, d_model, max_tokens):
        super().__init__()
        positions = torch.arange(max_tokens, dtype=torch.get_default_dtype())
        self.register_buffer("table", sinusoids(positions, d_model))


class LearnedEncoding(TableEncoding):
    """Add a learned vector for each of ``max_tokens`` positions: Gehring et al. (2017).

    It starts with deviation 0.02, as in Devlin et al. (2019). A position that training
    never reached gets no gradient, and means nothing.
    """

    def __init__(self, d_model, max_tokens):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_tokens, d_model) * 0.02)
