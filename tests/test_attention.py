"""Attention against numbers worked by hand, loops, and torch's own."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from tutorial_lib.attention import (
    AdditiveAttention,
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
    "query-key": window_mask(5, 1),
    "padding": padding_mask([5, 3, 0], 5)[:, None],
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": torch.zeros(5, 5, dtype=torch.bool),
    "some-empty-rows": SOME_EMPTY_ROWS,
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
half_precision = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


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
        without = scores[..., [0, 2, 3]].softmax(-1)
        torch.testing.assert_close(weights[..., [0, 2, 3]], without)

    def test_a_query_that_may_attend_to_nothing_gets_zeros_and_finite_gradients(self):
        scores = torch.randn(5, 5, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            weights = masked_softmax(scores, SOME_EMPTY_ROWS)
            (weights * torch.randn(5, 5)).sum().backward()
        assert weights[:2].eq(0).all()
        assert scores.grad.isfinite().all() and scores.grad[:2].eq(0).all()

    def test_the_only_key_that_may_be_attended_to_has_weight_1_whatever_its_score(self):
        scores = torch.tensor([[torch.finfo(torch.float32).min, 0.0, 1.0]])
        weights = masked_softmax(scores, torch.tensor([True, False, False]))
        assert weights.tolist() == [[1, 0, 0]]

    @pytest.mark.parametrize("mask", [None, torch.tensor([True, True, False])])
    def test_whole_scores_have_weights_that_are_not_whole(self, mask):
        scores = torch.tensor([[0, 1, 2]])
        weights = masked_softmax(scores, mask)
        assert weights.equal(masked_softmax(scores.float(), mask))


class TestNadarayaWatson:
    def test_the_estimate_is_the_mean_of_the_values_within_reach(self):
        queries, keys = torch.tensor([0.0, 10.0, 99.0]), torch.tensor([-1.0, 0.5, 9.5])
        outputs, weights = nadaraya_watson(
            queries, keys, torch.tensor([2.0, 4.0, 7.0]), boxcar(1)
        )
        assert outputs.tolist() == [3, 7, 0]  # the third query reaches no key
        assert weights.tolist() == [[0.5, 0.5, 0], [0, 0, 1], [0, 0, 0]]

    def test_gaussian_weights_are_the_softmax_of_negative_squared_distances(self):
        queries, keys, values = torch.randn(4, 3), torch.randn(6, 3), torch.randn(6, 2)
        outputs, weights = nadaraya_watson(queries, keys, values, gaussian(0.8))
        squared = (queries[:, None] - keys).square().sum(-1)
        expected = (-squared / (2 * 0.8**2)).softmax(-1)
        torch.testing.assert_close(weights, expected)
        torch.testing.assert_close(outputs, expected @ values)


class TestScaledDotProductAttention:
    def test_the_worked_example_of_scores_112_and_96_with_d_k_64(self):
        query = torch.zeros(1, 64)
        query[0, :2] = 1.0
        keys = torch.zeros(2, 64)
        keys[0, 0], keys[1, 1] = 112.0, 96.0
        _, weights = scaled_dot_product_attention(query, keys, torch.eye(2))
        by_hand = [[1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]]  # of 14 and 12
        torch.testing.assert_close(weights, torch.tensor(by_hand))

    @every_mask
    @causal_or_not
    def test_it_equals_a_loop_over_queries_and_keys(self, mask, causal):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        outputs, weights = scaled_dot_product_attention(Q, K, V, mask, causal=causal)
        seen = torch.ones(3, 2, 5, 5).bool() if mask is None else mask
        seen = seen.expand(3, 2, 5, 5)
        for b, head, i in torch.cartesian_prod(*map(torch.arange, (3, 2, 5))).tolist():
            attended = [j for j in range(5) if seen[b, head, i, j]]
            attended = [j for j in attended if j <= i or not causal]
            scores = [math.exp(Q[b, head, i] @ K[b, head, j] / 2) for j in attended]
            by_hand = torch.zeros(5)
            for j, score in zip(attended, scores, strict=True):
                by_hand[j] = score / sum(scores)
            torch.testing.assert_close(weights[b, head, i], by_hand)
            torch.testing.assert_close(outputs[b, head, i], by_hand @ V[b, head])

    @half_precision
    def test_half_precision_does_not_overflow(self, dtype):
        Q, K, V = torch.randn(3, 5, 64, dtype=dtype)
        outputs, weights = scaled_dot_product_attention(Q * 200, K * 200, V)
        assert (Q * 200 @ (K * 200).T).isinf().any() or dtype == torch.bfloat16
        assert outputs.isfinite().all() and outputs.dtype == weights.dtype == dtype
        total = weights.float().sum(-1)
        torch.testing.assert_close(total, torch.ones(5), atol=0.01, rtol=0)

    def test_whole_numbers_are_averaged_as_what_they_are(self):
        Q, K, V = torch.randint(9, (3, 5, 4))
        outputs, weights = scaled_dot_product_attention(Q, K, V)
        expected = scaled_dot_product_attention(Q.float(), K.float(), V.float())
        torch.testing.assert_close((outputs, weights), expected)

    def test_double_precision_stays_double(self):
        Q, K, V = torch.randn(3, 5, 4, dtype=torch.float64)
        assert scaled_dot_product_attention(Q, K, V)[0].dtype == torch.float64


@every_mask
@causal_or_not
def test_fused_attention_has_the_gradients_of_the_explicit_one(mask, causal):
    Q, K, V = (torch.randn(3, 2, 5, 4, requires_grad=True) for _ in range(3))
    explicit, _ = scaled_dot_product_attention(Q, K, V, mask, causal=causal)
    fused = MultiHeadAttention(8, 2).attend(Q, K, V, mask, causal)
    direction = torch.randn(fused.shape)
    one, other = (
        torch.autograd.grad((outputs * direction).sum(), [Q, K, V])
        for outputs in (fused, explicit)
    )
    for gradient, expected in zip(one, other, strict=True):
        torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-4)


class TestShapesThatDoNotFit:
    @pytest.mark.parametrize(
        ("shapes", "message"),
        [
            (
                ((5, 4), (5, 3), (5, 4)),
                r"queries \(5, 4\) and keys \(5, 3\) .* 4 and 4",
            ),
            (((5, 4), (6, 4), (5, 4)), "one value: got 6 keys and 5 values"),
            (((4,), (5, 4), (5, 4)), r"queries must be .* got \(4,\).*\[None\]"),
            (((4, 1), (5,), (5,)), r"keys must be .* got \(5,\).*\[None\]"),
        ],
    )
    @pytest.mark.parametrize(
        "attend",
        [scaled_dot_product_attention, partial(nadaraya_watson, kernel=gaussian(1))],
    )
    def test_the_message_names_what_was_given_and_what_was_expected(
        self, attend, shapes, message
    ):
        with pytest.raises(ValueError, match=message) as error:
            attend(*(torch.randn(shape) for shape in shapes))
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("num_heads", [4, 0, -1])
    def test_heads_that_do_not_divide_d_model_are_refused(self, num_heads):
        message = f"num_heads must divide d_model: {num_heads} does not divide 10"
        with pytest.raises(ValueError, match=message):
            MultiHeadAttention(10, num_heads)

    def test_a_module_names_the_size_that_it_was_built_for(self):
        x = torch.randn(1, 3, 6)
        with pytest.raises(ValueError, match=r"must end in the sizes 8 and 8"):
            MultiHeadAttention(8, 2)(x, x, x)
        with pytest.raises(ValueError, match=r"must end in the sizes 6 and 3"):
            AdditiveAttention(6, 3, 5)(x, x, x)

    @pytest.mark.parametrize(
        "attend",
        [
            scaled_dot_product_attention,
            MultiHeadAttention(8, 2),
            AdditiveAttention(8, 8, 4),
        ],
    )
    def test_two_batches_that_do_not_fit_are_refused_in_one_line(self, attend):
        Q, K = torch.randn(2, 5, 8), torch.randn(3, 5, 8)
        with pytest.raises(
            ValueError, match=r"those of queries \(2,\), of keys \(3,\)"
        ):
            attend(Q, K, K)

    def test_multi_head_attention_asks_for_a_batch(self):
        x = torch.randn(5, 8)
        with pytest.raises(ValueError, match=r"queries must be \(batch, queries, d\)"):
            MultiHeadAttention(8, 2)(x, x, x)


class TestAdditiveAttention:
    def test_it_equals_a_network_over_the_concatenated_query_and_key(self):
        layer = AdditiveAttention(3, 2, 7)
        names = {name for name, _ in layer.named_parameters()}
        assert names == {"W_Q.weight", "W_K.weight", "w_v.weight"}  # and no bias
        queries, keys, values = torch.randn(4, 3), torch.randn(5, 2), torch.randn(5, 6)
        both = torch.cat([layer.W_Q.weight, layer.W_K.weight], dim=1)
        for i, query in enumerate(queries):
            hidden = [torch.tanh(both @ torch.cat([query, key])) for key in keys]
            scores = torch.stack([layer.w_v.weight[0] @ h for h in hidden])
            expected = scores.softmax(0) @ values
            torch.testing.assert_close(layer(queries, keys, values)[i], expected)


def twins(d_model, num_heads, *, bias=True):
    """Build our multi-head attention and torch's with the same weights."""
    ours = MultiHeadAttention(d_model, num_heads, bias=bias)
    theirs = nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True)
    projections = [ours.W_Q, ours.W_K, ours.W_V]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([W.weight for W in projections]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([W.bias for W in projections]))
            theirs.out_proj.bias.copy_(ours.W_O.bias)
    return ours.eval(), theirs.eval()


class TestMultiHeadAttention:
    @pytest.mark.parametrize("bias", [True, False])
    @causal_or_not
    def test_it_equals_torchs_own_with_the_same_weights_maps_included(
        self, bias, causal
    ):
        ours, theirs = twins(16, 4, bias=bias)
        inputs = torch.randn(3, 3, 6, 16)  # queries, keys and values
        hidden = ~causal_mask(6) if causal else None
        expected, weights = theirs(
            *inputs, attn_mask=hidden, average_attn_weights=False
        )
        torch.testing.assert_close(ours(*inputs, causal=causal), expected)
        with record_attention(ours) as maps:
            torch.testing.assert_close(ours(*inputs, causal=causal), expected)
        torch.testing.assert_close(maps[""], weights)

    def test_changing_the_future_leaves_the_past(self):
        layer, x = MultiHeadAttention(8, 2), torch.randn(1, 6, 8)
        changed = x.clone()
        changed[:, 4:] += 1
        before, after = (layer(y, y, y, causal=True) for y in (x, changed))
        torch.testing.assert_close(before[:, :4], after[:, :4])
        assert not torch.allclose(before[:, 4:], after[:, 4:])

    def test_permuting_the_tokens_permutes_the_outputs(self):
        layer, x = MultiHeadAttention(8, 2), torch.randn(1, 6, 8)
        order = torch.randperm(6)
        shuffled = x[:, order]
        torch.testing.assert_close(
            layer(shuffled, shuffled, shuffled), layer(x, x, x)[:, order]
        )

    def test_dropout_acts_in_training_only(self):
        layer, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(1, 64, 8)
        assert not torch.allclose(layer(x, x, x), layer(x, x, x))
        layer.eval()
        assert layer(x, x, x).equal(layer(x, x, x))

    @half_precision
    def test_half_precision_gives_finite_outputs(self, dtype):
        layer, x = MultiHeadAttention(64, 1).to(dtype), torch.randn(1, 5, 64) * 200
        outputs = layer(*[x.to(dtype)] * 3, padding_mask([3], 5))
        assert outputs.dtype == dtype and outputs.isfinite().all()


@pytest.mark.parametrize(
    "attend", [MultiHeadAttention(8, 2), AdditiveAttention(8, 8, 4)]
)
def test_no_attention_changes_its_inputs(attend):
    inputs = [*torch.randn(3, 3, 5, 8), padding_mask([5, 3, 0], 5)]
    before = [tensor.clone() for tensor in inputs]
    attend(*inputs)
    for tensor, kept in zip(inputs, before, strict=True):
        assert tensor.equal(kept)


class TestKVCache:
    def test_it_holds_for_each_layer_what_was_appended_in_order(self):
        cache, (K, V) = KVCache(), torch.randn(2, 3, 2, 5, 4)
        assert cache.length == 0
        for size in (2, 1, 2):
            new = slice(cache.length, cache.length + size)
            found = cache.append("one", K[:, :, new], V[:, :, new])
            held = K[:, :, : new.stop], V[:, :, : new.stop]
            assert all(map(torch.equal, found, held))
            assert cache.length == new.stop
        assert all(map(torch.equal, cache.append("other", V, K), (V, K)))
        assert cache["one"][0].equal(K)

    @pytest.mark.parametrize("sizes", [[1] * 6, [2, 3, 1], [6]])
    @pytest.mark.parametrize("mask", [None, padding_mask([6, 4], 6)])
    def test_pieces_of_a_text_give_what_the_whole_gives(self, sizes, mask):
        layer, x, cache = MultiHeadAttention(8, 2), torch.randn(2, 6, 8), KVCache()
        whole, pieces = layer(x, x, x, mask, causal=True), []
        for piece in x.split(sizes, dim=1):
            end = cache.length + piece.shape[1]
            own = mask if mask is None else mask[..., :end]
            options = {"causal": True, "kv_cache": cache}
            pieces.append(layer(piece, piece, piece, own, **options))
        torch.testing.assert_close(torch.cat(pieces, dim=1), whole)

    def test_without_keys_a_query_attends_to_those_in_the_cache(self):
        layer, cache = MultiHeadAttention(8, 2), KVCache()
        queries, keys = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
        expected = layer(queries, keys, keys, kv_cache=cache)
        assert layer(queries, None, None, kv_cache=cache).equal(expected)
        assert cache.length == 5
