"""Pictures: the idea of a chapter, as its opening, small enough for a phone.

A line is as thick as its weight. ``weights`` (key,) are those of one query, in shares
of 1; ``tokens``, ``words``, ``source`` and ``target`` are lists of a few texts, and
``query`` is the index of the one that is followed. Each function returns a figure, and
raises ValueError if there are not as many weights as texts. None of them knows a model.
"""

import math
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.drawing import (
    LEFT,
    NEAR,
    PALE,
    ROLES,
    Box,
    Picture,
    numbered,
    room,
)
from tutorial_lib.plotting.panels import WIDTH, array
from tutorial_lib.shapes import check_shapes

MIDDLE = (LEFT + WIDTH) / 2
ASIDE = 0.17  # inches from the middle of a column to its stream and to its layers


def show_lookup(weights, *, query, keys, values, output):
    """Draw one attention step: a query, the keys it matches, the values it reads."""
    picture = Picture(3.56)
    [asks] = picture.row([query], 0.3, "query", name="query")
    asked = picture.row(keys, 1.3, "key", name="keys")
    read = picture.row(values, 2.26, "value", name="values")
    [answer] = picture.row([output], 3.26, "value", name="output")
    _attend(picture, weights, asks, asked, read, answer)
    return picture.figure


def _attend(picture, weights, query, keys, values, output):
    """Lead from a query to keys, and from values to an output, by weight."""
    picture.fan(query, keys, "query", weights, curved=True)
    picture.fan(output, values, "value", weights, curved=True)
    y = (keys[0].y + values[0].y) / 2
    picture.numbers([key.x for key in keys], y, weights)


def show_kernel(keys, values, *, query, width, key="{:g}", value="{:g}"):
    """Draw one step of kernel regression with a Gaussian bell: Nadaraya (1964).

    ``keys``, ``values`` (key,), ``query`` and ``width`` are numbers; ``key`` and
    ``value`` say how one is written, as in "km {:g}".
    """
    weights = array(torch.softmax(-((keys - query) ** 2) / (2 * width**2), dim=0))
    keys, values = array(keys), array(values)
    picture, output = Picture(3.9), weights @ values
    low = min(*keys, query)
    step, up = (WIDTH - LEFT - 0.85) / np.ptp([*keys, query]), 1.1 / np.ptp(values)
    xs, here = (LEFT + 0.35 + step * (number - low) for number in (keys, query))
    ys, answer = (0.3 + up * (values.max() - number) for number in (values, output))
    across = np.linspace(-3, 3, 121)
    bell = here + step * width * across, 2.75 - 0.75 * np.exp(-(across**2) / 2)
    picture.ax.plot(*bell, color=LIGHT["query"], lw=1.3, zorder=0)
    picture.ax.fill_between(*bell, 2.75, fc=(LIGHT["query"], PALE), lw=0, zorder=0)
    picture.line((LEFT, 2.75), (WIDTH, 2.75), "line")
    for i, (x, y, weight) in enumerate(zip(xs, ys, weights, strict=True)):
        picture.box(x, 3.0, key.format(keys[i]), "key")
        picture.fan((x, y), [(x, 2.75)], "query", weight)
        picture.fan((x, y), [(here, answer)], "value", weight)
        picture.dot(x, y, "value")
        picture.text(x + 0.14, y, value.format(values[i]), align="left")
    picture.numbers(xs, 1.72, weights)
    asks = picture.box(here, 3.6, f"{key.format(query)}?", "query")
    picture.arrow(asks, (here, 2.77), "query")
    picture.dot(here, answer, "value", sign="")
    picture.text(here - 0.4, answer - 0.2, value.format(output.round(2)), "value")
    picture.names({0.85: "values", 2.4: "kernel", 3.0: "keys", 3.6: "query"})
    return picture.figure


def show_scaled_dot_product(queries, keys, values, *, query, tokens=()):
    """Draw softmax(Q Kᵀ / √d_k) V as matrices: eq. 1 of Vaswani et al. (2017).

    ``queries`` (query, d_k), ``keys`` (key, d_k) and ``values`` (key, d_v) fill the
    cells, ``tokens`` name them. Raises ValueError if they do not fit together.
    """
    check_shapes(queries, keys, values)
    scores = queries @ keys.T  # (query, key)
    weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
    width, named = queries.shape[-1] + 2 * len(keys) + values.shape[-1], room(tokens)
    side = min(0.26, (WIDTH - 1.4 - 1.2 * named) / width)
    left = (WIDTH - 1.2 - width * side + 0.9 * named) / 2
    y = 0.6 + max(side * len(keys), side * keys.shape[-1] + named)
    picture = Picture(y + side * len(queries) + 0.5)
    style = {"side": side, "chosen": query}
    asked = picture.matrix(left, y, "queries", queries, "query", rows=tokens, **style)
    scored = picture.matrix(asked + NEAR, y, "scores", scores, "quiet", **style)
    weighed = picture.matrix(scored + 1, y, "weights", weights, "query", **style)
    picture.matrix(weighed + NEAR, y, "outputs", weights @ values, "value", **style)
    above, low = {"side": side, "above": True}, y - NEAR
    picture.matrix(asked + NEAR, low, "keysᵀ", keys.T, "key", columns=tokens, **above)
    picture.matrix(weighed + NEAR, low, "values", values, "value", rows=tokens, **above)
    middle = y + side * len(queries) / 2
    picture.arrow((scored, middle), (scored + 1, middle), "ink")
    picture.text(scored + 0.5, middle - 0.17, r"÷ $\sqrt{d_k}$").set_parse_math(True)
    picture.text(scored + 0.5, middle + 0.19, "softmax")
    return picture.figure


def show_masks(words, *, query, prompt):
    """Draw who may attend to whom in BERT, in GPT, and with a ``prompt`` as prefix."""
    everything = torch.ones(len(words), len(words)).bool()  # (query, key)
    masks = {"BERT": everything, "GPT": everything.tril()}
    masks["prefix LM"] = masks["GPT"] | (torch.arange(len(words)) < prompt)
    side, step = 0.17, 1.3
    picture = Picture(step * len(masks) - 0.15)
    right = WIDTH - side * len(words) - 0.25
    for i, (name, mask) in enumerate(masks.items()):
        y = step * i + 0.2
        asks = picture.row(words, y, _only(words, query, "query"), right=right)
        keys = picture.row(words, y + 0.72, "key", right=right)
        for one in sorted(range(len(words)), key=query.__eq__):  # the strong one last
            color, weight = ("query", 0.25) if one == query else ("line", 0.02)
            seen = [key for key, may in zip(keys, mask[one], strict=True) if may]
            picture.fan(asks[one], seen, color, weight)
        picture.cells(right + 0.23, y - 0.07, mask, "query", side=side, chosen=query)
        picture.names({y + 0.36: name})
    return picture.figure


def _only(words, chosen, color):
    """Return a color for each word: a line's for all but the chosen one."""
    return [color if i == chosen else "line" for i in range(len(words))]


def show_encoder_decoder(source, target):
    """Draw an encoder, the context vector c, a decoder: Cho et al. (2014), figure 1."""
    picture, words = Picture(4.1), ["<bos>", *target, "<eos>"]
    [context] = picture.row("c", 1.95, "value", name="context")
    states = _read(picture, source, 0.95)
    for last in (states[0], states[-1]):
        picture.arrow(last, context, "key", curved=True)
    for state in _write(picture, words, 2.95, "query"):
        picture.arrow(context, state, "value", curved=True)
    return picture.figure


def show_bahdanau_attention(weights, source, target, *, step):
    """Draw a decoder that attends and writes word ``step``: Bahdanau et al. (2015)."""
    picture, words = Picture(4.5), ["<bos>", *target]
    memory = _read(picture, source, 1.0)
    colors = _only(words, step, "query")
    colors[step + 1] = "value"
    asks, writes = _write(picture, words, 3.35, colors)[step : step + 2]
    context = picture.box(writes.x, 2.6, numbered("c", step + 1), "value")
    picture.fan(asks, memory, "query", weights)
    picture.fan(context, memory, "value", weights, curved=True)
    picture.arrow(context, writes, "value")
    beside = [h.x + (0.27 if h.x > writes.x else -0.27) for h in memory]
    picture.numbers(beside, 1.38, weights)
    picture.names({2.6: "context"})
    return picture.figure


def _read(picture, words, y):
    """Draw an encoder, which reads in both directions; return its states' places."""
    labels = [numbered("h", j) for j in range(1, len(words) + 1)]
    states = picture.row(labels, y, "key", name="encoder")
    for word, state in zip(words, states, strict=True):
        picture.text(state.x, 0.25, word)
        picture.arrow((state.x, 0.41), state, "quiet")
    for one, other in pairwise(states):
        (right, y), (left, _) = one.edge(1, 0), other.edge(-1, 0)
        picture.arrow((right, y - 0.07), (left, y - 0.07), "key")
        picture.arrow((left, y + 0.07), (right, y + 0.07), "key")
    return states


def _write(picture, words, y, colors):
    """Draw states of a decoder, words below them that they write, and that are read."""
    labels = [numbered("s", i) for i in range(len(words))]  # s₀ before any word
    states = picture.row(labels, y, colors, name="decoder")
    below = y + 0.72
    for word, state in zip(words, states, strict=True):
        picture.text(state.x, below + 0.16, word)
    for one, other in pairwise(states):
        picture.arrow(one, other, "query")
        picture.arrow(other, (other.x, below), "quiet")
        start, end = (one.x + 0.15, below), (other.x - 0.1, other.edge(0, 1)[1])
        picture.arrow(start, end, "quiet")
    return states


def show_self_attention(weights, tokens, *, query):
    """Draw a token whose query meets all keys, and what comes back of the values."""
    picture, rows = Picture(4.0), {}
    words = picture.row(tokens, 0.3, _only(tokens, query, "query"), name="tokens")
    beside = max(0.2, 0.33 * words[0].width)  # queries to the left of keys
    below = words[0].edge(0, 1)[1]
    places = {"queries": (1.0, -beside), "keys": (1.95, 0), "values": (2.85, beside)}
    for name, (y, aside) in places.items():
        color, at = ROLES[name], {"left": LEFT + aside, "right": WIDTH + aside}
        colors = _only(tokens, query, color) if name == "queries" else color
        rows[name] = picture.row(name[0] * len(tokens), y, colors, name=name, **at)
        picture.lane(y, 0.5, color)
        picture.names({y + 0.2: f"W_{name[0].upper()}"}, size=9)
        for vector in rows[name]:
            picture.arrow((vector.x, below), vector, color, weight=0.1)
    outputs = picture.row(tokens, 3.7, _only(tokens, query, "value"), name="outputs")
    asks = rows["queries"][query]
    _attend(picture, weights, asks, rows["keys"], rows["values"], outputs[query])
    return picture.figure


def show_multi_head_attention(weights, tokens, *, query):
    """Draw where heads attend, concatenated: ``weights`` (head, key)."""
    step = 0.42  # inches of a part
    left, joined = step * len(weights) + 0.17, 1.4 * len(weights) + 0.2
    picture = Picture(joined + 0.52)
    for head, shares in enumerate(weights):
        x, y = step * (head + 0.5) + 0.02, 1.4 * head + 0.68
        picture.lane(y, 1.3, "line", left=left)
        colors = _only(tokens, query, "query")
        words = picture.row(tokens, y + 0.42, colors, left=left)
        tops = [word.edge(0, -1) for word in words]
        asks, shares = tops.pop(query), [*shares[:query], *shares[query + 1 :]]
        picture.fan(asks, tops, "query", shares, curved=True)
        part = picture.box(x, joined, f"H{'₀₁₂₃₄₅'[head]}", "value", width=step)
        picture.text(left + 0.4, y - 0.5, f"head {head}", "query")
        picture.line((left, y), (x, y), "value")
        picture.arrow((x, y), part, "value")
    output = picture.box(words[-1].x - 0.4, joined, tokens[query], "value")
    picture.arrow(part, output, "value")
    between = (part.edge(1, 0)[0] + output.edge(-1, 0)[0]) / 2
    picture.text(between, joined, "W_O", clear=True)
    picture.text((left - 0.15) / 2, joined + 0.32, "concat", "value")
    picture.text(output.x, joined + 0.32, "output", "value")
    return picture.figure


def show_rotary_encoding(positions, degrees):
    """Draw a query and a key as hands that rotate: Su et al. (2021), figure 1.

    ``positions`` lists pairs (query, key), a row each; ``degrees`` lists how far a pair
    of dimensions rotates in one position, a column each.
    """
    picture = Picture(0.23 + 1.3 * len(positions))
    wide = (WIDTH - LEFT) / len(degrees)
    for column, turn in enumerate(degrees):
        x = LEFT + wide * (column + 0.5)
        picture.text(x, 0.15, f"{turn}° per position", "quiet", size=10)
        for row, pair in enumerate(positions):
            query, key = (math.radians(turn * position) for position in pair)
            face = Box(x, 0.85 + 1.3 * row, 0.8, 0.8)
            hands = {"q": (query, "query"), "k": (key, "key")}
            picture.clock(face, hands, (key, query, "value"))
    for row, (query, key) in enumerate(positions):
        y = 0.85 + 1.3 * row
        picture.names({y - 0.11: f"query {query}", y + 0.11: f"key {key}"})
    return picture.figure


def show_transformer_block(weights, tokens, *, query):
    """Draw an encoder block, pre-norm: Xiong et al. (2020), figure 1 (b)."""
    picture = Picture(5.0)
    columns = [box.x for box in picture.row(tokens, 0.3, "key")]
    picture.row(tokens, 4.72, "key")
    picture.lane(1.5, 0.62, "query")
    ends = [(x + ASIDE, 1.19) for x in columns]
    for i, x in enumerate(columns):
        picture.arrow((x - ASIDE, 0.47), (x - ASIDE, 4.55), "key")
        _branch(picture, x, 0.6)
        _branch(picture, x, 2.6)
        shares = weights if i == query else 0.06
        picture.fan((x + ASIDE, 1.81), ends, "query", shares, curved=True)
        for begin, end in ((1.09, 1.19), (1.81, 2.0), (3.7, 4.0)):
            picture.line((x + ASIDE, begin), (x + ASIDE, end), "quiet")
        picture.arrow((x + ASIDE, 3.05), (x + ASIDE, 3.25), "quiet")
        picture.box(x + ASIDE, 3.5, "", "value", width=0.3, height=0.5)
        for size, y in ((0.05, 3.36), (0.11, 3.5), (0.05, 3.64)):  # wide in the middle
            picture.line((x + ASIDE - size, y), (x + ASIDE + size, y), "value")
    picture.names({0.3: "tokens", 1.0: "norm", 1.5: "attention", 2.1: "added"})
    picture.names({3.0: "norm", 3.5: "FFN", 4.1: "added", 4.72: "tokens"})
    return picture.figure


def _branch(picture, x, y):
    """Copy a stream aside through a norm, and add what comes back from a layer."""
    stream, layer = x - ASIDE, x + ASIDE
    picture.arrow((stream, y), (layer, y + 0.3), "quiet", curved=True)
    picture.box(layer, y + 0.4, "", "line", width=0.3, height=0.16)
    picture.arrow((layer, y + 1.4), (stream + 0.07, y + 1.5), "quiet")
    picture.dot(stream, y + 1.5, "key", sign="+")


def show_transformer(source, target, following, *, names):
    """Draw an encoder, and a decoder that writes ``following``; ``names`` for both."""
    picture, cut = Picture(3.4), 2.05
    left, right = {"left": 0, "right": cut - 0.1}, {"left": cut + 0.1}
    picture.lane(1.92, 0.54, "key", **left)
    memory = picture.row("h" * len(source), 1.92, "key", **left)
    words = picture.row(source, 2.85, "key", **left)
    picture.lane(1.05, 0.54, "query", **right)
    states = picture.row("s" * len(target), 1.05, "query", **right)
    written = picture.row(target, 2.85, "query", **right)
    for state in memory:
        picture.fan(state, words, "key", 0.04)
    for i, state in enumerate(states):
        picture.fan(state, written[: i + 1], "query", 0.04)
    picture.fan(states[-1], memory, "value", 0.1)
    says = picture.box(states[-1].x, 0.22, following, "value")
    picture.arrow(states[-1], says, "value")
    picture.line((cut, 0.05), (cut, 3.35), "quiet")
    picture.names({0.2: names[0], 1.51: "encoder", 3.22: "English"}, x=0.1)
    picture.names({0.2: names[1], 0.64: "decoder", 3.22: "French"}, x=cut + 0.2)
    return picture.figure


def show_shift(inputs, targets, *, position):
    """Draw what the target at a ``position`` is predicted from, and its masked copy."""
    picture, seen = Picture(2.0), position + 1
    aims = picture.row(targets, 0.3, _only(targets, position, "value"), name="targets")
    read = picture.row(inputs, 1.7, _only(inputs, seen, "key"), name="inputs")
    picture.fan(aims[position], read[:seen], "query", 0.2)
    picture.arrow(read[seen], aims[position], "key")
    picture.text(read[seen].x - 0.15, 1.0, "masked", "key", align="left")
    return picture.figure


def show_autoregression(text, words, probabilities):
    """Draw how a decoder goes on with a ``text``: by the first of several ``words``."""
    picture, step = Picture(3.5), (WIDTH - LEFT) / (len(text) + 1)
    colors = ["query"] * len(text) + ["value"]
    *tokens, _ = picture.row([*text, words[0]], 0.3, colors)
    picture.lane(1.35, 0.7, "key")
    states = picture.row("h" * len(text), 1.35, "key", right=WIDTH - step)
    for i, state in enumerate(states):
        picture.fan(state, tokens[: i + 1], "query", 0.08, curved=True)
    colors = _only(words, 0, "value")[::-1]  # the drawn one last, below its place
    choices = picture.row(words[::-1], 2.45, colors)
    picture.fan(states[-1], choices, "value", probabilities[::-1], curved=True)
    picture.numbers([box.x for box in choices], 2.8, probabilities[::-1], name="")
    picture.arrow((WIDTH - 0.12, 2.28), (WIDTH - 0.12, 0.47), "value")
    picture.names({0.3: "tokens", 1.35: "layers", 2.45: "next"})
    picture.text(MIDDLE, 3.2, "sample one, append it, repeat", "quiet")
    return picture.figure


def show_induction_head(tokens, *, earlier):
    """Draw how the last token finds what followed its like, the token ``earlier``."""
    picture, colors = Picture(4.0), ["line"] * len(tokens)
    colors[earlier : earlier + 2], colors[-1] = ["key", "key"], "query"
    words = picture.row(tokens, 0.3, colors, name="tokens")
    states = picture.row(tokens, 1.5, colors, name="layer 0")
    for i, h in enumerate(states[1:]):
        picture.fan(words[i], [h], "query", 0.3 if i == earlier else 0.06, curved=True)
        picture.text(h.x, 1.8, f"← {tokens[i]}", size=9)
    last, found = h.x, (states[earlier + 1].x, 1.92)
    reads = picture.box(last, 2.85, tokens[-1], "query", width=h.width)
    answer = picture.box(last, 3.7, tokens[earlier + 1], "value", width=h.width)
    picture.arrow(found, reads, "query", weight=0.3, curved=True)
    picture.arrow(reads, answer, "value")
    picture.names({2.85: "layer 1", 3.7: "next token"})
    picture.text(last - 1.4, 0.9, "previous-token head", "query", size=9, clear=True)
    picture.text(last - 0.85, 2.08, "induction head", "query", size=9, clear=True)
    return picture.figure


def show_vision_transformer(image, *, answer):
    """Draw how a ViT reads an image (3, side, side): Dosovitskiy et al. (2021)."""
    picture, size = Picture(5.6), image.shape[-1] // 3
    colors = ["value", *["key"] * 9]
    first, *positions = picture.row("0123456789", 3.55, colors)
    outputs = picture.row("h" * 10, 4.55, colors)
    picture.text(first.x, 3.2, "+", "quiet", size=13)
    for i, below in enumerate(positions):
        picture.text(below.x, 3.2, "+", "quiet", size=13)
        row, column = divmod(i, 3)
        patch = image[:, size * row :, size * column :][:, :size, :size]
        picture.image(Box(MIDDLE + column / 2 - 0.5, 0.35 + row / 2, 0.44, 0.44), patch)
        picture.image(Box(below.x, 2.05, 0.29, 0.29), patch)
        darkness = 1 - F.adaptive_avg_pool2d(patch, 2).mean(dim=0).reshape(4, 1)
        token = picture.cells(below.x - 0.055, 2.58, darkness, "key", side=0.11)
        picture.arrow((below.x, 2.19), token, "quiet")
    picture.arrow((MIDDLE, 1.62), (MIDDLE, 1.84), "quiet")
    picture.box(first.x, 2.8, "?", "value", width=first.width, height=0.44)
    picture.lane(4.29, 0.99, "query")
    for i, output in enumerate(outputs):
        picture.fan(output, [first, *positions], "query", 0.03 if i else 0.12)
    head = picture.box(first.x + 0.1, 5.27, "head", "value")
    picture.arrow(outputs[0], (first.x, head.edge(0, -1)[1]), "value")
    picture.arrow(head, picture.box(head.x + 1.4, 5.27, answer, "value"), "value")
    picture.names({0.85: "image", 2.05: "patches", 2.8: "tokens", 3.55: "positions"})
    picture.names({4.05: "encoder", 4.55: "outputs"})
    return picture.figure
