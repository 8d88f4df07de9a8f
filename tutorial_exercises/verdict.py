"""The verdict of an answer that is itself a test of other functions."""

import numpy
import torch

from .compare import describe
from .exercise import Wrong

REMEMBERS = (
    "Your test refuses a right function that it accepted before it had found anything, "
    "so it remembers earlier calls: in a global variable, or in a default value like "
    "`found=[]`. Let each call begin anew."
)


def verdict(answer, *inputs):
    """Call an answer and return its True or False.

    Raises Wrong, with what to tell the student, where it returns anything else, and
    where an assertion of its own ends it.
    """
    try:
        returned = answer(*inputs)
    except Wrong:
        if "AssertionError" not in str(answer.error):
            raise
        raise Wrong(
            "An assertion fails in your test, which ends it. Return the verdict "
            "instead: True where something is wrong, else False."
        ) from None
    single = torch.is_tensor(returned) and not returned.ndim
    truths = (bool, numpy.bool_)
    if not isinstance(returned.item() if single else returned, truths):
        raise Wrong(f"Return True or False, not {describe(returned)}.")
    return bool(returned)


def false_alarms(answer, right, faulty):
    """Return the right functions that an answer refuses, and whether it is inverted.

    It is inverted where it refuses right functions and accepts most faulty ones.
    Functions are dictionaries by name, and names are returned.
    """
    alarms = [name for name, function in right.items() if verdict(answer, function)]
    if not alarms:
        return [], False
    missed = [not verdict(answer, function) for function in faulty.values()]
    return alarms, sum(missed) > len(missed) / 2


def what_it_remembers(answer, right):
    """Return what to tell where an answer refuses what it has accepted, or None."""
    if any(verdict(answer, function) for function in right.values()):
        return REMEMBERS
    return None


def first_unseen(answer, right, faulty, advice, kind):
    """Return what to tell of the first faulty function that an answer accepts, or None.

    ``kind`` names what is found, "Leaks"; those that are still hidden are not named.
    """
    found = []
    for name, function in faulty.items():
        if not verdict(answer, function):
            count = f"{kind} found: {len(found)} of {len(faulty)}."
            named = "\n  ✓ ".join([count, *found])
            return f"{named}\nThe next one passes your test unseen. {advice[name]}"
        found.append(name)
    return what_it_remembers(answer, right)
