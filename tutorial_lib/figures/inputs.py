"""What readers pass to the figures, turned into arrays and text or refused.

This module knows no figure.
"""

import math
import unicodedata

import numpy as np


def as_array(values, name):
    """Return a float64 array of a tensor (any device, dtype), an array or a list.

    Raises ValueError where a value is not a finite number.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contain NaN or infinity: find where they arise first")
    return array


def as_number(value, name):
    """Return a float of a number or a tensor of one element."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")
    return number


def as_positive(value, name):
    """Return a float of a positive number or a tensor of one element."""
    number = as_number(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number:g}")
    return number


def as_text(token):
    """Return ``token`` on one line, with its control characters written out."""
    text = str(token).encode("utf-8", "replace").decode()
    return "".join(
        repr(c)[1:-1] if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c
        for c in text
    )


def rounded(array):
    """Return a list of the values to 4 significant digits: the same on any machine."""
    return [float(f"{value:.4g}") for value in np.ravel(array)]
