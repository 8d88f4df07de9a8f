"""Positional encodings: formulas, numbers worked by hand, and properties."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorial_lib.position import (
    SinusoidalEncoding,
    alibi,
    apply_rope,
    frequencies,
    relative_position_bias,
    sinusoidal_encoding,
    sinusoidal_grid,
)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def distances(num_tokens):
    """Return key position minus query position: (query, key)."""
    positions = torch.arange(num_tokens)
    return positions - positions[:, None]


def test_frequencies_fall_from_1_in_equal_ratios():
    torch.testing.assert_close(frequencies(4), torch.tensor([1, 0.01]))
    torch.testing.assert_close(frequencies(4, base=100), torch.tensor([1, 0.1]))


class TestSinusoids:
    def test_they_are_the_papers_formula_number_by_number(self):
        encoding = sinusoidal_encoding(torch.arange(50), 6)
        for t in (0, 1, 7, 49):
            for i in range(3):
                angle = t / 10_000 ** (2 * i / 6)
                expected = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)
                assert encoding[t, 2 * i : 2 * i + 2].tolist() == expected

    def test_a_shift_rotates_every_pair(self):
        encoding = sinusoidal_encoding(torch.arange(20), 8)
        back = -torch.full((15,), 5)  # sine comes first, so forward is backward here
        rotated = apply_rope(encoding[:15], back, frequencies(8))
        torch.testing.assert_close(rotated, encoding[5:], atol=1e-5, rtol=0)

    def test_each_token_gets_the_vector_of_its_position(self):
        x = torch.randn(2, 3, 4)
        expected = x + sinusoidal_encoding(torch.arange(3), 4)
        assert SinusoidalEncoding(4, max_tokens=10)(x).equal(expected)

    def test_the_table_is_saved_with_the_model_and_not_learned(self):
        encoding = SinusoidalEncoding(4, max_tokens=10).double()
        assert encoding.table.dtype == torch.float64
        assert list(encoding.state_dict()) == ["table"]
        assert list(encoding.parameters()) == []

    def test_a_patch_has_the_encodings_of_its_row_and_of_its_column(self):
        grid = sinusoidal_grid(3, 5, 8).view(3, 5, 8)
        line = sinusoidal_encoding(torch.arange(5), 4)
        for i in range(3):
            for j in range(5):
                assert grid[i, j].equal(torch.cat([line[i], line[j]]))


class TestRope:
    def test_a_pair_rotates_as_a_complex_number_does(self):
        x = torch.tensor([[1.0, 2.0]])
        rotated = apply_rope(x, torch.tensor([3]), frequencies(2))
        by_hand = complex(1, 2) * complex(math.cos(3), math.sin(3))
        expected = torch.tensor([[by_hand.real, by_hand.imag]])
        torch.testing.assert_close(rotated, expected)

    def test_the_second_pair_has_its_own_frequency(self):
        x = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
        rotated = apply_rope(x, torch.tensor([7]), frequencies(4, base=100))
        by_hand = torch.tensor([[0, 0, math.cos(0.7), math.sin(0.7)]])
        torch.testing.assert_close(rotated, by_hand)

    def test_a_token_is_rotated_to_its_position_whatever_its_index(self):
        x = torch.randn(2, 3, 6, 4)  # (batch, head, token, d_k)
        whole = apply_rope(x, torch.arange(6), frequencies(4))
        order = torch.tensor([4, 0, 5])
        assert apply_rope(x[:, :, order], order, frequencies(4)).equal(
            whole[:, :, order]
        )

    @settings(max_examples=40)
    @given(
        dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
        pairs=st.integers(1, 32),
        start=st.integers(0, 20_000),
        distance=st.integers(-50, 50),
        seed=st.integers(0, 2**32),
    )
    def test_a_score_depends_on_the_distance_alone(
        self, dtype, pairs, start, distance, seed
    ):
        torch.manual_seed(seed)
        query = torch.randn(1, 2 * pairs).to(dtype)
        key = torch.randn(1, 2 * pairs).to(dtype)

        def rotate(x, position):
            omega = frequencies(2 * pairs)
            return apply_rope(x, torch.tensor([position]), omega).double()

        near = rotate(query.double(), 50) @ rotate(key.double(), 50 + distance).T
        far_query = rotate(query, start + 50)
        far_key = rotate(key, start + 50 + distance)
        # Both are rounded once, each by half of eps; angles are of float32.
        rounding = torch.finfo(dtype).eps + 2 * (100 + start) * 2**-23
        error = (far_query @ far_key.T - near).abs()
        assert error <= rounding * query.double().norm() * key.double().norm()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_is_rounded_after_the_rotation(self, dtype):
        x = torch.randn(1, 3000, 64).to(dtype)
        positions = torch.arange(3000)
        expected = apply_rope(x.float(), positions, frequencies(64)).to(dtype)
        assert apply_rope(x, positions, frequencies(64)).equal(expected)


class TestBiases:
    def test_alibi_has_the_papers_slopes_and_falls_with_the_distance(self):
        bias = alibi(8, distances(3))
        assert bias.shape == (8, 3, 3)
        by_hand = torch.tensor([-1, -0.5, 0])  # the last query
        torch.testing.assert_close(bias[0, 2], by_hand)
        torch.testing.assert_close(bias[7, 2], by_hand / 2**7)

    def test_the_relative_bias_of_a_distance_stands_in_the_table(self):
        table = torch.tensor([[0.0, 10.0, 20.0]])
        bias = relative_position_bias(table, distances(4))
        by_hand = [[0, 0, 0, 0], [10, 0, 0, 0], [20, 10, 0, 0], [20, 20, 10, 0]]
        assert bias[0].tolist() == by_hand

    def test_a_gradient_reaches_every_number_of_the_table(self):
        table = torch.zeros(2, 3, requires_grad=True)
        bias = relative_position_bias(table, distances(6))
        bias.tril().softmax(dim=-1)[..., 0].sum().backward()
        assert table.grad.isfinite().all()
        assert table.grad.ne(0).all()
