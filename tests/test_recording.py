import copy
import threading
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

from tutorial_lib.attention import (
    AdditiveAttention,
    MultiHeadAttention,
    attention_weights,
    masked_softmax,
)
from tutorial_lib.data.text import BOS, EOS, Vocabulary
from tutorial_lib.decoding import beam_search, greedy, translate
from tutorial_lib.masks import causal_mask, padding_mask, window_mask
from tutorial_lib.position import ALiBi, PositionedAttention, RotaryEncoding
from tutorial_lib.recording import is_recorded, record_attention
from tutorial_lib.seq2seq import AttentionDecoder, Encoder, Seq2Seq

SOME_EMPTY_ROWS = causal_mask(5) & (torch.arange(5) > 1)
MASKS = {
    "none": None,
    "query-key": window_mask(5, 1),
    "length": padding_mask([5, 3, 0], 5)[:, None],
    "per-head": torch.arange(3 * 2 * 5 * 5).reshape(3, 2, 5, 5) % 3 > 0,
    "nothing": torch.zeros(5, 5, dtype=torch.bool),
    "some-empty-rows": SOME_EMPTY_ROWS,
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def recorded(model, *inputs, **options):
    """Run the model once, without and with being watched: its maps and its output."""
    torch.manual_seed(1)
    unwatched = model(*inputs, **options)
    torch.manual_seed(1)
    with record_attention(model) as maps:
        output = model(*inputs, **options)
    pairs = (
        zip(output, unwatched, strict=True)
        if isinstance(output, tuple)
        else [(output, unwatched)]
    )
    for one, other in pairs:
        assert (one is None and other is None) or one.equal(other)
    return maps


def assert_close(weights, expected):
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = MultiHeadAttention(8, 2)
        self.second = AdditiveAttention(8, 8, 4)

    def forward(self, x):
        x = self.first(x, x, x, causal=True)
        return self.second(x, x, x)


class StepByStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(8, 2)

    def forward(self, x):
        steps = range(x.shape[1])
        read = [self.attention(x[:, [t]], *[x[:, : t + 1]] * 2) for t in steps]
        return torch.cat(read, dim=1)


class Fused(nn.Module):
    """Somebody's call of torch's fused function."""

    def forward(self, *inputs, **options):
        return F.scaled_dot_product_attention(*inputs, **options)


class Own(nn.Module):
    """Somebody's softmax, and what is done with it: ``use`` (weights, values)."""

    def __init__(self, use, d_k=8):
        super().__init__()
        self.use, self.d_k = use, d_k

    def forward(self, Q, K, V):
        scores = Q @ K.mT / self.d_k**0.5
        return self.use(scores.softmax(dim=-1), V)


class TestTheBooksOwnLayers:
    def test_every_layer_is_recorded_under_its_name_with_a_head_axis(self):
        model, x = TwoLayers(), torch.randn(3, 5, 8)
        maps = recorded(model, x)
        assert {name: tuple(map.shape) for name, map in maps.items()} == {
            "first": (3, 2, 5, 5),
            "second": (3, 1, 5, 5),
        }
        for weights in maps.values():
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
            assert not weights.requires_grad

    @every_mask
    @causal_or_not
    def test_multi_head_weights_are_those_of_the_explicit_function(self, mask, causal):
        layer, (Q, K, V) = MultiHeadAttention(8, 2), torch.randn(3, 3, 5, 8)
        maps = recorded(layer, Q, K, V, mask, causal=causal)
        heads = [layer.split(W(x)) for W, x in ((layer.W_Q, Q), (layer.W_K, K))]
        assert_close(maps[""], attention_weights(*heads, mask, causal=causal))

    @every_mask
    @causal_or_not
    @pytest.mark.parametrize("bias", [None, ALiBi(2)], ids=["rotary", "both"])
    def test_weights_with_positions_too(self, mask, causal, bias):
        layer = PositionedAttention(8, 2, rotary=RotaryEncoding(4), bias=bias)
        x = torch.randn(3, 5, 8)
        maps = recorded(layer, x, x, x, mask, causal=causal)
        Q, K = (layer.rotary(layer.split(W(x))) for W in (layer.W_Q, layer.W_K))
        scores = Q @ K.mT / 2 + (0 if bias is None else bias(5, 5))
        if causal:
            mask = causal_mask(5) if mask is None else mask & causal_mask(5)
        assert_close(maps[""], masked_softmax(scores, mask))

    @every_mask
    def test_additive_weights_too(self, mask):
        layer, (Q, K, V) = AdditiveAttention(8, 8, 4), torch.randn(3, 3, 5, 8)
        mask = mask if mask is None or mask.ndim == 2 else mask[:, 0]
        maps = recorded(layer, Q, K, V, mask)
        scores = layer.v(torch.tanh(layer.W_Q(Q)[:, :, None] + layer.W_K(K)[:, None]))
        assert_close(maps[""][:, 0], masked_softmax(scores[..., 0], mask))

    def test_weights_are_those_before_dropout(self):
        layers = (
            MultiHeadAttention(8, 2, dropout=0.9),
            PositionedAttention(8, 2, bias=ALiBi(2), dropout=0.9),
        )
        x = torch.randn(3, 5, 8)
        for layer in layers:
            in_training = recorded(layer, x, x, x)[""]
            assert_close(in_training, recorded(layer.eval(), x, x, x)[""])


class TestTorchsFusedFunction:
    @every_mask
    @pytest.mark.parametrize("scale", [None, 0.3])
    def test_boolean_masks(self, mask, scale):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        maps = recorded(Fused(), Q, K, V, attn_mask=mask, scale=scale)
        scores = Q @ K.mT * (0.5 if scale is None else scale)
        assert_close(maps[""], masked_softmax(scores, mask))

    def test_float_masks_are_added_to_the_scores(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        mask = torch.randn(2, 5, 5).masked_fill(~SOME_EMPTY_ROWS, -torch.inf)
        maps = recorded(Fused(), Q, K, V, mask)
        scores = Q @ K.mT / 2 + mask.nan_to_num(neginf=0)
        assert_close(maps[""], masked_softmax(scores, SOME_EMPTY_ROWS))

    def test_causal_lets_query_i_look_at_keys_0_to_i(self):
        Q, (K, V) = torch.randn(3, 2, 4, 4), torch.randn(2, 3, 2, 6, 4)
        maps = recorded(Fused(), Q, K, V, is_causal=True)
        assert_close(maps[""], masked_softmax(Q @ K.mT / 2, causal_mask(6)[:4]))

    def test_several_heads_may_share_keys(self):
        Q, (K, V) = torch.randn(3, 4, 5, 4), torch.randn(2, 3, 2, 5, 4)
        maps = recorded(Fused(), Q, K, V, enable_gqa=True)
        shared = K[:, [0, 0, 1, 1]]
        assert_close(maps[""], attention_weights(Q, shared))

    @pytest.mark.parametrize(
        ("shape", "recorded_as"),
        [
            ((5, 8), (1, 1, 5, 5)),
            ((3, 5, 8), (3, 1, 5, 5)),
            ((3, 2, 5, 8), (3, 2, 5, 5)),
            ((2, 3, 2, 5, 8), (6, 2, 5, 5)),
        ],
    )
    def test_there_are_always_a_batch_and_a_head_axis(self, shape, recorded_as):
        Q, K, V = torch.randn(3, *shape)
        weights = recorded(Fused(), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K).reshape(recorded_as))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_every_precision_keeps_its_type_and_does_not_overflow(self, dtype):
        Q, K, V = (torch.randn(3, 2, 5, 64) * 200).to(dtype)[:, None]
        weights = recorded(Fused(), Q, K, V)[""]
        assert weights.dtype == dtype
        expected = attention_weights(Q.double(), K.double())
        torch.testing.assert_close(weights.double(), expected, atol=0.02, rtol=0)

    def test_autocast_does_not_round_the_scores(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        model = Fused()
        with record_attention(model) as maps, torch.autocast("cpu"):
            model(Q, K, V)
        assert_close(maps[""], attention_weights(Q, K))


class TestTorchsOwnModules:
    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("need_weights", [True, False])
    @pytest.mark.parametrize("training", [True, False])
    def test_multihead_attention(self, batch_first, need_weights, training):
        layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, dropout=0.9)
        Q, (K, V) = torch.randn(3, 4, 8), torch.randn(2, 3, 5, 8)
        options = {"key_padding_mask": ~padding_mask([5, 3, 1], 5)[:, 0]}
        options["attn_mask"] = ~window_mask(5, 3)[:4]
        if not batch_first:
            Q, K, V = (x.transpose(0, 1) for x in (Q, K, V))
        layer.train(training)
        maps = recorded(layer, Q, K, V, need_weights=need_weights, **options)
        expected = layer.eval()(Q, K, V, average_attn_weights=False, **options)[1]
        assert_close(maps[""], expected)

    @pytest.mark.parametrize(
        "options",
        [
            {"kdim": 3, "vdim": 4},
            {"add_bias_kv": True},
            {"add_zero_attn": True},
            {"bias": False},
        ],
    )
    def test_multihead_attention_of_every_kind(self, options):
        layer = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        K = torch.randn(3, 5, options.get("kdim", 8))
        inputs = torch.randn(3, 4, 8), K, torch.randn(3, 5, options.get("vdim", 8))
        expected = layer(*inputs, average_attn_weights=False)[1]
        assert_close(recorded(layer, *inputs, need_weights=False)[""], expected)

    def test_multihead_attention_without_a_batch(self):
        layer, x = nn.MultiheadAttention(8, 2), torch.randn(5, 8)
        expected = layer(x, x, x, average_attn_weights=False)[1]  # (head, query, key)
        assert_close(recorded(layer, x, x, x)[""], expected[None])

    def test_a_query_that_may_look_at_nothing_has_weights_0(self):
        layer, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)
        mask = {"attn_mask": ~SOME_EMPTY_ROWS, "need_weights": False}
        weights = recorded(layer, x, x, x, **mask)[""]
        assert weights[:, :, :2].eq(0).all()
        torch.testing.assert_close(weights[:, :, 2:].sum(-1), torch.ones(3, 2, 3))

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    @pytest.mark.parametrize("norm_first", [True, False])
    def test_an_encoder_in_evaluation_leaves_its_fast_path(self, norm_first):
        options = {"batch_first": True, "norm_first": norm_first}
        layer = nn.TransformerEncoderLayer(8, 2, 16, **options)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)
        x, padding = torch.randn(3, 5, 8), ~padding_mask([5, 3, 1], 5)[:, 0]
        with torch.inference_mode():
            unwatched = model.eval()(x, src_key_padding_mask=padding)
            with record_attention(model) as maps:
                watched = model(x, src_key_padding_mask=padding)
            first, y = model.layers[0], x
            y = first.norm1(y) if norm_first else y
            options = {"key_padding_mask": padding, "average_attn_weights": False}
            expected = first.self_attn(y, y, y, **options)[1]
        assert_close(watched[~padding], unwatched[~padding])
        assert norm_first or unwatched[padding].eq(0).all()  # it was the fast path
        assert list(maps) == ["layers.0.self_attn", "layers.1.self_attn"]
        assert_close(maps["layers.0.self_attn"], expected)
        for weights in maps.values():
            assert weights[1, ..., 3:].eq(0).all()

    def test_a_transformer_names_all_three_uses_of_attention(self):
        model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
        source, target = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
        causal = {"tgt_mask": ~causal_mask(4), "tgt_is_causal": True}
        with record_attention(model) as maps, torch.no_grad():
            model(source, target, **causal)
        assert {name: tuple(map.shape) for name, map in maps.items()} == {
            "encoder.layers.0.self_attn": (3, 2, 5, 5),
            "decoder.layers.0.self_attn": (3, 2, 4, 4),
            "decoder.layers.0.multihead_attn": (3, 2, 4, 5),
        }
        own = maps["decoder.layers.0.self_attn"]
        assert own.masked_select(~causal_mask(4)).eq(0).all()

    def test_torchvisions_vision_transformer(self):
        model = torchvision.models.VisionTransformer(16, 8, 2, 2, 8, 16).eval()
        attention = model.encoder.layers[0].self_attention
        inputs = []
        hook = attention.register_forward_pre_hook(lambda _, x: inputs.append(x))
        with torch.no_grad():
            maps = recorded(model, torch.rand(3, 3, 16, 16))
            hook.remove()
            expected = attention(*inputs[0], average_attn_weights=False)[1]
        names = [f"encoder.layers.encoder_layer_{i}.self_attention" for i in range(2)]
        assert list(maps) == names
        assert_close(maps[names[0]], expected)


EINSUMS = [
    "bhqk,bhkd->bhqd",
    "bhqk, bhkd -> bqhd",
    "...qk,...kd->...qd",
]
USES = {
    "@": lambda weights, V: weights @ V,
    "matmul": torch.matmul,
    "the values first": lambda weights, V: V.mT @ weights.mT,
    "dropout": lambda weights, V: F.dropout(weights, 0.9) @ V,
    "dropout, the values first": lambda weights, V: V.mT @ F.dropout(weights, 0.9).mT,
    "bmm": lambda w, V: torch.bmm(w.flatten(0, 1), V.flatten(0, 1)).view_as(V),
    "bmm of a copy": lambda w, V: torch.bmm(
        F.dropout(w.view(6, 5, 5), 0.9).contiguous(), V.reshape(6, 5, 8)
    ),
    "cast": lambda weights, V: weights.double().to(V.dtype) @ V,
    "types there and back": lambda w, V: w.double().float().type_as(V).clone() @ V,
    "shapes there and back": lambda w, V: (
        w.transpose(2, 3)
        .contiguous()
        .swapaxes(2, 3)
        .permute(0, 1, 3, 2)
        .movedim(3, 2)
        .flatten(0, 1)
        .unflatten(0, (3, 2))
        .unsqueeze(0)
        .squeeze(0)
        .reshape(3, 2, 5, 5)
        @ V
    ),
    "type and shape read": lambda w, V: w.view(w.shape) @ V.to(w.dtype),
    **{e: lambda weights, V, e=e: torch.einsum(e, weights, V) for e in EINSUMS},
    "einsum, the values first": lambda weights, V: torch.einsum(
        "bhkd,bhqk->bhqd", V, weights
    ),
    "einsum, heads last": lambda weights, V: torch.einsum(
        "bqkh,bhkd->bqhd", F.dropout(weights.permute(0, 2, 3, 1), 0.9), V
    ),
}


class TestSomebodysOwnSoftmax:
    @pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
    def test_it_is_followed_to_the_values(self, use):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(Own(use), Q, K, V)[""]
        assert_close(weights.reshape(3, 2, 5, 5), attention_weights(Q, K))

    @pytest.mark.parametrize(
        "softmax",
        [
            lambda scores: torch.softmax(scores, -1),
            lambda scores: F.softmax(scores, dim=3, dtype=torch.float32),
            nn.Softmax(dim=-1),
            lambda scores: torch.special.softmax(scores, -1),
        ],
    )
    def test_every_way_to_write_it_is_known(self, softmax):
        class Somebodys(nn.Module):
            def forward(self, Q, K, V):
                return softmax(Q @ K.mT / 8**0.5) @ V

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        assert_close(recorded(Somebodys(), Q, K, V)[""], attention_weights(Q, K))

    def test_what_is_masked_after_the_softmax_counts_and_dropout_does_not(self):
        seen = torch.rand(5, 5) > 0.3

        def use(weights, V):
            weights = weights * seen
            weights = weights / weights.sum(dim=-1, keepdim=True)
            weights = torch.where(seen, weights.masked_fill(~seen, 0), 0)
            return F.dropout(weights, 0.9) @ V

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(Own(use), Q, K, V)[""]
        assert_close(weights, masked_softmax(Q @ K.mT / 8**0.5, seen))

    def test_steps_in_place_are_not_taken_twice(self):
        def use(weights, V):
            weights = weights.double() * 0.5
            return weights.mul_(0.5).masked_fill_(~causal_mask(5), 0).to(V.dtype) @ V

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(Own(use), Q, K, V)[""]
        assert_close(weights, attention_weights(Q, K).tril() / 4)

    def test_later_changes_do_not_reach_the_maps(self):
        def use(weights, V):
            outputs = weights @ V
            weights.zero_()
            return outputs

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        assert_close(recorded(Own(use), Q, K, V)[""], attention_weights(Q, K))

    def test_a_row_of_minus_infinity_gives_0_and_not_nan(self):
        class Somebodys(nn.Module):
            def forward(self, Q, K, V):
                scores = (Q @ K.mT).masked_fill(~SOME_EMPTY_ROWS, -torch.inf)
                return (scores.softmax(dim=-1) @ V).nan_to_num()

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        weights = recorded(Somebodys(), Q, K, V)[""]
        assert_close(weights, masked_softmax(Q @ K.mT, SOME_EMPTY_ROWS))

    def test_a_look_at_two_axes_becomes_one_query(self):
        class Bahdanaus(nn.Module):
            def forward(self, query, memory):  # (batch, d), (batch, key, d)
                scores = (memory @ query[..., None]).squeeze(-1)  # (batch, key)
                weights = F.dropout(F.softmax(scores, dim=1), 0.5)
                return torch.bmm(weights.unsqueeze(1), memory)

        query, memory = torch.randn(3, 8), torch.randn(3, 5, 8)
        weights = recorded(Bahdanaus(), query, memory)[""]
        expected = (memory @ query[..., None]).squeeze(-1).softmax(dim=-1)
        assert_close(weights, expected[:, None, None])

    @pytest.mark.parametrize(
        "use",
        [
            lambda weights, V: weights,
            lambda weights, V: weights.argmax(dim=-1),
            lambda weights, V: weights.log() @ V,
            lambda weights, V: (weights[..., None] * V[:, :, None]) @ torch.ones(8, 3),
            lambda weights, V: (weights > 0.2).float() @ V,
            lambda weights, V: torch.einsum("bhqk,bhqd->bhqkd", weights, V),
            lambda weights, V: torch.einsum("bhqk,bhqk->bh", weights, weights),
        ],
    )
    def test_a_softmax_that_weighs_no_values_is_no_attention(self, use):
        inputs, model = torch.randn(3, 3, 2, 5, 8), Own(use)
        with (
            pytest.raises(ValueError, match="Own ran, but nothing in it attended"),
            record_attention(model) as maps,
        ):
            model(*inputs)
        assert maps == {}

    def test_neither_another_axis_nor_a_log_softmax_is_followed(self):
        class Other(nn.Module):
            def forward(self, x):
                return x.softmax(dim=-2) @ x + x.log_softmax(dim=-1) @ x

        with (
            pytest.raises(ValueError, match="nothing in it attended"),
            record_attention(model := Other()),
        ):
            model(torch.randn(3, 5, 5))

    def test_a_classifiers_last_softmax_is_not_among_the_maps(self):
        class Classifier(nn.Sequential):
            def forward(self, x):
                y = self[0](x, x, x).mean(dim=1)
                return F.softmax(self[1](y), dim=-1)

        model = Classifier(MultiHeadAttention(8, 2), nn.Linear(8, 5))
        assert list(recorded(model, torch.randn(3, 5, 8))) == ["0"]


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
        seen = {"attn_mask": torch.rand(3, 2, 5, 5, generator=random) > 0.4}
        model, seen = Fused(), {"is_causal": True} if causal else seen
        with record_attention(model) as maps:
            output = model(Q, K, V, **seen)
        expected, output = (x.sum(-1) for x in (maps[""] @ V, output))
        assert expected[output.isnan()].isnan().all()
        told = ~expected.isnan()
        torch.testing.assert_close(expected[told], output[told])

    def test_rows_over_nothing_are_0_and_rows_over_nan_stay_nan(self):
        class Somebodys(nn.Module):
            def forward(self, scores, V):
                return F.dropout(torch.softmax(input=scores, dim=-1)) @ V

        scores = torch.tensor([[-torch.inf, -torch.inf], [0, torch.nan], [0, 0]])
        expected = torch.tensor([[[[0, 0], [torch.nan, torch.nan], [0.5, 0.5]]]])
        model = Somebodys().eval()
        with record_attention(model) as maps:
            model(scores, torch.randn(2, 4))
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
    def test_each_call_of_the_model_starts_afresh(self):
        model, x = TwoLayers(), torch.randn(1, 5, 8)
        with record_attention(model) as maps:
            model(torch.randn(2, 7, 8))
            model(x)
        assert maps["first"].shape == (1, 2, 5, 5)

    def test_a_call_forgets_the_layers_that_it_does_not_use(self):
        class Either(TwoLayers):
            def forward(self, x, name):
                return self.get_submodule(name)(x, x, x)

        model, x = Either(), torch.randn(1, 5, 8)
        with record_attention(model) as maps:
            model(x, "first")
            model(x, "second")
        assert list(maps) == ["second"]

    def test_steps_of_decoding_join_into_one_causal_map(self):
        model, x = StepByStep(), torch.randn(1, 5, 8)
        steps = recorded(model, x)["attention"]
        with record_attention(model.attention) as maps:
            model.attention(x, x, x, causal=True)
        torch.testing.assert_close(steps, maps[""])

    def test_a_part_called_by_itself_replaces_its_own_maps_alone(self):
        model, x, y = TwoLayers(), torch.randn(1, 5, 8), torch.randn(2, 3, 8)
        with record_attention(model) as maps:
            model(x)
            before = maps["first"]
            model.second(y, y, y)
            assert maps["first"] is before
            assert maps["second"].shape == (2, 1, 3, 3)
            model.second.read(x, model.second.W_K(x), x)
        assert maps["second"].shape == (1, 1, 5, 5)

    def test_two_uses_of_one_layer_are_joined_under_its_first_name(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = self.other = MultiHeadAttention(8, 2)

            def forward(self, x, y):
                return self.one(x, x, x), self.other(y, y, y)

        model, (x, y) = Shared(), (torch.randn(3, 5, 8), torch.randn(3, 4, 8))
        joined = recorded(model, x, y)
        assert list(joined) == ["one"]
        with record_attention(model.one) as maps:
            model.one(x, x, x)
            first = maps[""]
            model.one(y, y, y)
        expected = torch.cat((first, F.pad(maps[""], (0, 1))), dim=-2)
        assert_close(joined["one"], expected)

        message = r"'one' ran twice .* \(3, 2\) and \(1, 2\)"
        with pytest.raises(ValueError, match=message), record_attention(model):
            model(x, y[:1])

    def test_a_block_in_which_the_model_never_ran_is_fine(self):
        with record_attention(nn.Linear(2, 2)) as maps:
            torch.ones(2, 2) @ torch.ones(2, 2)
        assert maps == {}

    def test_a_model_without_attention_is_refused_once_it_ran(self):
        model = nn.Linear(2, 2)
        with (
            pytest.raises(ValueError, match="Linear ran, but nothing in it attended"),
            record_attention(model),
        ):
            model(torch.randn(3, 2))

    def test_another_models_attention_is_not_recorded(self):
        model, other, x = TwoLayers(), TwoLayers(), torch.randn(3, 5, 8)
        with record_attention(model) as maps:
            other(x)
            F.scaled_dot_product_attention(x, x, x)
        assert maps == {}

    def test_a_block_that_is_computed_anew_for_its_gradients_counts_once(self):
        class Checkpointed(TwoLayers):
            def forward(self, x):
                y = checkpoint(lambda x: self.first(x, x, x), x, use_reentrant=False)
                return self.second(y, y, y)

        model, x = Checkpointed(), torch.randn(3, 5, 8, requires_grad=True)
        with record_attention(model) as maps:
            output = model(x)
            before = dict(maps)
            output.sum().backward()
        assert list(maps) == list(before)
        for name, weights in before.items():
            assert maps[name].equal(weights)


@pytest.fixture
def translator():
    model = Seq2Seq(Encoder(11, 4, 6), AttentionDecoder(13, 4, 7, 12, 5))
    nn.init.constant_(model.decoder.vocab.bias[EOS], -100)  # no sentence ends early
    return model.eval()


class TestDecoding:
    SOURCE, LENGTHS = torch.randint(4, 11, (3, 5)), torch.tensor([5, 3, 1])

    def weights_before_the_last_word(self, model, words):
        target = torch.tensor([[BOS, *sentence[:-1]] for sentence in words])
        with record_attention(model) as maps, torch.no_grad():
            model(self.SOURCE, self.LENGTHS, target)
        return maps["decoder.attention"][:, :, [-1]]

    def test_after_decoding_the_maps_are_those_of_the_last_word(self, translator):
        with record_attention(translator) as maps:
            for _ in range(2):
                words = greedy(translator, self.SOURCE, self.LENGTHS, max_tokens=6)
            last = maps["decoder.attention"]
        expected = self.weights_before_the_last_word(translator, words.tokens)
        assert_close(last, expected)

    def test_batches_of_unequal_size_may_follow_each_other(self, translator):
        with record_attention(translator) as maps:
            for part in (slice(3), slice(2)):
                source, lengths = self.SOURCE[part], self.LENGTHS[part]
                greedy(translator, source, lengths, max_tokens=6)
        assert maps["decoder.attention"].shape == (2, 1, 1, 5)

    def test_a_beam_search_is_refused_whatever_of_the_model_is_recorded(
        self, translator
    ):
        inputs = (self.SOURCE, self.LENGTHS)
        for part in (translator, translator.decoder, nn.Sequential(translator)):
            with (
                pytest.raises(ValueError, match="a beam search cannot be recorded"),
                record_attention(part) as maps,
            ):
                beam_search(translator, *inputs, width=2, max_tokens=6)
            assert maps == {}
        with record_attention(TwoLayers()):
            beam_search(translator, *inputs, width=2, max_tokens=6)
        assert not is_recorded(translator)

    def test_a_beam_of_one_leaves_the_maps_of_greedy(self, translator):
        decodings = (greedy, partial(beam_search, width=1))
        found = []
        for decode in decodings:
            with record_attention(translator) as maps:
                decode(translator, self.SOURCE, self.LENGTHS, max_tokens=6)
            found.append(maps["decoder.attention"])
        assert found[0].equal(found[1])

    def test_after_translating_in_unequal_batches_the_maps_are_the_last_one_s(
        self, translator
    ):
        words = SimpleNamespace(
            source_vocabulary=Vocabulary([["a", "b", "c"]]),
            target_vocabulary=Vocabulary([list("defghijkl")]),
        )
        sentences, found = [["a", "b"], ["c"], ["b", "a", "c"]], []
        for part in (sentences, sentences[2:]):
            with record_attention(translator) as maps:
                translate(translator, part, words, size=2, progress=False)
            found.append(maps)
        assert list(found[0]) == list(found[1]) == ["decoder.attention"]
        assert_close(*(maps["decoder.attention"] for maps in found))


class TestNothingIsLeft:
    def test_afterwards_nobody_watches_even_if_the_model_failed(self):
        model = TwoLayers()
        with pytest.raises(ValueError, match="sizes 8"), record_attention(model):
            assert _get_current_function_mode_stack()
            model(torch.randn(1, 5, 6))
        assert not _get_current_function_mode_stack()

    def test_the_models_own_error_is_not_replaced_by_another(self):
        with (
            pytest.raises(RuntimeError, match="mat1 and mat2"),
            record_attention(model := nn.Linear(2, 2)),
        ):
            model(torch.randn(3, 3))

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

    def test_gradients_are_those_of_the_unwatched_model(self):
        model, x = TwoLayers().train(), torch.randn(3, 5, 8, requires_grad=True)
        expected = torch.autograd.grad(model(x).square().sum(), x)
        with record_attention(model):
            found = torch.autograd.grad(model(x).square().sum(), x)
        assert found[0].equal(expected[0])

    def test_one_block_within_another_records_the_same(self):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        model.append = MultiHeadAttention(8, 2)
        x = torch.randn(3, 5, 8)
        with record_attention(model) as outer, record_attention(model) as inner:
            model(x)
            model.append(x, x, x)
        assert list(outer) == list(inner) == ["self_attn", "append"]
        for name, weights in inner.items():
            assert outer[name].shape == (3, 2, 5, 5)
            assert outer[name].equal(weights)

    def test_threads_do_not_see_each_other(self):
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

    @pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
    @pytest.mark.parametrize("way", ["a copy", "a part's forward", "in the block"])
    def test_what_was_compiled_unseen_is_refused_when_it_runs(self, way):
        call, x = (model := TwoLayers()), torch.randn(3, 5, 8)
        expected = model(x)
        if way == "a copy":
            call = torch.compile(model, backend="eager")
        elif way == "a part's forward":
            model.first.forward = torch.compile(model.first.forward, backend="eager")
        message = "something compiled ran while TwoLayers was recorded"
        with pytest.raises(ValueError, match=message), record_attention(model):
            if way == "in the block":
                model.compile(backend="eager")
            call(x)
        assert_close(call(x), expected)  # compiled by now
        if way != "in the block":
            with pytest.raises(ValueError, match=message), record_attention(model):
                call(x)

    @pytest.mark.filterwarnings("ignore:.*torch.jit")
    @pytest.mark.parametrize("way", ["compile", "in place", "script"])
    def test_a_compiled_model_is_refused_with_advice(self, way):
        model = nn.Sequential(nn.Linear(8, 8))
        if way == "compile":
            model[0] = torch.compile(model[0], backend="eager")
        elif way == "in place":
            model[0].compile(backend="eager")
        else:
            model[0] = torch.jit.script(model[0])
        message = "Sequential is compiled.* from before it was compiled"
        with pytest.raises(ValueError, match=message), record_attention(model):
            pass
        assert not _get_current_function_mode_stack()
