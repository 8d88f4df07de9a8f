"""Positions: telling attention, which sees a set, where each token stands.

First what is added to each token, a vector for its position. Then what changes the
scores by how far apart query and key are: nothing is added to the tokens, every layer
is told anew, and fewer queries than keys means that the queries are the last of the
keys, as in decoding step by step. Last, the positions of a grid.

This module knows neither what the tokens are nor what is done with them.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import MultiHeadAttention, add_causal, masked_softmax


def sinusoids(positions, d_model, *, base=10_000):
    """Turn each position into sines and cosines of ``d_model`` / 2 frequencies.

    ``positions`` (...) are numbers, whole or not; the result is (..., d_model), sines
    in the even columns and cosines in the odd. The angle of pair i grows by
    base^(-2i / d_model) radians per position. Raises ValueError if d_model is odd.
    Vaswani et al. (2017), section 3.5.
    """
    angles = positions[..., None] * frequencies(d_model, base=base).to(positions.device)
    pairs = torch.stack((angles.sin(), angles.cos()), dim=-1)
    return pairs.flatten(-2)  # (..., d_model)


def frequencies(d_model, *, base=10_000):
    """Return the ``d_model`` / 2 frequencies of the pairs, in radians per position.

    Hugging Face's models call them ``inv_freq``. Raises ValueError if d_model is odd.
    """
    if d_model % 2:
        raise ValueError(
            "the size must be even, because every frequency takes a pair of columns: "
            f"got {d_model}, use {d_model + 1}"
        )
    precise = torch.promote_types(torch.get_default_dtype(), torch.float32)
    exponents = torch.arange(0, d_model, 2, dtype=precise) / d_model
    return base**-exponents  # (d_model / 2,)


class SinusoidalEncoding(nn.Module):
    """Add sines and cosines of the position: Vaswani et al. (2017), section 3.5.

    The table of ``max_tokens`` positions is a buffer: it moves with the model and is
    saved with it, and nothing in it is learned. Raises ValueError if d_model is odd.
    """

    def __init__(self, d_model, max_tokens):
        super().__init__()
        table = sinusoids(torch.arange(max_tokens), d_model)
        self.register_buffer("table", table.to(torch.get_default_dtype()))

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


class RotaryEncoding(nn.Module):
    """Rotate each pair of dimensions by an angle that grows with the position.

    A query rotated by its position and a key rotated by its own have a dot product that
    depends on the difference alone: Su et al. (2021), equation 34. ``d_k`` is the size
    of a query or key. Angles are float32 at least, whatever the type of the model: in
    float16 there is no position 2,049. Raises ValueError if d_k is odd.
    """

    def __init__(self, d_k, *, base=10_000):
        super().__init__()
        self.frequencies = frequencies(d_k, base=base)  # .half() would round a buffer

    def forward(self, x, start=0):
        """Rotate ``x`` (..., token, d_k), the first token standing at ``start``.

        Raises ValueError for another d_k.
        """
        if x.shape[-1] != 2 * len(self.frequencies):
            raise ValueError(
                f"this encoding is for a d_k of {2 * len(self.frequencies)}, got "
                f"{tuple(x.shape)}: in multi-head attention d_k is d_model / num_heads"
            )
        precise = torch.promote_types(x.dtype, torch.float32)
        positions = start + torch.arange(x.shape[-2], dtype=precise, device=x.device)
        angles = positions[:, None] * self.frequencies.to(x.device)  # (token, d_k / 2)
        even, odd = x[..., 0::2], x[..., 1::2]
        sin, cos = angles.sin(), angles.cos()
        rotated = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        rotated = rotated.flatten(-2)  # (..., token, d_k)
        return rotated.to(x.dtype) if x.is_floating_point() else rotated


class ALiBi(nn.Module):
    """Lower each score in proportion to the distance: Press et al. (2022).

    Head i of ``num_heads`` has the slope 2^(-8 (i + 1) / num_heads): some heads see
    far, others only what is near. Nothing is learned. Distances count in both
    directions; with a causal mask that is the paper's form.
    """

    def __init__(self, num_heads):
        super().__init__()
        self.register_buffer("head", torch.arange(1, num_heads + 1))

    def forward(self, queries, keys):
        """Return what to add to the scores of so many ``queries`` and ``keys``.

        The result is (head, query, key).
        """
        slopes = 2.0 ** (-8 * self.head / len(self.head))
        distance = relative_positions(queries, keys, device=slopes.device).abs()
        return -slopes[:, None, None] * distance


class RelativePositionBias(nn.Module):
    """Add a learned number for each head and distance: Shaw et al. (2018), simplified.

    Distances beyond ``max_distance`` count as ``max_distance``; before and after are
    told apart. As a bias on the score it is that of Raffel et al. (2020), without their
    buckets.
    """

    def __init__(self, num_heads, max_distance):
        super().__init__()
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.zeros(num_heads, 2 * max_distance + 1))

    def forward(self, queries, keys):
        """Return what to add to the scores of so many ``queries`` and ``keys``.

        The result is (head, query, key).
        """
        relative = relative_positions(queries, keys, device=self.table.device)
        relative = relative.clamp(-self.max_distance, self.max_distance)
        return self.table[:, relative + self.max_distance]


def relative_positions(queries, keys, *, device=None):
    """Return key position minus query position (query, key), in whole numbers.

    ``queries`` and ``keys`` are counts. The last query stands at the last key, and with
    more queries than keys the first ones stand before the first key.
    """
    query = torch.arange(keys - queries, keys, device=device)
    return torch.arange(keys, device=device) - query[:, None]


class PositionedAttention(MultiHeadAttention):
    """Multi-head attention whose scores depend on where query and key stand.

    ``rotary`` rotates queries and keys, ``position_bias`` adds to their scores: modules
    of this file, each of them optional. A call raises ValueError where either was made
    for other heads.
    """

    def __init__(
        self, d_model, num_heads, *, rotary=None, position_bias=None, dropout=0.0
    ):
        super().__init__(d_model, num_heads, dropout=dropout)
        self.rotary, self.position_bias = rotary, position_bias

    def attend(self, Q, K, V, mask, causal):
        """Return the context (batch, head, query, d_k), positions in its scores."""
        if self.rotary is not None:
            Q, K = self.rotary(Q, start=K.shape[-2] - Q.shape[-2]), self.rotary(K)
        if self.position_bias is None:
            return super().attend(Q, K, V, mask, causal)
        precise = torch.promote_types(Q.dtype, torch.float32)
        Q, K = Q.to(precise), K.to(precise)
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        bias = self.position_bias(Q.shape[-2], K.shape[-2])  # (head, query, key)
        if bias.ndim > 2 and bias.shape[-3] != self.num_heads:
            raise ValueError(
                f"the position bias is for {bias.shape[-3]} heads, and the layer has "
                f"{self.num_heads}"
            )
        scores = scores + bias
        if causal:
            mask = add_causal(mask, scores.shape, device=scores.device)
        weights = masked_softmax(scores, mask).to(V.dtype)
        return F.dropout(weights, self.dropout, self.training) @ V


def sinusoidal_grid(height, width, d_model):
    """Encode the cells of a grid: half of ``d_model`` for the row, half for the column.

    Returns (height · width, d_model), row by row. Raises ValueError unless 4 divides
    d_model. Parmar et al. (2018), section 3.2.
    """
    if d_model % 4:
        raise ValueError(
            f"4 must divide d_model, for pairs of columns for row and column: got "
            f"{d_model}, use {d_model + 4 - d_model % 4}"
        )
    rows = sinusoids(torch.arange(height), d_model // 2)  # (height, d_model / 2)
    columns = sinusoids(torch.arange(width), d_model // 2)  # (width, d_model / 2)
    rows, columns = rows[:, None].expand(-1, width, -1), columns.expand(height, -1, -1)
    return torch.cat((rows, columns), dim=-1).flatten(0, 1)
