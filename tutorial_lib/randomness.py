"""Random state: seed Python's, numpy's and torch's generators, and put them back."""

import random
from contextlib import contextmanager
from numbers import Integral

import numpy
import torch

from tutorial_lib.sizes import number_in


def seed(number):
    """Seed every generator with the same whole number, or raise ValueError."""
    number = number_in(number)
    if not isinstance(number, Integral):
        raise ValueError(f"a seed is a whole number, got {number!r}")
    number = int(number)  # a number of numpy, too
    random.seed(number)
    numpy.random.seed(number % 2**32)
    torch.manual_seed(number)


@contextmanager
def undisturbed():
    """Leave the generators after a ``with`` block as they were before it."""
    python_state = random.getstate()
    numpy_state = numpy.random.get_state()
    torch_state = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
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
