"""Grids of digits: what lies where, and that nothing else gives it away."""

import math

import pytest
import torch
from matplotlib.colors import to_rgb

from tutorial_lib.data import load_images
from tutorial_lib.data.questions import (
    COLORS,
    colored_digits,
    swapped_decoys,
)

LABELS = torch.arange(10).repeat(3)
# Of each class three images of 4 × 4, whose brightness says which class it is.
IMAGES = (LABELS / 20 + 0.4)[:, None, None, None].expand(-1, 1, 4, 4)


def cells_of(grids):
    """Return the cells (grid, cell, channel, 4, 4), cut by hand."""
    rows = range(0, 12, 4)
    pieces = [grids[..., i : i + 4, j : j + 4] for i in rows for j in rows]
    return torch.stack(pieces, dim=1)


def test_a_colored_digit_that_is_asked_for_has_the_color_that_is_the_answer():
    images, questions, answers, there = colored_digits(IMAGES, LABELS, 200)
    pieces = cells_of(images)
    assert images.shape == (200, 3, 12, 12) and there.sum(dim=1).eq(1).all()
    asked = pieces[there][:, :, 0, 0]  # (grid, channel)
    paint = torch.tensor(list(COLORS.values()))[answers]
    ink = questions[:, None] / 20 + 0.4
    assert torch.allclose(asked, 1 - ink * (1 - paint))
    blank = pieces.flatten(2).eq(1).all(dim=-1)
    assert blank.sum(dim=1).eq(5).all() and not blank[there].any()


def test_every_color_is_called_by_its_name():
    assert list(COLORS) == ["red", "green", "blue", "orange"]
    for name, color in COLORS.items():
        far = {other: math.dist(color, to_rgb(other)) for other in COLORS}
        assert min(far, key=far.get) == name


def test_no_digit_is_twice_on_a_colored_image():
    digits = torch.eye(16)[:10].view(10, 1, 4, 4)  # each class has a pixel of its own
    images, *_ = colored_digits(digits, torch.arange(10), 50)
    shown = cells_of(images).ne(1).any(dim=2).flatten(2).sum(dim=1)  # (grid, pixel)
    assert shown.max() == 1 and shown.sum(dim=1).eq(4).all()


def test_one_digit_is_whole_and_the_halves_of_every_decoy_are_swapped():
    digit = torch.arange(1.0, 17.0).view(1, 1, 4, 4) / 16
    grids = swapped_decoys(digit.expand(10, -1, -1, -1), torch.arange(10), 100)
    pieces = cells_of(grids.images)
    assert grids.cells.sum(dim=1).eq(1).all()
    assert pieces[grids.cells].equal(digit.expand(100, -1, -1, -1))
    decoys = pieces[~grids.cells & (pieces.amax(dim=(2, 3, 4)) > 0)]
    swapped = digit[:, :, [2, 3, 0, 1]]
    assert decoys.equal(swapped.expand(300, -1, -1, -1))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("edges", [["left", "right"], ["top", "bottom"], "all"])
def test_the_ink_at_the_edges_does_not_give_the_digit_away(edges, sign):
    train = load_images("digits", seed=0).train
    grids = swapped_decoys(*train, 3000, seed=1)
    rows = grids.images[:, 0].unflatten(2, (3, 8)).unflatten(1, (3, 8))
    cells = rows.permute(0, 1, 3, 2, 4).flatten(1, 2)  # (grid, cell, row, column)
    ink = {
        "left": cells[..., 0].sum(dim=2),
        "right": cells[..., 7].sum(dim=2),
        "top": cells[..., 0, :].sum(dim=2),
        "bottom": cells[..., 7, :].sum(dim=2),
    }
    at_edges = sum(ink[edge] for edge in (ink if edges == "all" else edges))
    blank = cells.sum(dim=(2, 3)) == 0
    likeliest = (sign * at_edges).masked_fill(blank, -torch.inf).argmax(dim=1)
    hits = grids.cells.gather(1, likeliest[:, None]).double().mean()
    assert 0.17 < hits < 0.3


@pytest.mark.parametrize("make", [colored_digits, swapped_decoys])
def test_the_same_seed_makes_the_same_images_and_answers_stand_anywhere(make):
    first, same, other = (make(IMAGES, LABELS, 100, seed=seed) for seed in (3, 3, 4))
    assert all(a.equal(b) for a, b in zip(first, same, strict=True))
    assert not first.images.equal(other.images)
    assert make(IMAGES, LABELS, 9).images.equal(make(IMAGES, LABELS, 9, seed=0).images)
    shares = first.cells[first.cells.any(dim=1)].double().mean(dim=0)
    assert shares.min() > 0 and shares.max() < 0.5
