"""Attention in windows, held against masks over all pairs and numbers by hand."""

import pytest
import torch

from tutorial_lib.windows import (
    SwinBlock,
    WindowAttention,
    cyclic_shift_mask,
    relative_position_index,
    shifted_window_mask,
    shifted_windows,
    window_partition,
    window_reverse,
)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_windows_put_together_again_are_the_grid(size):
    grid = torch.arange(2 * 4 * 4 * 3).view(2, 4, 4, 3)
    windows = window_partition(grid, size)
    assert windows.shape == (2, (4 // size) ** 2, size**2, 3)
    assert windows[0, 0].equal(grid[0, :size, :size].flatten(0, 1))
    assert window_reverse(windows, size, 4).equal(grid)


def test_windows_come_row_by_row_and_so_do_their_tokens():
    grid = torch.arange(16).view(1, 4, 4, 1)
    windows = window_partition(grid, 2)[0, :, :, 0]
    assert windows[1].tolist() == [2, 3, 6, 7]
    assert windows[2].tolist() == [8, 9, 12, 13]


def attend_to_all(attention, x, mask):
    """Attend with a mask over all tokens, head by head, without a bias."""
    Q = attention.W_Q(x).chunk(attention.num_heads, dim=-1)
    K = attention.W_K(x).chunk(attention.num_heads, dim=-1)
    V = attention.W_V(x).chunk(attention.num_heads, dim=-1)
    outputs = []
    for head in range(attention.num_heads):
        scores = Q[head] @ K[head].mT / Q[head].shape[-1] ** 0.5
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        outputs.append(weights @ V[head])
    return attention.W_O(torch.cat(outputs, dim=-1))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_block_attends_as_with_a_mask_over_all_tokens(shift):
    torch.manual_seed(0)
    block = SwinBlock(8, 2, side=8, window_size=4, shift=shift)
    x = torch.randn(3, 8, 8, 8)
    mask = shifted_window_mask(8, 4, shift)
    attended = attend_to_all(block.attention, block.norm1(x).flatten(1, 2), mask)
    expected = x + attended.unflatten(1, (8, 8))
    expected = expected + block.feed_forward(block.norm2(expected))
    torch.testing.assert_close(block(x), expected, atol=1e-6, rtol=0)


def test_a_token_attends_to_its_window_and_to_smaller_ones_at_the_edges():
    mask = shifted_window_mask(6, 2, 1).unflatten(1, (6, 6))
    assert mask[0].nonzero().tolist() == [[0, 0]]
    assert mask[3].nonzero().tolist() == [[0, 3], [0, 4]]
    assert mask[7].nonzero().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert shifted_window_mask(4, 4, 0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_every_window_has_a_number_of_its_own(size):
    for shift in range(size):
        numbers = shifted_windows(6, size, shift)
        per_side = 6 // size + (shift > 0)
        assert numbers.unique().numel() == per_side**2


def test_after_a_cyclic_shift_tokens_from_opposite_edges_stay_apart():
    mask = cyclic_shift_mask(4, 2, 1)  # (window, query, key)
    assert mask[0].all()  # the window in the middle of the grid
    assert mask[3].equal(torch.eye(4, dtype=torch.bool))  # its four corners
    assert cyclic_shift_mask(4, 2, 0).all()


def test_equal_offsets_share_a_number_and_others_do_not():
    index = relative_position_index(2)
    # Tokens (0, 0), (0, 1), (1, 0), (1, 1); rows are queries.
    assert index.tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]
    assert relative_position_index(7).unique().numel() == 13**2


def test_a_bias_of_a_head_moves_its_attention_to_one_offset():
    torch.manual_seed(0)
    attention = WindowAttention(8, 2, 2)
    windows = torch.randn(1, 1, 4, 8)
    with torch.no_grad():
        attention.bias_table[3] = 50.0  # the key one column to the right of the query
        attention.W_O.weight.copy_(torch.eye(8))
        attention.W_O.bias.zero_()
    outputs = attention(windows, torch.ones(1, 4, 4, dtype=torch.bool))
    values = attention.W_V(windows)
    torch.testing.assert_close(outputs[0, 0, [0, 2]], values[0, 0, [1, 3]])
