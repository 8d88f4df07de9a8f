"""Nests: tensors held in tuples, named tuples, lists and dictionaries, however deep.

This module does not know what the tensors mean.
"""

import torch


def map_nest(function, nest):
    """Apply ``function`` to every tensor of ``nest``; keep its form, and all else."""
    if isinstance(nest, torch.Tensor):
        return function(nest)
    if isinstance(nest, dict):
        return {name: map_nest(function, part) for name, part in nest.items()}
    if not isinstance(nest, (list, tuple)):
        return nest
    parts = [map_nest(function, part) for part in nest]
    return type(nest)(*parts) if hasattr(nest, "_fields") else type(nest)(parts)
