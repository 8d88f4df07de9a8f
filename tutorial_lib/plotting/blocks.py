"""Blocks: a picture of the Transformer's block, small enough for a phone.

It reads from top to bottom: a stream for each token, and beside it what a layer reads
there and adds to it.
"""

from tutorial_lib.plotting.ideas import LEFT, SIDES
from tutorial_lib.plotting.panels import WIDTH, array
from tutorial_lib.plotting.pictures import Box, Picture

ASIDE = 0.17  # inches from the middle of a column to its stream and to its layers
FAINT = 0.06  # the weight of looks that are not followed
ROWS = [  # what stands where, in inches from above, and in which color
    (0.3, "tokens", "quiet"),
    (1.0, "norm", "quiet"),
    (1.5, "attention", "query"),
    (2.1, "added", "key"),
    (3.0, "norm", "quiet"),
    (3.5, "network", "value"),
    (4.1, "added", "key"),
    (4.72, "tokens", "quiet"),
]


def show_block(weights, tokens, *, query):
    """Draw an encoder block, pre-norm: Xiong et al. (2020), figure 1 (b).

    Attention joins the ``tokens``; where number ``query`` looks, its ``weights`` (key,)
    set the width of the lines. The network computes on each token by itself. Raises
    ValueError if there are not as many weights as tokens.
    """
    weights = array(weights)
    if len(weights) != len(tokens):
        raise ValueError(f"{len(weights)} weights for {len(tokens)} tokens")
    picture = Picture(WIDTH, 5.0)
    begin = picture.row(tokens, 0.3, "key", **SIDES)
    picture.row(tokens, 4.72, "key", **SIDES)
    columns = [box.x for box in begin]
    lane = Box((LEFT + WIDTH) / 2, 1.5, WIDTH - LEFT, 0.62)
    picture.lane(lane, "query")
    for x in columns:
        picture.arrow((x - ASIDE, begin[0].bottom[1]), (x - ASIDE, 4.55), "key")
        _leave(picture, x, 0.6)
        _join(picture, x, 2.1)
        _leave(picture, x, 2.6)
        _think(picture, x + ASIDE)
        _join(picture, x, 4.1)
    _look(picture, [x + ASIDE for x in columns], weights, query)
    for y, name, color in ROWS:
        picture.text(0, y, name, color=color, align="left")
    return picture.figure


def _think(picture, x):
    """Draw a token's own network, narrow at both ends, and the lines to it."""
    net = picture.box(x, 3.5, "", "value", width=0.3, height=0.5)
    for size, y in ((0.05, 3.36), (0.11, 3.5), (0.05, 3.64)):
        picture.line((x - size, y), (x + size, y), "value")
    picture.arrow((x, net.top[1] - 0.2), net.top, "quiet")
    picture.line(net.bottom, (x, 4.0), "quiet")


def _leave(picture, x, y):
    """Copy a stream aside, where it is normalized before a layer reads it."""
    picture.arrow((x - ASIDE, y), (x + ASIDE, y + 0.3), "quiet")
    picture.box(x + ASIDE, y + 0.4, "", "line", width=0.3, height=0.16)


def _join(picture, x, y):
    """Lead what a layer has found back, and add it to the stream."""
    picture.arrow((x + ASIDE, y - 0.1), (x - ASIDE + 0.07, y), "quiet", straight=True)
    picture.dot(x - ASIDE, y, "key", hollow=True)
    picture.text(x - ASIDE, y, "+", size=8, color="key")


def _look(picture, places, weights, query):
    """Let every place look at every other through the lane; follow one of them."""
    for asks, below in enumerate(places):
        for x, weight in zip(places, weights, strict=True):
            share = weight if asks == query else FAINT
            picture.arrow((x, 1.19), (below, 1.81), "query", weight=share)
        picture.line((below, 1.09), (below, 1.19), "quiet")
        picture.line((below, 1.81), (below, 2.0), "quiet")
