"""The Transformer's halves: the picture of one that reads and one that writes.

A line cuts it into models that people know by other names. This module knows no model.
"""

from tutorial_lib.plotting.panels import WIDTH
from tutorial_lib.plotting.pictures import Box, Picture

LEFT = 0.86  # inches for the names of rows
ROWS = {"English": 0.3, "encoder": 1.25, "decoder": 2.65, "French": 3.6}
CUT = 1.95  # inches from above


def show_halves(source, target, following, *, names):
    """Draw an encoder that reads, and below it a decoder that writes and looks up.

    ``source`` and ``target`` list a few words. The newest of the target's states looks
    at every word of the source and writes the word ``following``; ``names`` are those
    of the upper and the lower half alone.
    """
    picture = Picture(WIDTH, 3.9)
    step = (WIDTH - LEFT) / (len(target) + 1)
    sides = {"left": LEFT, "right": WIDTH - step}
    aside, middle = WIDTH - step / 2, (LEFT + WIDTH - step) / 2
    for half, color in (("encoder", "key"), ("decoder", "query")):
        picture.lane(Box(middle, ROWS[half], WIDTH - step - LEFT, 0.54), color)
    words = picture.row(source, ROWS["English"], "key", **sides)
    memory = picture.row("h" * len(source), ROWS["encoder"], "key", **sides)
    states = picture.row("s" * len(target), ROWS["decoder"], "query", **sides)
    written = picture.row(target, ROWS["French"], "query", **sides)
    next_word = picture.box(aside, ROWS["French"], following, "value")
    for h in memory:
        for word in words:
            picture.arrow(word.bottom, h.top, "key", weight=0.04, straight=True)
        picture.arrow(h.bottom, states[-1].top, "value", weight=0.1, straight=True)
    for i, s in enumerate(states):
        for word in written[: i + 1]:
            picture.arrow(word.top, s.bottom, "query", weight=0.04, straight=True)
    picture.arrow(states[-1].right, next_word.top, "value", straight=True)
    picture.line((LEFT, CUT), (WIDTH, CUT), "quiet")
    for name, y in ROWS.items():
        picture.text(0, y, name, align="left", color="quiet")
    for name, y in zip(names, (CUT - 0.2, CUT + 0.2), strict=True):
        picture.text(aside, y, name)
    return picture.figure
