"""Attention with fewer than all pairs, held against masks, loops and all pairs."""

import pytest
import torch
import torch.nn.functional as F

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.windows import (
    linear_attention,
    shifted_window_mask,
    window_attention,
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


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_attention_in_windows_is_attention_with_a_mask_over_all_tokens(shift):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 64, 8)
    expected = attention(x, x, x, shifted_window_mask(8, 4, shift)[None])
    found = window_attention(attention, x, 4, shift=shift)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_a_token_attends_to_its_window_and_to_smaller_ones_at_the_edges():
    seen = shifted_window_mask(6, 2, 1).unflatten(1, (6, 6))
    assert seen[0].nonzero().tolist() == [[0, 0]]
    assert seen[3].nonzero().tolist() == [[0, 3], [0, 4]]
    assert seen[7].nonzero().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert shifted_window_mask(4, 4, 0).all()


@pytest.mark.parametrize(("tokens", "size"), [(64, 3), (60, 2), (64, 0), (64, -4)])
def test_windows_that_do_not_fill_the_grid_are_refused(tokens, size):
    with pytest.raises(ValueError, match=f"{size} × {size} do not fill .* {tokens} to"):
        window_attention(None, torch.zeros(1, tokens, 4), size)


def test_linear_attention_is_that_of_its_table_of_weights():
    torch.manual_seed(0)
    Q, K, V = torch.randn(2, 9, 5), torch.randn(2, 7, 5), torch.randn(2, 7, 3)
    scores = (F.elu(Q) + 1) @ (F.elu(K) + 1).mT
    weights = scores / scores.sum(dim=-1, keepdim=True)
    found = linear_attention(Q, K, V)
    torch.testing.assert_close(found, weights @ V, atol=1e-6, rtol=0)


def test_linear_attention_to_features_that_round_to_0_is_still_an_average():
    values = torch.randn(3, 2, generator=torch.manual_seed(0))
    for low in (-18.0, -200.0):
        for queries, keys in ((low, 0.0), (0.0, low)):
            given = torch.full((1, 4), queries), torch.full((3, 4), keys), values
            torch.testing.assert_close(linear_attention(*given), values.mean(0)[None])
    half = torch.full((1, 4), -9.0).half(), torch.ones(3, 4).half(), values.half()
    assert linear_attention(*half).isfinite().all()
    with pytest.raises(ValueError, match="3 keys and 2 values"):
        linear_attention(torch.ones(1, 4), torch.ones(3, 4), torch.ones(2, 4))
