"""Attention weights to point at: lines between tokens beside a heatmap.

Weights and tokens go in.
"""

import numpy as np
import torch

from tutorial_lib.plotting.heatmaps import show_heatmaps

from .figure import Figure
from .inputs import (
    as_data,
    as_layers,
    as_mask,
    as_outline,
    as_text,
    check_tokens,
    choose,
    where,
)

MOST_NAMED = 40  # tokens of a side, in the picture


def show_attention(
    weights,
    query_tokens,
    key_tokens=None,
    *,
    layer=None,
    head=0,
    names=("query", "key"),
    mask=None,
    outline=None,
    outline_label="gold link",
    title=None,
):
    """Show which query token attends to which key token, and how much.

    ``weights`` are (query, key), (head, query, key), (layer, head, query, key) with
    ``layer`` given, or a list or dictionary with one (1, head, query, key) per layer:
    what a softmax over the keys returns, for one sentence. ``key_tokens`` default to
    ``query_tokens``. ``layer`` (0 if left out) and ``head`` (a number or "mean") are
    shown first. ``mask`` broadcasts to (query, key), True where
    a query may attend; the other cells are hatched. Cells in ``outline``, a set of
    (query, key) or a boolean that broadcasts to it, are framed, and named by
    ``outline_label``. Weights are shown to 3 decimals, lines up to 64 tokens. Raises
    ValueError for scores, NaN, several sentences, tokens, mask or outline that do not
    fit the weights, and more than 256 tokens or 1 MB.
    """
    queries = [as_text(token) for token in query_tokens]
    keys = queries if key_tokens is None else [as_text(token) for token in key_tokens]
    weights = as_layers(weights, layer)
    check_tokens(weights, queries, keys)
    shown, first = choose(weights, layer, head)
    mask = None if mask is None else as_mask(mask, weights.shape[-2:])
    outline = as_outline(outline, weights.shape[-2:])
    names = [as_text(name) for name in names]
    outlined = as_text(outline_label)
    data = {"queries": queries, "keys": keys, "names": names, "shown": shown}
    data.update({"outlined": outlined, **as_data(weights, mask, outline)})
    return Figure(
        "attention",
        data,
        text=_sentence(first, data) + _agreement(first, data, outline),
        title=title,
        shared=("colors.js", "heads.js"),
        draw=lambda _: _draw(first, data, mask, outline),
    )


def _sentence(weights, data):
    shown = where(data)
    queries = data["queries"]
    keys = data["keys"]
    names = data["names"]
    query, key = np.unravel_index(weights.argmax(), weights.shape)
    return (
        f"Attention weights of {len(queries)} {names[0]} tokens over {len(keys)} "
        f"{names[1]} tokens{shown and f' ({shown})'}. The largest, "
        f"{weights[query, key]:.3f}, is that of {names[0]} “{queries[query]}” for "
        f"{names[1]} “{keys[key]}”."
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
    shown = where(data)
    named = max(weights.shape) <= MOST_NAMED
    queries, keys, names = (_short(data[of]) for of in ("queries", "keys", "names"))
    return show_heatmaps(
        weights.clip(0, 1),
        query_labels=queries if named else None,
        key_labels=keys if named else None,
        mask=None if mask is None else torch.tensor(mask),
        outline=outline,
        outline_label=data["outlined"],
        label=f"weight ({shown})" if shown else "weight",
        xlabel=names[1],
        ylabel=names[0],
    )


def _short(tokens):
    return [token if len(token) <= 16 else f"{token[:15]}…" for token in tokens]
