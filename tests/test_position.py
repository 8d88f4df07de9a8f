"""Where tokens stand: encodings against formulas, and attention that uses them."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import (
    LearnedEncoding,
    ALiBi,
    PositionedAttention,
    RelativePositionBias,
    RotaryEncoding,
    SinusoidalEncoding,
    distances,
    sinusoids,
)
from tutorial_lib.recording import record_attention

ENCODINGS = [SinusoidalEncoding, LearnedEncoding]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_sinusoids_are_the_papers_formula_number_by_number():
    table = SinusoidalEncoding(6, 50).table
    for t in (0, 1, 7, 49):
        for i in range(3):
            angle = t / 10_000 ** (2 * i / 6)
            assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 2 * i + 1].item() == pytest.approx(
                math.cos(angle), abs=1e-6
            )


def test_moving_on_turns_each_sinusoidal_pair_by_a_fixed_angle():
    table = SinusoidalEncoding(8, 100).table.double()
    for step in (1, 5, 30):
        for i in range(4):
            angle = torch.tensor(step / 10_000 ** (2 * i / 8), dtype=torch.float64)
            turn = torch.tensor(
                [[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]],
                dtype=torch.float64,
            )
            pair = table[:, 2 * i : 2 * i + 2]
            torch.testing.assert_close(
                pair[:-step] @ turn.T, pair[step:], atol=1e-5, rtol=0
            )


@pytest.mark.parametrize("make", ENCODINGS)
class TestTables:
    def test_each_token_gets_the_row_of_its_position(self, make):
        encoding, x = make(4, 10), torch.randn(2, 3, 4)
        torch.testing.assert_close(
            encoding(x, start=5) - x, encoding.table[None, 5:8].expand(2, -1, -1)
        )

    def test_token_by_token_gives_what_all_at_once_gives(self, make):
        encoding, x = make(4, 10), torch.randn(2, 10, 4)
        single = [encoding(x[:, [t]], start=t) for t in range(10)]
        torch.testing.assert_close(torch.cat(single, dim=1), encoding(x))

    def test_the_last_position_fits_and_the_next_is_refused_with_advice(self, make):
        encoding = make(4, 10)
        encoding(torch.zeros(1, 4), start=9)
        with pytest.raises(ValueError, match=r"positions 9 to 10 .*10.*max_tokens"):
            encoding(torch.zeros(2, 4), start=9)
        with pytest.raises(ValueError, match="positions -1 to 0"):
            encoding(torch.zeros(2, 4), start=-1)

    def test_the_table_is_saved_and_changes_type_with_the_model(self, make):
        encoding, other = make(4, 10).double(), make(4, 10)
        assert encoding.table.dtype == torch.float64
        assert list(encoding.state_dict()) == ["table"]
        with torch.no_grad():
            encoding.table.mul_(2)
        other.load_state_dict(encoding.state_dict())
        assert other.table.equal(encoding.table.float())


def test_sinusoids_are_not_learned_and_a_learned_table_is():
    assert not list(SinusoidalEncoding(4, 10).parameters())
    assert [p.shape for p in LearnedEncoding(4, 10).parameters()] == [(10, 4)]
    start = LearnedEncoding(64, 100).table
    assert start.std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    "make", [lambda: SinusoidalEncoding(5, 9), lambda: RotaryEncoding(5)]
)
def test_an_odd_size_is_refused_with_the_next_even_one(make):
    with pytest.raises(ValueError, match=r"must be even.*got 5, use 6"):
        make()


def test_everything_is_made_where_what_it_changes_lies():
    assert sinusoids(torch.arange(5, device="meta"), 4).is_meta
    assert RotaryEncoding(4)(torch.randn(5, 4, device="meta")).is_meta
    for bias in (ALiBi(2), RelativePositionBias(2, 3)):
        assert bias.to("meta")(3, 5).is_meta


class TestRotary:
    def test_position_zero_stays_and_lengths_stay(self):
        rotary, x = RotaryEncoding(6), torch.randn(2, 9, 6)
        assert rotary(x)[:, 0].equal(x[:, 0])
        torch.testing.assert_close(rotary(x).norm(dim=-1), x.norm(dim=-1))

    def test_one_pair_turns_as_a_complex_number_does(self):
        turned = RotaryEncoding(2)(torch.tensor([[1.0, 2.0]]), start=3)
        by_hand = complex(1, 2) * complex(math.cos(3), math.sin(3))
        torch.testing.assert_close(
            turned[0], torch.tensor([by_hand.real, by_hand.imag])
        )

    def test_the_second_pair_turns_at_its_own_speed(self):
        x = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
        turned = RotaryEncoding(4, base=100)(x, start=7)  # 100^(-2/4) = 1/10 a step
        by_hand = torch.tensor([[0, 0, math.cos(0.7), math.sin(0.7)]])
        torch.testing.assert_close(turned, by_hand)

    def test_scores_depend_on_the_difference_of_positions_alone(self):
        rotary = RotaryEncoding(8).double()
        query, key = torch.randn(2, 1, 8, dtype=torch.float64)
        scores = {
            (i, j): (rotary(query, start=i) @ rotary(key, start=j).T).item()
            for i in range(0, 40, 7)
            for j in range(0, 40, 7)
        }
        for (i, j), score in scores.items():
            low = min(i, j)
            assert score == pytest.approx(scores[i - low, j - low], abs=1e-5)
        assert abs(scores[7, 0] - scores[0, 7]) > 0.01  # before is not after


class TestBiases:
    def test_linear_bias_has_the_papers_slopes_and_falls_with_distance(self):
        bias = ALiBi(8)(3, 3)
        assert bias.shape == (8, 3, 3)
        by_hand = -torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 2
        torch.testing.assert_close(bias[0], by_hand)
        torch.testing.assert_close(bias[7], by_hand / 2**7)

    def test_relative_bias_reads_its_table_by_distance_and_clips_it(self):
        bias = RelativePositionBias(1, 2)
        with torch.no_grad():
            bias.table.copy_(torch.tensor([[-20.0, -10, 0, 10, 20]]))
        by_hand = [[0, 10, 20, 20], [-10, 0, 10, 20], [-20, -10, 0, 10]]
        by_hand.append([-20, -20, -10, 0])
        assert bias(4, 4)[0].tolist() == by_hand
        assert RelativePositionBias(1, 2)(4, 4).eq(0).all()  # before training

    @pytest.mark.parametrize("bias", [ALiBi(2), RelativePositionBias(2, 3)])
    def test_fewer_queries_than_keys_are_the_last_ones(self, bias):
        for parameter in bias.parameters():
            torch.nn.init.normal_(parameter)
        assert bias(2, 7).equal(bias(7, 7)[:, 5:])


def relations(heads, d_k):
    yield {"rotary": RotaryEncoding(d_k)}
    yield {"bias": ALiBi(heads)}
    bias = RelativePositionBias(heads, 3)
    torch.nn.init.normal_(bias.table)
    yield {"bias": bias}
    yield {"bias": bias, "rotary": RotaryEncoding(d_k)}


MASKS = {
    "none": None,
    "causal": causal_mask(6),
    "lengths": padding_mask([6, 4, 0], 6),
    "some-empty-rows": causal_mask(6) & (torch.arange(6) > 1),
}


@pytest.fixture(params=range(4), ids=["rotary", "linear", "relative", "both"])
def layer(request):
    return PositionedAttention(8, 2, **list(relations(2, 4))[request.param])


class TestPositionedAttention:
    def test_without_positions_it_is_multi_head_attention(self):
        ours, plain = PositionedAttention(8, 2), MultiHeadAttention(8, 2)
        ours.load_state_dict(plain.state_dict())
        x = torch.randn(3, 6, 8)
        torch.testing.assert_close(ours(x, x, x), plain(x, x, x))

    @pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
    @pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
    def test_it_is_the_same_watched_and_unwatched(self, layer, mask, causal):
        x = torch.randn(3, 6, 8)
        unwatched = layer(x, x, x, mask, causal=causal)
        with record_attention(layer) as maps:
            watched = layer(x, x, x, mask, causal=causal)
        assert watched.equal(unwatched)
        assert maps[""].shape == (3, 2, 6, 6)
        assert watched.isfinite().all()

    def test_weights_are_the_softmax_of_changed_scores(self):
        bias = ALiBi(1)
        layer = PositionedAttention(4, 1, bias=bias)
        x = torch.randn(1, 5, 4)
        with record_attention(layer) as maps:
            layer(x, x, x)
        Q, K = layer.W_Q(x)[0], layer.W_K(x)[0]
        by_hand = torch.zeros(5, 5)
        for i in range(5):
            for j in range(5):
                by_hand[i, j] = Q[i] @ K[j] / 2 - abs(i - j) / 2**8
        torch.testing.assert_close(maps[""][0, 0], by_hand.softmax(dim=-1))

    def test_every_weight_may_be_dropped_once(self):
        layer = PositionedAttention(8, 2, bias=ALiBi(2), dropout=0.5)
        x = torch.randn(3, 6, 8)
        torch.manual_seed(1)
        with record_attention(layer) as maps:
            outputs = layer(x, x, x)
        torch.manual_seed(1)
        context = F.dropout(maps[""], 0.5) @ layer.split(layer.W_V(x))
        expected = layer.W_O(context.transpose(1, 2).flatten(2))
        torch.testing.assert_close(outputs, expected)

    def test_what_stands_beside_counts_and_not_where_the_whole_begins(self, layer):
        x = torch.randn(1, 6, 8)
        alone = layer(x, x, x)
        shuffled = x[:, [1, 0, 2, 3, 4, 5]]
        moved = layer(shuffled, shuffled, shuffled)[:, [1, 0, 2, 3, 4, 5]]
        assert (moved - alone).abs().max() > 1e-4  # order counts
        nothing = torch.randn(1, 3, 8)
        later = torch.cat((nothing, x), dim=1)
        mask = torch.arange(9) > 2
        shifted = layer(later, later, later, mask.expand(9, 9))[:, 3:]
        torch.testing.assert_close(shifted, alone, atol=1e-5, rtol=0)

    def test_the_last_queries_alone_read_what_they_read_among_all(self, layer):
        x = torch.randn(2, 6, 8)
        together = layer(x, x, x, causal=True)
        for t in range(6):
            alone = layer(x[:, [t]], x[:, : t + 1], x[:, : t + 1])
            torch.testing.assert_close(alone[:, 0], together[:, t], atol=1e-6, rtol=0)

    def test_gradients_reach_a_learned_bias_and_are_finite(self):
        layer = PositionedAttention(8, 2, bias=RelativePositionBias(2, 3))
        x = torch.randn(3, 6, 8)
        layer(x, x, x, MASKS["lengths"]).square().sum().backward()
        gradient = layer.score_bias.table.grad
        assert gradient.isfinite().all()
        assert (gradient != 0).all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_scores_in_half_precision_do_not_overflow(self, dtype):
        layer, plain = PositionedAttention(64, 1), MultiHeadAttention(64, 1)
        layer.load_state_dict(plain.state_dict())
        layer.score_bias = RelativePositionBias(1, 3)  # all zeros
        x = (torch.randn(1, 5, 64) * 200).to(dtype)
        found, expected = (one.to(dtype)(x, x, x) for one in (layer, plain))
        assert found.dtype == dtype and found.isfinite().all()
        torch.testing.assert_close(found, expected)


class TestUnequalLengths:
    @given(queries=st.integers(0, 6), keys=st.integers(0, 6))
    def test_the_last_query_stands_at_the_last_key(self, queries, keys):
        apart = distances(queries, keys)
        assert apart.shape == (queries, keys)
        for i, j in product(range(queries), range(keys)):
            assert apart[i, j] == (j - keys) - (i - queries)

    @settings(max_examples=40)
    @given(kind=st.integers(0, 3), queries=st.integers(1, 6), keys=st.integers(1, 6))
    def test_a_layer_turns_and_adds_by_these_distances(self, kind, queries, keys):
        layer = PositionedAttention(8, 2, **list(relations(2, 4))[kind])
        Q, K = torch.randn(1, queries, 8), torch.randn(1, keys, 8)
        with record_attention(layer) as maps:
            layer(Q, K, K)
        Q, K = layer.split(layer.W_Q(Q))[0], layer.split(layer.W_K(K))[0]
        scores = torch.zeros(2, queries, keys)
        for i, j in product(range(queries), range(keys)):
            here, there = 10 + keys - queries + i, 10 + j
            query, key = Q[:, [i]], K[:, [j]]  # (head, 1, d_k)
            if layer.rotary is not None:
                query, key = layer.rotary(query, here), layer.rotary(key, there)
            scores[:, i, j] = (query @ key.mT)[:, 0, 0] / 2
            if layer.score_bias is not None:
                scores[:, i, j] += layer.score_bias(20, 20)[:, here, there]
        expected = scores.softmax(dim=-1)
        torch.testing.assert_close(maps[""][0], expected, atol=1e-5, rtol=0)


class TestTypes:
    @settings(max_examples=40)
    @given(
        dtype=st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
        pairs=st.integers(1, 32),
        start=st.integers(0, 20_000),
        apart=st.integers(-50, 50),
        seed=st.integers(0, 2**32),
    )
    def test_a_rotary_score_is_the_same_at_every_place(
        self, dtype, pairs, start, apart, seed
    ):
        torch.manual_seed(seed)
        query, key = torch.randn(2, 1, 2 * pairs).to(dtype).double()
        rotary = RotaryEncoding(2 * pairs)
        expected = rotary(query, start=50) @ rotary(key, start=50 + apart).T
        rotary = rotary.to(dtype)
        query_there = rotary(query.to(dtype), start=50 + start).double()
        key_there = rotary(key.to(dtype), start=50 + start + apart).double()
        # Both are rounded once, each by half of eps; angles are of float32.
        rounding = torch.finfo(dtype).eps + 2 * (100 + start) * 2**-23
        error = (query_there @ key_there.T - expected).abs()
        assert error <= rounding * query.norm() * key.norm()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_a_rotary_encoding_keeps_its_speeds_in_a_half_model(self, dtype):
        rotary, x = RotaryEncoding(64), torch.randn(1, 3000, 64)
        expected = rotary(x)
        assert rotary.to(dtype)(x).equal(expected)
        assert not rotary.state_dict() and rotary.double()(x).equal(expected)

    def test_a_linear_bias_keeps_its_slopes_and_its_distances(self):
        bias = ALiBi(12)
        expected = bias(1, 3000)
        rounded = bias.to(torch.bfloat16)(1, 3000)
        torch.testing.assert_close(rounded, expected, atol=0, rtol=0)
        assert expected[0, 0, 0] == pytest.approx(-2999 * 2 ** (-8 / 12))

    def test_a_half_type_by_default_rounds_the_table_and_nothing_before_it(self):
        expected = SinusoidalEncoding(8, 3000).table.bfloat16()
        turned = RotaryEncoding(8)(torch.ones(1, 8), start=2999)
        torch.set_default_dtype(torch.bfloat16)
        try:
            found, rotary = SinusoidalEncoding(8, 3000).table, RotaryEncoding(8)
        finally:
            torch.set_default_dtype(torch.float32)
        assert found.dtype == torch.bfloat16 and found.equal(expected)
        assert rotary(torch.ones(1, 8), start=2999).equal(turned)
