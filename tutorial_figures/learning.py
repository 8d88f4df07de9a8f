"""A query that learns what to look for: gradient descent, step by step, on a map.

The figure's JavaScript states ``descend`` a second time; a test holds both equal to
torch's gradients.
"""

import math

import numpy as np

from .figure import ACCENT, MARK, VALUE, Figure, canvas
from .inputs import as_array, as_labels, as_positive, as_text, rounded
from .softmax import softmax

MOST_KEYS = 12
MOST_STEPS = 5000


def show_learning(
    keys,
    values,
    *,
    labels=None,
    landmarks=None,
    target=None,
    learning_rate=0.1,
    unit=(1, ""),
    title=None,
):
    """Show a query that learns, by gradient descent, to give the output wanted.

    The query begins at 0 and follows the gradient of the squared distance between its
    output, softmax(``keys`` @ query) @ ``values``, and the target. ``keys`` are
    (key, d_k), their ``values`` (key, 2) points of a map, named by ``labels``;
    ``landmarks`` maps further names to points to choose from, and ``target`` is the
    name that is chosen first. ``unit`` says how a distance is told: values in thousands
    of kilometers have (1000, "km"). Raises ValueError for fewer than 3 or more than 12
    keys, values that are not points or lie on one line, and names that do not fit.
    """
    keys, values = as_array(keys, "keys"), as_array(values, "values")
    _check(keys, values)
    labels = as_labels(labels, len(keys), "keys")
    landmarks = dict(landmarks or {})
    points = values, as_array([*landmarks.values()], "landmarks").reshape(-1, 2)
    names = [*labels, *map(as_text, landmarks)]
    if target is not None and target not in names:
        raise ValueError(f"target must be one of {', '.join(names)}, got {target!r}")
    chosen = 0 if target is None else names.index(target)
    data = {"labels": labels, "names": names[len(labels) :]}
    data.update({"values": rounded(points[0], 8), "landmarks": rounded(points[1], 8)})
    data.update(
        {"products": rounded(keys @ keys.T, 8), **_frame(values, points[1], unit)}
    )
    point = [*data["values"], *data["landmarks"]][chosen]
    rate = as_positive(learning_rate, "learning_rate")
    data["shown"] = {"chosen": chosen, "target": point, "learning_rate": rate}
    data["learning_rates"] = _learning_rates(rate)
    return Figure("learning", data, text=_sentence(data), title=title, draw=_draw)


def _check(keys, values):
    if keys.ndim != 2 or values.shape != (len(keys), 2):
        raise ValueError(
            "keys must be (key, d_k) and values (key, 2), the points of a map, got "
            f"{keys.shape} and {values.shape}"
        )
    if not 3 <= len(keys) <= MOST_KEYS:
        raise ValueError(f"{len(keys)} keys: pass 3 to {MOST_KEYS}")
    if np.linalg.matrix_rank(values - values[0]) < 2:
        raise ValueError("all values lie on one line: a map needs two directions")


def _learning_rates(first):
    """Return the learning rates to choose from: round ones, and the first."""
    power = math.floor(math.log10(first))
    powers = (power - 1, power, power + 1)
    return sorted({first, *(float(f"{i}e{j}") for i in (1, 2, 3, 5) for j in powers)})


def _frame(values, landmarks, unit):
    """Return the hull, the edges of the map, and what a distance is told in."""
    points = np.concatenate([values, landmarks])
    low, high = points.min(0), points.max(0)
    # The target is found where the eye no longer tells the output from it.
    near = 10.0 ** round(math.log10(0.004 * math.dist(low, high)))
    factor, name = unit
    digits = max(0, -math.floor(math.log10(near * factor) + 1e-9))
    edges = {"low": rounded(low), "high": rounded(high), "hull": _hull(values)}
    return {**edges, "near": near, "unit": [factor, name], "digits": digits}


def _hull(values):
    """Return the corners of the hull, counterclockwise: Andrew's monotone chain."""
    points = sorted(rounded(values, 8))
    corners = []
    for way in (points, points[::-1]):
        chain = []
        for x, y in way:
            while len(chain) > 1:
                (a, b), (c, d) = chain[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                    break
                chain.pop()
            chain.append([x, y])
        corners += chain[:-1]
    return corners


def learn(data):
    """Return [(weights, output)] for every step that gradient descent takes."""
    products = np.array(data["products"])
    values = np.array(data["values"])
    target = np.array(data["shown"]["target"])
    rate = data["shown"]["learning_rate"]
    scores = np.zeros(len(values))
    path = []
    while True:
        weights = softmax(scores)
        output = weights @ values
        moved = math.dist(output, path[-1][1]) if path else math.inf
        path.append((weights, output))
        arrived = math.dist(output, target) < data["near"]
        if arrived or moved < 1e-5 * data["near"] or len(path) > MOST_STEPS:
            return path
        gradient = 2 * weights * ((values - output) @ (output - target))
        scores = scores - rate * products @ gradient


def _sentence(data):
    path = learn(data)
    shown = data["shown"]
    weights, output = path[-1]
    factor, unit = data["unit"]
    distance = factor * math.dist(output, shown["target"])
    name = [*data["labels"], *data["names"]][shown["chosen"]]
    told = f"{distance:.{data['digits']}f} {unit}".strip()
    shares = zip(data["labels"], weights, strict=True)
    return (
        f"A query that learns. After {len(path) - 1} steps of gradient descent its "
        f"output is {told} from “{name}”, and the weights are "
        f"{', '.join(f'{weight:.2f} for “{label}”' for label, weight in shares)}."
    )


def _draw(data):
    fig = canvas(6.4, 4.6)
    ax, bars = fig.subplots(2, height_ratios=[2, 1])
    path = learn(data)
    values = np.array(data["values"])
    weights = path[-1][0]
    ax.fill(*np.transpose(data["hull"]), color="0.92", zorder=0)
    ax.scatter(*values.T, s=20 + 700 * weights, color=VALUE, alpha=0.3)
    ax.scatter(*values.T, s=16, color="0.1")
    ax.plot(*np.transpose([output for _, output in path]), color=VALUE, lw=2)
    ax.scatter(*data["shown"]["target"], s=160, color="none", edgecolor=MARK, lw=2.5)
    for name, place in zip(data["labels"], values, strict=True):
        ax.annotate(name, place, (7, 9), textcoords="offset points", parse_math=False)
    for name, place in zip(data["names"], data["landmarks"], strict=True):
        ax.scatter(*place, s=8, color="0.1")
        ax.annotate(name, place, (7, -3), textcoords="offset points", fontsize=8)
    ax.set_aspect("equal")
    ax.margins(0.12)
    ax.axis("off")
    drawn = bars.bar(range(len(weights)), weights, color=ACCENT)
    bars.bar_label(drawn, fmt="%.2f", padding=2)
    bars.set_xticks(range(len(weights)), data["labels"], parse_math=False)
    bars.set(ylim=(0, 1.2), yticks=(0, 1), ylabel="weight")
    bars.spines[["top", "right"]].set_visible(False)
    return fig
