"""A text that writes itself: each next word, what else was likely, and who was read.

This module knows no model, only the logits and weights of a text that was written.
"""

import numpy as np

from tutorial_lib.plotting.heatmaps import show_heatmaps

from .figure import Figure
from .inputs import as_array, as_text, check_weights, rounded
from .softmax import softmax

MOST_TOKENS = 40
SHOWN = 5  # of the likeliest words, at each step


def show_generation(logits, weights, tokens, words, *, begin=1, title=None):
    """Show word by word how ``tokens`` were written, and where each one looked.

    ``logits`` (token, vocab) are those after each token, ``words`` the names of the
    vocabulary. ``weights`` are (query, key), or (block, query, key) with one map for
    each block. The first ``begin`` tokens were given, and the others drawn. Raises
    ValueError for shapes and names that do not fit, weights that look ahead, and more
    than 40 tokens.
    """
    logits, tokens = as_array(logits, "logits"), [as_text(token) for token in tokens]
    words, maps = [as_text(word) for word in words], as_array(weights, "weights")
    maps = maps[None] if maps.ndim == 2 else maps
    _check(logits, maps, tokens, words, begin)
    steps = [_step(row, words, tokens[i + 1 :][:1]) for i, row in enumerate(logits)]
    data = {"tokens": tokens, "begin": begin, "steps": steps}
    data["maps"] = [[rounded(row[: i + 1]) for i, row in enumerate(m)] for m in maps]
    return Figure("generation", data, text=_sentence(data), title=title, draw=_draw)


def _check(logits, maps, tokens, words, begin):
    count = len(tokens)
    if not 2 <= count <= MOST_TOKENS or not 1 <= begin < count:
        raise ValueError(
            f"a text has 2 to {MOST_TOKENS} tokens, of which one at least is given and "
            f"one is drawn: got {count}, of which {begin} are given"
        )
    if logits.shape != (count, len(words)) or maps.shape[1:] != (count, count):
        raise ValueError(
            f"{count} tokens and {len(words)} words need logits {(count, len(words))} "
            f"and weights {(count, count)}, got {logits.shape} and {maps.shape[1:]}"
        )
    unknown = [token for token in tokens if token not in words]
    if unknown:
        raise ValueError(f"the words lack «{unknown[0]}», which stands in the text")
    check_weights(maps[:, None])
    if np.triu(maps, 1).any():
        raise ValueError("a token that is written looks at none that comes later")


def _step(logits, words, drawn):
    """Return the likeliest words with their shares, and among them the one drawn."""
    shares, order = softmax(logits), logits.argsort(kind="stable")[::-1]
    rows = [*order[:SHOWN]]
    rows += [words.index(word) for word in drawn if words.index(word) not in rows]
    return {"words": [words[i] for i in rows], "shares": rounded(shares[rows])}


def _chance(data, place):
    """Return the share of the token at a place, as the step before it gave it."""
    step = data["steps"][place - 1]
    return step["shares"][step["words"].index(data["tokens"][place])]


def _sentence(data):
    tokens, begin = data["tokens"], data["begin"]
    drawn = (f"{tokens[i]} ({_chance(data, i):.2f})" for i in range(begin, len(tokens)))
    return (
        f"After «{' '.join(tokens[:begin])}» a model writes, each word with the "
        f"probability that it had: {', '.join(drawn)}."
    )


def _draw(data):
    tokens, begin = data["tokens"], data["begin"]
    weights = np.zeros((len(tokens), len(tokens)))
    for i, row in enumerate(data["maps"][-1]):
        weights[i, : i + 1] = row
    chances = (
        f"{tokens[i]}  p = {_chance(data, i):.2f}" for i in range(begin, len(tokens))
    )
    return show_heatmaps(
        weights,
        query_labels=[*tokens[:begin], *chances],
        key_labels=tokens,
        ylabel="query: the text, word by word",
    )
