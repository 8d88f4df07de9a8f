"""The softmax to move: scores, temperature, and d_k with and without its square root.

This module knows no queries and no keys, only their scores.
"""

import math

import numpy as np

from .figure import ACCENT, MARK, Figure
from .inputs import as_array, as_positive, as_text, rounded

MOST_SCORES = 40


def show_softmax(scores, *, labels=None, temperature=1.0, d_k=64, title=None):
    """Show how scores become weights, and what temperature and d_k do to them.

    ``scores`` are (key,), q·k/√d_k for one query; ``labels`` name the keys. Unscaled,
    the scores are multiplied by √``d_k`` as the dot products are; with ``d_k=None``
    they are just scores. ``temperature`` divides what enters the softmax. Entropy is in
    nats, and its exponential an effective number of keys; the largest gradient is the
    largest diagonal entry of the softmax's Jacobian, w(1 - w). Raises ValueError for
    scores that are not a vector of 2 to 40 numbers, or labels that do not fit.
    """
    scores = as_array(scores, "scores")
    if scores.ndim != 1 or not 2 <= len(scores) <= MOST_SCORES:
        raise ValueError(
            f"scores must be a vector of 2 to {MOST_SCORES} numbers, those of one "
            f"query, got {scores.shape}"
        )
    labels = [f"key {i}" for i in range(len(scores))] if labels is None else labels
    labels = [as_text(label) for label in labels]
    if len(labels) != len(scores):
        raise ValueError(f"{len(scores)} scores need as many labels, got {len(labels)}")
    temperature = as_positive(temperature, "temperature")
    d_k = None if d_k is None else int(as_positive(d_k, "d_k"))
    shown = {"temperature": temperature, "d_k": d_k}
    data = {"scores": rounded(scores), "labels": labels, "shown": shown}
    weights = softmax(scores / temperature)
    return Figure(
        "softmax",
        data,
        text=_sentence(weights, labels, temperature),
        title=title,
        draw=lambda: _draw(data["scores"], weights, labels),
    )


def softmax(scores):
    """Return weights (key,) of scores (key,)."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def _sentence(weights, labels, temperature):
    entropy = -sum(w * math.log(w) for w in weights if w > 0)
    return (
        f"Softmax of {len(weights)} scores at temperature {temperature:g}: the largest "
        f"weight, {weights.max():.3f}, is that of «{labels[weights.argmax()]}»; the "
        f"entropy is {entropy:.2f} nats, as if {math.exp(entropy):.1f} keys shared the "
        "weight equally."
    )


def _draw(scores, weights, labels):
    from matplotlib.figure import Figure as Canvas

    fig = Canvas(figsize=(6.4, 0.7 + 0.3 * len(scores)), layout="constrained")
    left, right = fig.subplots(1, 2, sharey=True)
    places = range(len(scores))
    left.barh(places, scores, color=MARK)
    left.axvline(0, color="0.3", linewidth=0.8)
    left.set_yticks(places, labels)
    left.invert_yaxis()
    left.set_xlabel("score")
    bars = right.barh(places, weights, color=ACCENT)
    right.bar_label(bars, fmt="%.3f", padding=3)
    right.set(xlim=(0, 1.15), xticks=(0, 0.5, 1), xlabel="weight")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(left=False)
    return fig
