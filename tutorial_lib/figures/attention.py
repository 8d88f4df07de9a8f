"""Attention weights of real tokens, to point at: lines and a heatmap, by layer and head.

This module knows no model: weights and tokens go in.
"""

import base64
import zlib

import numpy as np

from .figure import Figure
from .inputs import as_array, as_text

MOST_TOKENS = 256
MOST_CHARACTERS = 1_000_000
DEFLATE_ABOVE = 16_384  # bytes; below, the bytes do not depend on anybody's zlib


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
    a query may look; the other cells are hatched. Weights are shown to 3 decimals.
    More than 64 tokens show no lines. Raises ValueError for scores, NaN, tokens that
    do not fit the weights, and more than 256 tokens or 1 MB.
    """
    weights = _as_layers(weights)
    queries = [as_text(token) for token in query_tokens]
    keys = queries if key_tokens is None else [as_text(token) for token in key_tokens]
    _check_tokens(weights, queries, keys)
    _check_weights(weights)
    layers, heads, *_ = weights.shape
    layer = _choice(layer, layers, "layer")
    head = heads if head == "mean" and heads > 1 else _choice(head, heads, "head")
    if heads > 1:  # the mean over the heads is one head more
        weights = np.concatenate([weights, weights.mean(1, keepdims=True)], axis=1)
    mask = None if mask is None else _as_mask(mask, weights.shape[-2:])
    names = tuple(as_text(name) for name in names)
    title = None if title is None else as_text(title)
    shown = weights[layer, head]
    data = {
        "queries": queries,
        "keys": keys,
        "layers": layers,
        "heads": heads,
        "shown": {"layer": layer, "head": head},
        "names": names,
        "mask": mask is not None and "".join("01"[allowed] for allowed in mask.flat),
        **pack(weights),
    }
    where = _where(layers, heads, layer, head)
    return Figure(
        ("attention",),
        data,
        text=_sentence(shown, queries, keys, names, where, title),
        title=title,
        draw=lambda: _draw(shown, queries, keys, names, title or where, mask),
    )


def pack(weights):
    """Return the weights as base64 of 16-bit integers, deflated where that pays.

    An integer is 0 for a weight of exactly 0, else 1 + the weight in thousandths, so
    that the figure tells a weight of 0 from a very small one.
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
        return np.stack([_as_layers(layer)[0] for layer in weights])
    weights = as_array(weights, "weights")
    if not 2 <= weights.ndim <= 4:
        raise ValueError(
            "weights must be (query, key), (head, query, key) or "
            f"(layer, head, query, key), got the shape {weights.shape}"
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
            f"{max(rows, columns)} tokens are too many to read, {MOST_TOKENS} the "
            f"most: pass a part, e.g. weights[..., :64, :64] and tokens[:64]"
        )


def _check_weights(weights):
    advice = "pass the output of a softmax over the keys, not the scores"
    if weights.min() < 0 or weights.max() > 1 + 1e-3:
        raise ValueError(
            f"weights must lie between 0 and 1, got {weights.min():.3g} to "
            f"{weights.max():.3g}: {advice}"
        )
    if weights.sum(-1).max() > 1.02:  # bfloat16 sums to 1 within 0.01
        raise ValueError(
            f"a query's weights must sum to 1, got {weights.sum(-1).max():.3g}: "
            "rows are queries and columns are keys, and the softmax runs over the keys"
        )


def _choice(number, length, name):
    if number not in range(length):
        raise ValueError(f"{name} {number} does not exist: choose 0 to {length - 1}")
    return int(number)


def _as_mask(mask, shape):
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    try:
        return np.broadcast_to(mask.astype(bool), shape)
    except ValueError:
        raise ValueError(
            f"mask {mask.shape} must broadcast to (query, key) = {shape}: "
            "pass the mask of one sentence, without batch and head axes"
        ) from None


def _where(layers, heads, layer, head):
    parts = [f"layer {layer}"] if layers > 1 else []
    if heads > 1:
        parts.append("mean over the heads" if head == heads else f"head {head}")
    return ", ".join(parts)


def _sentence(shown, queries, keys, names, where, title):
    query, key = np.unravel_index(shown.argmax(), shown.shape)
    parts = [f"{title}." if title else "", "Attention weights"]
    parts.append(
        f"of {len(queries)} {names[0]} tokens over {len(keys)} {names[1]} tokens"
    )
    parts.append(f"({where})" if where else "")
    parts.append(
        f"the largest, {shown[query, key]:.3f}, is that of {names[0]} "
        f"«{queries[query]}» for {names[1]} «{keys[key]}»."
    )
    return " ".join(parts[:-1]).strip().replace("  ", " ") + "; " + parts[-1]


def _draw(shown, queries, keys, names, title, mask):
    from matplotlib.figure import Figure as Canvas

    rows, columns = shown.shape
    cell = min(0.42, 9 / columns, 9 / rows)
    fig = Canvas(figsize=(1 + columns * cell, 1 + rows * cell))
    ax = fig.subplots()
    image = ax.imshow(shown, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    if mask is not None:
        for query, key in np.argwhere(~mask):
            ax.fill_between(
                [key - 0.5, key + 0.5],
                query - 0.5,
                query + 0.5,
                facecolor="none",
                hatch="////",
                edgecolor="0.6",
                linewidth=0,
            )
    if cell >= 0.2:
        ax.set_xticks(range(columns), keys, rotation=45, ha="left", parse_math=False)
        ax.set_yticks(range(rows), queries, parse_math=False)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(names[1], parse_math=False)
    ax.set_ylabel(names[0], parse_math=False)
    ax.tick_params(length=0)
    fig.colorbar(image, ax=ax, label="weight", shrink=0.8)
    if title:
        ax.set_title(title, parse_math=False, fontsize=10)
    return fig
