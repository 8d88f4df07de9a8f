"""One step of sampling to move: logits, temperature, top-k, top-p, min-p, and draws.

This module knows no model, only the logits of one step.
"""

import math

from .figure import ACCENT, MARK, Figure
from .inputs import as_array, as_number, as_positive, as_text, rounded
from .softmax import softmax

MOST_WORDS = 2000
SHOWN = 10  # words with a row of their own


def show_sampling(
    logits, words, *, temperature=1.0, k=None, p=1.0, least=0.0, prompt="", title=None
):
    """Show how the next word is drawn, and what temperature and three cuts do to it.

    ``logits`` (vocab,) are those of one step, ``words`` their names; the likeliest have
    a row each, the others one together. The logits are divided by ``temperature``. Then
    the ``k`` likeliest words are kept, all if it is None, of these the fewest that have
    a share ``p``, and of these all that are at least ``least`` times as likely as the
    likeliest: top-k, top-p and min-p. ``prompt`` is the text that is gone on with.
    Entropy is in nats. Raises ValueError for logits that are not a vector of 2 to 2,000
    numbers, for words that do not fit, and for numbers that leave nothing to draw.
    """
    logits, words = as_array(logits, "logits"), [as_text(word) for word in words]
    _check(logits, words)
    shown = {"temperature": as_positive(temperature, "temperature")}
    shown["k"] = len(logits) if k is None else int(as_positive(k, "k"))
    shown |= {"p": as_number(p, "p"), "least": as_number(least, "least")}
    if not 0 < shown["p"] <= 1:
        raise ValueError(f"p must be above 0 and at most 1, got {p:g}")
    if not 0 <= shown["least"] <= 1:
        raise ValueError(f"least must be from 0 to 1, got {least:g}")
    order = logits.argsort(kind="stable")[::-1]  # the likeliest first
    data = {"logits": rounded(logits[order]), "words": [words[i] for i in order]}
    chances = _chances(as_array(data["logits"], "logits"), **shown)
    return Figure(
        "sampling",
        data | {"shown": shown, "rows": SHOWN, "prompt": as_text(prompt)},
        text=_sentence(chances, data["words"], shown, as_text(prompt)),
        title=title,
        draw=lambda: _draw(data, chances),
    )


def _check(logits, words):
    if logits.ndim != 1 or not 2 <= len(logits) <= MOST_WORDS:
        raise ValueError(
            f"logits must be a vector of 2 to {MOST_WORDS:,} numbers, those of one "
            f"step, got {logits.shape}"
        )
    if len(words) != len(logits):
        raise ValueError(f"{len(logits)} logits need as many words, got {len(words)}")


def _chances(logits, *, temperature, k, p, least):
    """Return the probabilities (vocab,) to draw by; the likeliest word is the first."""
    tempered = softmax(logits / temperature)
    tempered[k:] = 0
    shares = tempered / tempered.sum()
    shares[1:][shares.cumsum()[:-1] >= p] = 0
    shares[shares < least * shares[0]] = 0
    return shares / shares.sum()


def _sentence(chances, words, shown, prompt):
    entropy = -sum(share * math.log(share) for share in chances if share > 0)
    after = f" after «{prompt}»" if prompt else ""
    return (
        f"The next word{after}, at temperature {shown['temperature']:g}: "
        f"{(chances > 0).sum()} of {len(words)} words may be drawn; the likeliest, "
        f"«{words[0]}», has probability {chances[0]:.3f}; the entropy is "
        f"{abs(entropy):.2f} nats, as if {math.exp(entropy):.1f} words were as likely."
    )


def _draw(data, chances):
    from matplotlib.figure import Figure as Canvas

    words, model = data["words"][:SHOWN], softmax(as_array(data["logits"], "logits"))
    fig = Canvas(figsize=(6.4, 0.7 + 0.3 * len(words)), layout="constrained")
    left, right = fig.subplots(1, 2, sharey=True)
    places = range(len(words))
    left.barh(places, model[:SHOWN], color=MARK)
    left.set_yticks(places, words)
    left.invert_yaxis()
    left.set_xlabel("probability, the model's")
    bars = right.barh(places, chances[:SHOWN], color=ACCENT)
    right.bar_label(bars, fmt="%.3f", padding=3)
    right.set_xlabel("probability, drawn by")
    for ax in (left, right):
        ax.set(xlim=(0, 1.15), xticks=(0, 0.5, 1))
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(left=False)
    return fig
