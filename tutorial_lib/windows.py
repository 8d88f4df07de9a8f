"""Attention with fewer than all pairs: windows of a grid, and sums that are kept.

The tokens of a grid are those of an image, row by row, and windows are square: Liu et
al. (2021). Linear attention never compares a query with a key: Katharopoulos et al.
(2020).

This module knows no image and no model.
"""

import torch
import torch.nn.functional as F
from einops import rearrange

CUT = "batch (row height) (column width) d -> (batch row column) (height width) d"
JOIN = "(batch row column) (height width) d -> batch (row height column width) d"


def shifted_window_mask(side, size, shift):
    """Let each token of a grid look at those that lie in its window.

    The grid has ``side`` × ``side`` tokens and windows of ``size`` × ``size``, moved
    down and to the right by ``shift``; what is left at the edges are smaller windows.
    Returns a boolean mask (token, token), True where a query may look. Liu et al.
    (2021), figure 2.
    """
    window = (torch.arange(side) - shift) // size
    windows = torch.cartesian_prod(window, window)  # (token, 2)
    return (windows[:, None] == windows).all(dim=-1)


def attend_in_windows(attention, x, size, *, shift=0):
    """Attend within windows, and hold no scores between them.

    ``x`` (batch, token, d) are the tokens of a square grid, and ``attention`` is
    called as ``attention(queries, keys, values, mask)``. Rolling the grid by ``shift``
    makes whole windows of the moved ones, and a mask keeps apart what only rolling has
    brought together. Returns (batch, token, d). Raises ValueError unless the windows
    fill the grid. Liu et al. (2021), figure 4.
    """
    side = round(x.shape[1] ** 0.5)
    if side**2 != x.shape[1] or side % size:
        raise ValueError(
            f"windows of {size} × {size} do not fill a grid of {x.shape[1]} tokens"
        )
    grid = x.unflatten(1, (side, side)).roll((-shift, -shift), (1, 2))
    windows = rearrange(grid, CUT, height=size, width=size)
    place = (torch.arange(side, device=x.device) - shift) // size  # before rolling
    places = torch.cartesian_prod(place, place).view(1, side, side, 2)
    places = places.roll((-shift, -shift), (1, 2))
    places = rearrange(places, CUT, height=size, width=size)  # (window, token, 2)
    mask = (places[:, :, None] == places[:, None]).all(dim=-1)  # (window, query, key)
    read = attention(windows, windows, windows, mask.repeat(len(x), 1, 1))
    read = rearrange(read, JOIN, row=side // size, column=side // size, height=size)
    return read.unflatten(1, (side, side)).roll((shift, shift), (1, 2)).flatten(1, 2)


def linear_attention(queries, keys, values):
    """Read from a summary of all keys and values, as large for ten tokens as for more.

    ``queries`` (..., query, d_k), ``keys`` (..., key, d_k), ``values`` (..., key, d_v);
    the outputs are (..., query, d_v). The score of a query and a key is the product of
    their features, elu(x) + 1, which are positive. Katharopoulos et al. (2020),
    equations 5 and 7.
    """
    queries, keys = F.elu(queries) + 1, F.elu(keys) + 1
    memory = keys.mT @ values  # (..., d_k, d_v)
    total = keys.sum(dim=-2).unsqueeze(-1)  # (..., d_k, 1)
    return queries @ memory / (queries @ total)
