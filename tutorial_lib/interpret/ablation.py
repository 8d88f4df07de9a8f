"""Ablation: take a head, or some attention, away while a model runs."""

from contextlib import contextmanager
from functools import partial, wraps
from unittest.mock import patch

import torch
from torch import nn

from tutorial_lib.interpret.recording import attending_by
from tutorial_lib.sizes import check_counts


@contextmanager
def ablate_head(projection, head, num_heads):
    """Zero-ablate a head within a ``with`` block: it adds nothing to the output.

    ``projection`` is the ``nn.Linear`` behind the ``num_heads`` side by side: ``W_O``
    here, ``out_proj`` in torch. Raises ValueError for another kind of layer, also one
    whose weight is made anew in each call (weight normalization), for a head that is
    not there, and for a number of heads that the layer cannot have.
    Within the block torch refuses to copy the model; a state_dict that is saved there
    has the zeros, and weights that are loaded there are lost.
    """
    if not isinstance(projection, nn.Linear):
        raise ValueError(
            "give the nn.Linear behind the heads, as layer.W_O or layer.out_proj: "
            f"{type(projection).__name__} is none"
        )
    if "weight" not in projection._parameters:
        raise ValueError(
            "the layer makes its weight anew in each call: remove its parametrization"
        )
    check_counts(num_heads=num_heads)
    if projection.in_features % num_heads:
        raise ValueError(
            f"{projection.in_features} columns are not those of {num_heads} heads"
        )
    if isinstance(head, (bool, float)) or head not in range(num_heads):
        raise ValueError(f"head {head} does not exist: choose 0 to {num_heads - 1}")
    d_k = projection.in_features // num_heads
    columns = torch.arange(projection.in_features, device=projection.weight.device)
    weight = projection.weight.masked_fill(columns // d_k == head, 0)
    with patch.dict(projection._parameters, weight=weight):
        yield


@contextmanager
def attention_knockout(layers, forbidden):
    """Forbid attention within a ``with`` block, from some queries to some keys.

    ``layers`` are attention layers that mask in a method ``attend(Q, K, V, mask)``, as
    ``MultiHeadAttention`` does. ``forbidden`` is True where a query may not attend:
    (query, key), (batch, query, key), or (batch, head, query, key), and its axes may be
    1; within windows (query, key) alone. What was masked before stays masked. Raises
    ValueError for a layer of another kind, for none, for one that did not attend in the
    block, where ``forbidden`` is neither True nor False, and where it does not fit the
    queries and keys, as at the second step of generation with a cache. Geva et al.
    (2023).
    """
    forbidden = torch.as_tensor(forbidden)
    if not ((forbidden == 0) | (forbidden == 1)).all():
        raise ValueError("forbidden must be True where a query may not attend")
    forbidden = forbidden.bool()
    layers = [*layers] if hasattr(layers, "__iter__") else [layers]
    if not layers:
        raise ValueError("give at least one layer, or nothing is knocked out")
    for layer in layers:
        if isinstance(layer, type):
            raise ValueError(f"{layer.__name__} is a class: give layers of a model")
        if not callable(getattr(type(layer), "attend", None)):
            raise ValueError(
                f"{type(layer).__name__} has no method attend: give layers of the kind "
                "of MultiHeadAttention, as model.layers[0].attention"
            )
    idle = {*layers}
    knocked_out = {*layers}
    with attending_by(layers, partial(_attend_without, knocked_out, forbidden, idle)):
        yield
    if idle:
        names = ", ".join(type(layer).__name__ for layer in idle)
        raise ValueError(
            f"nothing was knocked out in {names}: its method attend did not run in the "
            "block"
        )


def _attend_without(layers, forbidden, idle, attend):
    """Return what ``attend`` does in these layers where it is not forbidden."""

    @wraps(attend)
    def attend_without(layer, Q, K, V, mask=None):
        if layer not in layers:
            return attend(layer, Q, K, V, mask)
        idle.discard(layer)
        scores = (*Q.shape[:-1], K.shape[-2])  # (batch, head, query, key)
        allowed = ~forbidden.to(Q.device)
        if allowed.ndim == 3 and len(scores) == 4:
            allowed = allowed.unsqueeze(1)  # (batch, 1, query, key): for all heads
        try:
            allowed.expand(scores)
            fits = allowed.ndim > 1 and (allowed.ndim == 2 or len(scores) < 5)
        except RuntimeError:
            fits = False
        if not fits:
            more = {3: "", 4: "head, ", 5: "window, head, "}[len(scores)]
            raise ValueError(
                f"forbidden {tuple(forbidden.shape)} does not fit the scores "
                f"(batch, {more}query, key) = {scores}"
            )
        return attend(layer, Q, K, V, allowed if mask is None else mask & allowed)

    return attend_without
