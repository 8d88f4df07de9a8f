"""Interactive sampling, one step: logits, temperature, top-k, top-p, min-p, and draws.

The logits of one step go in.
"""

import math

import numpy as np

from .figure import Figure
from .inputs import as_array, as_labels, as_number, as_positive, as_text, rounded
from .softmax import draw_bars, entropy, softmax

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
    logits = as_array(logits, "logits")
    if logits.ndim != 1 or not 2 <= len(logits) <= MOST_WORDS:
        raise ValueError(
            f"logits must be a vector of 2 to {MOST_WORDS:,} numbers, those of one "
            f"step, got {logits.shape}"
        )
    words = as_labels(words, len(logits), "logits", "words")
    shown = {"temperature": as_positive(temperature, "temperature")}
    shown["k"] = len(logits) if k is None else int(as_positive(k, "k"))
    shown.update({"p": as_number(p, "p"), "least": as_number(least, "least")})
    if not 0 < shown["p"] <= 1:
        raise ValueError(f"p must be above 0 and at most 1, got {p:g}")
    if not 0 <= shown["least"] <= 1:
        raise ValueError(f"least must be from 0 to 1, got {least:g}")
    order = logits.argsort(kind="stable")[::-1]  # the likeliest first
    data = {"logits": rounded(logits[order]), "words": [words[i] for i in order]}
    data.update({"shown": shown, "rows": SHOWN, "prompt": as_text(prompt)})
    return Figure("sampling", data, text=_sentence(data), title=title, draw=_draw)


def _probs(data):
    """Return the probabilities (vocab,) to draw by; the likeliest word is the first."""
    shown = data["shown"]
    tempered = softmax(np.array(data["logits"]) / shown["temperature"])
    tempered[shown["k"] :] = 0
    shares = tempered / tempered.sum()
    shares[1:][shares.cumsum()[:-1] >= shown["p"]] = 0
    shares[shares < shown["least"] * shares[0]] = 0
    return shares / shares.sum()


def _sentence(data):
    probs = _probs(data)
    words = data["words"]
    nats = entropy(probs)
    temperature = data["shown"]["temperature"]
    after = f" after “{data['prompt']}”" if data["prompt"] else ""
    return (
        f"The next token{after}, at temperature {temperature:g}: "
        f"{(probs > 0).sum()} of {len(words)} tokens may be sampled; the most "
        f"probable, “{words[0]}”, has probability {probs[0]:.3f}; the entropy is "
        f"{nats:.2f} nats, as if {math.exp(nats):.1f} tokens were equally probable."
    )


def _draw(data):
    model = softmax(np.array(data["logits"]))
    columns = {
        "probability, model": model[:SHOWN],
        "probability, sampled from": _probs(data)[:SHOWN],
    }
    fig = draw_bars(data["words"][:SHOWN], columns)
    fig.axes[0].set(xlim=(0, 1.15), xticks=(0, 0.5, 1))
    return fig
