"""The Transformer's halves: the picture of one that reads and one that writes.

Both run upward, side by side. A line cuts the picture into models that people know by
other names. This module knows no model.
"""

from tutorial_lib.plotting.panels import WIDTH
from tutorial_lib.plotting.pictures import Box, Picture

CUT = 2.05  # inches from the left
ENDS = {"encoder": (0, CUT - 0.1), "decoder": (CUT + 0.1, WIDTH)}
HEIGHTS = {"encoder": 1.92, "decoder": 1.05, "words": 2.85, "following": 0.22}
LANE, NAMES, LANGUAGES = 0.54, 0.2, 3.22  # inches; the last two from above


def show_halves(source, target, following, *, names):
    """Draw an encoder that reads, and at its right a decoder that writes and looks.

    ``source`` and ``target`` list a few words. The newest of the target's states looks
    at every word of the source and writes the word ``following``; ``names`` are those
    of the left and the right half alone.
    """
    picture = Picture(WIDTH, 3.4)
    words, memory = _half(picture, "encoder", source, "h", "key")
    written, states = _half(picture, "decoder", target, "s", "query")
    newest = states[-1]
    next_word = picture.box(newest.x, HEIGHTS["following"], following, "value")
    for h in memory:
        for word in words:
            picture.arrow(word.top, h.bottom, "key", weight=0.04, straight=True)
        picture.arrow(h.top, newest.bottom, "value", weight=0.1, straight=True)
    for i, s in enumerate(states):
        for word in written[: i + 1]:
            picture.arrow(word.top, s.bottom, "query", weight=0.04, straight=True)
    picture.arrow(newest.top, next_word.bottom, "value", straight=True)
    picture.line((CUT, 0.05), (CUT, 3.35), "quiet")
    languages = zip(ENDS.values(), names, ("English", "French"), strict=True)
    for (left, right), name, language in languages:
        picture.text(left + 0.1, NAMES, name, align="left")
        picture.text((left + right) / 2, LANGUAGES, language, color="quiet")
    return picture.figure


def _half(picture, name, words, state, color):
    """Draw a lane of states over a row of words, and return the places of both."""
    left, right = ENDS[name]
    middle, y = (left + right) / 2, HEIGHTS[name]
    picture.lane(Box(middle, y, right - left, LANE), color)
    picture.text(left + 0.1, y - LANE / 2 - 0.14, name, color="quiet", align="left")
    sides = {"left": left, "right": right}
    states = picture.row(state * len(words), y, color, **sides)
    return picture.row(words, HEIGHTS["words"], color, **sides), states
