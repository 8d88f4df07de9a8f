"""Positions: telling attention, which sees a set, where each token stands.

First what is added to the tokens, a vector for each position. Then what depends on how
far apart query and key are: rotations of both, and biases on their scores.
"""

import torch
from torch import nn


def frequencies(d, base=10_000):
    """Return the d / 2 frequencies of the pairs, in radians per position.

    Hugging Face's models call them ``inv_freq``. Raises ValueError if ``d`` is odd.
    """
    if d < 2 or d % 2:
        raise ValueError(f"dimensions are taken in pairs: {d} cannot be")
    exponents = torch.arange(0, d, 2) / d
    return base**-exponents  # (pair,)


def sinusoidal_encoding(positions, d_model):
    """Turn positions (token,) into sines and cosines: (token, d_model).

    Vaswani et al. (2017), section 3.5.
    """
    omega = frequencies(d_model).to(positions.device)
    angles = positions[:, None] * omega  # (token, pair)
    encoding = torch.zeros(len(positions), d_model, device=positions.device)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles.cos()
    return encoding


class SinusoidalEncoding(nn.Module):
    """Add the sinusoids of up to ``max_tokens`` positions; nothing is learned."""

    def __init__(self, d_model, max_tokens):
        super().__init__()
        table = sinusoidal_encoding(torch.arange(max_tokens), d_model)
        self.register_buffer("table", table)  # moves with the model to its device

    def forward(self, x):
        """Add each position's vector to its token in ``x`` (batch, token, d_model)."""
        if x.shape[1] > len(self.table):
            raise ValueError(
                f"{x.shape[1]} tokens are more than max_tokens={len(self.table)}"
            )
        return x + self.table[: x.shape[1]]


def sinusoidal_grid(height, width, d_model):
    """Encode the patches of an image by row and column: (patch, d_model)."""
    rows = sinusoidal_encoding(torch.arange(height), d_model // 2)
    columns = sinusoidal_encoding(torch.arange(width), d_model // 2)
    rows = rows[:, None].expand(height, width, -1)  # the same in all columns
    columns = columns[None].expand(height, width, -1)  # the same in all rows
    grid = torch.cat([rows, columns], dim=-1)  # (height, width, d_model)
    return grid.flatten(0, 1)  # (patch, d_model), row by row


def apply_rope(x, positions, omega):
    """Rotate each pair of dimensions by position times frequency: Su et al. (2021).

    ``x`` (..., token, d_k) are queries or keys, ``positions`` (token,) whole numbers,
    and ``omega`` (pair,) the `frequencies` of d_k dimensions.
    """
    angles = positions[:, None] * omega  # (token, pair)
    cos = angles.cos()
    sin = angles.sin()
    first = x[..., 0::2]  # (..., token, pair)
    second = x[..., 1::2]
    rotated_first = first * cos - second * sin
    rotated_second = first * sin + second * cos
    rotated = torch.stack([rotated_first, rotated_second], dim=-1)
    return rotated.flatten(-2).to(x.dtype)  # (..., token, d_k)


def relative_position_bias(table, distances):
    """Look up what each head has learned for each distance of a key before the query.

    ``table`` (head, distance) ends with all distances that are larger; ``distances``
    (query, key) are key position minus query position. Raffel et al. (2020), without
    their buckets. Returns (head, query, key), to be added to the scores.
    """
    max_distance = table.shape[-1] - 1
    index = (-distances).clamp(0, max_distance)  # keys ahead will be masked
    return table[:, index]


def alibi(num_heads, distances):
    """Lower the scores in proportion to the distance: Press et al. (2022).

    ``distances`` (query, key) are key position minus query position, 0 or less.
    Returns (head, query, key), to be added to the scores.
    """
    heads = torch.arange(1, num_heads + 1, device=distances.device)
    slopes = 2.0 ** (-8 * heads / num_heads)  # (head,)
    return slopes[:, None, None] * distances
