"""Ideas: the pictures that chapters begin with, each small enough for a phone.

They read from top to bottom: queries ask, keys answer, values are what is read.
"""

import itertools

import torch

from tutorial_lib.plotting.panels import WIDTH, array
from tutorial_lib.plotting.pictures import Box, Picture
from tutorial_lib.shapes import check_shapes

LEFT = 0.78  # inches for the names of rows
SIDES = {"left": LEFT, "right": WIDTH}
MIDDLE = (LEFT + WIDTH) / 2
NEAR = 0.12  # inches between matrices that are multiplied


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


def show_kernel(keys, values, *, query, width, key="{:g}", value="{:g}"):
    """Draw one step of kernel regression with a Gaussian: Nadaraya (1964).

    Over the line of the ``keys`` (key,) a bell stands on the ``query``; where it is
    high a key has much weight, and a thick line to its place among the ``values``
    (key,), between which the output lies. ``key`` and ``value`` say how a number is
    written, as in "km {:g}". Raises ValueError if there are not as many values as keys.
    """
    _check_counts(values, keys=keys)
    weights = torch.softmax(-((keys - query) ** 2) / (2 * width**2), dim=0)
    picture, output = Picture(WIDTH, 3.9), float(weights @ values)
    *places, here, step = _placed([*keys.tolist(), query], LEFT + 0.35, WIDTH - 0.5)
    *heights, answer, _ = _placed([*values.tolist(), output], 1.4, 0.3)
    picture.bell((here, 2.75), step * width, 0.75)
    picture.line((LEFT, 2.75), (WIDTH, 2.75), "line")
    for i, weight in enumerate(weights.tolist()):
        x, y = places[i], heights[i]
        picture.box(x, 3.0, key.format(keys[i]), "key")
        picture.arrow((x, 2.75), (x, y), "query", weight=weight, straight=True)
        picture.arrow((x, y), (here, answer), "value", weight=weight, straight=True)
        picture.text(x, 1.72, f"{weight:.2f}", size=10, clear=True)
        picture.dot(x, y, "value")
        picture.text(x + 0.14, y, value.format(values[i]), align="left")
    asks = picture.box(here, 3.6, f"{key.format(query)}?", "query")
    picture.arrow(asks.top, (here, 2.77), "query")
    picture.dot(here, answer, "value", hollow=True)
    said = value.format(round(output, 2))
    picture.text(here - 0.12, answer - 0.2, said, align="right", color="value")
    for name, y in {"weights": 1.72, "kernel": 2.4}.items():
        _name(picture, y, name, "quiet")
    for name, y in {"value": 0.85, "key": 3.0, "query": 3.6}.items():
        _name(picture, y, name if name == "query" else f"{name}s", name)
    return picture.figure


def _placed(numbers, low, high):
    """Return where numbers lie between two ends in inches, and the inches of 1."""
    step = (high - low) / (max(numbers) - min(numbers))
    return [*(low + step * (n - min(numbers)) for n in numbers), step]


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
    picture.text(middle, scored.y - 0.17, r"÷ $\sqrt{d_k}$", math=True)
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


def show_masks(masks, words, *, query):
    """Draw who may look at whom under several masks, as looks and as cells.

    ``masks`` maps a name to a boolean (query, key); the looks of one ``query`` are
    strong. Raises ValueError for a mask that does not fit the ``words``.
    """
    size = len(words), len(words)
    side, step = 0.17, 1.3
    picture = Picture(WIDTH, step * len(masks) - 0.15)
    across = {"left": LEFT, "right": WIDTH - side * len(words) - 0.25}
    for block, (name, mask) in enumerate(masks.items()):
        if mask.shape != size:
            raise ValueError(f"mask {name!r} is {tuple(mask.shape)}, not {size}")
        top = step * block + 0.2
        asks = picture.row(words, top, _one(words, query, "query"), **across)
        asked = picture.row(words, top + 0.72, "key", **across)
        for i, j in sorted(mask.nonzero().tolist(), key=lambda look: look[0] == query):
            color, weight = ("query", 0.25) if i == query else ("line", 0.02)
            ends = asks[i].bottom, asked[j].top
            picture.arrow(*ends, color, weight=weight, straight=True)
        corner = WIDTH - side * len(words) - 0.02, top - 0.07
        picture.cells(*corner, mask, "query", side=side, chosen=query)
        _name(picture, top + 0.36, name, "ink")
    return picture.figure


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


def show_heads(weights, tokens, *, query):
    """Draw where the heads of a layer look from one token, and how they are joined.

    ``weights`` (head, key) are those of token number ``query``; each head has a lane,
    which leads to its part of what is joined. Raises ValueError if there are not as
    many weights as tokens.
    """
    weights = array(weights)
    _check_counts(weights[0], tokens=tokens)
    step = 0.42  # inches of a part
    left, joined = step * len(weights) + 0.17, 1.4 * len(weights) + 0.2
    picture = Picture(WIDTH, joined + 0.52)
    colors = _one(tokens, query, "query")
    for head, look in enumerate(weights):
        x, middle = step * (head + 0.5) + 0.02, 1.4 * head + 0.68
        picture.lane(Box((left + WIDTH) / 2, middle, WIDTH - left, 1.3), "line")
        words = picture.row(tokens, middle + 0.42, colors, left=left, right=WIDTH)
        for word, weight in zip(words, look, strict=True):
            if word != words[query]:
                picture.arrow(words[query].top, word.top, "query", weight=weight)
        part = rf"$\mathbf{{H}}_{head}$"
        part = picture.box(x, joined, part, "value", width=step, math=True)
        picture.text(left + 0.4, middle - 0.5, f"head {head}", color="query")
        picture.line((left, middle), (x, middle), "value")
        picture.arrow((x, middle), part.top, "value", straight=True)
    output = picture.box(words[-1].x - 0.4, joined, tokens[query], "value")
    picture.arrow(part.right, output.left, "value", straight=True)
    between = (part.right[0] + output.left[0]) / 2
    picture.text(between, joined, r"$\mathbf{W}_O$", clear=True, math=True)
    for place, name in ((left - 0.15) / 2, "joined"), (output.x, "output"):
        picture.text(place, joined + 0.32, name, color="value")
    return picture.figure


def show_unrolled(source, target):
    """Draw an encoder, its last state as one vector c, and a decoder that begins there.

    ``source`` and ``target`` are lists of a few words. The encoder reads from left to
    right. Every state of the decoder but the first gets the state before and the word
    before.
    """
    picture = Picture(WIDTH, 4.1)
    context = picture.box(MIDDLE, 1.95, "c", "value")
    states = picture.row("h" * len(source), 0.95, "key", **SIDES)
    for word, state in zip(source, states, strict=True):
        picture.text(state.x, 0.25, word)
        picture.arrow((state.x, 0.4), state.top, "quiet")
    for one, other in itertools.pairwise(states):
        picture.arrow(one.right, other.left, "key", straight=True)
    picture.arrow(states[-1].bottom, context.top, "key")
    _draw_decoder(picture, ["<bos>", *target, "<eos>"], context)
    _name(picture, 0.95, "encoder", "key")
    _name(picture, 1.95, "card", "value")
    _name(picture, 2.95, "decoder", "query")
    return picture.figure


def _draw_decoder(picture, words, context):
    """Draw the states, the first from c, and the words they write and then read."""
    states = picture.row("s" * len(words), 2.95, "query", **SIDES)
    picture.arrow(context.bottom, states[0].top, "value")
    for state, word in zip(states, words, strict=True):
        picture.text(state.x, 3.85, word)
        if state != states[0]:
            picture.arrow(state.bottom, (state.x, 3.7), "quiet")
    for one, other in itertools.pairwise(states):
        picture.arrow(one.right, other.left, "query", straight=True)
        reads = (one.x + 0.1, 3.7), (other.left[0], other.y + 0.1)
        picture.arrow(*reads, "quiet", straight=True)


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


def show_asking(words, changes, answer, *, at):
    """Draw how an answer is explained: change one thing of the text, and ask again.

    ``words`` are those of a text, and a model gives ``answer`` for the word whose place
    is ``at``; ``changes`` maps what is done to a triple: the place of a word, what
    stands there instead, and the answer then. Raises ValueError for a place that is
    none of the text's.
    """
    places = at, *(place for place, _, _ in changes.values())
    if any(place not in range(len(words)) for place in places):
        raise ValueError(f"a text of {len(words)} words has no such place")
    picture = Picture(WIDTH, 1.42 * (1 + len(changes)))
    asked, y = {"as it is": (None, "", answer), **changes}, 0.5
    for name, (place, instead, then) in asked.items():
        text = [instead if i == place else word for i, word in enumerate(words)]
        colors = ["key" if i == place else "line" for i in range(len(words))]
        colors[at] = "query"
        row = picture.row(text, y, colors, left=0.1, right=WIDTH - 0.1)
        said = picture.box(row[at].x, y + 0.6, then, "value")
        picture.arrow(row[at].bottom, said.top, "value", straight=True)
        picture.text(0.1, y - 0.36, name, color="quiet", align="left")
        y += 1.42
    return picture.figure
