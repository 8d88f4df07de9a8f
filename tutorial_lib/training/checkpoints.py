"""Checkpoints: the state of a run in a file, which is written whole or not at all.

This module does not know what is done with a state.
"""

import os
from pathlib import Path

import torch

FORMAT = "tutorial_lib.training 1"


def describe(model, optimizer):
    """Return what a checkpoint must share with a run, as texts and values."""
    shapes = {
        f"the shape of {name}": tuple(tensor.shape)
        for name, tensor in model.state_dict().items()
    }
    options = {
        f"{name} of the optimizer's group {i}": option
        for i, group in enumerate(optimizer.param_groups)
        for name, option in group.items()
        if name != "params"
    }
    return {"the optimizer": type(optimizer).__name__, **options, **shapes}


def write_checkpoint(path, state):
    """Write ``state`` to the file ``path``; at no time is half of it there."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        torch.save({"format": FORMAT, **state}, unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_checkpoint(path, settings):
    """Return the state in the file ``path``, or None if there is no such file.

    Raises ValueError, and leaves the file as it is, if it is damaged, was not written
    by ``fit``, or belongs to a run with other ``settings`` (see ``describe``).
    """
    if not Path(path).exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has no one error for a damaged file
        raise ValueError(
            f"checkpoint {path} cannot be read ({type(error).__name__}): it is damaged "
            "or something else: delete it, or give another name"
        ) from error
    if not (isinstance(state, dict) and state.get("format") == FORMAT):
        raise ValueError(f"checkpoint {path} is not by fit: give another name")
    stored = state["settings"]
    for name in {**stored, **settings}:
        here, there = settings.get(name, "missing"), stored.get(name, "missing")
        if here != there:
            raise ValueError(
                f"checkpoint {path} belongs to another run: {name} is {here} here and "
                f"{there} there: delete the file, or give another name"
            )
    return state
