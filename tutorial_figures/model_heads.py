"""All the heads of a real language model: a map of them, and the attention map of each.

The model is SmolLM2-135M-Instruct (Ben Allal et al., 2025). Its scores and weights are
stored in model_heads.json, which benchmarks/model_heads.py makes, so that neither a
page nor a notebook needs the model. The weights, 175 kB of base64, stand in the figure;
the book's build moves them into a script beside the page (book/_ext/live_figure.py).
"""

import base64
import functools
import json
import zlib

import numpy as np

from .figure import MARK, Figure, canvas
from .fragment import HERE

STRONGEST = 5  # heads that are marked
SCORES = {
    "induction": "induction score",
    "previous": "previous-token score",
    "first": "weight on the first token",
}


def show_model_heads(*, score="induction", layer=18, head=6, text=0, title=None):
    """Show the 270 heads of SmolLM2 by a score, and the attention map of one.

    ``score`` colors them at first: "induction", the mean weight on the token after an
    earlier copy (Olsson et al., 2022), "previous", on the token before, or "first", on
    the first token, all over random tokens that are repeated. ``layer`` and ``head``
    are the head whose attention is shown, over the ``text`` of this number, 0 to 3.
    Raises ValueError for a score, a head or a text that does not exist.
    """
    stored = stored_heads()
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    _check("layer", layer, stored["layers"])
    _check("head", head, stored["heads"])
    _check("text", text, len(stored["texts"]))
    shown = {"score": score, "head": layer * stored["heads"] + head, "text": text}
    data = {**stored, "names": SCORES, "strongest": STRONGEST, "shown": shown}
    return Figure(
        "model_heads",
        data,
        text=_sentence(data),
        title=title,
        shared=("colors.js", "weights.js"),
        draw=_draw,
    )


def _check(name, number, count):
    if number not in range(count):
        raise ValueError(f"{name} {number!r} does not exist: choose 0 to {count - 1}")


@functools.cache
def stored_heads():
    """Return what is stored: "scores" by name, "texts", and the packed "weights"."""
    return json.loads((HERE / "model_heads.json").read_text(encoding="utf-8"))


def weights_of(data, text):
    """Return the weights (head, query, key) of all heads over a text, by its number.

    They are stored in 8 bits, the lower triangles alone, one text after the other.
    """
    codes = zlib.decompress(base64.b64decode(data["weights"]))
    codes = np.frombuffer(codes, np.uint8)
    num_heads = data["layers"] * data["heads"]
    start = 0
    for earlier in data["texts"][:text]:
        start += num_heads * _cells(len(earlier["tokens"]))
    size = len(data["texts"][text]["tokens"])
    lower = codes[start : start + num_heads * _cells(size)].reshape(num_heads, -1)
    weights = np.zeros((num_heads, size, size))
    rows, columns = np.tril_indices(size)
    weights[:, rows, columns] = lower / 255
    return weights


def _cells(size):
    return size * (size + 1) // 2


def _strongest(data):
    """Return the numbers of the heads with the highest scores, the highest first."""
    scores = np.array(data["scores"][data["shown"]["score"]])
    return np.argsort(-scores, kind="stable")[: data["strongest"]].tolist()


def _name(head, data):
    return f"{head // data['heads']}.{head % data['heads']}"


def _sentence(data):
    shown = data["shown"]
    scores = data["scores"][shown["score"]]
    named = [f"{_name(i, data)} ({scores[i]:.2f})" for i in _strongest(data)]
    text = data["texts"][shown["text"]]
    query = text["query"]
    row = weights_of(data, shown["text"])[shown["head"], query]
    key = row.argmax()
    words = [token.strip() for token in text["tokens"]]
    head = _name(shown["head"], data)
    return (
        f"The {len(scores)} attention heads of {data['model']} ({data['layers']} "
        f"layers of {data['heads']}) by {data['names'][shown['score']]}; the highest "
        f"are, as layer.head, {', '.join(named)}. Over the text “{text['name']}”, head "
        f"{head} attends most from “{words[query]}” (position {query}) to "
        f"“{words[key]}” (position {key}), with the weight {row[key]:.2f}."
    )


def _draw(data):
    """Draw the scores as a map, layer by head, beside the attention map of one head."""
    shown = data["shown"]
    scores = np.array(data["scores"][shown["score"]])
    scores = scores.reshape(data["layers"], data["heads"])
    fig = canvas(7, 4.6)
    left, right = fig.subplots(1, 2, width_ratios=[1, 2.6])
    left.imshow(scores, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    left.set(title=data["names"][shown["score"]], xlabel="head", ylabel="layer")
    left.set_xticks(range(data["heads"]))
    for number in _strongest(data):
        place = number % data["heads"], number // data["heads"]
        left.plot(*place, "s", ms=9, mfc="none", mec=MARK, mew=1.5)
    weights = weights_of(data, shown["text"])[shown["head"]]
    tokens = data["texts"][shown["text"]]["tokens"]
    right.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    positions = range(len(tokens))
    right.set_yticks(positions, tokens, fontsize=7)
    right.set_xticks(positions, tokens, fontsize=7, rotation=90)
    head = _name(shown["head"], data)
    right.set(title=f"attention of head {head}", xlabel="key", ylabel="query")
    return fig
