"""Relative positions: scores that depend on how far apart query and key are.

Nothing is added to the tokens; every attention layer is told anew. A query count that
differs from the key count means that the queries are the last of the keys, as in
decoding step by step.

This module does not know what the tokens are.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import MultiHeadAttention, add_causal, masked_softmax
from tutorial_lib.position.absolute import frequencies


class RotaryEncoding(nn.Module):
    """Turn each pair of numbers by an angle that grows with the position.

    A query turned by its position and a key turned by its own have a dot product that
    depends on the difference alone: Su et al. (2021), equation 34. ``d_k`` is the size
    of a query or key. Raises ValueError if it is odd.
    """

    def __init__(self, d_k, *, base=10_000):
        super().__init__()
        self.register_buffer("frequencies", frequencies(d_k, base=base))

    def forward(self, x, start=0):
        """Turn ``x`` (..., token, d_k), the first token standing at ``start``."""
        positions = torch.arange(start, start + x.shape[-2], device=x.device)
        angles = positions[:, None] * self.frequencies  # (token, d_k / 2)
        even, odd = x[..., 0::2], x[..., 1::2]
        sin, cos = angles.sin(), angles.cos()
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        return turned.flatten(-2)  # (..., token, d_k)


class LinearBias(nn.Module):
    """Lower each score in proportion to the distance: ALiBi, Press et al. (2022).

    Head i of ``heads`` has the slope 2^(-8 (i + 1) / heads): some heads see far, others
    only what is near. Nothing is learned. Distances count in both directions; with a
    causal mask that is the paper's form.
    """

    def __init__(self, heads):
        super().__init__()
        slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
        self.register_buffer("slopes", slopes)

    def forward(self, queries, keys):
        """Return what to add to the scores of so many ``queries`` and ``keys``.

        The result is (head, query, key).
        """
        apart = distances(queries, keys, device=self.slopes.device).abs()
        return -self.slopes[:, None, None] * apart


class RelativeBias(nn.Module):
    """Add a learned number for each head and distance: Shaw et al. (2018), simplified.

    Distances beyond ``reach`` count as ``reach``; before and after are told apart. As
    a bias on the score it is that of Raffel et al. (2020), without their buckets.
    """

    def __init__(self, heads, reach):
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(heads, 2 * reach + 1))

    def forward(self, queries, keys):
        """Return what to add to the scores of so many ``queries`` and ``keys``.

        The result is (head, query, key).
        """
        apart = distances(queries, keys, device=self.table.device)
        return self.table[:, apart.clamp(-self.reach, self.reach) + self.reach]


def distances(queries, keys, *, device=None):
    """Return key position minus query position (query, key), in whole numbers.

    ``queries`` and ``keys`` are counts. The last query stands at the last key.
    """
    position = torch.arange(keys, device=device)
    return position - position[keys - queries :, None]


class PositionedAttention(MultiHeadAttention):
    """Multi-head attention whose scores depend on where query and key stand.

    ``rotary`` turns queries and keys, ``bias`` adds to their scores: modules of this
    file, each of them optional.
    """

    def __init__(self, d_model, heads, *, rotary=None, bias=None, dropout=0.0):
        super().__init__(d_model, heads, dropout=dropout)
        self.rotary, self.score_bias = rotary, bias

    def attend(self, Q, K, V, mask, causal):
        """Weigh and average, the scores changed by the positions."""
        if self.rotary is not None:
            Q, K = self.rotary(Q, start=K.shape[-2] - Q.shape[-2]), self.rotary(K)
        if self.score_bias is None:
            return super().attend(Q, K, V, mask, causal)
        if causal:
            mask = add_causal(mask, K.shape[-2], device=Q.device)
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        scores = scores + self.score_bias(Q.shape[-2], K.shape[-2])
        weights = self.map(masked_softmax(scores, mask))
        return F.dropout(weights, self.dropout, self.training) @ V
