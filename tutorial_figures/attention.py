"""Attention weights to point at: lines between tokens beside a heatmap.

This module knows no model: weights and tokens go in.
"""

import numpy as np
import torch

from tutorial_lib.plotting.colors import scale
from tutorial_lib.plotting.heatmaps import add_legend, draw_outline

from .figure import Figure
from .inputs import (
    as_data,
    as_layers,
    as_mask,
    as_outline,
    as_text,
    check_tokens,
    check_weights,
    choose,
    where,
    with_mean,
)

SHARED = ("colors.js", "heads.js")


def show_attention(
    weights,
    query_tokens,
    key_tokens=None,
    *,
    layer=0,
    head=0,
    names=("query", "key"),
    mask=None,
    outline=None,
    outline_label="gold link",
    title=None,
):
    """Show which query token looks at which key token, and how much.

    ``weights`` are (query, key), (head, query, key), (layer, head, query, key) or a
    list with one (1, head, query, key) per layer: what a softmax over the keys
    returns. ``key_tokens`` default to ``query_tokens``. ``layer`` and ``head`` (a
    number or "mean") are shown first. ``mask`` broadcasts to (query, key), True where
    a query may look; the other cells are hatched. Cells in ``outline``, a set of
    (query, key) or a boolean that broadcasts to it, are framed, and named by
    ``outline_label``. Weights are shown to 3 decimals, lines up to 64 tokens. Raises
    ValueError for scores, NaN, tokens, mask or outline that do not fit the weights,
    and more than 256 tokens or 1 MB.
    """
    queries = [as_text(token) for token in query_tokens]
    keys = queries if key_tokens is None else [as_text(token) for token in key_tokens]
    weights = as_layers(weights)
    check_tokens(weights, queries, keys)
    check_weights(weights)
    shown = choose(weights, layer, head)
    mask = None if mask is None else as_mask(mask, weights.shape[-2:])
    outline = as_outline(outline, weights.shape[-2:])
    names, outlined = [as_text(name) for name in names], as_text(outline_label)
    data = {"queries": queries, "keys": keys, "names": names, "shown": shown}
    data |= {"outlined": outlined, **as_data(weights, mask, outline)}
    first = with_mean(weights)[shown["layer"], shown["head"]]
    return Figure(
        "attention",
        data,
        text=_sentence(first, data) + _agreement(first, data, outline),
        title=title,
        shared=SHARED,
        draw=lambda: _draw(first, data, mask, outline),
    )


def _sentence(weights, data):
    shown = where(data)
    queries, keys, names = data["queries"], data["keys"], data["names"]
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    return (
        f"Attention weights of {len(queries)} {names[0]} tokens over {len(keys)} "
        f"{names[1]} tokens{shown and f' ({shown})'}. The largest, "
        f"{weights[query, key]:.3f}, is that of {names[0]} «{queries[query]}» for "
        f"{names[1]} «{keys[key]}»."
    )


def _agreement(weights, data, outline):
    if outline is None:
        return ""
    rows = outline.any(1)
    right = outline[np.arange(len(rows)), weights.argmax(1)].sum()
    return (
        f" {outline.sum()} cells are framed ({data['outlined']}): the largest weight "
        f"of {right} of the {rows.sum()} {data['names'][0]} tokens that have one."
    )


def _draw(weights, data, mask, outline):
    from matplotlib.figure import Figure as Canvas

    rows, columns = weights.shape
    cell = min(0.42, 8 / max(rows, columns))
    size = 2.4 + columns * cell, 1.6 + rows * cell
    fig = Canvas(figsize=size, layout="constrained")
    ax = fig.subplots()
    image = ax.imshow(weights, cmap=scale("weights"), vmin=0, vmax=1)
    _hatch(ax, mask)
    if outline is not None:
        draw_outline(ax, torch.from_numpy(outline), size=cell)
        add_legend(fig, data["outlined"])
    labelled = slice(None) if cell >= 0.2 else slice(0)
    turned = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    ax.xaxis.tick_top()
    ax.set_xticks(range(columns)[labelled], _short(data["keys"])[labelled], **turned)
    ax.set_yticks(range(rows)[labelled], _short(data["queries"])[labelled])
    ax.tick_params(length=0)
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(_short(data["names"])[1])
    ax.set_ylabel(_short(data["names"])[0])
    ax.spines[:].set_visible(False)
    shown = where(data)
    fig.colorbar(image, ax=ax, label=f"weight ({shown})" if shown else "weight")
    return fig


def _hatch(ax, mask):
    from matplotlib.patches import Rectangle

    for query, key in [] if mask is None else np.argwhere(~mask):
        style = {"fill": False, "edgecolor": "0.6", "hatch": "////", "linewidth": 0}
        ax.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, **style))


def _short(tokens):
    return [token if len(token) <= 16 else f"{token[:15]}…" for token in tokens]
