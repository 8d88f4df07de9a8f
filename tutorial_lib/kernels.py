"""Kernels: how similar two points are, as a function of their distance.

Each function here takes a bandwidth, in the unit of the distances, and returns the
kernel, itself a function from a tensor of distances to a tensor of similarities of
the same shape. A bandwidth is above 0, or ValueError is raised; a Gaussian's, which may
be learned, counts by its square. The factors that make a kernel integrate to 1 are left
out: they cancel when weights are normalized (Silverman, 1986, table 3.1 has them).
"""

import torch


def _check(bandwidth):
    """Raise ValueError for a bandwidth, or several, that is not above 0."""
    if not torch.as_tensor(bandwidth > 0).all():
        raise ValueError(f"a bandwidth must be above 0, got {bandwidth}")


def gaussian(bandwidth):
    """Return the kernel exp(-distance² / (2 bandwidth²)), which is nowhere 0."""

    def kernel(distances):
        return torch.exp(-((distances / bandwidth) ** 2) / 2)

    return kernel


def boxcar(bandwidth):
    """Return the kernel that is 1 up to ``bandwidth`` and 0 beyond it."""
    _check(bandwidth)

    def kernel(distances):
        return (distances.abs() <= bandwidth).to(distances.dtype)

    return kernel


def epanechnikov(bandwidth):
    """Return the kernel max(0, 1 - (distance / bandwidth)²): Epanechnikov (1969)."""
    _check(bandwidth)

    def kernel(distances):
        return (1 - (distances / bandwidth) ** 2).clamp(min=0)

    return kernel


def triangular(bandwidth):
    """Return the kernel max(0, 1 - abs(distance) / bandwidth)."""
    _check(bandwidth)

    def kernel(distances):
        return (1 - distances.abs() / bandwidth).clamp(min=0)

    return kernel
