"""Attention: how queries attend to keys and average values.

Shapes: queries (..., query, d_k), keys (..., key, d_k), values (..., key, d_v), weights
(..., query, key). A mask is boolean, True means "may attend", and it broadcasts to the
weights. A query that may attend to nothing gets weights 0 and output 0. A mask of
floats is no such mask: `MultiHeadAttention` leaves it to torch, which adds it to the
scores, where 0 and 1 hide nothing. Give ``mask.bool()``.

The classes project, then call their method ``attend``: the one place in which queries
meet keys, where `tutorial_lib.interpret` watches and changes it.
"""

from copy import copy

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from tutorial_lib.sizes import refuse_odd_sizes


def nadaraya_watson(queries, keys, values, kernel):
    """Average the values, weighted by how near each key is to the query.

    ``queries`` (query,) and ``keys`` (key,) are numbers; ``kernel`` turns distances
    into similarities. Returns the outputs (query,) and the weights (query, key), which
    are NaN where all similarities are 0. Nadaraya (1964), Watson (1964).
    """
    distances = queries[:, None] - keys  # (query, key)
    similarities = kernel(distances)
    weights = similarities / similarities.sum(dim=-1, keepdim=True)
    return weights @ values, weights


def masked_softmax(scores, mask=None):
    """Turn scores (..., query, key) into weights; True in ``mask``: may attend.

    A query that may attend to nothing gets weights 0.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min  # finite, so that no row becomes NaN
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # for a query that may attend to nothing


def scaled_dot_product_attention(queries, keys, values, mask=None):
    """Average the values, weighted by how well each key matches the query.

    Returns the outputs (..., query, d_v) and the weights (..., query, key).
    Vaswani et al. (2017), equation 1.
    """
    d_k = keys.shape[-1]
    scores = queries @ keys.mT / d_k**0.5  # (..., query, key)
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


class AdditiveAttention(nn.Module):
    """Attention with scores from a feed-forward network: w_v · tanh(W_Q q + W_K k).

    Queries and keys may differ in size. Bahdanau et al. (2015), appendix A.1.2.
    """

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)
        self.w_v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Return the context (batch, query, d_v) of ``values`` (batch, key, d_v)."""
        return self.attend(queries, self.W_K(keys), values, mask)

    def attend(self, queries, projected_keys, values, mask=None):
        """Attend with keys that ``W_K`` has projected already."""
        Q = self.W_Q(queries).unsqueeze(-2)  # (batch, query, 1, d_hidden)
        K = projected_keys.unsqueeze(-3)  # (batch, 1, key, d_hidden)
        scores = self.w_v(torch.tanh(Q + K)).squeeze(-1)  # (batch, query, key)
        weights = masked_softmax(scores, mask)
        return weights @ values  # (batch, query, d_v)


class MultiHeadAttention(nn.Module):
    """Attention in several subspaces at once: Vaswani et al. (2017), section 3.2.2.

    The ``d_model`` dimensions of a token are split evenly over ``num_heads``. Raises
    ValueError if num_heads does not divide d_model.
    """

    def __init__(self, d_model, num_heads, *, bias=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(
                f"num_heads must divide d_model: {num_heads} does not divide {d_model}"
            )
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=bias)
        self.W_K = nn.Linear(d_model, d_model, bias=bias)
        self.W_V = nn.Linear(d_model, d_model, bias=bias)
        self.W_O = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, queries, keys, values, mask=None):
        """Attend to ``keys``; all three are (batch, token, d_model)."""
        Q = self.split_heads(self.W_Q(queries))  # (batch, head, query, d_k)
        K = self.split_heads(self.W_K(keys))  # (batch, head, key, d_k)
        V = self.split_heads(self.W_V(values))
        return self.attend(Q, K, V, mask)

    def split_heads(self, x):
        """Cut (batch, token, d_model) into (batch, head, token, d_k)."""
        split = "batch token (head d_k) -> batch head token d_k"
        return rearrange(x, split, d_k=self.d_k)

    def attend(self, Q, K, V, mask=None):
        """Attend in every head, then merge the heads: (batch, query, d_model)."""
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)  # (batch, 1, query, key): the same for all heads
        context = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
        merge = "batch head query d_k -> batch query (head d_k)"
        return self.W_O(rearrange(context, merge))


class KVCache(dict):
    """Keys and values of the tokens so far: for each layer's number, its (K, V).

    Both are (batch, head, token, d_k). A model that generates token by token appends
    those of the newest and need not compute the others again.
    """

    def append(self, layer, K, V):
        """Add the keys and values of new tokens to a layer's; return all it has."""
        if layer in self:
            old_K, old_V = self[layer]
            K = torch.cat([old_K, K], dim=-2)
            V = torch.cat([old_V, V], dim=-2)
        self[layer] = (K, V)
        return K, V

    def num_tokens(self, layer=0):
        """Return the number of cached tokens of a layer."""
        if layer not in self:
            return 0
        K, _ = self[layer]
        return K.shape[-2]


KVCache.copy = copy  # a dictionary's own would make a dictionary


class CausalSelfAttention(MultiHeadAttention):
    """Self-attention to the tokens up to each one: Vaswani et al. (2017), 3.2.3."""

    def forward(self, x, kv_cache=None, layer=0):
        """Update ``x`` (batch, token, d_model), which follows what the cache holds."""
        Q = self.split_heads(self.W_Q(x))  # (batch, head, query, d_k)
        K = self.split_heads(self.W_K(x))  # (batch, head, key, d_k)
        V = self.split_heads(self.W_V(x))
        if kv_cache is not None:
            K, V = kv_cache.append(layer, K, V)  # with those of the tokens before
        key_positions = torch.arange(K.shape[-2], device=x.device)
        positions = key_positions[-x.shape[1] :]  # the queries are the last tokens
        mask = positions[:, None] >= key_positions  # causal: (query, key)
        return self.attend(Q, K, V, mask)


refuse_odd_sizes(MultiHeadAttention)
