"""Random state: seed the generators, and put them back as they were found.

The generators are those of Python's ``random``, of torch on the processor and on CUDA
devices, and of numpy if somebody has imported it.

This module does not know what is drawn from them.
"""

import random
import sys
from contextlib import contextmanager

import torch


def seed(number):
    """Seed every generator with the same whole number."""
    random.seed(number)
    torch.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % 2**32)


@contextmanager
def undisturbed():
    """Leave the generators after a ``with`` block as they were before it."""
    numpy = sys.modules.get("numpy")
    before = random.getstate(), torch.get_rng_state()
    numpy_before = numpy and numpy.random.get_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(before[0])
        torch.set_rng_state(before[1])
        if numpy:
            numpy.random.set_state(numpy_before)
        if devices:
            torch.cuda.set_rng_state_all(devices)


@contextmanager
def seeded(number):
    """Seed the generators for a ``with`` block; without a seed (None) draw on as usual.

    With one, the generators are afterwards as they were found.
    """
    if number is None:
        yield
        return
    with undisturbed():
        seed(number)
        yield
