"""Kernels: how similar two points are, as a function of their distance.

Each function here takes a width, in the unit of the distances, and returns the
kernel, itself a function from a tensor of distances to a tensor of similarities of
the same shape. The factors that make a kernel integrate to 1 are left out: they
cancel when weights are normalized (Silverman, 1986, table 3.1 has them).

This module knows distances only: no queries, no keys, no data.
"""

import torch


def gaussian(width):
    """exp(-distance² / 2 width²): smooth, and never quite zero.

    Raises ValueError unless width > 0.
    """
    _check_width(width)
    return lambda distance: torch.exp(-((distance / width) ** 2) / 2)


def boxcar(width):
    """1 up to ``width``, 0 beyond it: all neighbors count the same.

    Raises ValueError unless width > 0.
    """
    _check_width(width)
    return lambda distance: (distance.abs() <= width).to(distance.dtype)


def constant():
    """1 at every distance: everybody counts the same, near or far."""
    return torch.ones_like


def epanechnikov(width):
    """1 - (distance / width)² up to ``width``, 0 beyond it: Epanechnikov (1969).

    Raises ValueError unless width > 0.
    """
    _check_width(width)
    return lambda distance: (1 - (distance / width) ** 2).clamp(min=0)


def triangular(width):
    """1 - |distance| / width up to ``width``, 0 beyond it.

    Raises ValueError unless width > 0.
    """
    _check_width(width)
    return lambda distance: (1 - distance.abs() / width).clamp(min=0)


def _check_width(width):
    if not width > 0:
        raise ValueError(f"width must be positive, got {width}")
