"""The verdict of an answer that is itself a test of other functions.

This module knows no exercise: what is tested, and what is right, is for the chapters.
"""

from .exercise import Wrong


def verdict(answer, *inputs):
    """Call an answer and return its True or False.

    Raises Wrong, with what to tell the student, where it returns anything else, and
    where an assertion of its own ends it.
    """
    try:
        found = answer(*inputs)
    except Wrong:
        if "AssertionError" not in str(answer.error):
            raise
        raise Wrong(
            "An assertion fails in your test, which ends it. Return the verdict "
            "instead: True where something is wrong, else False."
        ) from None
    if found not in (True, False):
        raise Wrong("Return True or False.")
    return bool(found)
