"""Recording: look at the weights of every attention layer while a model runs.

An attention module sends its weights through ``self.map``, an ``nn.Identity``; a hook
on it makes the module compute the weights that its fused path never holds.

This module knows no model: any module with such a ``map`` is watched.
"""

from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn


@contextmanager
def record_attention(model):
    """Record the attention weights of every layer of ``model`` within a ``with`` block.

    Yields a dictionary from the name of each attention module ("" is the model
    itself) to its weights (batch, head, query, key), detached and before dropout. Each
    call of the model starts afresh. A layer that runs several times within one call,
    as in step-by-step decoding, has its queries joined. Raises ValueError if the
    model holds no attention module.
    """
    watched = {
        name: module
        for name, module in model.named_modules()
        if isinstance(getattr(module, "map", None), nn.Identity)
    }
    if not watched:
        raise ValueError(
            f"{type(model).__name__} holds no attention module: nothing in it has "
            "a `map = nn.Identity()` that its weights pass through"
        )
    maps = {}
    hooks = [model.register_forward_pre_hook(lambda *_: maps.clear())]
    try:
        for name, module in watched.items():
            hooks.append(module.map.register_forward_hook(_recorder(maps, name)))
        yield maps
    finally:
        for hook in hooks:
            hook.remove()


def _recorder(maps, name):
    def record(module, inputs, weights):
        weights = weights.detach()
        if weights.ndim == 3:
            weights = weights.unsqueeze(1)  # (batch, head, query, key)
        maps[name] = _join(maps[name], weights) if name in maps else weights

    return record


def _join(earlier, later):
    """Append queries; an earlier query gives weight 0 to keys that came after it."""
    keys = max(earlier.shape[-1], later.shape[-1])
    earlier, later = (F.pad(w, (0, keys - w.shape[-1])) for w in (earlier, later))
    return torch.cat((earlier, later), dim=-2)
