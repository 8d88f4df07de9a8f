"""Questions about images: digits in a grid of cells, and one that is asked for.

Where the answer stands is known, so that one can measure where a model looks. Cells are
counted row by row. The digits of a sheet are drawn from ``images`` (image, 1, height,
width), in 0…1, with their ``labels`` (image,).

This module knows no model.
"""

from itertools import permutations
from typing import NamedTuple

import torch
from einops import rearrange

ROWS = 3
CELLS = ROWS**2
CLASSES = 10
COLORS = {
    "red": (0.85, 0.1, 0.15),
    "green": (0.1, 0.6, 0.2),
    "blue": (0.15, 0.35, 0.95),
    "orange": (1.0, 0.6, 0.0),
}
WHOLE = "sheet channel (row height) (column width)"
CUT = "sheet (row column) channel height width"
QUADRANTS = "image channel (row height) (column width)"
APART = "image (row column) channel height width"
# Orders of four quadrants in which none stays in its position.
MOVED = [
    order
    for order in permutations(range(4))
    if all(position != quadrant for position, quadrant in enumerate(order))
]


class Sheets(NamedTuple):
    """Sheets of 3 × 3 cells with a question each, as tensors whose rows go together."""

    images: torch.Tensor  # (sheet, channel, height, width), in 0…1
    questions: torch.Tensor  # (sheet,), the digit that is asked for
    answers: torch.Tensor  # (sheet,), the number of a color, or the digit
    cells: torch.Tensor  # (sheet, cell), True where the answer stands


def color_sheets(images, labels, count, *, seed=0):
    """Make sheets of four colored digits on white, each asking what color one is.

    The digits of a sheet are of different classes, and each has one of ``COLORS``,
    whose number is the answer.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = _orders(count, CLASSES, generator)[:, :4]  # (sheet, digit)
    colors = torch.randint(len(COLORS), classes.shape, generator=generator)
    ink = _draw(images, labels, classes, generator)  # (sheet, digit, 1, height, width)
    paint = torch.tensor(list(COLORS.values()))[colors][..., None, None]
    asked = torch.arange(4) == 0  # which one is first is chance already
    sheets, cells = _lay_out(1 - ink * (1 - paint), asked.expand_as(classes), generator)
    return Sheets(sheets, classes[:, 0], colors[:, 0], cells)


def decoy_sheets(images, labels, count, *, seed=0):
    """Make sheets with one whole digit among three decoys: digits in another order.

    A decoy has as much ink as a digit, in strokes of the same kind, so that brightness
    tells nothing. The question and the answer are the class of the whole digit.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (count, 4), generator=generator)
    ink = _draw(images, labels, classes, generator)
    moved = move_quadrants(ink[:, 1:].flatten(0, 1), generator)
    ink[:, 1:] = moved.unflatten(0, (count, 3))
    whole = torch.arange(4) == 0
    sheets, cells = _lay_out(ink, whole.expand_as(classes), generator)
    return Sheets(sheets, classes[:, 0], classes[:, 0], cells)


def move_quadrants(images, generator):
    """Put the quadrants of each image into another order, in which none stays.

    ``images`` are (image, channel, height, width); the torch ``generator`` draws their
    orders.
    """
    quadrants = rearrange(images, f"{QUADRANTS} -> {APART}", row=2, column=2)
    drawn = torch.randint(len(MOVED), (len(images), 1), generator=generator)
    order = torch.tensor(MOVED)[drawn[:, 0]]  # (image, quadrant)
    moved = quadrants[torch.arange(len(images))[:, None], order]
    return rearrange(moved, f"{APART} -> {QUADRANTS}", row=2)


def _orders(count, size, generator):
    """Return so many orders of so many things: (order, thing)."""
    return torch.rand(count, size, generator=generator).argsort(dim=1)


def _draw(images, labels, classes, generator):
    """Draw an image of each of the ``classes`` (sheet, digit)."""
    sizes = labels.bincount(minlength=CLASSES)
    first = sizes.cumsum(dim=0) - sizes  # the index of each class in the order below
    drawn = torch.rand(classes.shape, generator=generator) * sizes[classes]
    return images[labels.argsort(stable=True)[first[classes] + drawn.long()]]


def _lay_out(pieces, marked, generator):
    """Lay pieces (sheet, digit, channel, height, width) into cells of empty sheets.

    Three channels are on white, one is ink. Returns the sheets and in which of their
    cells (sheet, cell) the ``marked`` ones (sheet, digit) lie.
    """
    count, digits, channels, *size = pieces.shape
    rows = torch.arange(count)[:, None]
    cells = _orders(count, CELLS, generator)[:, :digits]  # (sheet, digit)
    empty = float(channels == 3)
    sheets = pieces.new_full((count, CELLS, channels, *size), empty)
    sheets[rows, cells] = pieces
    there = torch.zeros(count, CELLS, dtype=torch.bool)
    there[rows, cells] = marked
    return rearrange(sheets, f"{CUT} -> {WHOLE}", row=ROWS), there
