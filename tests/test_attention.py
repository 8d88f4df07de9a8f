"""Attention against numbers worked by hand, loops, and torch's own."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import (
    AdditiveAttention,
    CausalSelfAttention,
    KVCache,
    MultiHeadAttention,
    masked_softmax,
    nadaraya_watson,
    scaled_dot_product_attention,
)
from tutorial_lib.interpret import record_attention
from tutorial_lib.kernels import boxcar, gaussian
from tutorial_lib.masks import causal_mask, padding_mask, window_mask

SOME_EMPTY_ROWS = causal_mask(5) & (torch.arange(5) > 1)
MASKS = {
    "none": None,
    "causal": causal_mask(5),
    "window": window_mask(5, 1),
    "padding": padding_mask([5, 3, 0], 5)[:, None],
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": torch.zeros(5, 5, dtype=torch.bool),
    "some-empty-rows": SOME_EMPTY_ROWS,
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


class TestMaskedSoftmax:
    def test_two_scores_give_the_weights_worked_by_hand(self):
        weights = masked_softmax(torch.tensor([[0.0, 1.0]]))
        by_hand = [[1 / (1 + math.e), math.e / (1 + math.e)]]
        torch.testing.assert_close(weights, torch.tensor(by_hand))

    def test_a_masked_key_counts_as_if_it_were_not_there(self):
        scores = torch.randn(2, 3, 4)
        weights = masked_softmax(scores, torch.tensor([True, False, True, True]))
        assert weights[..., 1].eq(0).all()
        without = scores[..., [0, 2, 3]].softmax(dim=-1)
        torch.testing.assert_close(weights[..., [0, 2, 3]], without)

    def test_a_query_that_may_attend_to_nothing_gets_zeros_and_finite_gradients(self):
        scores = torch.randn(5, 5, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            weights = masked_softmax(scores, SOME_EMPTY_ROWS)
            (weights * torch.randn(5, 5)).sum().backward()
        assert weights[:2].eq(0).all()
        assert scores.grad.isfinite().all()
        assert scores.grad[:2].eq(0).all()

    def test_the_only_key_that_may_be_attended_to_has_weight_1_at_any_score(self):
        scores = torch.tensor([[-1e9, 0.0, 1.0]])
        weights = masked_softmax(scores, torch.tensor([True, False, False]))
        assert weights.tolist() == [[1, 0, 0]]


class TestNadarayaWatson:
    def test_the_estimate_is_the_mean_of_the_values_within_reach(self):
        queries = torch.tensor([0.0, 10.0])
        keys = torch.tensor([-1.0, 0.5, 9.5])
        values = torch.tensor([2.0, 4.0, 7.0])
        outputs, weights = nadaraya_watson(queries, keys, values, boxcar(1))
        assert outputs.tolist() == [3, 7]
        assert weights.tolist() == [[0.5, 0.5, 0], [0, 0, 1]]

    def test_a_query_that_reaches_no_key_has_no_estimate(self):
        keys = torch.tensor([1.0, 2.0])
        outputs, _ = nadaraya_watson(torch.tensor([99.0]), keys, keys, boxcar(1))
        assert outputs.isnan().all()

    def test_gaussian_weights_are_the_softmax_of_negative_squared_distances(self):
        queries, keys, values = torch.randn(3, 6)
        outputs, weights = nadaraya_watson(queries, keys, values, gaussian(0.8))
        squared_distances = (queries[:, None] - keys).square()
        expected = (-squared_distances / (2 * 0.8**2)).softmax(dim=-1)
        torch.testing.assert_close(weights, expected)
        torch.testing.assert_close(outputs, expected @ values)


class TestScaledDotProductAttention:
    def test_the_worked_example_of_scores_112_and_96_with_d_k_64(self):
        query = torch.zeros(1, 64)
        query[0, :2] = 1.0
        keys = torch.zeros(2, 64)
        keys[0, 0] = 112.0
        keys[1, 1] = 96.0
        _, weights = scaled_dot_product_attention(query, keys, torch.eye(2))
        by_hand = [[1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]]  # of 14 and 12
        torch.testing.assert_close(weights, torch.tensor(by_hand))

    @every_mask
    def test_it_equals_a_loop_over_queries_and_keys(self, mask):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        outputs, weights = scaled_dot_product_attention(Q, K, V, mask)
        may_attend = torch.ones(3, 2, 5, 5).bool()
        if mask is not None:
            may_attend = mask.expand(3, 2, 5, 5)
        for b, head, i in itertools.product(range(3), range(2), range(5)):
            powers = torch.zeros(5)
            for j in range(5):
                if may_attend[b, head, i, j]:
                    powers[j] = math.exp(Q[b, head, i] @ K[b, head, j] / 2)
            by_hand = (powers / powers.sum()).nan_to_num(
                0
            )  # 0 / 0: nothing to attend to
            torch.testing.assert_close(weights[b, head, i], by_hand)
            torch.testing.assert_close(outputs[b, head, i], by_hand @ V[b, head])

    @every_mask
    def test_it_equals_torchs_own_gradients_included(self, mask):
        inputs = torch.randn(3, 3, 2, 5, 4, requires_grad=True)  # Q, K, V
        outputs, _ = scaled_dot_product_attention(*inputs, mask)
        expected = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
        torch.testing.assert_close(outputs, expected)
        direction = torch.randn(outputs.shape)
        [gradient] = torch.autograd.grad((outputs * direction).sum(), inputs)
        [by_torch] = torch.autograd.grad((expected * direction).sum(), inputs)
        torch.testing.assert_close(gradient, by_torch, atol=1e-5, rtol=1e-4)

    def test_double_precision_stays_double(self):
        Q, K, V = torch.randn(3, 5, 4, dtype=torch.float64)
        outputs, _ = scaled_dot_product_attention(Q, K, V)
        assert outputs.dtype == torch.float64


class TestAdditiveAttention:
    def test_it_equals_a_network_over_the_concatenated_query_and_key(self):
        layer = AdditiveAttention(3, 2, 7)
        names = {name for name, _ in layer.named_parameters()}
        assert names == {"W_Q.weight", "W_K.weight", "w_v.weight"}  # and no bias
        queries = torch.randn(4, 3)
        keys = torch.randn(5, 2)
        values = torch.randn(5, 6)
        both = torch.cat([layer.W_Q.weight, layer.W_K.weight], dim=1)
        for i, query in enumerate(queries):
            hidden = [torch.tanh(both @ torch.cat([query, key])) for key in keys]
            scores = torch.stack(hidden) @ layer.w_v.weight[0]
            expected = scores.softmax(dim=0) @ values
            torch.testing.assert_close(layer(queries, keys, values)[i], expected)

    def test_masked_keys_count_as_if_they_were_not_there(self):
        layer = AdditiveAttention(8, 8, 4)
        queries, keys, values = torch.randn(3, 2, 5, 8)
        outputs = layer(queries, keys, values, padding_mask([5, 2], 5))
        alone = layer(queries[1:], keys[1:, :2], values[1:, :2])
        torch.testing.assert_close(outputs[1:], alone)

    def test_keys_may_be_projected_once_for_all_steps(self):
        layer = AdditiveAttention(8, 8, 4)
        queries, keys, values = torch.randn(3, 2, 5, 8)
        outputs = layer.attend(queries, layer.W_K(keys), values)
        assert outputs.equal(layer(queries, keys, values))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", [None, causal_mask(6)], ids=["full", "causal"])
def test_it_equals_torchs_own_with_the_same_weights_maps_included(mask, bias):
    ours = MultiHeadAttention(16, 4, bias=bias)
    theirs = nn.MultiheadAttention(16, 4, bias=bias, batch_first=True)
    projections = [ours.W_Q, ours.W_K, ours.W_V]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([W.weight for W in projections]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([W.bias for W in projections]))
            theirs.out_proj.bias.copy_(ours.W_O.bias)
    inputs = torch.randn(3, 3, 6, 16)  # queries, keys and values
    hidden = None if mask is None else ~mask  # torch's mask: True hides a key
    expected, weights = theirs(*inputs, attn_mask=hidden, average_attn_weights=False)
    torch.testing.assert_close(ours(*inputs, mask), expected)
    with record_attention(ours) as maps:
        torch.testing.assert_close(ours(*inputs, mask), expected)
    torch.testing.assert_close(maps[""], weights)


@pytest.mark.parametrize(
    "attend",
    [
        scaled_dot_product_attention,
        MultiHeadAttention(8, 2),
        AdditiveAttention(8, 8, 4),
    ],
)
def test_no_attention_changes_its_inputs(attend):
    inputs = [*torch.randn(3, 3, 5, 8), padding_mask([5, 3, 0], 5)]
    before = [tensor.clone() for tensor in inputs]
    attend(*inputs)
    for tensor, kept in zip(inputs, before, strict=True):
        assert tensor.equal(kept)


class TestKVCache:
    def test_a_layer_s_keys_and_values_grow_by_those_appended(self):
        cache = KVCache()
        K, V = torch.randn(2, 3, 2, 5, 4)
        cache.append("first", K[..., :2, :], V[..., :2, :])
        cached_K, cached_V = cache.append("first", K[..., 2:, :], V[..., 2:, :])
        assert cached_K.equal(K)
        assert cached_V.equal(V)
        assert cache.num_tokens("first") == 5
        assert cache.num_tokens("second") == 0

    @pytest.mark.parametrize("sizes", [[1] * 6, [2, 3, 1], [6]])
    def test_tokens_read_in_pieces_give_what_the_whole_gives(self, sizes):
        attention = CausalSelfAttention(8, 2)
        x = torch.randn(2, 6, 8)
        cache = KVCache()
        pieces = [attention(piece, cache) for piece in x.split(sizes, dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), attention(x))


def test_causal_self_attention_is_attention_under_a_causal_mask():
    attention = CausalSelfAttention(8, 2)
    x = torch.randn(2, 6, 8)
    by_mask = MultiHeadAttention.forward(attention, x, x, x, causal_mask(6))
    torch.testing.assert_close(attention(x), by_mask)
