"""Random state: seed Python's, numpy's and torch's generators, and put them back.

This module does not know what is drawn from them.
"""

import random
from contextlib import contextmanager

import numpy
import torch


def seed(number):
    """Seed every generator with the same whole number."""
    random.seed(number)
    numpy.random.seed(number % 2**32)
    torch.manual_seed(number)


@contextmanager
def undisturbed():
    """Leave the generators after a ``with`` block as they were before it."""
    before = random.getstate(), numpy.random.get_state(), torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])
        torch.set_rng_state(before[2])
        torch.cuda.set_rng_state_all(devices)


@contextmanager
def seeded(number):
    """Seed the generators for an ``undisturbed`` block; with None draw on as usual."""
    if number is None:
        yield
        return
    with undisturbed():
        seed(number)
        yield
