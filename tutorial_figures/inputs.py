"""What readers pass to the figures, turned into arrays and text or refused.

Numbers and tokens first, then attention weights: checked, in layers, packed for a page.
"""

import base64
import math
import unicodedata
import zlib
from collections.abc import Mapping

import numpy as np

from tutorial_lib.plotting.heatmaps import as_cells

MOST_TOKENS = 256
MOST_CHARACTERS = 1_000_000
DEFLATE_ABOVE = 16_384  # bytes; below, the result depends on nobody's zlib


def as_array(values, name):
    """Return a float64 array of a tensor (any device, dtype), an array or a list.

    Raises ValueError where a value is not a finite number.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contain NaN or infinity: find where they arise first")
    return array


def as_number(value, name):
    """Return a float of a number or a tensor of one element."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")
    return number


def as_positive(value, name):
    """Return a float of a positive number or a tensor of one element."""
    number = as_number(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number:g}")
    return number


def as_text(token):
    """Return ``token`` on one line, with its control characters written out."""
    text = str(token).encode("utf-8", "replace").decode()
    return "".join(
        repr(c)[1:-1] if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c
        for c in text
    )


def as_labels(labels, count, numbers, name="labels"):
    """Return a text for each of ``count`` numbers; without labels they are keys."""
    labels = [f"key {i}" for i in range(count)] if labels is None else labels
    labels = [as_text(label) for label in labels]
    if len(labels) != count:
        raise ValueError(f"{count} {numbers} need as many {name}, got {len(labels)}")
    return labels


def rounded(array, digits=4):
    """Return lists of the values to some significant digits: alike on any machine."""
    if np.ndim(array):
        return [rounded(part, digits) for part in array]
    return float(f"{array:.{digits}g}")


def as_layers(weights, layer=None):
    """Return a (layer, head, query, key) array of what ``show_attention`` takes.

    Raises ValueError for another shape, for scores, for maps of more than one sentence,
    and for several layers in one array of which no ``layer`` is asked for: they might
    be sentences.
    """
    if isinstance(weights, Mapping):  # as `record_attention` makes it
        weights = [*weights.values()]
    if isinstance(weights, (list, tuple)) and len(weights) and np.ndim(weights[0]) > 2:
        _check_layers([tuple(np.shape(one)) for one in weights])
        return np.concatenate([as_layers(one) for one in weights])
    weights = as_array(weights, "weights")
    if layer is None and weights.ndim == 4 and len(weights) > 1:
        raise ValueError(
            f"weights {weights.shape} may be {len(weights)} layers or sentences: pass "
            "layer=0 if they are layers, weights[0] for the first sentence"
        )
    if not 2 <= weights.ndim <= 4 or weights.size == 0:
        raise ValueError(
            "weights must be (query, key), (head, query, key) or "
            f"(layer, head, query, key), got {weights.shape}"
        )
    check_weights(weights)
    return weights.reshape((1,) * (4 - weights.ndim) + weights.shape)


def _check_layers(shapes):
    """Refuse a list unless it has one (1, head, query, key) for each layer."""
    if any(len(shape) == 4 and shape[0] != 1 for shape in shapes):
        raise ValueError(
            f"a list has one (1, head, query, key) for each layer, got {shapes[0]}: "
            "pick a sentence, as in [one[:1] for one in maps.values()]"
        )
    if len({shape[-3:] for shape in shapes}) > 1:
        raise ValueError(f"layers must have maps of one shape, got {shapes}")


def check_tokens(weights, queries, keys):
    """Refuse tokens that do not fit the weights, or too many of them."""
    *_, rows, columns = weights.shape
    if (rows, columns) != (len(queries), len(keys)):
        raise ValueError(
            f"weights are {rows} queries × {columns} keys, but there are "
            f"{len(queries)} query tokens and {len(keys)} key tokens"
        )
    if max(rows, columns) > MOST_TOKENS:
        raise ValueError(
            f"{max(rows, columns)} tokens are more than the {MOST_TOKENS} a reader can "
            "tell apart: pass a part, e.g. weights[..., :64, :64] and tokens[:64]"
        )


def check_weights(weights):
    """Refuse scores, and weights that were normalized along another axis."""
    if weights.min() < 0 or weights.max() > 1 + 1e-3:
        raise ValueError(
            f"weights must lie between 0 and 1, got {weights.min():.3g} to "
            f"{weights.max():.3g}: pass the output of the softmax, not the scores"
        )
    if weights.sum(-1).max() > 1.02:  # bfloat16 sums to 1 within 0.01
        raise ValueError(
            f"a query's weights sum to {weights.sum(-1).max():.3g}, not 1: rows are "
            "queries, columns are keys, and the softmax runs over the keys (dim=-1)"
        )


def choose(weights, layer, head):
    """Return the numbers of a layer and a head, and their weights (query, key).

    The mean over the heads follows the last of many. Raises ValueError for a layer or
    head that does not exist.
    """
    layers, heads, *_ = weights.shape
    layer = 0 if layer is None else layer
    head = heads if head == "mean" and heads > 1 else head
    if layer not in range(layers):
        raise ValueError(f"layer {layer!r} does not exist: choose 0 to {layers - 1}")
    if head not in range(heads + (heads > 1)):
        raise ValueError(f"head {head!r} does not exist: choose 0 to {heads - 1}")
    return {"layer": int(layer), "head": int(head)}, with_mean(weights)[layer, head]


def where(data):
    """Return the words for what is shown first: a layer and a head, if many."""
    layers = data["layers"]
    heads = data["heads"]
    shown = data["shown"]
    head = "mean over the heads" if shown["head"] == heads else f"head {shown['head']}"
    parts = [f"layer {shown['layer']}"] * (layers > 1) + [head] * (heads > 1)
    return ", ".join(parts)


def with_mean(weights):
    """Add the mean over the heads as one head more, unless there is one head only."""
    if weights.shape[1] == 1:
        return weights
    return np.concatenate([weights, weights.mean(1, keepdims=True)], axis=1)


def as_mask(mask, shape):
    """Return a boolean array (query, key), True where a query may attend."""
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, True = may attend, got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"mask {mask.shape} must broadcast to (query, key) {tuple(shape)}: pass "
            "that of one sentence, without batch and head"
        ) from None


def as_outline(outline, shape):
    """Return a boolean array (query, key), True in framed cells; None if none is."""
    cells = as_cells(set() if outline is None else outline, shape).numpy()
    return cells if cells.any() else None


def as_data(weights, mask=None, outline=None):
    """Return what the JavaScript needs to know of the weights and their cells."""
    sizes = dict(
        zip(("layers", "heads", "rows", "columns"), weights.shape, strict=True)
    )
    cells = {"mask": _digits(mask), "outline": _digits(outline)}
    return {**sizes, **cells, **pack(with_mean(weights))}


def _digits(cells):
    return None if cells is None else "".join("01"[int(cell)] for cell in cells.flat)


def pack(weights):
    """Return the weights as base64 of 16-bit integers, deflated where they are many.

    An integer is 0 for a weight of exactly 0, else 1 + the weight in thousandths: the
    figure tells 0 from very small, and thousandths agree between machines.
    """
    codes = np.where(weights == 0, 0, 1 + np.round(1000 * weights)).astype("<u2")
    raw = codes.tobytes()
    deflated = len(raw) > DEFLATE_ABOVE
    packed = base64.b64encode(zlib.compress(raw, 9) if deflated else raw).decode()
    if len(packed) > MOST_CHARACTERS:
        raise ValueError(
            f"{weights.size:,} weights make a cell of {len(packed) / 1e6:.1f} MB, more "
            "than 1: pass fewer layers, heads or tokens, e.g. weights[:2]"
        )
    return {"packed": packed, "deflated": deflated}
