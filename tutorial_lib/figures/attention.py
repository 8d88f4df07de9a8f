"""Attention weights to point at: lines between tokens beside a heatmap.

This module knows no model: weights and tokens go in.
"""

import base64
import zlib

import numpy as np

from .figure import Figure
from .inputs import as_array, as_text

FILES = ("colours.js", "lines.js", "heatmap.js", "attention.js", "attention.css")
MOST_TOKENS = 256
MOST_CHARACTERS = 1_000_000
DEFLATE_ABOVE = 16_384  # bytes; below, the result depends on nobody's zlib


def show_attention(
    weights,
    query_tokens,
    key_tokens=None,
    *,
    layer=0,
    head=0,
    names=("query", "key"),
    mask=None,
    title=None,
):
    """Show which query token looks at which key token, and how much.

    ``weights`` are (query, key), (head, query, key), (layer, head, query, key) or a
    list with one (1, head, query, key) per layer: what a softmax over the keys
    returns. ``key_tokens`` default to ``query_tokens``. ``layer`` and ``head`` (a
    number or "mean") are shown first. ``mask`` broadcasts to (query, key), True where
    a query may look; the other cells are hatched. Weights are shown to 3 decimals,
    lines up to 64 tokens. Raises ValueError for scores, NaN, tokens that do not fit
    the weights, and more than 256 tokens or 1 MB.
    """
    weights = _as_layers(weights)
    queries = [as_text(token) for token in query_tokens]
    keys = queries if key_tokens is None else [as_text(token) for token in key_tokens]
    _check_tokens(weights, queries, keys)
    _check_weights(weights)
    layers, heads, *shape = weights.shape
    layer = _choice(layer, layers, "layer")
    head = heads if head == "mean" and heads > 1 else _choice(head, heads, "head")
    if heads > 1:  # the mean over the heads is shown like one head more
        weights = np.concatenate([weights, weights.mean(1, keepdims=True)], axis=1)
    mask = None if mask is None else _as_mask(mask, shape)
    data = {
        "queries": queries,
        "keys": keys,
        "names": [as_text(name) for name in names],
        "layers": layers,
        "heads": heads,
        "shown": {"layer": layer, "head": head},
        "mask": None if mask is None else "".join("01"[int(may)] for may in mask.flat),
        **pack(weights),
    }
    shown, where = weights[layer, head], _where(layers, heads, layer, head)
    return Figure(
        "attention",
        FILES,
        data,
        text=_sentence(shown, data, where),
        title=title,
        draw=lambda: _draw(shown, data, where, mask),
    )


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


def _as_layers(weights):
    """Return a (layer, head, query, key) array."""
    if isinstance(weights, (list, tuple)) and np.ndim(weights[0]) > 2:
        return np.concatenate([_as_layers(layer) for layer in weights])
    weights = as_array(weights, "weights")
    if not 2 <= weights.ndim <= 4 or weights.size == 0:
        raise ValueError(
            "weights must be (query, key), (head, query, key) or "
            f"(layer, head, query, key), got {weights.shape}"
        )
    return weights.reshape((1,) * (4 - weights.ndim) + weights.shape)


def _check_tokens(weights, queries, keys):
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


def _check_weights(weights):
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


def _choice(number, length, name):
    if number not in range(length):
        raise ValueError(f"{name} {number!r} does not exist: choose 0 to {length - 1}")
    return int(number)


def _as_mask(mask, shape):
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, True = may look, got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"mask {mask.shape} must broadcast to (query, key) {tuple(shape)}: pass "
            "that of one sentence, without batch and head"
        ) from None


def _where(layers, heads, layer, head):
    parts = [f"layer {layer}"] if layers > 1 else []
    if heads > 1:
        parts.append("mean over the heads" if head == heads else f"head {head}")
    return ", ".join(parts)


def _sentence(shown, data, where):
    queries, keys, names = data["queries"], data["keys"], data["names"]
    query, key = np.unravel_index(shown.argmax(), shown.shape)
    return (
        f"Attention weights of {len(queries)} {names[0]} tokens over {len(keys)} "
        f"{names[1]} tokens{where and f' ({where})'}. The largest, "
        f"{shown[query, key]:.3f}, is that of {names[0]} «{queries[query]}» for "
        f"{names[1]} «{keys[key]}»."
    )


def _draw(shown, data, where, mask):
    from matplotlib.figure import Figure as Canvas

    rows, columns = shown.shape
    cell = min(0.42, 8 / max(rows, columns))
    size = 2.4 + columns * cell, 1.6 + rows * cell
    fig = Canvas(figsize=size, layout="constrained")
    ax = fig.subplots()
    image = ax.imshow(shown, cmap="Blues", vmin=0, vmax=1)
    _hatch(ax, mask)
    labelled = slice(None) if cell >= 0.2 else slice(0)
    plain = {"parse_math": False}
    turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor", **plain}
    ax.xaxis.tick_top()
    ax.set_xticks(range(columns)[labelled], _short(data["keys"])[labelled], **turned)
    ax.set_yticks(range(rows)[labelled], _short(data["queries"])[labelled], **plain)
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(_short(data["names"])[1], **plain)
    ax.set_ylabel(_short(data["names"])[0], **plain)
    ax.spines[:].set_visible(False)
    fig.colorbar(image, ax=ax, label=f"weight ({where})" if where else "weight")
    return fig


def _hatch(ax, mask):
    from matplotlib.patches import Rectangle

    for query, key in [] if mask is None else np.argwhere(~mask):
        style = {"fill": False, "edgecolor": "0.6", "hatch": "////", "linewidth": 0}
        ax.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, **style))


def _short(tokens):
    return [token if len(token) <= 16 else f"{token[:15]}…" for token in tokens]
