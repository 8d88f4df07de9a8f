"""Randomness: the state of the random generators, to keep and to put back.

Torch's generators, of the processor and of CUDA devices, and that of Python's
``random``. This module knows no other: numpy's is left alone.
"""

import random
from contextlib import contextmanager

import torch


def read_randomness():
    """Return the state of the generators as a dictionary that a checkpoint can hold."""
    state = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def write_randomness(state):
    """Put the generators into a ``state`` that ``read_randomness`` returned."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    for i, device in enumerate(state.get("cuda", [])[: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(device, i)


@contextmanager
def seeded(seed):
    """Seed the generators for a ``with`` block, and leave them as they were found.

    Without a seed (None) the block draws on as usual.
    """
    if seed is None:
        yield
        return
    before = read_randomness()
    random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        write_randomness(before)
