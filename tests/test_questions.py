"""Sheets: what lies where, and that nothing else gives it away."""

import pytest
import torch

from tutorial_lib.data.questions import (
    COLORS,
    color_sheets,
    decoy_sheets,
    move_quadrants,
)

LABELS = torch.arange(10).repeat(3)
# Of each class three images of 4 × 4, whose brightness says which class it is.
IMAGES = (LABELS / 20 + 0.4)[:, None, None, None].expand(-1, 1, 4, 4)


def cells_of(sheets):
    """Return the cells (sheet, cell, channel, 4, 4), cut by hand."""
    rows = range(0, 12, 4)
    pieces = [sheets[..., i : i + 4, j : j + 4] for i in rows for j in rows]
    return torch.stack(pieces, dim=1)


def test_a_colored_digit_that_is_asked_for_has_the_color_that_is_the_answer():
    images, questions, answers, there = color_sheets(IMAGES, LABELS, 200)
    pieces = cells_of(images)
    assert images.shape == (200, 3, 12, 12) and there.sum(dim=1).eq(1).all()
    asked = pieces[there][:, :, 0, 0]  # (sheet, channel)
    paint = torch.tensor(list(COLORS.values()))[answers]
    ink = questions[:, None] / 20 + 0.4
    assert torch.allclose(asked, 1 - ink * (1 - paint))
    blank = pieces.flatten(2).eq(1).all(dim=-1)
    assert blank.sum(dim=1).eq(5).all() and not blank[there].any()


def test_no_digit_is_twice_on_a_colored_sheet():
    digits = torch.eye(16)[:10].view(10, 1, 4, 4)  # each class has a pixel of its own
    images, *_ = color_sheets(digits, torch.arange(10), 50)
    shown = cells_of(images).ne(1).any(dim=2).flatten(2).sum(dim=1)  # (sheet, pixel)
    assert shown.max() == 1 and shown.sum(dim=1).eq(4).all()


def test_one_digit_is_whole_and_every_decoy_is_a_digit_in_another_order():
    digit = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) / 4
    digits = digit.repeat_interleave(2, 0).repeat_interleave(2, 1).expand(10, 1, 4, 4)
    images, _, _, there = decoy_sheets(digits, torch.arange(10), 100)
    pieces = cells_of(images)
    assert there.sum(dim=1).eq(1).all()
    assert pieces[there].equal(digits[:1].expand(100, 1, 4, 4))
    decoys = pieces[~there & (pieces.amax(dim=(2, 3, 4)) > 0)]
    assert len(decoys) == 300
    assert decoys.mean(dim=(1, 2, 3)).sub(digit.mean()).abs().max() < 1e-6
    assert decoys[:, 0, ::2, ::2].ne(digit).all()


def test_all_orders_without_a_quadrant_in_its_position_occur():
    image = torch.arange(4.0).view(1, 1, 2, 2).expand(200, 1, 2, 2)
    moved = move_quadrants(image, torch.Generator().manual_seed(0)).flatten(1)
    assert moved.sort(dim=1).values.equal(image.flatten(1))
    assert moved.ne(image.flatten(1)).all()
    assert len(moved.unique(dim=0)) == 9


@pytest.mark.parametrize("make", [color_sheets, decoy_sheets])
def test_the_same_seed_makes_the_same_sheets_and_answers_stand_anywhere(make):
    first, same, other = (make(IMAGES, LABELS, 100, seed=seed) for seed in (3, 3, 4))
    assert all(a.equal(b) for a, b in zip(first, same, strict=True))
    assert not first.images.equal(other.images)
    found = first.cells[first.cells.any(dim=1)].double().mean(dim=0)
    assert found.min() > 0 and found.max() < 0.5
