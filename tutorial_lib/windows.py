"""Attention with fewer than all pairs: windows of a grid, and linear attention.

The tokens of a grid are those of an image, row by row, and windows are square: Liu et
al. (2021). Linear attention never compares a query with a key: Katharopoulos et al.
(2020).

This module knows no image and no model.
"""

import torch
from einops import rearrange

from tutorial_lib.shapes import check_shapes


def shifted_window_mask(side, size, shift):
    """Let each token of a grid attend to those that lie in its window.

    The grid has ``side`` × ``side`` tokens and windows of ``size`` × ``size``, moved
    down and to the right by ``shift``; what is left at the edges are smaller windows.
    Returns a boolean mask (token, token), True where a query may attend. Liu et al.
    (2021), figure 2.
    """
    window = (torch.arange(side) - shift) // size
    windows = torch.cartesian_prod(window, window)  # (token, 2)
    return (windows[:, None] == windows).all(dim=-1)


def window_partition(grid, size):
    """Cut a grid (batch, row, column, d) into windows of ``size`` × ``size`` tokens.

    Returns (batch · window, token, d), window by window.
    """
    cut = "batch (row height) (column width) d -> (batch row column) (height width) d"
    return rearrange(grid, cut, height=size, width=size)


def window_reverse(windows, size, side):
    """Put windows together again: the grid that `window_partition` cut."""
    join = "(batch row column) (height width) d -> batch (row height) (column width) d"
    row = side // size
    return rearrange(windows, join, row=row, column=row, height=size)


def window_attention(attention, x, size, *, shift=0):
    """Attend within windows, and hold no scores between them.

    ``x`` (batch, token, d) are the tokens of a square grid, and ``attention`` is
    called as ``attention(queries, keys, values, mask)``. A cyclic shift of the grid
    makes whole windows of the moved ones, and a mask keeps apart what only the shift
    has brought together. Returns (batch, token, d). Raises ValueError unless the
    windows fill the grid. Liu et al. (2021), figure 4.
    """
    side = round(x.shape[1] ** 0.5)
    if size < 1 or side**2 != x.shape[1] or side % size:
        raise ValueError(
            f"windows of {size} × {size} do not fill a grid of {x.shape[1]} tokens"
        )
    grid = x.unflatten(1, (side, side)).roll((-shift, -shift), (1, 2))
    windows = window_partition(grid, size)  # (batch · window, token, d)
    index = (torch.arange(side, device=x.device) - shift) // size  # before the shift
    window_index = torch.cartesian_prod(index, index).view(1, side, side, 2)
    window_index = window_index.roll((-shift, -shift), (1, 2))
    window_index = window_partition(window_index, size)  # (window, token, 2)
    mask = (window_index[:, :, None] == window_index[:, None]).all(dim=-1)
    context = attention(windows, windows, windows, mask.repeat(len(x), 1, 1))
    grid = window_reverse(context, size, side)
    return grid.roll((shift, shift), (1, 2)).flatten(1, 2)


def _features(x):
    """Return elu(x) + 1, and where it would round to 0 a number just above it."""
    smallest = torch.finfo(x.dtype).tiny ** 0.5  # two of them still multiply
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp()).clamp(min=smallest)


def linear_attention(queries, keys, values):
    """Attend through a sum over all keys, as large for ten tokens as for more.

    ``queries`` (..., query, d_k), ``keys`` (..., key, d_k), ``values`` (..., key, d_v);
    the outputs are (..., query, d_v). The score of a query and a key is the product of
    their features, elu(x) + 1, which are positive. Raises ValueError if the shapes do
    not fit. Katharopoulos et al. (2020), equations 5 and 7.
    """
    check_shapes(queries, keys, values)
    queries, keys = _features(queries), _features(keys)
    memory = keys.mT @ values  # (..., d_k, d_v)
    total = keys.sum(dim=-2).unsqueeze(-1)  # (..., d_k, 1)
    return queries @ memory / (queries @ total)
