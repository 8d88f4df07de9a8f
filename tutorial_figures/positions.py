"""Interactive positions: encodings as a map, dot products over the distance.

The figure's JavaScript states the encodings
a second time; a test holds the two equal.
"""

import math

import numpy as np

from tutorial_lib.plotting.colors import LIGHT, scale

from .figure import Figure, canvas

KINDS = ("sinusoidal", "rotary")
MOST_TOKENS = 256
MOST_NUMBERS = 65_536
FIRST, SECOND = LIGHT["query"], LIGHT["key"]  # position t and position j
BASE = 10_000  # at first, as in the papers
AHEAD = 3  # positions by which the key of the rotary encoding is rotated at first


def show_positions(tokens=64, d_model=32, *, kind="sinusoidal", title=None):
    """Show how alike two positions are, and whether only their distance counts.

    ``kind`` is shown first: "sinusoidal" (Vaswani et al., 2017) or "rotary" (Su et al.,
    2021). Pair i rotates by 10000 ** (-2i / d_model) radians per position; a reader
    chooses other bases. Rotary rotates one fixed query, cos c² in component c, and one
    fixed key, the same 3 positions further: at first the key stands where it fits, 3
    back. Raises ValueError for an odd ``d_model``, a kind that does not exist, more
    than 256 tokens or 65,536 numbers.
    """
    _check_sizes(tokens, d_model)
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} does not exist: choose {', '.join(KINDS)}")
    position = int(tokens) // 5
    distance = int(tokens) // 8
    if kind == "rotary":
        distance = -min(AHEAD, position)
    shown = {"kind": kind, "base": BASE, "position": position, "distance": distance}
    data = {"tokens": int(tokens), "d_model": int(d_model), "shown": shown}
    return Figure(
        "positions",
        data,
        text=_sentence(data),
        title=title,
        shared=("colors.js",),
        draw=_draw,
    )


def _check_sizes(tokens, d_model):
    if tokens not in range(2, MOST_TOKENS + 1):
        raise ValueError(
            f"tokens must be a whole number from 2 to {MOST_TOKENS}, got {tokens}"
        )
    most = MOST_NUMBERS // int(tokens)
    if d_model not in range(2, most + 1):
        raise ValueError(
            f"d_model must be a whole number from 2 to {most} with {tokens} tokens, "
            f"got {d_model}"
        )
    if d_model % 2:
        raise ValueError(
            f"d_model must be even, a sine and a cosine in each pair: {d_model} is "
            f"odd, pass {d_model - 1} or {d_model + 1}"
        )


def turn(vector, positions, base):
    """Return (token, d_model): the pairs of (d_model,) turned to ``positions``."""
    speeds = base ** (-np.arange(0, len(vector), 2) / len(vector))
    angles = np.outer(positions, speeds)
    sine, cosine = np.sin(angles), np.cos(angles)
    first, second = vector[0::2], vector[1::2]
    pairs = first * cosine - second * sine, first * sine + second * cosine
    return np.stack(pairs, -1).reshape(len(angles), len(vector))


def _queries_and_keys(data):
    """Return two (token, d_model), which are the same unless the kind is rotary."""
    tokens = data["tokens"]
    d_model = data["d_model"]
    base = data["shown"]["base"]
    positions = np.arange(tokens)
    kind = data["shown"]["kind"]
    if kind == "rotary":
        content = np.cos(np.arange(1, d_model + 1.0) ** 2)
        keys = turn(content, positions + AHEAD, base)
        return turn(content, positions, base), keys
    # a hand that points to (0, 1) and turns backward: (sin, cos)
    table = turn(np.arange(d_model) % 2, -positions, base)
    return table, table


def _sentence(data):
    shown = data["shown"]
    tokens = data["tokens"]
    queries, keys = _queries_and_keys(data)
    products = queries @ keys.T
    t = shown["position"]
    distance = shown["distance"]
    digits = _digits(products)
    diagonal = products.diagonal(distance)
    similar, low, high = (
        f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
        for value in (products[t, t + distance], diagonal.min(), diagonal.max())
    )
    pair = f"Position {t} and position {t + distance}: dot product"
    if shown["kind"] == "rotary":
        pair = f"Query at position {t}, key at position {t + distance}: score"
    return (
        f"{shown['kind'].capitalize()} encodings of {tokens} positions, "
        f"{data['d_model']} dimensions each, base {shown['base']:}. {pair} {similar}. "
        f"All pairs at distance {distance}".replace("-", "−")
        + f": {low if low == high else f'{low} to {high}'}."
    )


def _digits(products):
    """Return how many decimals show three digits of the largest product."""
    largest = np.abs(products).max() or 1
    return max(0, 2 - math.floor(math.log10(largest) + 1e-6))


def _draw(data):
    fig = canvas(6.4, 4.8)
    queries, keys = _queries_and_keys(data)
    first, second = (0, FIRST), (data["shown"]["distance"], SECOND)
    if data["shown"]["kind"] == "rotary":
        *maps, curves = fig.subplots(3, height_ratios=[3, 3, 5])
        _draw_map(fig, maps[0], queries, data, {"turned query": [first]})
        _draw_map(fig, maps[1], keys, data, {"turned key": [second]})
    else:
        ax, curves = fig.subplots(2, height_ratios=[4, 5])
        _draw_map(fig, ax, queries, data, {"encoding": [second, first]})
    _draw_curves(curves, queries @ keys.T, data)
    return fig


def _draw_map(fig, ax, vectors, data, named):
    """Draw (token, d_model), ``named`` {name: frames, each (distance, color)}."""
    [(name, frames)] = named.items()
    limit = np.abs(vectors).max() or 1
    colors = {"cmap": scale("scores"), "vmin": -limit, "vmax": limit}
    image = ax.imshow(vectors.T, aspect="auto", interpolation="nearest", **colors)
    for offset, color in frames:
        left = data["shown"]["position"] + offset - 0.5
        ax.axvspan(left, left + 1, fill=False, edgecolor=color, linewidth=1.5)
    ax.set(xlabel="position", ylabel=name)
    fig.colorbar(image, ax=ax)


def _draw_curves(ax, products, data):
    shown = data["shown"]
    tokens = data["tokens"]
    positions = np.arange(tokens)
    t = shown["position"]
    others = sorted({round(part * (tokens - 1) / 4 - 1e-9) for part in range(5)})
    for other in others:
        label = f"positions {', '.join(map(str, others))}" if other == 0 else None
        ax.plot(positions - other, products[other], color="0.6", lw=1, label=label)
    ax.plot(positions - t, products[t], color=FIRST, lw=2, label=f"position t = {t}")
    distance = shown["distance"]
    j = t + shown["distance"]
    second = {"color": SECOND, "label": f"position j = {j}", "clip_on": False}
    ax.plot(distance, products[t, j], "o", **second)
    ax.axhline(0, color="0.3", linewidth=0.8)
    score = "score" if shown["kind"] == "rotary" else "dot product"
    ax.set(xlabel="distance j − t", ylabel=score, xlim=(1 - tokens, tokens - 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
