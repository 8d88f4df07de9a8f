"""A text that is generated: each next token, what else was probable, and the attention.

It is drawn from the logits and weights of a text that was generated before.
"""

import numpy as np

from tutorial_lib.plotting.heatmaps import show_heatmaps

from .figure import Figure
from .inputs import as_array, as_text, check_weights, rounded
from .softmax import softmax

MOST_TOKENS = 40
SHOWN = 5  # of the most probable tokens, at each step


def show_generation(logits, weights, tokens, words, *, begin=1, title=None):
    """Show token by token how a text was generated, and what each one attended to.

    ``logits`` (token, vocab) are those after each token, ``words`` the names of the
    vocabulary. ``weights`` are (query, key), or (layer, query, key) with one map for
    each layer. The first ``begin`` tokens were given, and the others drawn. Raises
    ValueError for shapes and names that do not fit, weights that attend ahead, and more
    than 40 tokens.
    """
    logits = as_array(logits, "logits")
    tokens = [as_text(token) for token in tokens]
    words = [as_text(word) for word in words]
    maps = as_array(weights, "weights")
    maps = maps[None] if maps.ndim == 2 else maps
    _check(logits, maps, tokens, words, begin)
    steps = [_step(row, words, tokens[i + 1 :][:1]) for i, row in enumerate(logits)]
    data = {"tokens": tokens, "begin": begin, "steps": steps}
    data["maps"] = [_rows_so_far(layer) for layer in maps]
    return Figure("generation", data, text=_sentence(data), title=title, draw=_draw)


def _rows_so_far(weights):
    """Return the rows of a causal map, each up to its own token."""
    return [rounded(row[: i + 1]) for i, row in enumerate(weights)]


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
        raise ValueError(f"the words lack “{unknown[0]}”, which stands in the text")
    check_weights(maps[:, None])
    if np.triu(maps, 1).any():
        raise ValueError("a token attends to none that comes later")


def _step(logits, words, drawn):
    """Return the most probable tokens with their shares, the one drawn among them."""
    shares = softmax(logits)
    order = logits.argsort(kind="stable")[::-1]
    rows = [*order[:SHOWN]]
    rows += [words.index(word) for word in drawn if words.index(word) not in rows]
    return {"words": [words[i] for i in rows], "shares": rounded(shares[rows])}


def _probability(data, position):
    """Return the share of the token at a position, as the step before it gave it."""
    step = data["steps"][position - 1]
    return step["shares"][step["words"].index(data["tokens"][position])]


def _sentence(data):
    tokens = data["tokens"]
    begin = data["begin"]
    new = range(begin, len(tokens))
    drawn = (f"{tokens[i]} ({_probability(data, i):.2f})" for i in new)
    return (
        f"After “{' '.join(tokens[:begin])}” a model generates, each token with the "
        f"probability that it had: {', '.join(drawn)}."
    )


def _draw(data):
    tokens = data["tokens"]
    begin = data["begin"]
    weights = np.zeros((len(tokens), len(tokens)))
    for i, row in enumerate(data["maps"][-1]):
        weights[i, : i + 1] = row
    new = range(begin, len(tokens))
    labels = (f"{tokens[i]}  p = {_probability(data, i):.2f}" for i in new)
    return show_heatmaps(
        weights,
        query_labels=[*tokens[:begin], *labels],
        key_labels=tokens,
        ylabel="query: the text, token by token",
    )
