"""An interactive softmax: scores, temperature, d_k with or without its square root.

The scores of one query with its keys go in.
"""

import math

import numpy as np

from .figure import ACCENT, MARK, Figure, canvas
from .inputs import as_array, as_labels, as_positive, rounded

MOST_SCORES = 40


def show_softmax(scores, *, labels=None, temperature=1.0, d_k=None, title=None):
    """Show how scores become weights, and what temperature and d_k do to them.

    ``scores`` are (key,), those of one query; ``labels`` name the keys. ``temperature``
    divides what enters the softmax, and the largest weight is told. With ``d_k`` the
    scores are q·k/√d_k, and can be shown undivided, √``d_k`` times as large; entropy is
    told in nats, its exponential as an effective number of keys, and the largest
    derivative, the largest diagonal entry of the softmax's Jacobian, α(1 - α). Raises
    ValueError for scores that are not a vector of 2 to 40 numbers, or labels that do
    not fit.
    """
    scores = as_array(scores, "scores")
    if scores.ndim != 1 or not 2 <= len(scores) <= MOST_SCORES:
        raise ValueError(
            f"scores must be a vector of 2 to {MOST_SCORES} numbers, those of one "
            f"query, got {scores.shape}"
        )
    labels = as_labels(labels, len(scores), "scores")
    temperature = as_positive(temperature, "temperature")
    d_k = None if d_k is None else int(as_positive(d_k, "d_k"))
    shown = {"temperature": temperature, "d_k": d_k}
    data = {"scores": rounded(scores), "labels": labels, "shown": shown}
    return Figure("softmax", data, text=_sentence(data), title=title, draw=_draw)


def softmax(scores):
    """Return weights (key,) of scores (key,)."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def entropy(weights):
    """Return the entropy of weights (key,) in nats."""
    return abs(sum(weight * math.log(weight) for weight in weights if weight > 0))


def _weights(data):
    return softmax(np.array(data["scores"]) / data["shown"]["temperature"])


def _sentence(data):
    weights = _weights(data)
    temperature = data["shown"]["temperature"]
    nats = entropy(weights)
    label = data["labels"][weights.argmax()]
    largest = (
        f"Softmax of {len(weights)} scores at temperature {temperature:g}: the largest "
        f"weight, {weights.max():.3f}, is that of “{label}”"
    )
    if data["shown"]["d_k"] is None:
        return f"{largest}."
    return (
        f"{largest}; the entropy is {nats:.2f} nats, as if {math.exp(nats):.1f} keys "
        "shared the weight equally."
    )


def _draw(data):
    columns = {"score": data["scores"], "weight": _weights(data)}
    fig = draw_bars(data["labels"], columns)
    fig.axes[0].axvline(0, color="0.3", linewidth=0.8)
    return fig


def draw_bars(labels, columns):
    """Draw two columns of bars {name: numbers}, the second of shares of 1."""
    fig = canvas(6.4, 0.7 + 0.3 * len(labels))
    rows = range(len(labels))
    left, right = fig.subplots(1, 2, sharey=True)
    for ax, color, name in zip((left, right), (MARK, ACCENT), columns, strict=True):
        bars = ax.barh(rows, columns[name], color=color)
        ax.set_xlabel(name)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(left=False)
    right.bar_label(bars, fmt="%.3f", padding=3)
    right.set(xlim=(0, 1.15), xticks=(0, 0.5, 1))
    left.set_yticks(rows, labels)
    left.invert_yaxis()
    return fig
