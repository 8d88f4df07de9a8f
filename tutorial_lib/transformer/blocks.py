"""The blocks of the Transformer, on a stream of tokens (batch, token, d_model).

Each block adds to the stream what its tokens read and compute. The encoder's tokens
look at each other; the decoder's look at those before them and at the encoder's.

This module knows neither words nor positions.
"""

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask


class PositionwiseFeedForward(nn.Module):
    """Give every token the same small network: Vaswani et al. (2017), equation 2.

    ``d_ff`` neurons between two linear maps, ReLU or another ``activation`` between
    them, for tokens (..., token, d_model). No token sees another.
    """

    def __init__(self, d_model, d_ff, *, activation=torch.relu, dropout=0.0):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x):
        """Compute on each token of ``x`` (..., token, d_model) by itself."""
        return self.W_2(self.dropout(self.activation(self.W_1(x))))


class Residual(nn.Module):
    """Add what a layer computes to the stream, and normalize: before it or after.

    With ``norm_first`` the layer reads normalized tokens, x + layer(norm(x)), as in
    Xiong et al. (2020); without it the sum is normalized, norm(x + layer(x)), as in
    Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, d_model, *, norm_first, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.norm_first = norm_first
        self.dropout = nn.Dropout(dropout)

    def before(self, x):
        """Return what the layer reads of the stream ``x``."""
        return self.norm(x) if self.norm_first else x

    def after(self, x, change):
        """Return the stream ``x`` with the layer's ``change`` added."""
        x = x + self.dropout(change)
        return x if self.norm_first else self.norm(x)


class EncoderBlock(nn.Module):
    """Let tokens look at each other, then compute on each: one block of the encoder.

    Vaswani et al. (2017), figure 1, left. Sizes and errors as in MultiHeadAttention;
    ``activation`` is that of the network.
    """

    def __init__(
        self, d_model, heads, d_ff, *, norm_first, activation=torch.relu, dropout=0.0
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = PositionwiseFeedForward(
            d_model, d_ff, activation=activation, dropout=dropout
        )
        self.residuals = nn.ModuleList(Residual(d_model, **options) for _ in range(2))

    def forward(self, x, mask=None, *, causal=False):
        """Update ``x`` (batch, token, d_model); ``mask`` as in MultiHeadAttention."""
        look, think = self.residuals
        y = look.before(x)
        x = look.after(x, self.attention(y, y, y, mask, causal=causal))
        return think.after(x, self.feed_forward(think.before(x)))


class DecoderBlock(nn.Module):
    """Let tokens look back, then at the source, then compute on each.

    Vaswani et al. (2017), figure 1, right. Sizes as in EncoderBlock.
    """

    def __init__(self, d_model, heads, d_ff, *, norm_first, dropout=0.0):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.cross_attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout=dropout)
        self.residuals = nn.ModuleList(Residual(d_model, **options) for _ in range(3))

    def forward(self, x, prefix, source, mask=None):
        """Update the tokens ``x`` (batch, token, d_model) that follow a prefix.

        ``prefix`` and ``source`` are keys and values (batch, head, key, d_k) of the
        tokens before ``x`` and of the encoder's; ``mask`` is for the latter. Returns
        ``x`` and the prefix with the new tokens in it.
        """
        look_back, look_across, think = self.residuals
        y = look_back.before(x)
        prefix, earlier = extend(prefix, self.attention.project(y, y))
        x = look_back.after(x, self.attention.read(y, *prefix, **earlier))
        y = look_across.before(x)
        x = look_across.after(x, self.cross_attention.read(y, *source, mask))
        return think.after(x, self.feed_forward(think.before(x))), prefix


def extend(prefix, new):
    """Append keys and values, and say which of them each new token may look at.

    Returns the joined keys and values, and the mask as keywords for
    ``MultiHeadAttention.read``.
    """
    before, added = prefix[0].shape[-2], new[0].shape[-2]
    if before == 0:
        return new, {"causal": True}
    joined = tuple(torch.cat(both, dim=-2) for both in zip(prefix, new, strict=True))
    return joined, {"mask": causal_mask(before + added, device=new[0].device)[before:]}
