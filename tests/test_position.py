"""Where tokens stand: encodings against formulas, and attention that uses them."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorial_lib.attention import KVCache, MultiHeadAttention
from tutorial_lib.interpret import record_attention
from tutorial_lib.masks import padding_mask
from tutorial_lib.position import (
    ALiBi,
    PositionedAttention,
    RelativePositionBias,
    RotaryEncoding,
    SinusoidalEncoding,
    relative_positions,
    sinusoidal_grid,
    sinusoids,
)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_sinusoids_are_the_papers_formula_number_by_number():
    table = SinusoidalEncoding(6, 50).table
    for t, i in product((0, 1, 7, 49), range(3)):
        angle = t / 10_000 ** (2 * i / 6)
        pair = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)
        assert table[t, 2 * i : 2 * i + 2].tolist() == pair


class TestTable:
    def test_each_token_gets_the_row_of_its_position(self):
        encoding = SinusoidalEncoding(4, 10)
        x = torch.randn(2, 3, 4)
        expected = x + encoding.table[5:8]
        assert encoding(x, start=5).equal(expected)

    def test_the_last_position_fits_and_the_next_is_refused_with_advice(self):
        encoding = SinusoidalEncoding(4, 10)
        encoding(torch.zeros(1, 4), start=9)
        with pytest.raises(ValueError, match=r"positions 9 to 10 .*10.*max_tokens"):
            encoding(torch.zeros(2, 4), start=9)
        with pytest.raises(ValueError, match="positions -1 to 0"):
            encoding(torch.zeros(2, 4), start=-1)

    def test_the_table_is_saved_and_changes_type_with_the_model(self):
        encoding = SinusoidalEncoding(4, 10).double()
        other = SinusoidalEncoding(4, 10)
        assert encoding.table.dtype == torch.float64
        assert list(encoding.state_dict()) == ["table"]
        encoding.table.mul_(2)
        other.load_state_dict(encoding.state_dict())
        assert other.table.equal(encoding.table.float())


def test_sinusoids_are_not_learned():
    assert not list(SinusoidalEncoding(4, 10).parameters())


@pytest.mark.parametrize(
    "make", [lambda: SinusoidalEncoding(5, 9), lambda: RotaryEncoding(5)]
)
def test_an_odd_size_is_refused_with_the_next_even_one(make):
    with pytest.raises(ValueError, match=r"^the size must be even.*got 5, use 6"):
        make()


def test_everything_is_made_where_what_it_changes_lies():
    assert sinusoids(torch.arange(5, device="meta"), 4).is_meta
    assert RotaryEncoding(4)(torch.randn(5, 4, device="meta")).is_meta
    for bias in (ALiBi(2), RelativePositionBias(2, 3)):
        assert bias.to("meta")(3, 5).is_meta


class TestRotary:
    def test_one_pair_rotates_as_a_complex_number_does(self):
        rotated = RotaryEncoding(2)(torch.tensor([[1.0, 2.0]]), start=3)
        by_hand = complex(1, 2) * complex(math.cos(3), math.sin(3))
        expected = torch.tensor([[by_hand.real, by_hand.imag]])
        torch.testing.assert_close(rotated, expected)

    def test_the_second_pair_has_its_own_frequency(self):
        x = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
        rotated = RotaryEncoding(4, base=100)(x, start=7)  # 100^(-2/4) = 1/10 a step
        by_hand = torch.tensor([[0, 0, math.cos(0.7), math.sin(0.7)]])
        torch.testing.assert_close(rotated, by_hand)

    @settings(max_examples=40)
    @given(
        dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
        pairs=st.integers(1, 32),
        start=st.integers(0, 20_000),
        relative=st.integers(-50, 50),
        seed=st.integers(0, 2**32),
    )
    def test_a_score_depends_on_the_relative_position_alone(
        self, dtype, pairs, start, relative, seed
    ):
        torch.manual_seed(seed)
        query, key = torch.randn(2, 1, 2 * pairs).to(dtype).double()
        rotary = RotaryEncoding(2 * pairs)
        expected = rotary(query, start=50) @ rotary(key, start=50 + relative).T
        rotary = rotary.to(dtype)
        query_there = rotary(query.to(dtype), start=50 + start).double()
        key_there = rotary(key.to(dtype), start=50 + start + relative).double()
        # Both are rounded once, each by half of eps; angles are of float32.
        rounding = torch.finfo(dtype).eps + 2 * (100 + start) * 2**-23
        error = (query_there @ key_there.T - expected).abs()
        assert error <= rounding * query.norm() * key.norm()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_a_model_in_half_precision_keeps_its_frequencies(self, dtype):
        rotary, x = RotaryEncoding(64), torch.randn(1, 3000, 64)
        expected = rotary(x)
        assert rotary.to(dtype)(x).equal(expected)
        assert not rotary.state_dict() and rotary.double()(x).equal(expected)


class TestBiases:
    def test_alibi_has_the_papers_slopes_and_falls_with_distance(self):
        bias = ALiBi(8)(3, 3)
        assert bias.shape == (8, 3, 3)
        by_hand = -torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 2
        torch.testing.assert_close(bias[0], by_hand)
        torch.testing.assert_close(bias[7], by_hand / 2**7)

    def test_alibi_keeps_its_slopes_and_its_distances_in_half_precision(self):
        bias = ALiBi(12)
        expected = bias(1, 3000)
        assert bias.to(torch.bfloat16)(1, 3000).equal(expected)
        assert expected[0, 0, 0] == pytest.approx(-2999 * 2 ** (-8 / 12))

    def test_relative_bias_reads_its_table_by_distance_and_clips_it(self):
        bias = RelativePositionBias(1, 2)
        assert bias(4, 4).eq(0).all()  # before training
        with torch.no_grad():
            bias.table.copy_(torch.tensor([[-20.0, -10, 0, 10, 20]]))
        by_hand = [[0, 10, 20, 20], [-10, 0, 10, 20], [-20, -10, 0, 10]]
        by_hand.append([-20, -20, -10, 0])
        assert bias(4, 4)[0].tolist() == by_hand

    @given(queries=st.integers(0, 6), keys=st.integers(0, 6))
    def test_the_last_query_stands_at_the_last_key(self, queries, keys):
        relative = relative_positions(queries, keys)
        assert relative.shape == (queries, keys)
        for i, j in product(range(queries), range(keys)):
            assert relative[i, j] == (j - keys) - (i - queries)


def kinds_of_position(num_heads, d_k):
    bias = RelativePositionBias(num_heads, 3)
    torch.nn.init.normal_(bias.table)
    return {
        "rotary": {"rotary": RotaryEncoding(d_k)},
        "alibi": {"position_bias": ALiBi(num_heads)},
        "relative": {"position_bias": bias},
        "both": {"position_bias": bias, "rotary": RotaryEncoding(d_k)},
    }


KINDS = "rotary", "alibi", "relative", "both"


@pytest.fixture(params=KINDS)
def layer(request):
    return PositionedAttention(8, 2, **kinds_of_position(2, 4)[request.param])


class TestPositionedAttention:
    def test_every_weight_may_be_dropped_once(self):
        layer = PositionedAttention(8, 2, position_bias=ALiBi(2), dropout=0.5)
        x = torch.randn(3, 6, 8)
        torch.manual_seed(1)
        with record_attention(layer) as maps:
            outputs = layer(x, x, x)
        torch.manual_seed(1)
        context = F.dropout(maps[""], 0.5) @ layer.split_heads(layer.W_V(x))
        expected = layer.W_O(context.transpose(1, 2).flatten(2))
        torch.testing.assert_close(outputs, expected)
        layer.eval()
        assert layer(x, x, x).equal(layer(x, x, x))

    def test_pieces_with_a_cache_give_what_the_whole_gives(self, layer):
        x, cache, pieces = torch.randn(2, 6, 8), KVCache(), []
        for piece in x.split([2, 1, 3], dim=1):
            options = {"causal": True, "kv_cache": cache}
            pieces.append(layer(piece, piece, piece, **options))
        whole = layer(x, x, x, causal=True)
        torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=1e-6, rtol=0)

    def test_gradients_reach_a_learned_bias_and_are_finite(self):
        bias, x = RelativePositionBias(2, 3), torch.randn(3, 6, 8)
        layer = PositionedAttention(8, 2, position_bias=bias)
        layer(x, x, x, padding_mask([6, 4, 0], 6)).square().sum().backward()
        assert bias.table.grad.isfinite().all() and bias.table.grad.ne(0).all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_scores_in_half_precision_do_not_overflow(self, dtype):
        zeros = RelativePositionBias(1, 3)
        layer = PositionedAttention(64, 1, position_bias=zeros)
        plain = MultiHeadAttention(64, 1)
        layer.load_state_dict(plain.state_dict(), strict=False)
        x = (torch.randn(1, 5, 64) * 200).to(dtype)
        found, expected = (one.to(dtype)(x, x, x) for one in (layer, plain))
        assert found.dtype == dtype and found.isfinite().all()
        torch.testing.assert_close(found, expected)

    @settings(max_examples=40)
    @given(st.sampled_from(KINDS), st.integers(1, 6), st.integers(1, 6))
    def test_weights_are_those_of_each_query_and_key_by_itself(
        self, kind, queries, keys
    ):
        layer = PositionedAttention(8, 2, **kinds_of_position(2, 4)[kind])
        Q, K = torch.randn(1, queries, 8), torch.randn(1, keys, 8)
        with record_attention(layer) as maps:
            layer(Q, K, K)
        Q, K = (layer.split_heads(W(x))[0] for W, x in ((layer.W_Q, Q), (layer.W_K, K)))
        scores = torch.zeros(2, queries, keys)
        for i, j in product(range(queries), range(keys)):
            here, there = 10 + keys - queries + i, 10 + j
            query, key = Q[:, [i]], K[:, [j]]  # (head, 1, d_k)
            if layer.rotary is not None:
                query, key = layer.rotary(query, here), layer.rotary(key, there)
            scores[:, i, j] = (query @ key.mT)[:, 0, 0] / 2
            if layer.position_bias is not None:
                scores[:, i, j] += layer.position_bias(20, 20)[:, here, there]
        expected = scores.softmax(dim=-1)
        torch.testing.assert_close(maps[""][0], expected, atol=1e-5, rtol=0)


def test_half_precision_by_default_rounds_the_table_and_nothing_before_it():
    expected = SinusoidalEncoding(8, 3000).table.bfloat16()
    rotated = RotaryEncoding(8)(torch.ones(1, 8), start=2999)
    torch.set_default_dtype(torch.bfloat16)
    try:
        found, rotary = SinusoidalEncoding(8, 3000).table, RotaryEncoding(8)
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.dtype == torch.bfloat16 and found.equal(expected)
    assert rotary(torch.ones(1, 8), start=2999).equal(rotated)


# --- Cells of a grid, nodes of a graph ----------------------------------------------


def test_a_cell_of_the_grid_is_its_row_and_then_its_column():
    table = sinusoidal_grid(3, 5, 8)
    assert table.shape == (15, 8)
    table, line = table.view(3, 5, 8), SinusoidalEncoding(4, 5).table
    for i, j in product(range(3), range(5)):
        torch.testing.assert_close(table[i, j], torch.cat((line[i], line[j])))
    with pytest.raises(ValueError, match=r"4 must divide d_model.*got 6, use 8"):
        sinusoidal_grid(2, 2, 6)


def test_positions_made_for_other_heads_are_refused():
    with pytest.raises(ValueError, match=r"d_k of 2, got \(1, 3, 8\)"):
        RotaryEncoding(2)(torch.ones(1, 3, 8))
    x = torch.ones(1, 3, 8)
    for bias in (ALiBi(2), RelativePositionBias(2, 4), ALiBi(1)):
        layer = PositionedAttention(8, 4, position_bias=bias)
        with pytest.raises(ValueError, match=r"for [12] heads, and the layer has 4"):
            layer(x, x, x)


def test_whole_numbers_are_rotated_without_rounding():
    x = torch.tensor([[3, 1], [2, 5]])
    torch.testing.assert_close(RotaryEncoding(2)(x), RotaryEncoding(2)(x.float()))
