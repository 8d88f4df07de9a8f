"""The translator of Bahdanau et al. (2015), at the moment of one look.

This module knows no model: words and weights go in.
"""

import itertools

from tutorial_lib.plotting.ideas import SIDES
from tutorial_lib.plotting.panels import WIDTH, array
from tutorial_lib.plotting.pictures import Picture


def show_looking_back(weights, source, target, *, step):
    """Draw a translator that looks at its source before it writes: figure 1.

    The encoder reads the words of ``source`` in both directions. Before the decoder
    writes word ``step`` of ``target``, its state asks all of them, and what comes back,
    by the ``weights`` (key,), is the context of that word. Raises ValueError if there
    are not as many weights as source words, and for a step that writes no word.
    """
    if len(weights) != len(source):
        raise ValueError(f"{len(weights)} weights for {len(source)} source words")
    if step not in range(len(target)):
        raise ValueError(f"there is no word {step} of {len(target)}: count from 0")
    picture = Picture(WIDTH, 4.5)
    memory = _draw_encoder(picture, source)
    states, colors = ["s"] * (len(target) + 1), ["line"] * (len(target) + 1)
    colors[step : step + 2] = "query", "value"
    states = picture.row(states, 3.35, colors, **SIDES)
    _draw_words(picture, states, target)
    asks, writes = states[step : step + 2]
    context = picture.box(writes.x, 2.6, "c", "value")
    for state, weight in zip(memory, array(weights), strict=True):
        picture.arrow(asks.top, state.bottom, "query", weight=weight, straight=True)
        picture.arrow(state.bottom, context.top, "value", weight=weight)
        aside = state.x + (0.27 if state.x > context.x else -0.27)  # beside its lines
        picture.text(aside, 1.38, f"{weight:.2f}", size=10)
    picture.arrow(context.bottom, writes.top, "value")
    names = {1.38: ("weights", "quiet"), 2.6: ("context", "value")}
    names |= {1.0: ("encoder", "key"), 3.35: ("decoder", "query")}
    for y, (name, color) in names.items():
        picture.text(0, y, name, color=color, align="left")
    return picture.figure


def _draw_encoder(picture, source):
    """Draw a state for each word, read from both sides, and return their places."""
    states = picture.row(["h"] * len(source), 1.0, "key", **SIDES)
    for word, state in zip(source, states, strict=True):
        picture.text(state.x, 0.25, word)
        picture.arrow((state.x, 0.42), state.top, "quiet")
    for one, other in itertools.pairwise(states):
        left, right = one.right[0], other.left[0]
        picture.arrow((left, 0.93), (right, 0.93), "key", straight=True)
        picture.arrow((right, 1.07), (left, 1.07), "key", straight=True)
    return states


def _draw_words(picture, states, target):
    """Draw what each state but the first writes, and that the next one reads it."""
    for one, other in itertools.pairwise(states):
        picture.arrow(one.right, other.left, "query", straight=True)
    words = ["<bos>", *target]
    for state, word in zip(states, words, strict=True):
        picture.text(state.x, 4.2, word)
        if word != "<bos>":
            picture.arrow(state.bottom, (state.x, 4.03), "quiet")
    for state, after in itertools.pairwise(states):
        end = after.x - 0.1, after.bottom[1]
        picture.arrow((state.x + 0.2, 4.03), end, "quiet", straight=True)
