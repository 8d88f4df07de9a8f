import random

import numpy
import pytest
import torch

from tutorial_lib.randomness import seed, seeded, undisturbed


def draw():
    return random.random(), torch.rand(1).item(), numpy.random.rand()


def test_a_seed_fixes_every_generator():
    seed(3)
    first = draw()
    seed(3)
    assert draw() == first
    seed(4)
    assert not {*draw()} & {*first}


@pytest.mark.parametrize("number", [1.5, "3", None, numpy.float64(3)])
def test_a_seed_that_is_no_whole_number_is_refused(number):
    with pytest.raises(ValueError, match="a seed is a whole number, got"):
        seed(number)


@pytest.mark.parametrize("number", [numpy.int64(3), torch.tensor(3)])
def test_a_seed_may_be_a_number_of_numpy_or_torch(number):
    seed(3)
    expected = draw()
    seed(number)
    assert draw() == expected


def test_a_block_leaves_the_generators_as_they_were():
    seed(0)
    expected = draw()
    seed(0)
    with undisturbed():
        draw()
    assert draw() == expected


def test_a_seeded_block_draws_the_same_and_leaves_no_trace():
    seed(0)
    expected = draw()
    seed(0)
    with seeded(7):
        first = draw()
    assert draw() == expected
    with seeded(7):
        assert draw() == first


def test_without_a_seed_a_block_draws_on():
    seed(0)
    expected = [draw(), draw()]
    seed(0)
    with seeded(None):
        assert draw() == expected[0]
    assert draw() == expected[1]
