"""Counts: the whole numbers by which arguments ask for so much of something.

This module does not know what is counted.
"""

from numbers import Integral


def check_counts(*, least=1, **counts):
    """Raise ValueError for a count, given by its argument's name, that cannot be one.

    It must be a whole number of at least ``least``, 0 or 1; None asks for nothing.
    """
    kind = "a positive whole number" if least else "a whole number, 0 or more"
    for name, count in counts.items():
        if count is not None and not (isinstance(count, Integral) and count >= least):
            raise ValueError(f"{name} must be {kind}, got {count!r}")
