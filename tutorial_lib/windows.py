"""Attention in windows of a grid, plain and shifted: the Swin Transformer.

The tokens of a grid are those of an image, row by row, and windows are square: Liu et
al. (2021).
"""

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from tutorial_lib.attention import MultiHeadAttention, masked_softmax
from tutorial_lib.sizes import refuse_odd_sizes
from tutorial_lib.transformer import FeedForward


def window_partition(grid, window_size):
    """Cut a grid (batch, row, column, d_model) into square windows, row by row.

    Returns (batch, window, token, d_model).
    """
    cut = "batch (row height) (column width) d -> batch (row column) (height width) d"
    return rearrange(grid, cut, height=window_size, width=window_size)


def window_reverse(windows, window_size, side):
    """Put windows together again: the grid that `window_partition` cut.

    ``side`` is the number of rows, and of columns, of the grid.
    """
    join = "batch (row column) (height width) d -> batch (row height) (column width) d"
    rows = side // window_size
    return rearrange(windows, join, row=rows, height=window_size)


def relative_position_index(window_size):
    """Give each offset between two tokens of a window a number: (query, key).

    Pairs with the same offset, in rows and in columns, have the same number.
    """
    line = torch.arange(window_size)
    positions = torch.cartesian_prod(line, line)  # (token, 2)
    offsets = positions[:, None] - positions  # (query, key, 2)
    offsets = offsets + window_size - 1  # from 0 to 2 window_size - 2
    return offsets[..., 0] * (2 * window_size - 1) + offsets[..., 1]


class WindowAttention(MultiHeadAttention):
    """Multi-head attention within windows, with a relative position bias.

    Every head learns one bias for each offset between two tokens of a window of
    ``window_size`` × ``window_size``. Liu et al. (2021), equation 4.
    """

    def __init__(self, d_model, num_heads, window_size):
        super().__init__(d_model, num_heads)
        num_offsets = (2 * window_size - 1) ** 2
        self.bias_table = nn.Parameter(torch.zeros(num_offsets, num_heads))
        self.register_buffer("bias_index", relative_position_index(window_size))

    def forward(self, windows, mask):
        """Attend within ``windows`` (batch, window, token, d_model).

        ``mask`` (window, query, key) is the same for every image.
        """
        split = "batch window token (head d_k) -> batch window head token d_k"
        Q = rearrange(self.W_Q(windows), split, head=self.num_heads)
        K = rearrange(self.W_K(windows), split, head=self.num_heads)
        V = rearrange(self.W_V(windows), split, head=self.num_heads)
        return self.attend(Q, K, V, mask)

    def attend(self, Q, K, V, mask):
        """Attend in every head, then merge the heads: shaped as ``windows``."""
        scores = Q @ K.mT / Q.shape[-1] ** 0.5  # (batch, window, head, query, key)
        bias = self.bias_table[self.bias_index]  # (query, key, head)
        scores = scores + bias.permute(2, 0, 1)  # (head, query, key)
        weights = masked_softmax(scores, mask.unsqueeze(1))  # (window, 1, query, key)
        merge = "batch window head token d_k -> batch window token (head d_k)"
        return self.W_O(rearrange(weights @ V, merge))


def shifted_windows(side, window_size, shift):
    """Give each token of a grid the number of its window: (row, column).

    The grid has ``side`` × ``side`` tokens. Its windows are moved down and to the
    right by ``shift``, and those at the edges are smaller: Liu et al. (2021), figure 2.
    """
    line = (torch.arange(side) - shift) // window_size
    return side * line[:, None] + line


def shifted_window_mask(side, window_size, shift):
    """Let each token of a grid attend to those in its window: (query, key)."""
    windows = shifted_windows(side, window_size, shift).flatten()  # (token,)
    return windows[:, None] == windows


def cyclic_shift_mask(side, window_size, shift):
    """Keep apart the tokens that only a cyclic shift has brought into one window.

    Returns a mask (window, query, key) for the grid after it was rolled. Liu et al.
    (2021), figure 4.
    """
    grid = shifted_windows(side, window_size, shift)  # (row, column)
    rolled = grid.roll((-shift, -shift), dims=(0, 1))
    windows = window_partition(rolled[None, :, :, None], window_size)
    windows = windows[0, :, :, 0]  # (window, token)
    return windows[:, :, None] == windows[:, None]


class SwinBlock(nn.Module):
    """A Transformer block that attends within the windows of a grid.

    The grid has ``side`` × ``side`` tokens, and its windows are moved by ``shift``.
    Raises ValueError if they do not fill it. Liu et al. (2021), figure 3b.
    """

    def __init__(self, d_model, num_heads, *, side, window_size, shift):
        super().__init__()
        if not 1 <= window_size <= side or side % window_size:
            raise ValueError(
                f"window_size must divide side: {window_size} does not divide {side}"
            )
        self.side = side
        self.window_size = window_size
        self.shift = shift
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = WindowAttention(d_model, num_heads, window_size)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, 4 * d_model, activation=F.gelu)
        mask = cyclic_shift_mask(side, window_size, shift)
        self.register_buffer("mask", mask)  # (window, query, key)

    def forward(self, x):
        """Update ``x`` (batch, row, column, d_model)."""
        grid = self.norm1(x).roll((-self.shift, -self.shift), dims=(1, 2))
        windows = window_partition(grid, self.window_size)
        windows = self.attention(windows, self.mask)
        grid = window_reverse(windows, self.window_size, self.side)
        x = x + grid.roll((self.shift, self.shift), dims=(1, 2))
        x = x + self.feed_forward(self.norm2(x))
        return x


refuse_odd_sizes(SwinBlock)
