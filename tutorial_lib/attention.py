"""Attention: how queries attend to keys and average values.

Shapes: queries (..., query, d_k), keys (..., key, d_k), values (..., key, d_v), weights
(..., query, key). A mask is boolean, True means "may attend", and it broadcasts to the
weights: any axis may be 1, and axes on the left may be missing, so that (key,) hides
the same keys from every query. A query that may attend to nothing gets weights 0 and
output 0. What is hidden has to be finite all the same, because 0 · ∞ is NaN.

This module knows tensors only: no data, no training, no plots.
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from tutorial_lib.masks import causal_mask
from tutorial_lib.shapes import check_mask, check_shapes


def masked_softmax(scores, mask=None):
    """Turn scores into weights that sum to 1 over the keys a query may attend to.

    ``scores`` and the result are (..., query, key); ``mask`` is boolean, True where
    the query may attend. A query that may attend to nothing gets weights 0. Raises
    ValueError if the mask is not boolean or does not broadcast to the scores.
    """
    if not scores.is_floating_point():
        scores = scores.to(torch.get_default_dtype())  # a half cannot be whole
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, scores.shape)
    scores = scores.masked_fill(~mask, -torch.inf)
    nothing = scores.isneginf().all(dim=-1, keepdim=True)  # (..., query, 1)
    weights = scores.masked_fill(nothing, 0).softmax(dim=-1)  # no row turns into NaN
    return weights.masked_fill(nothing, 0)


def nadaraya_watson(queries, keys, values, kernel):
    """Predict each query's value by the average of the values near it.

    ``queries`` are (query,) or (query, d_k), ``keys`` (key,) or (key, d_k), ``values``
    (key,) or (key, d_v); ``kernel`` turns distances into similarities (see
    ``tutorial_lib.kernels``). Returns the outputs, (query,) or (query, d_v), and the
    weights (query, key). A query with no key within reach gets weights 0 and output 0.
    Raises ValueError if the shapes do not fit. Nadaraya (1964), Watson (1964).
    """
    if queries.ndim == 1 and keys.ndim == 1:
        queries, keys = queries[:, None], keys[:, None]
    check_shapes(queries, keys, values if values.ndim > 1 else values[:, None])
    exact = "donot_use_mm_for_euclid_dist"  # the fast way rounds small distances
    similarities = kernel(torch.cdist(queries, keys, compute_mode=exact))
    total = similarities.sum(dim=-1, keepdim=True)
    weights = similarities / total.where(total > 0, 1)  # (query, key)
    return weights @ values, weights


def attention_weights(queries, keys, mask=None, *, causal=False):
    """Return how much each query attends to each key: softmax(Q Kᵀ / √d_k).

    ``queries`` (..., query, d_k), ``keys`` (..., key, d_k); the weights are
    (..., query, key). ``causal`` lets query i attend to keys 0 to i, besides any mask.
    The first half of Vaswani et al. (2017), equation 1. Raises ValueError for a mask
    that does not fit the weights.
    """
    precise = torch.promote_types(queries.dtype, torch.float32)
    queries, keys = queries.to(precise), keys.to(precise)  # float16 ends at 65504
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    if causal:
        mask = add_causal(mask, scores.shape, device=scores.device)
    return masked_softmax(scores, mask)


def scaled_dot_product_attention(queries, keys, values, mask=None, *, causal=False):
    """Average the values, weighted by how well each key matches the query.

    ``queries`` (..., query, d_k), ``keys`` (..., key, d_k), ``values`` (..., key, d_v);
    ``mask`` is boolean, True where a query may attend; ``causal`` lets query i attend
    to keys 0 to i, besides any mask. Returns the outputs (..., query, d_v) and the
    weights (..., query, key). Raises ValueError if the shapes do not fit together.
    Vaswani et al. (2017), equation 1.
    """
    check_shapes(queries, keys, values)
    weights = attention_weights(queries, keys, mask, causal=causal)
    if values.is_floating_point():
        weights = weights.to(values.dtype)
    return weights @ values.to(weights.dtype), weights


class AdditiveAttention(nn.Module):
    """Attention whose scores come from a small network: w_vᵀ tanh(W_Q q + W_K k).

    Queries and keys may differ in size: ``d_query`` and ``d_key``; the network has
    ``d_hidden`` hidden units. Bahdanau et al. (2015), appendix A.1.2. It holds
    (batch, query, key, d_hidden) numbers at once, so keep it for short sequences.
    """

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)
        self.w_v = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Return the context (batch, query, d_v) of ``values`` (batch, key, d_v)."""
        sizes = (self.W_Q.in_features, self.W_K.in_features)
        check_shapes(queries, keys, values, sizes=sizes)
        return self.attend(queries, self.W_K(keys), values, mask)

    def attend(self, queries, projected_keys, values, mask=None):
        """Do what ``forward`` does, with keys that ``W_K`` has projected before."""
        Q = self.W_Q(queries).unsqueeze(-2)  # (batch, query, 1, d_hidden)
        K = projected_keys.unsqueeze(-3)  # (batch, 1, key, d_hidden)
        scores = self.w_v(torch.tanh(Q + K)).squeeze(-1)  # (batch, query, key)
        return masked_softmax(scores, mask) @ values


class KVCache(dict):
    """Keys and values of the tokens so far: for each attention layer, its (K, V).

    Both are (batch, head, key, d_k). A decoder that generates token by token appends
    those of the newest token and need not compute the others again: Shazeer (2019).
    """

    def append(self, layer, K, V):
        """Add the keys and values of new tokens to a layer's; return all it has."""
        if layer in self:
            K, V = (
                torch.cat(pair, -2) for pair in zip(self[layer], (K, V), strict=True)
            )
        self[layer] = K, V
        return K, V

    @property
    def length(self):
        """Return the number of tokens whose keys and values are held.

        The layer that appends first decides: in a decoder, its first self-attention.
        """
        return next(iter(self.values()))[0].shape[-2] if self else 0


class MultiHeadAttention(nn.Module):
    """Attention in several subspaces at once: Vaswani et al. (2017), figure 2.

    ``d_model`` is the size of a token, split evenly over ``num_heads``; ``dropout`` is
    the probability with which a weight is dropped in training. Raises ValueError if
    num_heads does not divide d_model.
    """

    def __init__(self, d_model, num_heads, *, bias=True, dropout=0.0):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(
                f"num_heads must divide d_model: {num_heads} does not divide {d_model}"
            )
        self.num_heads, self.dropout = num_heads, dropout
        self.W_Q = nn.Linear(d_model, d_model, bias=bias)
        self.W_K = nn.Linear(d_model, d_model, bias=bias)
        self.W_V = nn.Linear(d_model, d_model, bias=bias)
        self.W_O = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, queries, keys, values, mask=None, *, causal=False, kv_cache=None):
        """Attend to ``keys``; return (batch, query, d_model).

        All three are (batch, token, d_model). A mask of three axes is
        (batch, query, key), for all heads; any other broadcasts to
        (batch, head, query, key). With a ``kv_cache`` the keys and values are added to
        those it holds, and ``causal`` counts the queries as the last of them; keys and
        values that are None add nothing, as in cross-attention, where the source stays
        the same. Raises ValueError if the shapes do not fit.
        """
        d_model = self.W_O.in_features
        if keys is None:
            K, V = kv_cache[self]
        else:
            check_shapes(queries, keys, values, sizes=(d_model, d_model), axes=3)
            K, V = self.split_heads(self.W_K(keys)), self.split_heads(self.W_V(values))
            if kv_cache is not None:
                K, V = kv_cache.append(self, K, V)
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)  # (batch, 1, query, key): the same for all heads
        Q = self.split_heads(self.W_Q(queries))  # (batch, head, query, d_k)
        if causal and kv_cache is not None and Q.shape[-2] < K.shape[-2]:
            shape = (*Q.shape[:-1], K.shape[-2])  # (batch, head, query, key)
            mask = add_causal(mask, shape, device=Q.device, cached=True)
            causal = False
        context = self.attend(Q, K, V, mask, causal)
        join = "batch head token d_k -> batch token (head d_k)"
        return self.W_O(rearrange(context, join))

    def split_heads(self, x):
        """Cut tokens (batch, token, d_model) into (batch, head, token, d_k)."""
        split = "batch token (head d_k) -> batch head token d_k"
        return rearrange(x, split, head=self.num_heads)

    def attend(self, Q, K, V, mask, causal):
        """Return the context (batch, head, query, d_k), without holding the weights.

        Its memory grows with the tokens, not with their square: Dao et al. (2022).
        """
        shape = (*Q.shape[:-1], K.shape[-2])  # (batch, head, query, key)
        if causal and mask is not None:
            mask, causal = add_causal(mask, shape, device=Q.device), False
        check_mask(mask, shape, causal=causal)
        if mask is not None:
            mask = torch.atleast_2d(mask)  # the least that the kernel takes
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask, dropout_p=dropout, is_causal=causal
        )


def add_causal(mask, shape, *, device, cached=False):
    """Combine a mask, or None, with the causal one, for scores (..., query, key).

    With ``cached`` the queries are the last of the keys, as in decoding step by step.
    Raises ValueError if the mask does not broadcast to ``shape``, and unless there are
    as many queries as keys or they are cached.
    """
    check_mask(mask, shape, causal=not cached)
    causal = causal_mask(shape[-1], device=device)[-shape[-2] :]  # (query, key)
    return causal if mask is None else mask & causal
