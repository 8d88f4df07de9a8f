"""Ideas: the pictures that chapters begin with, each small enough for a phone.

They read from top to bottom: queries ask, keys answer, values are what is read.
"""

import itertools

import torch

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.panels import WIDTH, array, open_panels
from tutorial_lib.plotting.pictures import Box, Picture
from tutorial_lib.shapes import check_shapes

LEFT = 0.78  # inches for the names of rows
SIDES = {"left": LEFT, "right": WIDTH}
MIDDLE = (LEFT + WIDTH) / 2
NEAR = 0.12  # inches between matrices that are multiplied
LEVELS = range(-8, 9)  # scores that get a line
ARROW = {"arrowprops": {"arrowstyle": "-|>", "color": LIGHT["query"], "lw": 2}}
BESIDE = {"xytext": (6, 6), "textcoords": "offset points", "weight": "bold"}


def show_lookup(weights, *, query, keys, values, output):
    """Draw one attention step: a query, the keys it matches, the values it reads.

    ``weights`` (key,) set the width of the lines; ``query``, ``keys``, ``values`` and
    ``output`` are the texts in the boxes. Raises ValueError if there are not as many
    weights as keys and values.
    """
    _check_counts(weights, keys=keys, values=values)
    picture = Picture(WIDTH, 3.56)
    asks = picture.box(MIDDLE, 0.3, query, "query")
    asked = picture.row(list(keys), 1.3, "key", **SIDES)
    read = picture.row(list(values), 2.26, "value", **SIDES)
    answer = picture.box(MIDDLE, 3.26, output, "value")
    _look(picture, weights, asks, asked, read, answer)
    _name(picture, 0.3, "query", "query")
    _name(picture, 3.26, "output", "value")
    return picture.figure


def _check_counts(weights, **texts):
    for name, words in texts.items():
        if len(words) != len(weights):
            counts = f"{len(weights)} weights for {len(words)} {name}"
            raise ValueError(f"{counts}: each needs its own")


def _look(picture, weights, asks, asked, read, answer):
    """Lead from a query to keys, and from values to an output, by weight."""
    for weight, key, value in zip(array(weights), asked, read, strict=True):
        picture.arrow(asks.bottom, key.top, "query", weight=weight)
        between = (key.y + value.y) / 2
        picture.text(key.x, between, f"{weight:.2f}", size=10, clear=True)
        picture.arrow(value.bottom, answer.top, "value", weight=weight)
    _name(picture, key.y, "keys", "key")
    _name(picture, between, "weights", "quiet")
    _name(picture, value.y, "values", "value")


def _name(picture, y, words, color, **style):
    picture.text(0, y, words, color=color, align="left", **style)


def show_scaled_dot_product(queries, keys, values, *, query=0):
    """Draw eq. 1 of Vaswani et al. (2017) as matrices: softmax(Q Kᵀ / √d_k) V.

    ``queries`` (query, d_k), ``keys`` (key, d_k) and ``values`` (key, d_v) fill the
    cells; the row of one ``query`` is strong in all that belongs to it. Raises
    ValueError if they do not fit together.
    """
    check_shapes(queries, keys, values)
    scores = queries @ keys.T  # (query, key)
    weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
    width = queries.shape[-1] + 2 * len(keys) + values.shape[-1]
    side = min(0.26, (WIDTH - 1.4) / width)
    x, y = (WIDTH - 1.2 - width * side) / 2, 0.6 + side * max(keys.shape)
    picture = Picture(WIDTH, y + side * len(queries) + 0.5)
    row = {"side": side, "chosen": query}
    asked = _matrix(picture, (x, y), "queries", queries, "query", **row)
    scored = _matrix(picture, _beside(asked), "scores", scores, "quiet", **row)
    weighed = _matrix(picture, _beside(scored, 1.0), "weights", weights, "query", **row)
    output = weights @ values
    read = _matrix(picture, _beside(weighed), "outputs", output, "value", **row)
    for below, name, matrix, color in (
        (scored, "keysᵀ", keys.T, "key"),
        (read, "values", values, "value"),
    ):
        corner = below.left[0], y - NEAR - side * len(matrix)
        _matrix(picture, corner, name, matrix, color, side=side, is_above=True)
    picture.arrow(scored.right, weighed.left, "ink", straight=True)
    middle = (scored.right[0] + weighed.left[0]) / 2
    picture.text(middle, scored.y - 0.17, "÷ √d_k")
    picture.text(middle, scored.y + 0.19, "softmax")
    return picture.figure


def _matrix(picture, corner, name, matrix, color, *, is_above=False, **style):
    """Draw a matrix with its name and its shape, and return its place."""
    place = picture.cells(*corner, matrix, color, **style)
    y = place.top[1] - 0.36 if is_above else place.bottom[1] + 0.17
    picture.text(place.x, y, name, color=color)
    shape = f"({', '.join(map(str, matrix.shape))})"
    picture.text(place.x, y + 0.2, shape, color="quiet", size=9)
    return place


def _beside(place, inches=NEAR):
    return place.right[0] + inches, place.top[1]


def show_levels(scores, query, keys, labels):
    """Draw which score a key would get in each place of the plane, and the weights.

    ``scores`` maps a title to a function of queries (1, 2) and points (point, 2) that
    returns scores (1, point): one panel each, with lines of equal score. The ``query``
    (1, 2) is an arrow; the ``keys`` (key, 2) are dots with their labels and weights.
    Raises ValueError if there are not as many labels as keys.
    """
    _check_counts(keys, labels=labels)
    ends = torch.cat([query, keys])
    (low, bottom), (high, top) = ends.amin(dim=0) - 1, ends.amax(dim=0) + 1
    across, up = torch.linspace(low, high, 121), torch.linspace(bottom, top, 121)
    points = torch.cartesian_prod(across, up)
    size = (WIDTH, len(scores) * (WIDTH - 0.5) * float((top - bottom) / (high - low)))
    with open_panels(len(scores), 1, size=size) as (fig, axes):
        for ax, (title, score) in zip(axes, scores.items(), strict=True):
            levels = array(score(query, points)).reshape(121, 121).T
            lines = ax.contour(array(across), array(up), levels, LEVELS)
            lines.set(array=None, edgecolor=LIGHT["line"], linewidth=0.8)
            ax.clabel(lines, fontsize=8, colors=LIGHT["quiet"])
            ax.annotate("", *array(torch.stack([query[0], 0 * query[0]])), **ARROW)
            ax.scatter(*array(keys.T), color=LIGHT["key"], zorder=3)
            weights = score(query, keys).softmax(dim=-1)[0]
            for place, label, weight in zip(keys, labels, weights, strict=True):
                ax.annotate(f"{label} {weight:.2f}", array(place), **BESIDE)
            ax.set(title=title, aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    return fig


def show_self_attention(weights, tokens, *, query):
    """Draw what happens to one token of a sentence in self-attention.

    Every token makes a query, a key and a value. That of token number ``query`` meets
    all keys; the values, in shares of its ``weights`` (key,), come back to its place.
    Raises ValueError if there are not as many weights as tokens, and for a ``query``
    that is none of them.
    """
    _check_counts(weights, tokens=tokens)
    if query not in range(len(tokens)):
        raise ValueError(f"there is no token {query}: count them from 0")
    picture = Picture(WIDTH, 4.0)
    words = picture.row(tokens, 0.3, _one(tokens, query, "query"), **SIDES)
    rows = ("Q", "query", 1.0), ("K", "key", 1.95), ("V", "value", 2.85)
    for map_of, color, y in rows:
        picture.lane(Box(MIDDLE, y, WIDTH - LEFT, 0.5), color)
        _name(picture, y + 0.2, f"W_{map_of}", "quiet", size=9)
    asks = picture.row("q" * len(tokens), 1.0, _one(tokens, query, "query"), **SIDES)
    asked = picture.row("k" * len(tokens), 1.95, "key", **SIDES)
    read = picture.row("v" * len(tokens), 2.85, "value", **SIDES)
    answers = picture.row(tokens, 3.7, _one(tokens, query, "value"), **SIDES)
    for word, value in zip(words, read, strict=True):
        picture.arrow(word.bottom, value.top, "line", weight=0.1)
    _look(picture, weights, asks[query], asked, read, answers[query])
    _name(picture, 0.3, "tokens", "quiet")
    _name(picture, 1.0, "queries", "query")
    _name(picture, 3.7, "outputs", "value")
    return picture.figure


def _one(tokens, chosen, color):
    return [color if i == chosen else "line" for i in range(len(tokens))]


def show_unrolled(source, target):
    """Draw an encoder that reads in both directions, one vector c, and a decoder.

    ``source`` and ``target`` are lists of a few words. Every state of the decoder gets
    c, the state before and the word before.
    """
    picture = Picture(WIDTH, 4.1)
    context = picture.box(MIDDLE, 1.95, "c", "key")
    states = picture.row("h" * len(source), 0.95, "query", **SIDES)
    for word, state in zip(source, states, strict=True):
        picture.text(state.x, 0.25, word)
        picture.arrow((state.x, 0.4), state.top, "quiet")
    for one, other in itertools.pairwise(states):
        _join(picture, one.right, other.left, -0.07)
        _join(picture, other.left, one.right, 0.07)
    for end in (states[0], states[-1]):  # where each direction has read everything
        picture.arrow(end.bottom, context.top, "query")
    _draw_decoder(picture, ["<bos>", *target, "<eos>"], context)
    for y, name in ((0.95, "encoder"), (2.95, "decoder")):
        _name(picture, y, name, "query")
    _name(picture, 1.95, "context", "key")
    return picture.figure


def _join(picture, start, end, lower=0.0):
    start, end = ((x, y + lower) for x, y in (start, end))
    picture.arrow(start, end, "query", straight=True)


def _draw_decoder(picture, words, context):
    """Draw the states, which get c, and the words that they write and then read."""
    step = (WIDTH - LEFT) / len(words)
    sides = {"left": LEFT + step, "right": WIDTH}
    states = picture.row("s" * len(words[1:]), 2.95, "query", **sides)
    picture.text(LEFT + step / 2, 3.05, words[0])
    reads = LEFT + step / 2 + 0.25, 3.05
    for state, word in zip(states, words[1:], strict=True):
        picture.arrow(context.bottom, state.top, "key")
        picture.arrow(reads, (state.left[0], state.y + 0.1), "quiet", straight=True)
        picture.text(state.x, 3.85, word)
        picture.arrow(state.bottom, (state.x, 3.7), "quiet")
        reads = state.x + 0.1, 3.7
    for one, other in itertools.pairwise(states):
        _join(picture, one.right, other.left)


def show_writing(text, words, probabilities):
    """Draw how a decoder goes on with a text: look back, share out, draw, go on.

    ``text`` lists the words so far; ``words`` are some that may follow, as likely as
    their ``probabilities`` (word,), and the first of them is drawn and read next.
    Raises ValueError if there are not as many probabilities as words.
    """
    _check_counts(probabilities, words=words)
    picture = Picture(WIDTH, 3.5)
    step = (WIDTH - LEFT) / (len(text) + 1)
    tokens = picture.row(
        [*text, words[0]], 0.3, ["query"] * len(text) + ["value"], **SIDES
    )
    picture.lane(Box(MIDDLE, 1.35, WIDTH - LEFT, 0.7), "key")
    states = picture.row(["h"] * len(text), 1.35, "key", left=LEFT, right=WIDTH - step)
    for i, state in enumerate(states):
        for token in tokens[: i + 1]:
            picture.arrow(token.bottom, state.top, "query", weight=0.08)
    colors = ["line"] * (len(words) - 1) + [
        "value"
    ]  # the drawn one last, below its place
    choices = picture.row(words[::-1], 2.45, colors, **SIDES)[::-1]
    for choice, share in zip(choices, array(probabilities), strict=True):
        picture.arrow(states[-1].bottom, choice.top, "value", weight=share)
        picture.text(choice.x, 2.8, f"{share:.2f}", size=10)
    picture.arrow((WIDTH - 0.12, 2.28), (WIDTH - 0.12, 0.47), "value")
    rows = {0.3: "tokens", 1.35: "blocks", 2.45: "next?"}
    for y, name in rows.items():
        _name(picture, y, name, "quiet")
    picture.text(MIDDLE, 3.2, "draw one, append it, and read again", color="quiet")
    return picture.figure


def show_question(image, weights, *, question, answer):
    """Draw a question put to an image: it asks the patches, and reads the answer.

    ``image`` is (3, height, width), as high as wide; it is cut into as many patches as
    there are ``weights`` (patch,), a square number. ``question`` and ``answer`` are
    texts. Raises ValueError for a number of patches that is no square.
    """
    rows = round(len(weights) ** 0.5)
    if rows**2 != len(weights):
        raise ValueError(f"{len(weights)} weights are no square of patches")
    picture = Picture(WIDTH, 4.5)
    asks = picture.box(MIDDLE, 0.3, question, "query")
    answers = picture.box(MIDDLE, 4.2, answer, "value")
    patches = picture.patches(Box(MIDDLE, 2.25, 2.6, 2.6), image, rows)
    for patch, weight in zip(patches, array(weights), strict=True):
        picture.arrow(asks.bottom, patch.top, "query", weight=weight)
        picture.arrow(patch.bottom, answers.top, "value", weight=weight)
    for y, name, color in ((0.3, "query", "query"), (4.2, "output", "value")):
        _name(picture, y, name, color)
    _name(picture, 2.15, "keys", "key")
    _name(picture, 2.4, "values", "value")
    return picture.figure
