import math
from contextlib import nullcontext
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import (
    AdditiveAttention,
    MultiHeadAttention,
    fused_attention,
    masked_softmax,
    nadaraya_watson,
    scaled_dot_product_attention,
)
from tutorial_lib.kernels import boxcar, gaussian
from tutorial_lib.masks import causal_mask, padding_mask, window_mask
from tutorial_lib.recording import record_attention

NOTHING = torch.zeros(5, 5, dtype=torch.bool)
SOME_EMPTY_ROWS = causal_mask(5) & (torch.arange(5) > 1)
MASKS = {
    "none": None,
    "query-key": window_mask(5, 1),
    "length": padding_mask([5, 3, 0], 5),
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": NOTHING,
    "some-empty-rows": SOME_EMPTY_ROWS,
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def three(*shape, **options):
    return [torch.randn(shape, **options) for _ in range(3)]


class TestMaskedSoftmax:
    def test_two_scores_give_the_weights_worked_by_hand(self):
        weights = masked_softmax(torch.tensor([[0.0, 1.0]]))
        by_hand = [[1 / (1 + math.e), math.e / (1 + math.e)]]
        torch.testing.assert_close(weights, torch.tensor(by_hand))

    def test_a_masked_key_counts_as_if_it_were_not_there(self):
        scores = torch.randn(2, 3, 4)
        mask = torch.tensor([True, False, True, True])
        weights = masked_softmax(scores, mask)
        assert weights[..., 1].eq(0).all()
        without = scores[..., [0, 2, 3]].softmax(-1)
        torch.testing.assert_close(weights[..., [0, 2, 3]], without)

    def test_a_query_that_may_look_at_nothing_gets_zeros_and_finite_gradients(self):
        scores = torch.randn(5, 5, requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
            weights = masked_softmax(scores, SOME_EMPTY_ROWS)
            (weights * torch.randn(5, 5)).sum().backward()
        assert weights[:2].eq(0).all()
        assert scores.grad.isfinite().all()
        assert scores.grad[:2].eq(0).all()

    def test_the_scores_are_left_as_they_were(self):
        scores = torch.randn(5, 5)
        before = scores.clone()
        masked_softmax(scores, SOME_EMPTY_ROWS)
        assert scores.equal(before)

    def test_a_mask_of_zeros_and_minus_infinity_is_refused_with_advice(self):
        with pytest.raises(ValueError, match=r"boolean.*got torch.float32.*mask == 0"):
            masked_softmax(torch.randn(2, 2), torch.zeros(2, 2))

    @pytest.mark.parametrize("shape", [(3, 3), (4, 2, 2)])
    def test_a_mask_that_does_not_broadcast_is_refused_by_its_shape(self, shape):
        mask = torch.ones(shape).bool()
        with pytest.raises(ValueError, match=r"mask \(.*\) does not broadcast.*\(2, 2"):
            masked_softmax(torch.randn(2, 2), mask)


class TestNadarayaWatson:
    def test_the_estimate_is_the_mean_of_the_values_within_reach(self):
        queries, keys = torch.tensor([0.0, 10.0]), torch.tensor([-1.0, 0.5, 9.5])
        outputs, weights = nadaraya_watson(
            queries, keys, torch.tensor([2.0, 4.0, 7.0]), boxcar(1)
        )
        assert outputs.tolist() == [3, 7]
        assert weights.tolist() == [[0.5, 0.5, 0], [0, 0, 1]]

    def test_a_query_far_from_every_key_gets_zeros_and_no_nan(self):
        outputs, weights = nadaraya_watson(
            torch.tensor([99.0]), torch.arange(3.0), torch.ones(3), boxcar(1)
        )
        assert outputs.eq(0).all()
        assert weights.eq(0).all()

    def test_gaussian_weights_are_the_softmax_of_negative_squared_distances(self):
        queries, keys, values = torch.randn(4, 3), torch.randn(6, 3), torch.randn(6, 2)
        _, weights = nadaraya_watson(queries, keys, values, gaussian(0.8))
        squared = (queries[:, None] - keys).square().sum(-1)
        expected = (-squared / (2 * 0.8**2)).softmax(-1)
        torch.testing.assert_close(weights, expected)

    def test_several_values_per_key_are_averaged_together(self):
        points, values = torch.randn(6, 3), torch.randn(6, 2)
        outputs, weights = nadaraya_watson(points, points, values, gaussian(1.0))
        torch.testing.assert_close(outputs, weights @ values)
        assert outputs.shape == (6, 2)


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
        Q, K, V = three(3, 2, 5, 4)
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]
        outputs, weights = scaled_dot_product_attention(Q, K, V, mask, causal=causal)
        seen = (
            torch.ones(3, 2, 5, 5).bool() if mask is None else mask.expand(3, 2, 5, 5)
        )
        for b, head, i in torch.cartesian_prod(*map(torch.arange, (3, 2, 5))).tolist():
            looked_at = [j for j in range(5) if seen[b, head, i, j]]
            looked_at = [j for j in looked_at if j <= i or not causal]
            scores = [math.exp(Q[b, head, i] @ K[b, head, j] / 2) for j in looked_at]
            by_hand = torch.zeros(5)
            for j, score in zip(looked_at, scores, strict=True):
                by_hand[j] = score / sum(scores)
            torch.testing.assert_close(weights[b, head, i], by_hand)
            torch.testing.assert_close(outputs[b, head, i], by_hand @ V[b, head])

    def test_shuffling_keys_with_their_values_changes_nothing(self):
        Q, K, V = three(5, 4)
        order = torch.randperm(5)
        shuffled, _ = scaled_dot_product_attention(Q, K[order], V[order])
        torch.testing.assert_close(shuffled, scaled_dot_product_attention(Q, K, V)[0])

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_does_not_overflow(self, dtype):
        Q, K, V = three(5, 64, dtype=dtype)
        outputs, weights = scaled_dot_product_attention(Q * 200, K * 200, V)
        assert (Q * 200 @ (K * 200).T).isinf().any() or dtype == torch.bfloat16
        assert outputs.isfinite().all()
        assert outputs.dtype == weights.dtype == dtype
        torch.testing.assert_close(
            weights.float().sum(-1), torch.ones(5), atol=0.01, rtol=0
        )

    def test_double_precision_stays_double(self):
        Q, K, V = three(5, 4, dtype=torch.float64)
        assert scaled_dot_product_attention(Q, K, V)[0].dtype == torch.float64


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

    @pytest.mark.parametrize("heads", [4, 0, -1])
    def test_heads_that_do_not_divide_d_model_are_refused(self, heads):
        with pytest.raises(ValueError, match=f"divide d_model: {heads} does .* 10"):
            MultiHeadAttention(10, heads)

    def test_a_module_names_the_size_that_it_was_built_for(self):
        x = torch.randn(1, 3, 6)
        with pytest.raises(ValueError, match=r"must end in the sizes 8 and 8"):
            MultiHeadAttention(8, 2)(x, x, x)
        with pytest.raises(ValueError, match=r"must end in the sizes 6 and 3"):
            AdditiveAttention(6, 3, 5)(x, x, x)


class TestFusedAttention:
    @every_mask
    @causal_or_not
    def test_it_equals_the_explicit_attention(self, mask, causal):
        Q, K, V = three(3, 2, 5, 4, requires_grad=True)
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]
        explicit, _ = scaled_dot_product_attention(Q, K, V, mask, causal=causal)
        fused = fused_attention(Q, K, V, mask, causal=causal)
        torch.testing.assert_close(fused, explicit, atol=1e-6, rtol=0)
        direction = torch.randn(fused.shape)
        one = torch.autograd.grad((fused * direction).sum(), [Q, K, V])
        other = torch.autograd.grad((explicit * direction).sum(), [Q, K, V])
        for gradient, expected in zip(one, other, strict=True):
            torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-4)


class TestAdditiveAttention:
    def test_it_equals_a_network_over_the_concatenated_query_and_key(self):
        layer = AdditiveAttention(3, 2, 7)
        queries, keys, values = torch.randn(4, 3), torch.randn(5, 2), torch.randn(5, 6)
        both = torch.cat([layer.W_Q.weight, layer.W_K.weight], dim=1)
        for i, query in enumerate(queries):
            hidden = [torch.tanh(both @ torch.cat([query, key])) for key in keys]
            scores = torch.stack([layer.v.weight[0] @ h for h in hidden])
            expected = scores.softmax(0) @ values
            torch.testing.assert_close(layer(queries, keys, values)[i], expected)

    def test_it_learns_what_the_formula_names_and_no_bias(self):
        names = {name for name, _ in AdditiveAttention(3, 2, 7).named_parameters()}
        assert names == {"W_Q.weight", "W_K.weight", "v.weight"}

    def test_a_padded_batch_gives_what_each_sequence_gives_alone(self):
        layer = AdditiveAttention(4, 4, 7)
        Q, K, V = three(2, 5, 4)
        padded = layer(Q, K, V, padding_mask([3, 5], 5))
        alone = layer(Q[:1], K[:1, :3], V[:1, :3])
        torch.testing.assert_close(padded[:1], alone)


def twins(d_model, heads, *, bias=True):
    """Build our multi-head attention and torch's with the same weights."""
    ours = MultiHeadAttention(d_model, heads, bias=bias)
    theirs = nn.MultiheadAttention(d_model, heads, bias=bias, batch_first=True)
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
        x = torch.randn(3, 6, 16)
        hidden = ~causal_mask(6) if causal else None
        expected, weights = theirs(
            x, x, x, attn_mask=hidden, average_attn_weights=False
        )
        torch.testing.assert_close(ours(x, x, x, causal=causal), expected)
        with record_attention(ours) as maps:
            torch.testing.assert_close(ours(x, x, x, causal=causal), expected)
        torch.testing.assert_close(maps[""], weights)

    @pytest.mark.parametrize("watched", [False, True])
    def test_gradients_are_finite_when_a_query_may_look_at_nothing(self, watched):
        layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8, requires_grad=True)
        with record_attention(layer) if watched else nullcontext():
            layer(x, x, x, SOME_EMPTY_ROWS).sum().backward()
        for tensor in (x, *layer.parameters()):
            assert tensor.grad.isfinite().all()

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

    def test_dropout_acts_in_training_only_watched_or_not(self):
        layer, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(1, 64, 8)
        assert not torch.allclose(layer(x, x, x), layer(x, x, x))
        with record_attention(layer) as maps:
            assert not torch.allclose(layer(x, x, x), layer(x, x, x))
            torch.testing.assert_close(maps[""].sum(-1), torch.ones(1, 2, 64))
        layer.eval()
        assert layer(x, x, x).equal(layer(x, x, x))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("watched", [False, True])
    def test_half_precision_gives_finite_outputs(self, dtype, watched):
        layer, x = MultiHeadAttention(64, 1).to(dtype), torch.randn(1, 5, 64) * 200
        with record_attention(layer) if watched else nullcontext():
            outputs = layer(*[x.to(dtype)] * 3, padding_mask([3], 5))
        assert outputs.dtype == dtype
        assert outputs.isfinite().all()


@pytest.mark.parametrize("watched", [False, True])
def test_no_layer_changes_its_inputs(watched):
    for layer in (MultiHeadAttention(8, 2), AdditiveAttention(8, 8, 4)):
        inputs = [*three(3, 5, 8), padding_mask([5, 3, 0], 5)]
        before = [tensor.clone() for tensor in inputs]
        with record_attention(layer) if watched else nullcontext():
            layer(*inputs).sum().backward()
        for tensor, kept in zip(inputs, before, strict=True):
            assert tensor.equal(kept)


def test_torch_agrees_that_a_query_that_may_look_at_nothing_reads_zero():
    Q, K, V = three(1, 1, 5, 4)
    theirs = F.scaled_dot_product_attention(Q, K, V, attn_mask=NOTHING)
    assert theirs.equal(torch.zeros_like(theirs))
