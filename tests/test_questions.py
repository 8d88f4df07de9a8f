"""Scenes of four digits: what stands where, and what is held out."""

import pytest
import torch
from sklearn.datasets import load_digits

from tutorial_lib.data.questions import NOISE, question_scenes


def test_four_different_digits_stand_where_it_is_said_and_noise_elsewhere():
    scenes, where = question_scenes(30, held_out=False, seed=0)
    assert scenes.shape == (30, 16, 64) and where.shape == (30, 10)
    for scene, cells in zip(scenes, where, strict=True):
        there = cells[cells >= 0]
        assert len(there) == len({*there.tolist()}) == 4
        bright = scene.amax(dim=1) > NOISE
        assert {*bright.nonzero()[:, 0].tolist()} == {*there.tolist()}


def test_a_cell_shows_an_image_of_its_class_and_part():
    images, classes = map(torch.tensor, load_digits(return_X_y=True))
    for held_out in (False, True):
        scenes, where = question_scenes(20, held_out=held_out, seed=1)
        for scene, digit in (where >= 0).nonzero().tolist():
            cell = scenes[scene, where[scene, digit]]
            away = (cell.clamp(min=NOISE) - (images / 16).clamp(min=NOISE)).abs()
            same = (away.amax(dim=1) < 1e-6).nonzero()[:, 0]
            assert len(same) and (classes[same] == digit).all()
            assert ((same % 4 == 0) == held_out).all()


def test_a_seed_says_which_scenes_and_a_count_is_checked():
    one, other = (question_scenes(5, held_out=False, seed=2)[0] for _ in range(2))
    assert torch.equal(one, other)
    assert not torch.equal(one, question_scenes(5, held_out=False, seed=3)[0])
    with pytest.raises(ValueError):
        question_scenes(-1, held_out=False, seed=0)
