"""Attention in windows, held against masks over all pairs and numbers by hand."""

from pathlib import Path

import pytest
import torch
from einops import rearrange

from tools.notebooks import code_cells, read_notebook, source_of
from tutorial_lib.windows import (
    SwinBlock,
    WindowAttention,
    cyclic_shift_mask,
    relative_position_index,
    shifted_window_mask,
    window_partition,
    window_reverse,
)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_windows_put_together_again_are_the_grid(size):
    grid = torch.arange(2 * 4 * 4 * 3).view(2, 4, 4, 3)
    windows = window_partition(grid, size)
    assert windows.shape == (2 * (4 // size) ** 2, size**2, 3)
    assert windows[0].equal(grid[0, :size, :size].flatten(0, 1))
    assert window_reverse(windows, size, 4).equal(grid)


def attend_to_all(attention, x, mask):
    """Attend with a mask over all tokens, head by head, without a bias."""
    maps = attention.W_Q, attention.W_K, attention.W_V
    heads = [W(x).chunk(attention.num_heads, dim=-1) for W in maps]
    outputs = []
    for Q, K, V in zip(*heads, strict=True):
        scores = (Q @ K.mT / Q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        outputs.append(scores.softmax(dim=-1) @ V)
    return attention.W_O(torch.cat(outputs, dim=-1))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_block_attends_as_with_a_mask_over_all_tokens(shift):
    torch.manual_seed(0)
    block = SwinBlock(8, 2, side=8, window_size=4, shift=shift)
    x = torch.randn(3, 8, 8, 8)
    mask = shifted_window_mask(8, 4, shift)
    attended = attend_to_all(block.attention, block.norm1(x).flatten(1, 2), mask)
    expected = x + attended.unflatten(1, (8, 8))
    expected = expected + block.mlp(block.norm2(expected))
    torch.testing.assert_close(block(x), expected, atol=1e-6, rtol=0)


def test_a_token_attends_to_its_window_and_to_smaller_ones_at_the_edges():
    seen = shifted_window_mask(6, 2, 1).unflatten(1, (6, 6))
    assert seen[0].nonzero().tolist() == [[0, 0]]
    assert seen[3].nonzero().tolist() == [[0, 3], [0, 4]]
    assert seen[7].nonzero().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert shifted_window_mask(4, 4, 0).all()


@pytest.mark.parametrize(("side", "size"), [(8, 3), (8, 0), (8, -4)])
def test_windows_that_do_not_fill_the_grid_are_refused(side, size):
    with pytest.raises(ValueError, match=f"{size} × {size} do not fill .* {side} × "):
        cyclic_shift_mask(side, size, 1)


def test_the_plain_functions_on_the_page_do_what_the_library_does():
    path = Path(__file__).parents[1] / "notebooks/16_windows_objects_transfer.ipynb"
    page = {"rearrange": rearrange, "torch": torch}
    for cell in code_cells(read_notebook(path)):
        if cell["id"] in ("window-partition", "shift-mask"):
            exec(source_of(cell), page)
    grid = torch.arange(2 * 4 * 4 * 3).view(2, 4, 4, 3)
    windows = page["window_partition"](grid, 2)
    assert windows.equal(window_partition(grid, 2))
    assert page["window_reverse"](windows, 2, 4).equal(grid)
    assert page["shifted_window_mask"](6, 2, 1).equal(shifted_window_mask(6, 2, 1))


def test_windows_of_a_grid_of_another_side_are_refused():
    windows = window_partition(torch.zeros(1, 4, 4, 2), 2)
    said = "a grid of 8 × 8 tokens takes 16 windows of 2 × 2, got 4"
    with pytest.raises(ValueError, match=said):
        window_reverse(windows, 2, 8)


def test_equal_offsets_share_a_number_and_others_do_not():
    index = relative_position_index(2)
    # Tokens (0, 0), (0, 1), (1, 0), (1, 1); rows are queries.
    assert index.tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]
    assert relative_position_index(7).unique().numel() == 13**2


def test_a_bias_of_a_head_moves_its_attention_to_one_offset():
    torch.manual_seed(0)
    attention, windows = WindowAttention(8, 2, 2), torch.randn(1, 4, 8)
    with torch.no_grad():
        attention.bias_table[3] = 50.0  # the key one column to the right of the query
        attention.W_O.weight.copy_(torch.eye(8))
        attention.W_O.bias.zero_()
    found = attention(windows, torch.ones(1, 4, 4).bool())
    values = attention.W_V(windows)
    torch.testing.assert_close(found[0, [0, 2]], values[0, [1, 3]])
