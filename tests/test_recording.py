import copy
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from tutorial_lib.attention import AdditiveAttention, MultiHeadAttention, masked_softmax
from tutorial_lib.recording import record_attention

CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()
SOME_EMPTY_ROWS = CAUSAL & (torch.arange(5) > 1)
PADDING = torch.arange(5) < torch.tensor([[5], [3], [1]])  # (batch, key)
MASKS = {
    "none": None,
    "query-key": CAUSAL.mT,
    "padding": PADDING[:, None, None],
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": torch.zeros(5, 5, dtype=torch.bool),
    "some-empty-rows": SOME_EMPTY_ROWS,
}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def recorded(model, *inputs, **options):
    """Run the model with and without a recorder, for outputs equal to the bit."""
    torch.manual_seed(1)
    expected = model(*inputs, **options)
    torch.manual_seed(1)
    with record_attention(model) as maps:
        outputs = model(*inputs, **options)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=0, equal_nan=True)
    return maps


def assert_close(weights, expected):
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


def attention_weights(Q, K, mask=None):
    return masked_softmax(Q @ K.mT / Q.shape[-1] ** 0.5, mask)


def refuse(model, *inputs, because):
    """Expect a ValueError of one line, and no map."""
    with (
        pytest.raises(ValueError, match=because) as error,
        record_attention(model) as maps,
    ):
        model(*inputs)
    assert maps == {}
    assert "\n" not in str(error.value)


class Model(nn.Module):
    """Somebody's model: whatever function it is given."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs, **options):
        return self.function(*inputs, **options)


def own_softmax(use):
    """Somebody's softmax, and what is done with it: ``use(weights, values)``."""
    return Model(lambda Q, K, V: use((Q @ K.mT / 8**0.5).softmax(dim=-1), V))


class TwoLayers(nn.Module):
    """Two of the book's layers: torch's fused function, and a softmax of its own."""

    def __init__(self):
        super().__init__()
        self.first = MultiHeadAttention(8, 2)
        self.second = AdditiveAttention(8, 8, 4)

    def forward(self, x, mask=None):
        x = self.first(x, x, x, causal=True)
        return self.second(x, x, x, mask)


class Decoder(nn.Module):
    """Decodes all at once by ``forward``, or token by token by ``step``."""

    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(8, 2)

    def forward(self, x):
        return torch.cat([self.step(x, t) for t in range(x.shape[1])], dim=1)

    def step(self, x, t):
        return self.attention(x[:, [t]], x[:, : t + 1], x[:, : t + 1])


@pytest.mark.parametrize("mask", [None, SOME_EMPTY_ROWS, PADDING[:, None]])
def test_the_books_own_layers_have_maps_under_their_names_with_a_head_axis(mask):
    model, x = TwoLayers(), torch.randn(3, 5, 8)
    maps = recorded(model, x, mask)
    assert list(maps) == ["first", "second"]
    torch.testing.assert_close(maps["first"].sum(-1), torch.ones(3, 2, 5))
    assert maps["first"].masked_select(~CAUSAL).eq(0).all()
    x, layer = model.first(x, x, x, causal=True), model.second
    scores = layer.w_v(torch.tanh(layer.W_Q(x)[:, :, None] + layer.W_K(x)[:, None]))
    assert_close(maps["second"][:, 0], masked_softmax(scores[..., 0], mask))
    assert not any(weights.requires_grad for weights in maps.values())


class TestTorchsFusedFunction:
    FUSED = Model(F.scaled_dot_product_attention)

    @pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
    @pytest.mark.parametrize("bias", [None, torch.arange(25.0).view(5, 5) % 3])
    def test_masks_and_numbers_added_to_the_scores(self, mask, bias):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        added = mask
        if bias is not None:
            added = bias if mask is None else bias.where(mask, -torch.inf)
        maps = recorded(self.FUSED, Q, K, V, attn_mask=added, scale=0.3)
        scores = Q @ K.mT * 0.3 + (0 if bias is None else bias)
        assert_close(maps[""], masked_softmax(scores, mask))

    def test_causal_lets_query_i_attend_to_keys_0_to_i_and_heads_may_share_keys(self):
        Q, (K, V) = torch.randn(3, 6, 4, 8), torch.randn(2, 3, 2, 5, 8)
        maps = recorded(self.FUSED, Q, K, V, is_causal=True, enable_gqa=True)
        keys = K[:, [0, 0, 0, 1, 1, 1]]
        assert_close(maps[""], attention_weights(Q, keys, CAUSAL[:4]))

    @pytest.mark.parametrize("axes", [(), (3,), (3, 2), (2, 3, 2)])
    def test_there_are_always_a_batch_and_a_head_axis(self, axes):
        Q, K, V = torch.randn(3, *axes, 5, 8)
        batch_and_head = {0: (1, 1), 1: (3, 1), 2: (3, 2), 3: (6, 2)}[len(axes)]
        expected = attention_weights(Q, K).reshape(*batch_and_head, 5, 5)
        assert_close(recorded(self.FUSED, Q, K, V)[""], expected)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_every_precision_keeps_its_type_and_does_not_overflow(self, dtype):
        Q, K, V = (torch.randn(3, 2, 5, 64) * 200).to(dtype)[:, None]
        weights = recorded(self.FUSED, Q, K, V)[""]
        assert weights.dtype == dtype
        expected = attention_weights(Q.double(), K.double())
        torch.testing.assert_close(weights.double(), expected, atol=0.02, rtol=0)

    def test_autocast_does_not_round_the_scores(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        with record_attention(self.FUSED) as maps, torch.autocast("cpu"):
            self.FUSED(Q, K, V)
        assert_close(maps[""], attention_weights(Q, K))


class TestTorchsOwnModules:
    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("need_weights", [True, False])
    @pytest.mark.parametrize("training", [True, False])
    def test_multihead_attention(self, batch_first, need_weights, training):
        layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, dropout=0.9)
        Q, (K, V) = torch.randn(3, 4, 8), torch.randn(2, 3, 5, 8)
        options = {"key_padding_mask": ~PADDING, "attn_mask": ~SOME_EMPTY_ROWS[:4]}
        if not batch_first:
            Q, K, V = (x.transpose(0, 1) for x in (Q, K, V))
        layer.train(training)
        maps = recorded(layer, Q, K, V, need_weights=need_weights, **options)
        expected = layer.eval()(Q, K, V, average_attn_weights=False, **options)[1]
        assert_close(maps[""], expected.nan_to_num())  # nothing to attend to: weights 0

    @pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"kdim": 3, "vdim": 4}])
    def test_without_a_batch_and_with_the_rarer_options(self, options):
        layer, Q = nn.MultiheadAttention(8, 2, **options), torch.randn(4, 8)
        K, V = torch.randn(5, layer.kdim), torch.randn(5, layer.vdim)
        expected = layer(Q, K, V, average_attn_weights=False)[1]  # (head, query, key)
        assert_close(recorded(layer, Q, K, V, need_weights=False)[""], expected[None])

    def test_attention_in_evaluation_leaves_its_fast_path_and_moves_a_seventh_digit(
        self,
    ):
        layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
        x = torch.randn(3, 5, 8)
        options = {"key_padding_mask": ~PADDING, "need_weights": False}
        with torch.no_grad():
            expected = layer(x, x, x, **options)[0]
            with record_attention(layer) as maps:
                assert_close(layer(x, x, x, **options)[0], expected)
        assert maps[""].masked_select(~PADDING[:, None, None]).eq(0).all()

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    @pytest.mark.parametrize("norm_first", [True, False])
    def test_an_encoder_in_evaluation_leaves_its_fast_path(self, norm_first):
        options = {"batch_first": True, "norm_first": norm_first}
        layer = nn.TransformerEncoderLayer(8, 2, 16, **options)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)
        x, first = torch.randn(3, 5, 8), model.eval().layers[0]
        with torch.inference_mode():
            expected = model(x, src_key_padding_mask=~PADDING)
            with record_attention(model) as maps:
                outputs = model(x, src_key_padding_mask=~PADDING)
            y = first.norm1(x) if norm_first else x
            options = {"key_padding_mask": ~PADDING, "average_attn_weights": False}
            weights = first.self_attn(y, y, y, **options)[1]
        assert_close(outputs[PADDING], expected[PADDING])
        assert norm_first or expected[~PADDING].eq(0).all()  # it was the fast path
        assert list(maps) == ["layers.0.self_attn", "layers.1.self_attn"]
        assert_close(maps["layers.0.self_attn"], weights)


def bmm_of_copies(w, V):
    return F.dropout(w.view(6, 5, 5), 0.9).contiguous().bmm(V.reshape(6, 5, 8))


def there_and_back(w, V):
    w = w.double().float().type_as(V).to(V.dtype).clone()
    w = w.transpose(2, 3).contiguous().swapaxes(2, 3).permute(0, 1, 3, 2).movedim(3, 2)
    w = w.flatten(0, 1).unflatten(0, (3, 2)).unsqueeze(0).squeeze(0)
    return w.reshape(w.shape) @ V


def heads_last(w, V):
    w = F.dropout(w.permute(0, 2, 3, 1), 0.9)
    return torch.einsum("bqkh,bhkd->bqhd", w, V)


USES = {
    "@": lambda w, V: w @ V,
    "matmul": torch.matmul,
    "the values first": lambda w, V: V.mT @ w.mT,
    "dropout": lambda w, V: F.dropout(w, 0.9) @ V,
    "dropout, the values first": lambda w, V: V.mT @ F.dropout(w, 0.9).mT,
    "bmm of copies": bmm_of_copies,
    "types and shapes there and back": there_and_back,
    "einsum": lambda w, V: torch.einsum("bhqk, bhkd -> bqhd", w, V),
    "einsum with dots": lambda w, V: torch.einsum("...qk,...kd->...qd", w, V),
    "einsum, the values first": lambda w, V: torch.einsum("bhkd,bhqk->bhqd", V, w),
    "einsum, heads last": heads_last,
}
NO_ATTENTION = [
    lambda w, V: w,
    lambda w, V: w.argmax(dim=-1),
    lambda w, V: w.log() @ V,
    lambda w, V: (w > 0.2).float() @ V,
    lambda w, V: torch.einsum("bhqk,bhqd->bhqkd", w, V),
    lambda w, V: torch.einsum("bhqk,bhqk->bh", w, w),
    lambda w, V: V.mT @ V.softmax(dim=-2) + V.mT @ V.log_softmax(dim=-1),
]


class TestSomebodysOwnSoftmax:
    @pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
    def test_it_is_followed_to_the_values(self, use):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(own_softmax(use), Q, K, V)[""]
        assert_close(weights.reshape(3, 2, 5, 5), attention_weights(Q, K))

    @pytest.mark.parametrize("softmax", [F.softmax, torch.special.softmax])
    @pytest.mark.parametrize("options", [{"dim": -1}, {"dim": 3, "dtype": torch.float}])
    def test_every_way_to_write_it_is_known(self, softmax, options):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(Model(lambda: softmax(Q @ K.mT / 8**0.5, **options) @ V))[""]
        assert_close(weights, attention_weights(Q, K))

    def test_what_is_masked_after_the_softmax_counts_and_dropout_does_not(self):
        mask = torch.rand(5, 5) > 0.3

        def use(weights, V):
            weights = weights * mask
            weights = weights / weights.sum(dim=-1, keepdim=True)
            weights = torch.where(mask, weights.masked_fill(~mask, 0), 0)
            return F.dropout(weights, 0.9) @ V

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(own_softmax(use), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K, mask))

    def test_steps_in_place_count_once_and_after_the_product_not_at_all(self):
        def use(weights, V):
            weights = weights.double() * 0.5
            weights = weights.mul_(0.5).masked_fill_(~CAUSAL, 0).to(V.dtype)
            outputs = weights @ V
            weights.zero_()
            return outputs

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(own_softmax(use), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K).tril() / 4)

    def test_weights_of_two_axes_become_one_query(self):
        def bahdanau(query, memory):
            weights = F.softmax((memory @ query[..., None]).squeeze(-1), dim=1)
            return F.dropout(weights, 0.5).unsqueeze(1).bmm(memory)  # (batch, 1, d)

        query, memory = torch.randn(3, 8), torch.randn(3, 5, 8)
        weights = recorded(Model(bahdanau), query, memory)[""]
        expected = (memory @ query[..., None]).squeeze(-1).softmax(dim=-1)
        assert_close(weights, expected[:, None, None])

    @pytest.mark.parametrize("use", NO_ATTENTION)
    def test_a_softmax_that_weighs_no_values_is_no_attention(self, use):
        message = "Model ran, but no attention could be recorded: it has neither"
        refuse(own_softmax(use), *torch.randn(3, 3, 2, 5, 8), because=message)

    def test_a_classifiers_last_softmax_is_not_among_the_maps(self):
        model = nn.Sequential(TwoLayers(), nn.Linear(8, 5), nn.Softmax(dim=-1))
        assert list(recorded(model, torch.randn(3, 5, 8))) == ["0.first", "0.second"]


def by_heads(w, V):
    (first, second), V = w.chunk(2, dim=1), V.chunk(2, dim=1)
    return torch.cat((first @ V[0], second @ V[1]), dim=1)


def by_queries(w, V):
    return torch.cat((w[:, :, 3:] @ V, w.narrow(2, 0, 3) @ V), dim=2)


def by_keys(w, V):
    first, rest = w.split((2, 3), dim=-1)
    return first @ V[:, :, :2] + rest @ V[:, :, 2:]


def by_sentences(w, V):
    return torch.stack([torch.bmm(*pair) for pair in zip(w, V, strict=True)])


def one_by_one(w, V):
    return torch.stack([w[0, 0, i].matmul(V[0, 0]) for i in range(5)])


def added(w, V):
    zeros, (w, V) = torch.zeros(6, 5, 8), (x.flatten(0, 1) for x in (w, V))
    return torch.baddbmm(zeros, w, V)


def twice(w, V):
    return w @ V + w.mul(1) @ V


PIECES = [by_heads, by_queries, by_keys, by_sentences, added, twice]
NOT_FOLLOWED = {
    "cat": lambda w, V: torch.cat((w, w), -1) @ torch.cat((V, V), -2),
    "pad": lambda w, V: F.pad(w, (0, 1)) @ F.pad(V, (0, 0, 0, 1)),
    "add": lambda w, V: (w + 0.1).tril() @ V,
    "mean": lambda w, V: w.mean(dim=1) @ V[:, 0],
    "linear": lambda w, V: F.linear(w, V[0, 0].mT),
    "tensordot": lambda w, V: torch.tensordot(w, V[0, 0], 1),
    r"\*": lambda w, V: (w[..., None] * V[:, :, None]).sum(dim=-2),
    "einsum": lambda w, V: torch.einsum("bhqk,hg->bgqk", w, torch.ones(2, 2)) @ V,
    "matmul": lambda w, V: (w.mT @ V) @ V.mT,
    "some queries only": lambda w, V: w[:, :, 1:] @ V,
}


class TestAttentionInPieces:
    @pytest.mark.parametrize("use", PIECES)
    def test_pieces_make_one_map_with_the_axes_of_the_softmax(self, use):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(own_softmax(use), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K))

    def test_a_query_at_a_time(self):
        Q, K, V = torch.randn(3, 1, 1, 5, 8)
        weights = recorded(own_softmax(one_by_one), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K))

    def test_batch_and_head_are_told_apart_though_bmm_has_them_merged(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)

        def heads_first(w, V):
            w, V = (x.transpose(0, 1).reshape(6, 5, -1) for x in (w, V))
            return F.dropout(w, 0.9).bmm(V)

        for use in (bmm_of_copies, heads_first):
            weights = recorded(own_softmax(use), Q, K, V)[""]
            assert_close(weights, attention_weights(Q, K))

    def test_a_sink_that_has_no_value_has_no_column(self):
        class Sink(nn.Module):
            def forward(self, x):
                scores = F.pad(x @ x.mT, (0, 1))
                return scores.softmax(dim=-1)[..., :-1] @ x

        x = torch.randn(3, 5, 8)
        weights = recorded(nn.Sequential(TwoLayers(), Sink()), x)["1"]
        assert weights.shape == (3, 1, 5, 5)
        assert weights.sum(-1).lt(1).all()

    def test_pieces_of_two_softmaxes_in_turns_are_no_map_and_that_is_said(self):
        def in_turns(x):
            one, two = (x @ x.mT).softmax(dim=-1), (x @ x.mT / 2).softmax(dim=-1)
            first = one[..., :2] @ x[:, :2] + two[..., :2] @ x[:, :2]
            return first + one[..., 2:] @ x[:, 2:] + two[..., 2:] @ x[:, 2:]

        why = r"it is not followed in '' \(pieces of two softmaxes in turns\)$"
        refuse(Model(in_turns), torch.randn(3, 5, 8), because=why)

    def test_two_softmaxes_of_which_one_is_cut_are_joined(self):
        def in_blocks(x):
            first = (x[:, :2] @ x.mT).softmax(dim=-1) @ x
            twice = x[:, 2:] @ torch.cat((x, x), 1).mT
            return torch.cat((first, twice.softmax(dim=-1)[..., :5] @ x), 1)

        x = torch.randn(3, 5, 8)
        weights = (x @ x.mT).softmax(dim=-1)[:, None]
        weights[:, :, 2:] /= 2
        assert_close(recorded(Model(in_blocks), x)[""], weights)

    def test_weights_that_two_layers_use_are_the_map_of_both(self):
        class Uses(nn.Module):
            def forward(self, w, V):
                return w @ V

        model = Model(lambda x: model.b(w := x.softmax(-1), model.a(w, x)))
        model.a, model.b = Uses(), Uses()
        x = torch.randn(3, 5, 5)
        maps = recorded(model, x)
        assert list(maps) == ["a", "b"]
        assert all(weights[:, 0].equal(x.softmax(-1)) for weights in maps.values())

    @pytest.mark.parametrize(("why", "use"), NOT_FOLLOWED.items())
    def test_what_is_not_followed_is_named(self, why, use):
        model, inputs = own_softmax(use), torch.randn(3, 3, 2, 5, 8)
        refuse(model, *inputs, because=rf"it is not followed in '' \({why}\)$")

    def test_a_warning_names_the_layers_that_have_no_map(self):
        model = Model(lambda x: model.own(*[model.layer(x)[:, None]] * 3))
        model.layer, model.own = TwoLayers(), own_softmax(NOT_FOLLOWED["cat"])
        with (
            pytest.warns(UserWarning, match=r"followed in 'own' \(cat\)") as warned,
            record_attention(model) as maps,
        ):
            model(torch.randn(3, 5, 8))
        assert warned[0].filename == __file__
        assert list(maps) == ["layer.first", "layer.second"]

    def test_one_row_of_a_softmax_is_no_map(self):
        scores = torch.randn(5)
        model = Model(
            lambda x: (x @ x.mT).softmax(-1) @ x + (scores.softmax(-1) @ x)[:, None]
        )
        x = torch.randn(3, 5, 8)
        assert_close(recorded(model, x)[""], (x @ x.mT).softmax(-1)[:, None])

    def test_only_the_last_call_counts(self):
        model = own_softmax(lambda w, V: (w[:, :, :2] if len(V) == 2 else w) @ V)
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        with record_attention(model) as maps:
            model(Q[:2], K[:2], V[:2])
            model(Q, K, V)
        assert_close(maps[""], attention_weights(Q, K))
        outer = Model(lambda: None)
        outer.part = model
        with record_attention(outer) as maps:
            outer.part(Q[:2], K[:2], V[:2])
            outer.part(Q, K, V)
        assert list(maps) == ["part"]

    @pytest.mark.filterwarnings("ignore:flex_attention called without")
    def test_flex_attention_is_named(self):
        from torch.nn.attention.flex_attention import flex_attention

        x = torch.randn(1, 2, 16, 16)
        refuse(
            Model(lambda x: flex_attention(x, x, x)), x, because=r"\(flex_attention\)$"
        )

    @pytest.mark.parametrize(
        "attend", [own_softmax(USES["@"]), TestTorchsFusedFunction.FUSED]
    )
    def test_where_there_are_no_values_there_is_no_map(self, attend):
        x, message = torch.randn(3, 2, 5, 8), "'' has no values to be recorded: run"
        refuse(attend, *[x.to("meta")] * 3, because=message)
        refuse(Model(torch.vmap(attend)), x, x, x, because="no values to be recorded")


class TestWhatIsNotFinite:
    @settings(max_examples=60)
    @given(
        seed=st.integers(0, 2**32),
        bad=st.sampled_from([torch.nan, torch.inf, -torch.inf]),
        place=st.tuples(*(st.integers(0, size - 1) for size in (3, 2, 5, 4))),
        causal=st.booleans(),
    )
    def test_a_map_is_nan_where_the_output_is(self, seed, bad, place, causal):
        random = torch.Generator().manual_seed(seed)
        Q, K, V = torch.randn(3, 3, 2, 5, 4, generator=random)
        K[place] = bad
        mask = {"attn_mask": torch.rand(3, 2, 5, 5, generator=random) > 0.4}
        mask = {"is_causal": True} if causal else mask
        with record_attention(model := Model(F.scaled_dot_product_attention)) as maps:
            output = model(Q, K, V, **mask)
        expected, output = (x.sum(-1) for x in (maps[""] @ V, output))
        assert expected[output.isnan()].isnan().all()
        known = ~expected.isnan()
        torch.testing.assert_close(expected[known], output[known])

    def test_rows_over_nothing_are_0_and_rows_over_nan_stay_nan(self):
        scores = torch.tensor([[-torch.inf, -torch.inf], [0, torch.nan], [0, 0]])
        V, expected = torch.randn(2, 4), torch.tensor([[0.0], [torch.nan], [0.5]])
        model = Model(lambda: F.dropout(torch.softmax(input=scores, dim=-1), 0.0) @ V)
        with record_attention(model) as maps:
            model()
        expected = expected.expand(1, 1, 3, 2)
        torch.testing.assert_close(maps[""], expected, equal_nan=True)

    @pytest.mark.parametrize("need_weights", [True, False])
    @pytest.mark.parametrize(("which", "rows"), [("query", [3]), ("key", range(5))])
    def test_torchs_own_attention_to_nan_stays_nan(self, which, rows, need_weights):
        model = nn.MultiheadAttention(8, 2, batch_first=True)
        inputs = {name: torch.randn(2, 5, 8) for name in ("query", "key", "value")}
        inputs[which][0, 3] = torch.nan
        with record_attention(model) as maps:
            model(**inputs, need_weights=need_weights)
        expected = torch.zeros(2, 2, 5, 5).bool()
        expected[0, :, rows] = True
        assert maps[""].isnan().equal(expected)


class TestCalls:
    def test_each_call_starts_afresh_and_forgets_layers_that_it_does_not_use(self):
        model = Model(lambda x, layer: layer(x))
        model.layers = nn.ModuleList([TwoLayers(), TwoLayers()])
        with record_attention(model) as maps:
            model(torch.randn(2, 7, 8), model.layers[0])
            model(torch.randn(2, 7, 8), model.layers[1])
            model(torch.randn(1, 5, 8), model.layers[1])
        assert list(maps) == ["layers.1.first", "layers.1.second"]
        assert [tuple(w.shape) for w in maps.values()] == [(1, 2, 5, 5), (1, 1, 5, 5)]

    def test_steps_within_one_call_join_into_one_causal_map(self):
        model, x = Decoder(), torch.randn(1, 5, 8)
        with record_attention(model.attention) as maps:
            model.attention(x, x, x, causal=True)
        torch.testing.assert_close(recorded(model, x)["attention"], maps[""])

    def test_steps_called_one_by_one_leave_the_map_of_the_last(self):
        model, x = Decoder(), torch.randn(2, 5, 8)
        whole = recorded(model, x)["attention"]
        with record_attention(model) as maps:
            for batch in (2, 1):  # unequal batches may follow each other
                for t in range(5):
                    model.step(x[:batch], t)
        assert_close(maps["attention"], whole[:1, :, [-1]])

    def test_a_part_called_by_itself_replaces_its_own_maps_alone(self):
        model, x, y = TwoLayers(), torch.randn(1, 5, 8), torch.randn(2, 3, 8)
        with record_attention(model) as maps:
            model(x)
            before = maps["first"]
            model.second(y, y, y)
        assert maps["first"] is before
        assert maps["second"].shape == (2, 1, 3, 3)

    def test_two_uses_of_one_layer_are_joined_under_its_first_name(self):
        layer, (x, y) = MultiHeadAttention(8, 2), torch.randn(2, 3, 5, 8)
        y = y[:, :4]
        model = Model(lambda x, y: (layer(x, x, x), layer(y, y, y)))
        model.one = model.other = layer
        joined = recorded(model, x, y)
        parts = [recorded(layer, z, z, z)[""] for z in (x, y)]
        assert list(joined) == ["one"]
        expected = torch.cat((parts[0], F.pad(parts[1], (0, 1))), dim=-2)
        assert_close(joined["one"], expected)
        message = r"'one' attended twice .* \(3, 2\) and \(1, 2\)"
        with pytest.raises(ValueError, match=message), record_attention(model):
            model(x, y[:1])

    def test_a_block_that_is_computed_anew_for_its_gradients_counts_once(self):
        layers, x = TwoLayers(), torch.randn(3, 5, 8, requires_grad=True)
        model = nn.Sequential(layers)
        model.forward = lambda x: checkpoint(layers, x, use_reentrant=False)
        with record_attention(model) as maps:
            output = model(x)
            before = dict(maps)
            output.sum().backward()
        assert list(maps) == list(before) == ["0.first", "0.second"]
        assert all(maps[name].equal(weights) for name, weights in before.items())


class TestNothingIsLeft:
    def test_an_error_stays_what_it_was_and_after_it_nothing_is_recorded(self):
        model = TwoLayers()
        with pytest.raises(RuntimeError, match="mine"), record_attention(model) as maps:
            model.second.W_Q(torch.randn(1, 5, 8))  # it ran, and nothing attended
            raise RuntimeError("mine")
        model(torch.randn(1, 5, 8))
        assert maps == {}

    def test_no_module_gets_a_hook_or_an_attribute(self):
        model, x = TwoLayers(), torch.randn(3, 5, 8)
        before = [dict(vars(module)) for module in model.modules()]
        with record_attention(model):
            model(x)
            copied = copy.deepcopy(model)
            assert [dict(vars(module)) for module in model.modules()] == before
        with record_attention(model) as maps:
            copied(x)
        assert maps == {}

    def test_gradients_are_those_of_the_model_alone(self):
        model, x = TwoLayers().train(), torch.randn(3, 5, 8, requires_grad=True)
        expected = torch.autograd.grad(model(x).square().sum(), x)
        with record_attention(model):
            found = torch.autograd.grad(model(x).square().sum(), x)
        assert found[0].equal(expected[0])

    def test_one_block_within_another_records_the_same(self):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        x = torch.randn(3, 5, 8)
        with record_attention(model) as outer, record_attention(model) as inner:
            model(x)
        assert list(outer) == list(inner) == ["self_attn"]
        assert outer["self_attn"].shape == (3, 2, 5, 5)
        assert outer["self_attn"].equal(inner["self_attn"])

    def test_threads_record_apart(self):
        model, found, ready = TwoLayers(), {}, threading.Barrier(2)

        def run(size):
            with record_attention(model) as maps:
                ready.wait(60)
                model(torch.randn(size, 5, 8))
                ready.wait(60)
            found[size] = {name: len(weights) for name, weights in maps.items()}

        threads = [threading.Thread(target=run, args=(size,)) for size in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {size: {"first": size, "second": size} for size in (2, 3)}


@pytest.fixture
def backend():
    """Return a compiler that compiles nothing, and counts in ``backend.runs``."""

    def backend(graph, _):
        def run(*inputs):
            backend.runs += 1
            return graph(*inputs)

        return run

    backend.runs = 0
    return backend


class TestCompiledModels:
    @pytest.mark.parametrize("way", ["copy", "in place", "part", "part's forward"])
    def test_they_run_uncompiled_and_have_the_uncompiled_names(self, backend, way):
        model, x = TwoLayers(), torch.randn(3, 5, 8)
        expected, compiled = recorded(model, x), model
        if way == "copy":
            compiled = torch.compile(model, backend=backend)
        elif way == "in place":
            model.compile(backend=backend)
        elif way == "part":
            model.first = torch.compile(model.first, backend=backend)
        else:
            model.first.forward = torch.compile(model.first.forward, backend=backend)
        compiled(x)
        runs = backend.runs
        assert runs
        for recorded_as in (model, compiled):
            with record_attention(recorded_as) as maps:
                compiled(x[:2])
                compiled(x)
            assert list(maps) == list(expected)
            assert all(maps[name].equal(expected[name]) for name in maps)
        assert backend.runs == runs
        compiled(x)
        assert backend.runs == 2 * runs

    def test_the_compiler_may_be_loaded_within_the_block(self, backend, monkeypatch):
        model = TwoLayers()
        torch.compiler.reset()  # loads it, if nobody has
        monkeypatch.delitem(sys.modules, "torch._dynamo")
        with record_attention(model) as maps:
            monkeypatch.undo()
            model.compile(backend=backend)
            model(x := torch.randn(3, 5, 8))
        assert list(maps) == ["first", "second"]
        assert not backend.runs
        model(x)
        assert backend.runs

    def test_a_block_within_a_compiled_function_is_refused(self, backend):
        @torch.compile(backend=backend)
        def compiled(model, x):
            with record_attention(model):
                return model(x)

        with pytest.raises(ValueError, match="within a compiled function"):
            compiled(TwoLayers(), torch.randn(3, 5, 8))

    @pytest.mark.filterwarnings("ignore:.*torch.jit")
    def test_torchscript_is_refused_with_advice(self):
        model = nn.Sequential(torch.jit.script(nn.Linear(8, 8)))
        message = "Sequential is compiled.* from before it was compiled"
        with pytest.raises(ValueError, match=message), record_attention(model):
            pass

    def test_the_last_of_several_recordings_sets_the_compiler_back(self, backend):
        model, x = TwoLayers(), torch.randn(3, 5, 8)
        compiled = torch.compile(model, backend=backend)
        with record_attention(model):
            with record_attention(model):
                pass
            thread = threading.Thread(target=compiled, args=(x,))
            thread.start()
            thread.join()
        assert not backend.runs
        compiled(x)
        assert backend.runs
