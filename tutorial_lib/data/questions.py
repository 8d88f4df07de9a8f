"""Questions about images: digits in a grid of cells, and one that is asked for.

Where the evidence lies is known, so that attention maps can be judged. Cells are
counted row by row. The digits of a grid are drawn from ``images`` (image, 1, height,
width), in 0…1, with their ``labels`` (image,).

This module knows no model.
"""

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
WHOLE = "grid channel (row height) (column width)"
CUT = "grid (row column) channel height width"


class DigitGrids(NamedTuple):
    """Images of 3 × 3 cells with a question each, as tensors whose rows go together."""

    images: torch.Tensor  # (grid, channel, height, width), in 0…1
    questions: torch.Tensor  # (grid,), the digit that is asked for
    answers: torch.Tensor  # (grid,), the number of a color, or the digit
    cells: torch.Tensor  # (grid, cell), True where the evidence lies


def colored_digits(images, labels, count, *, seed=0):
    """Make images of four colored digits on white, each asking what color one is.

    The digits of an image are of different classes, and each has one of ``COLORS``,
    whose number is the answer.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = _orders(count, CLASSES, generator)[:, :4]  # (grid, digit)
    colors = torch.randint(len(COLORS), classes.shape, generator=generator)
    ink = _draw(images, labels, classes, generator)  # (grid, digit, 1, height, width)
    paint = torch.tensor(list(COLORS.values()))[colors][..., None, None]
    asked = torch.arange(4) == 0  # which one is first is chance already
    grids, cells = _lay_out(1 - ink * (1 - paint), asked.expand_as(classes), generator)
    return DigitGrids(grids, classes[:, 0], colors[:, 0], cells)


def swapped_decoys(images, labels, count, *, seed=0):
    """Make images of one digit among three decoys: digits with their halves swapped.

    The upper half of a decoy lies below the lower one, so that it has as much ink as a
    digit, and as much in every column. The question and the answer are the class of
    the digit. ``images`` need an even height.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (count, 4), generator=generator)  # (grid, digit)
    ink = _draw(images, labels, classes, generator)
    ink[:, 1:] = ink[:, 1:].roll(ink.shape[-2] // 2, dims=-2)
    whole = torch.arange(4) == 0
    grids, cells = _lay_out(ink, whole.expand_as(classes), generator)
    return DigitGrids(grids, classes[:, 0], classes[:, 0], cells)


def _orders(count, size, generator):
    """Return so many orders of so many things: (order, thing)."""
    return torch.rand(count, size, generator=generator).argsort(dim=1)


def _draw(images, labels, classes, generator):
    """Draw an image of each of the ``classes`` (grid, digit)."""
    sizes = labels.bincount(minlength=CLASSES)
    first = sizes.cumsum(dim=0) - sizes  # the index of each class in the order below
    drawn = torch.rand(classes.shape, generator=generator) * sizes[classes]
    return images[labels.argsort(stable=True)[first[classes] + drawn.long()]]


def _lay_out(pieces, marked, generator):
    """Lay pieces (grid, digit, channel, height, width) into cells of empty grids.

    Three channels are on white, one is ink. Returns the grids and in which of their
    cells (grid, cell) the ``marked`` ones (grid, digit) lie.
    """
    count, digits, channels, *size = pieces.shape
    rows = torch.arange(count)[:, None]
    cells = _orders(count, CELLS, generator)[:, :digits]  # (grid, digit)
    empty = float(channels == 3)
    grids = pieces.new_full((count, CELLS, channels, *size), empty)
    grids[rows, cells] = pieces
    there = torch.zeros(count, CELLS, dtype=torch.bool)
    there[rows, cells] = marked
    return rearrange(grids, f"{CUT} -> {WHOLE}", row=ROWS), there
