"""Ablation: take a head, or some attention, away while a model runs."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch import nn


@contextmanager
def ablate_head(projection, head, num_heads):
    """Zero-ablate a head within a ``with`` block: it adds nothing to the output.

    ``projection`` is the ``nn.Linear`` behind the ``num_heads`` side by side: ``W_O``
    here, ``out_proj`` in torch. Raises ValueError for another kind of layer, for a head
    that is not there, and for a number of heads that the layer cannot have.
    """
    if not isinstance(projection, nn.Linear):
        raise ValueError(
            "give the nn.Linear behind the heads, as layer.W_O or layer.out_proj: "
            f"{type(projection).__name__} is none"
        )
    if num_heads < 1 or projection.in_features % num_heads:
        raise ValueError(
            f"{projection.in_features} columns are not those of {num_heads} heads"
        )
    if head not in range(num_heads):
        raise ValueError(f"head {head} does not exist: choose 0 to {num_heads - 1}")
    d_k = projection.in_features // num_heads
    own = slice(head * d_k, (head + 1) * d_k)
    weight = projection.weight.detach()  # the same numbers, without their gradient
    kept = weight[:, own].clone()
    try:
        weight[:, own] = 0
        yield
    finally:
        weight[:, own] = kept


@contextmanager
def attention_knockout(layers, forbidden):
    """Forbid attention within a ``with`` block, from some queries to some keys.

    ``layers`` are attention layers that mask in a method ``attend(Q, K, V, mask)``, as
    ``MultiHeadAttention`` does. ``forbidden`` is True where a query may not attend:
    (query, key), (batch, query, key), or (batch, head, query, key), and its axes may be
    1; within windows (query, key) alone. What was masked before stays masked. Raises
    ValueError for a layer of another kind, for none, and where ``forbidden`` does not
    fit the queries and keys, as at the second step of generation with a cache. Geva et
    al. (2023).
    """
    forbidden = torch.as_tensor(forbidden, dtype=torch.bool)
    layers = list(layers)
    if not layers:
        raise ValueError("give at least one layer, or nothing is knocked out")
    for layer in layers:
        if not callable(getattr(layer, "attend", None)):
            raise ValueError(
                f"{type(layer).__name__} has no method attend: give layers of the kind "
                "of MultiHeadAttention, as model.layers[0].attention"
            )
    with ExitStack() as stack:
        for layer in layers:
            attend = _attend_without(layer.attend, forbidden)
            stack.enter_context(patch.object(layer, "attend", attend))
        yield


def _attend_without(attend, forbidden):
    """Return what ``attend`` does where it is not forbidden."""

    def attend_without(Q, K, V, mask=None):
        scores = (*Q.shape[:-1], K.shape[-2])  # (batch, head, query, key)
        allowed = ~forbidden
        if allowed.ndim == 3 and len(scores) == 4:
            allowed = allowed.unsqueeze(1)  # (batch, 1, query, key): for all heads
        try:
            allowed.expand(scores)
            fits = allowed.ndim > 1 and (allowed.ndim == 2 or len(scores) < 5)
        except RuntimeError:
            fits = False
        if not fits:
            axes = "(batch, window, head, query, key)"
            axes = axes if len(scores) == 5 else "(batch, head, query, key)"
            raise ValueError(
                f"forbidden {tuple(forbidden.shape)} does not fit the scores {axes} = "
                f"{scores}"
            )
        return attend(Q, K, V, allowed if mask is None else mask & allowed)

    return attend_without
