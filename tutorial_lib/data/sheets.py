"""Sheets: nine cells in three rows, digits in some of them, and something to ask.

Where the answer stands is known, so that one can measure where a model looks. Cells are
counted row by row, and a sheet of digits of 8 × 8 pixels has 24 × 24. The digits are
drawn from ``images`` (image, 1, height, width), in 0…1, with their ``labels`` (image,).

This module knows no file and no model, and takes its digits as they come.
"""

from itertools import permutations
from typing import NamedTuple

import torch
from einops import rearrange

from tutorial_lib.data.counts import check_counts

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
# Orders of four quadrants in which none stays in its place.
MOVED = [
    order
    for order in permutations(range(4))
    if all(place != quadrant for place, quadrant in enumerate(order))
]


class Sheets(NamedTuple):
    """Sheets with a question each, as tensors whose rows go together."""

    images: torch.Tensor  # (sheet, channel, height, width), in 0…1
    questions: torch.Tensor  # (sheet,), the digit that is asked for
    answers: torch.Tensor  # (sheet,), the number of a color, a count, or the digit
    cells: torch.Tensor  # (sheet, cell), True where the answer stands


def color_sheets(images, labels, count, *, digits=4, seed=0):
    """Make sheets of colored digits on white, each with the question what color one is.

    The ``digits`` of a sheet are of different classes, and each has one of ``COLORS``,
    whose number is the answer. Raises ValueError for counts that make no sheet.
    """
    check_counts(count=count, digits=digits)
    chance = torch.Generator().manual_seed(seed)
    classes = _orders(count, CLASSES, chance)[:, :digits]  # (sheet, digit)
    colors = torch.randint(len(COLORS), classes.shape, generator=chance)
    ink = _draw(images, labels, classes, chance)  # (sheet, digit, 1, height, width)
    paint = torch.tensor(list(COLORS.values()))[colors][..., None, None]
    asked = torch.arange(digits) == 0  # which one is first is chance already
    sheets, cells = _lay_out(1 - ink * (1 - paint), asked.expand_as(classes), chance)
    return Sheets(sheets, classes[:, 0], colors[:, 0], cells)


def count_sheets(images, labels, count, *, digits=6, most=4, seed=0):
    """Make sheets of digits, each with the question how often one of them is there.

    Every answer from 0 to ``most`` is as frequent, and a sheet has ``digits`` digits in
    all. Raises ValueError for counts that make no sheet.
    """
    check_counts(count=count, digits=digits, most=most)
    chance = torch.Generator().manual_seed(seed)
    questions = torch.randint(CLASSES, (count,), generator=chance)
    answers = torch.randint(most + 1, (count,), generator=chance)
    asked = torch.arange(digits) < answers[:, None]  # (sheet, digit)
    others = torch.randint(1, CLASSES, (count, digits), generator=chance)
    classes = (questions[:, None] + others * ~asked) % CLASSES
    ink = _draw(images, labels, classes, chance)
    sheets, cells = _lay_out(ink, asked, chance)
    return Sheets(sheets, questions, answers, cells)


def decoy_sheets(images, labels, count, *, decoys=3, seed=0):
    """Make sheets with one whole digit among ``decoys``: digits with moved quadrants.

    A decoy has as much ink as a digit, in strokes of the same kind, so that brightness
    tells nothing. The question and the answer are the class of the whole digit. Raises
    ValueError for counts that make no sheet.
    """
    check_counts(count=count)
    check_counts(decoys=decoys, least=0)
    chance = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (count, 1 + decoys), generator=chance)
    ink = _draw(images, labels, classes, chance)
    moved = move_quadrants(ink[:, 1:].flatten(0, 1), chance)
    ink[:, 1:] = moved.unflatten(0, (count, decoys))
    whole = torch.arange(1 + decoys) == 0
    sheets, cells = _lay_out(ink, whole.expand_as(classes), chance)
    return Sheets(sheets, classes[:, 0], classes[:, 0], cells)


def move_quadrants(images, chance):
    """Put the quadrants of each image into another order, in which none stays.

    ``images`` are (image, channel, height, width), and ``chance`` is the torch
    generator that draws their orders.
    """
    quadrants = rearrange(images, f"{QUADRANTS} -> {APART}", row=2, column=2)
    drawn = torch.randint(len(MOVED), (len(images), 1), generator=chance)
    order = torch.tensor(MOVED)[drawn[:, 0]]  # (image, quadrant)
    moved = quadrants[torch.arange(len(images))[:, None], order]
    return rearrange(moved, f"{APART} -> {QUADRANTS}", row=2)


def _orders(count, size, chance):
    """Return so many orders of so many things: (order, thing)."""
    return torch.rand(count, size, generator=chance).argsort(dim=1)


def _draw(images, labels, classes, chance):
    """Draw an image of each of the ``classes`` (sheet, digit)."""
    sizes = labels.bincount(minlength=CLASSES)
    first = sizes.cumsum(dim=0) - sizes  # the place of each class in the order below
    drawn = torch.rand(classes.shape, generator=chance) * sizes[classes]
    return images[labels.argsort(stable=True)[first[classes] + drawn.long()]]


def _lay_out(pieces, marked, chance):
    """Lay pieces (sheet, digit, channel, height, width) into cells of empty sheets.

    Three channels are on white, one is ink. Returns the sheets and in which of their
    cells (sheet, cell) the ``marked`` ones (sheet, digit) lie.
    """
    count, digits, channels, *size = pieces.shape
    if digits > CELLS:
        raise ValueError(f"{digits} digits are more than the {CELLS} cells of a sheet")
    rows = torch.arange(count)[:, None]
    cells = _orders(count, CELLS, chance)[:, :digits]  # (sheet, digit)
    empty = float(channels == 3)
    sheets = pieces.new_full((count, CELLS, channels, *size), empty)
    sheets[rows, cells] = pieces
    there = torch.zeros(count, CELLS, dtype=torch.bool)
    there[rows, cells] = marked
    return rearrange(sheets, f"{CUT} -> {WHOLE}", row=ROWS), there
