"""Shapes: one clear sentence when the inputs of an attention do not fit together.

This module knows the shapes and types of tensors, and nothing of what they hold.
"""

from itertools import zip_longest

import torch


def check_mask(mask, shape, *, causal=False):
    """Raise a ValueError of one line unless ``mask`` is boolean and fits ``shape``.

    ``shape`` is that of the scores, (..., query, key); the mask must broadcast to it,
    and None always does. ``causal`` asks for as many queries as keys besides.
    """
    if causal and shape[-2] != shape[-1]:
        raise ValueError(
            f"causal=True needs as many queries as keys, got {shape[-2]} and "
            f"{shape[-1]}: pass a mask that says which key each query may attend to"
        )
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean, True where a query may attend, got {mask.dtype}: "
            "make it boolean with mask.bool(), or for 0 and -inf with mask == 0"
        )
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    fits = mask.ndim <= len(shape) and all(own in (1, size) for own, size in sizes)
    if not fits:
        raise ValueError(
            f"mask {tuple(mask.shape)} does not broadcast to the scores "
            f"(..., query, key) = {tuple(shape)}"
        )


def check_shapes(queries, keys, values, *, sizes=None, axes=None):
    """Raise a ValueError of one line unless queries, keys and values fit together.

    ``sizes`` are the last axes that queries and keys must have; without it they must
    have the same. ``axes`` is how many axes each has, or None for two and more.
    """
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if tensor.ndim < 2 or (axes and tensor.ndim != axes):
            raise ValueError(
                f"{name} must be ({'batch' if axes else '...'}, {name}, d), got "
                f"{tuple(tensor.shape)}: give what is single an axis with [None]"
            )
    expected = sizes or (queries.shape[-1], queries.shape[-1])
    if (queries.shape[-1], keys.shape[-1]) != expected:
        raise ValueError(
            f"queries {tuple(queries.shape)} and keys {tuple(keys.shape)} must end in "
            f"the sizes {expected[0]} and {expected[1]}"
        )
    batches = [tuple(tensor.shape[:-2]) for tensor in (queries, keys, values)]
    for lengths in zip_longest(*map(reversed, batches), fillvalue=1):
        if len(set(lengths) - {1}) > 1:  # torch.broadcast_shapes imports for seconds
            raise ValueError(
                "the axes before the last two must fit together, got those of queries "
                f"{batches[0]}, of keys {batches[1]} and of values {batches[2]}"
            )
    if keys.shape[-2] != values.shape[-2]:
        raise ValueError(
            f"every key needs one value: got {keys.shape[-2]} keys "
            f"and {values.shape[-2]} values"
        )
