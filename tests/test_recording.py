"""Recorded attention weights, against a softmax that is written out."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

from tutorial_lib.gpt import GPTBlock
from tutorial_lib.interpret import record_attention

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


def explicit_weights(Q, K, mask=None, scale=None, bias=0.0):
    """Compute softmax(QKᵀ) with weights 0 for a query that may attend to nothing."""
    scores = Q @ K.mT * (scale or Q.shape[-1] ** -0.5) + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(nan=0.0)


def recorded(model, *inputs, **options):
    """Run a model with a recorder and without: the outputs are equal to the bit."""
    torch.manual_seed(1)
    expected = model(*inputs, **options)
    torch.manual_seed(1)
    with record_attention(model) as maps:
        outputs = model(*inputs, **options)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=0, equal_nan=True)
    assert not any(weights.requires_grad for weights in maps.values())
    return maps


def assert_close(weights, expected):
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


class Model(nn.Module):
    """A model of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs, **options):
        return self.function(*inputs, **options)


def softmax_model(use):
    """Make a model that uses the weights of a softmax: ``use(weights, V)``."""
    return Model(lambda Q, K, V: use((Q @ K.mT / 8**0.5).softmax(dim=-1), V))


class SelfAttention(nn.Module):
    """A layer as a page writes it, with one head."""

    def forward(self, x):
        return self.attend(x, x)

    def attend(self, Q, K):
        return (Q @ K.mT).softmax(dim=-1) @ K


class FusedSelfAttention(nn.Module):
    """The same by the fused function, with two heads and a causal mask."""

    def forward(self, x):
        heads = rearrange(x, "batch token (head d) -> batch head token d", head=2)
        y = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return rearrange(y, "batch head token d -> batch token (head d)")


class TestTheFusedFunction:
    FUSED = Model(F.scaled_dot_product_attention)

    @pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
    @pytest.mark.parametrize("bias", [None, torch.arange(25.0).view(5, 5) % 3])
    def test_masks_and_numbers_that_are_added_to_the_scores(self, mask, bias):
        Q, K, V = torch.randn(3, 3, 2, 5, 4)
        given = mask
        if bias is not None:
            given = bias if mask is None else bias.where(mask, -torch.inf)
        maps = recorded(self.FUSED, Q, K, V, attn_mask=given, scale=0.3)
        bias = 0.0 if bias is None else bias
        expected = explicit_weights(Q, K, mask, scale=0.3, bias=bias)
        assert_close(maps[""], expected)

    def test_causal_masks_and_grouped_queries(self):
        Q = torch.randn(3, 6, 4, 8)
        K, V = torch.randn(2, 3, 2, 5, 8)
        maps = recorded(self.FUSED, Q, K, V, is_causal=True, enable_gqa=True)
        shared = K[:, [0, 0, 0, 1, 1, 1]]
        assert_close(maps[""], explicit_weights(Q, shared, CAUSAL[:4]))

    @pytest.mark.parametrize("axes", [(), (3,), (3, 2), (2, 3, 2)])
    def test_there_are_always_a_batch_and_a_head_axis(self, axes):
        Q, K, V = torch.randn(3, *axes, 5, 8)
        batch_and_head = {0: (1, 1), 1: (3, 1), 2: (3, 2), 3: (6, 2)}[len(axes)]
        expected = explicit_weights(Q, K).reshape(*batch_and_head, 5, 5)
        assert_close(recorded(self.FUSED, Q, K, V)[""], expected)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_every_precision_keeps_its_type(self, dtype):
        Q, K, V = (torch.randn(3, 1, 2, 5, 64) * 20).to(dtype)
        weights = recorded(self.FUSED, Q, K, V)[""]
        assert weights.dtype == dtype
        expected = explicit_weights(Q.double(), K.double())
        torch.testing.assert_close(weights.double(), expected, atol=0.02, rtol=0)

    def test_dropout_is_left_out_and_nan_stays_nan(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        maps = recorded(self.FUSED, Q, K, V, dropout_p=0.5)
        assert_close(maps[""], explicit_weights(Q, K))
        Q[0, 0, 3] = torch.nan
        rows = recorded(self.FUSED, Q, K, V)[""].isnan().all(dim=-1)
        assert rows.nonzero().tolist() == [[0, 0, 3]]


class TestTorchsLayers:
    @pytest.mark.parametrize("batch_first", [True, False])
    @pytest.mark.parametrize("need_weights", [True, False])
    @pytest.mark.parametrize("training", [True, False])
    def test_multihead_attention(self, batch_first, need_weights, training):
        layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, dropout=0.9)
        Q, K, V = torch.randn(3, 4, 8), torch.randn(3, 5, 8), torch.randn(3, 5, 8)
        options = {"key_padding_mask": ~PADDING, "attn_mask": ~SOME_EMPTY_ROWS[:4]}
        if not batch_first:
            Q, K, V = Q.transpose(0, 1), K.transpose(0, 1), V.transpose(0, 1)
        layer.train(training)
        maps = recorded(layer, Q, K, V, need_weights=need_weights, **options)
        expected = layer.eval()(Q, K, V, average_attn_weights=False, **options)[1]
        assert_close(maps[""], expected.nan_to_num())  # nothing to attend to: weights 0

    @pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"kdim": 3, "vdim": 4}])
    def test_without_a_batch_and_with_the_rarer_options(self, options):
        layer = nn.MultiheadAttention(8, 2, **options)
        Q, K, V = (
            torch.randn(4, 8),
            torch.randn(5, layer.kdim),
            torch.randn(5, layer.vdim),
        )
        expected = layer(Q, K, V, average_attn_weights=False)[1]  # (head, query, key)
        assert_close(recorded(layer, Q, K, V, need_weights=False)[""], expected[None])

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    @pytest.mark.parametrize("norm_first", [True, False])
    def test_an_encoder_in_evaluation_leaves_its_fast_path(self, norm_first):
        options = {"batch_first": True, "norm_first": norm_first}
        layer = nn.TransformerEncoderLayer(8, 2, 16, **options)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)
        x = torch.randn(3, 5, 8)
        first = model.eval().layers[0]
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


def types_and_shapes(w, V):
    w = w.double().float().type_as(V).to(V.dtype).clone()
    w = w.transpose(2, 3).contiguous().swapaxes(2, 3).permute(0, 1, 3, 2).movedim(3, 2)
    w = w.flatten(0, 1).unflatten(0, (3, 2)).unsqueeze(0).squeeze(0)[:, :, None]
    return w.reshape(3, 2, 5, 5) @ V


def merged_heads(w, V):
    w = rearrange(F.dropout(w, 0.9), "batch head query key -> (batch head) query key")
    return torch.bmm(w, V.flatten(0, 1)).unflatten(0, (3, 2))


def split_heads(Q, K, V):
    w = (Q.flatten(0, 1) @ K.flatten(0, 1).mT / 8**0.5).softmax(dim=-1)
    return w.unflatten(0, (3, 2)) @ V


def changed_in_place(w, V):
    w *= 2
    w = w.div_(2).masked_fill_(w > 1, 0)
    w = F.dropout(w, 0.9, inplace=True)
    outputs = w @ V
    w.zero_()
    return outputs


USES = {
    "@": lambda w, V: w @ V,
    "matmul": torch.matmul,
    "linalg": torch.linalg.matmul,
    "values first": lambda w, V: V.mT @ w.mT,
    "dropout": lambda w, V: F.dropout(w, 0.9) @ V,
    "twice": lambda w, V: w @ V + w.mul(1) @ V,
    "in place": changed_in_place,
    "merged heads": merged_heads,
    "types and shapes": types_and_shapes,
    "einsum": lambda w, V: torch.einsum("bhqk, bhkd -> bqhd", w, V),
    "einsum with dots": lambda w, V: torch.einsum("...qk,...kd->...qd", w, V),
    "einsum, heads after queries": lambda w, V: torch.einsum(
        "bqhk,bkhd->bqhd", w.transpose(1, 2), V.transpose(1, 2)
    ),
    "einsum of a list": lambda w, V: torch.einsum("bhqk,bhkd->bhqd", [w, V]),
    "einsum of numbers": lambda w, V: torch.einsum(
        w, [0, 1, 2, 3], V, [0, 1, 3, 4], [0, 2, 1, 4]
    ),
    "einsum, values first": lambda w, V: torch.einsum("bhkd,bhqk->bhqd", V, w),
}


class TestASoftmaxOfAPage:
    @pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
    def test_it_is_followed_to_the_values(self, use):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        assert_close(recorded(softmax_model(use), Q, K, V)[""], explicit_weights(Q, K))

    def test_heads_may_be_split_after_the_softmax(self):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        assert_close(recorded(Model(split_heads), Q, K, V)[""], explicit_weights(Q, K))

    @pytest.mark.parametrize(
        "softmax",
        [F.softmax, torch.softmax, torch.special.softmax, torch.ops.aten.softmax],
    )
    @pytest.mark.parametrize("options", [{"dim": -1}, {"dim": 3, "dtype": torch.float}])
    def test_it_may_be_written_in_several_ways(self, softmax, options):
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        model = Model(lambda: softmax(Q @ K.mT / 8**0.5, **options) @ V)
        assert_close(recorded(model)[""], explicit_weights(Q, K))

    @pytest.mark.parametrize("softmax", [torch._softmax, torch.ops.aten._softmax])
    def test_what_lies_below_torchs_functions_is_seen(self, softmax):
        def attend(Q, K, V):
            weights = softmax((Q @ K.mT / 8**0.5).flatten(0, 1), -1, False)
            return torch.ops.aten.bmm(weights, V.flatten(0, 1))

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        expected = explicit_weights(Q, K)
        assert_close(recorded(Model(attend), Q, K, V)[""][:, 0], expected.flatten(0, 1))
        fused = Model(torch.ops.aten.scaled_dot_product_attention)
        assert_close(recorded(fused, Q, K, V)[""], expected)
        maps = recorded(fused, Q, K, V, None, 0.0, True)
        assert_close(maps[""], explicit_weights(Q, K, CAUSAL))

    def test_a_mask_after_the_softmax_counts(self):
        def use(w, V):
            w = w * CAUSAL
            w = w / w.sum(dim=-1, keepdim=True)
            w = torch.where(CAUSAL, w.masked_fill(~CAUSAL, 0), 0)
            return F.dropout(w, 0.9) @ V

        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        maps = recorded(softmax_model(use), Q, K, V)
        assert_close(maps[""], explicit_weights(Q, K, CAUSAL))

    def test_rows_over_nothing_are_0_and_rows_over_nan_stay_nan(self):
        scores = torch.tensor([[-torch.inf, -torch.inf], [0, torch.nan], [0, 0]])
        model = Model(lambda V: F.dropout(scores.softmax(dim=-1), 0.0) @ V)
        maps = recorded(model, torch.randn(2, 4))
        expected = torch.tensor([[0.0, 0.0], [torch.nan, torch.nan], [0.5, 0.5]])
        torch.testing.assert_close(maps[""][0, 0], expected, equal_nan=True)

    @pytest.mark.parametrize(
        "use",
        [
            lambda w, states: F.dropout(w, 0.5).unsqueeze(1).bmm(states),
            lambda w, states: states.mT @ w[..., None],
            lambda w, states: torch.einsum("bk,bkd->bd", w, states),
        ],
    )
    def test_weights_of_batch_and_key_are_of_one_query(self, use):
        scores = torch.randn(3, 5)
        model = Model(lambda states: use(scores.softmax(dim=-1), states))
        maps = recorded(model, torch.randn(3, 5, 8))
        assert_close(maps[""], scores.softmax(dim=-1)[:, None, None])

    def test_a_softmax_of_two_layers_is_the_map_of_both(self):
        def attend_twice(x):
            weights = x.softmax(dim=-1)
            return model.b(weights, model.a(weights, x))

        model = Model(attend_twice)
        model.a = Model(torch.matmul)
        model.b = Model(torch.matmul)
        x = torch.randn(3, 5, 5)
        maps = recorded(model, x)
        assert list(maps) == ["a", "b"]
        assert all(weights[:, 0].equal(x.softmax(-1)) for weights in maps.values())


class TestNamesAndCalls:
    def test_each_layer_has_a_map_under_its_name(self):
        model = nn.Sequential(FusedSelfAttention(), nn.Sequential(SelfAttention()))
        x = torch.randn(3, 5, 8)
        maps = recorded(model, x)
        assert list(maps) == ["0", "1.0"]
        Q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        assert_close(maps["0"], explicit_weights(Q, Q, CAUSAL))
        x = model[0](x)
        assert_close(maps["1.0"], explicit_weights(x, x, scale=1.0)[:, None])

    def test_the_innermost_module_that_attends_gives_the_name(self):
        layer = SelfAttention()
        model = Model(lambda x: layer.attend(x, x))
        model.layer = layer
        assert list(recorded(nn.Sequential(model), torch.randn(3, 5, 8))) == ["0.layer"]

    def test_a_classifiers_last_softmax_is_no_map(self):
        model = nn.Sequential(SelfAttention(), nn.Linear(8, 5), nn.Softmax(dim=-1))
        assert list(recorded(model, torch.randn(3, 5, 8))) == ["0"]

    def test_each_call_starts_afresh(self):
        model = Model(lambda x, layer: layer(x))
        model.layers = nn.ModuleList([SelfAttention(), SelfAttention()])
        with record_attention(model) as maps:
            model(torch.randn(2, 7, 8), model.layers[0])
            model(torch.randn(1, 5, 8), model.layers[1])
        assert {name: w.shape for name, w in maps.items()} == {"layers.1": (1, 1, 5, 5)}

    def test_a_part_that_is_called_replaces_its_own_maps_alone(self):
        model = nn.Sequential(SelfAttention(), SelfAttention())
        with record_attention(model) as maps:
            model(torch.randn(1, 5, 8))
            before = maps["0"]
            model[1](torch.randn(2, 3, 8))
        assert maps["0"] is before
        assert maps["1"].shape == (2, 1, 3, 3)

    def test_cached_steps_join_within_a_call_and_the_last_stays_without(self):
        layer = SelfAttention()
        layer.forward = layer.attend
        model = Model(lambda x: [step(x, t) for t in range(5)])
        model.layer = layer

        def step(x, t):
            return layer(x[:, t : t + 1], x[:, : t + 1])

        x = torch.randn(2, 5, 8)
        whole = recorded(model, x)["layer"]
        assert_close(whole, explicit_weights(x, x, CAUSAL, scale=1.0)[:, None])
        with record_attention(model) as maps:
            for t in range(5):
                step(x, t)
        assert maps["layer"].equal(whole[:, :, -1:])

    def test_two_batches_within_one_call_make_no_map(self):
        layer = SelfAttention()
        model = Model(lambda x: (layer(x), layer(x[:1])))
        model.layer = layer
        message = r"'layer' attended twice .* \(3, 1, 5, 5\) and \(1, 1, 5, 5\)"
        with pytest.raises(ValueError, match=message), record_attention(model):
            model(torch.randn(3, 5, 8))

    def test_fewer_keys_than_before_make_no_map(self):
        def efficient_attention(x):  # each softmax is over something else
            context = x.mT.softmax(dim=-1) @ x  # (batch, d_model, d_model)
            return x.softmax(dim=-1) @ context

        model = Model(efficient_attention)
        message = r"twice .* \(1, 1, 4, 6\) and \(1, 1, 6, 4\), which make no one map"
        with pytest.raises(ValueError, match=message), record_attention(model):
            model(torch.randn(1, 6, 4))

    def test_a_block_that_is_computed_again_for_its_gradients_counts_once(self):
        layers = nn.Sequential(SelfAttention(), FusedSelfAttention())
        model = Model(lambda x: checkpoint(layers, x, use_reentrant=False))
        model.layers = layers
        with record_attention(model) as maps:
            output = model(torch.randn(3, 5, 8, requires_grad=True))
            before = dict(maps)
            output.sum().backward()
        assert list(maps) == list(before) == ["layers.0", "layers.1"]
        assert all(maps[name].equal(weights) for name, weights in before.items())

    def test_gradients_are_those_of_the_model_alone(self):
        model = nn.Sequential(SelfAttention(), FusedSelfAttention())
        x = torch.randn(3, 5, 8, requires_grad=True)
        (expected,) = torch.autograd.grad(model(x).square().sum(), x)
        with record_attention(model):
            (gradient,) = torch.autograd.grad(model(x).square().sum(), x)
        assert gradient.equal(expected)

    def test_what_weights_multiply_in_place_is_multiplied_once(self):
        model = softmax_model(lambda w, V: V[..., :5].clone().mul_(w))
        model = nn.ModuleList([model, SelfAttention()])
        Q, K, V = torch.randn(3, 3, 2, 5, 8)
        expected = model[0](Q, K, V)
        with record_attention(model):
            assert model[0](Q, K, V).equal(expected)
            model[1](torch.randn(3, 5, 8))

    def test_copies_made_within_the_block_are_like_any(self):
        model = nn.Sequential(SelfAttention(), GPTBlock(8, 2))
        x = torch.randn(3, 5, 8)
        with record_attention(model):
            model(x)
            copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for other in copies:
            assert other(x).equal(model(x))
            for weight in other.parameters():
                weight.data.zero_()
            assert other[1](x).equal(x)

    def test_one_block_within_another_records_the_same(self):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        with record_attention(model) as outer, record_attention(model) as inner:
            model(torch.randn(3, 5, 8))
        assert list(outer) == list(inner) == ["self_attn"]
        assert outer["self_attn"].equal(inner["self_attn"])

    def test_after_an_error_nothing_is_recorded(self):
        def stop(x):
            raise RuntimeError("mine")

        model = nn.Sequential(SelfAttention(), Model(stop))
        x = torch.randn(3, 5, 8)
        with record_attention(model) as maps:
            with pytest.raises(RuntimeError, match="mine"):
                model(x)
            model[0](x)
        assert list(maps) == ["0"]
        with pytest.raises(RuntimeError, match="mine"), record_attention(model):
            model(x)
        before = dict(maps)
        model[0](x)
        assert maps == before


def written(tensor, value):
    tensor[:] = value
    return tensor


NOT_FOLLOWED = {
    "heads apart": lambda w, V: w.chunk(2, dim=1)[0] @ V.chunk(2, dim=1)[0],
    "some queries": lambda w, V: w[:, :, 1:] @ V,
    "some keys": lambda w, V: w[..., 1:] @ V[:, :, 1:],
    "one query": lambda w, V: w.select(2, 0)[:, :, None] @ V,
    "cat": lambda w, V: torch.cat((w, w), -1) @ torch.cat((V, V), -2),
    "pad": lambda w, V: F.pad(w, (0, 1)) @ F.pad(V, (0, 0, 0, 1)),
    "add": lambda w, V: (w + 0.1).tril() @ V,
    "mean": lambda w, V: w.mean(dim=1) @ V[:, 0],
    "sum": lambda w, V: (w[..., None] * V[:, :, None]).sum(dim=-2),
    "mixed heads": lambda w, V: torch.einsum("bhqk,hg->bgqk", w, torch.ones(2, 2)) @ V,
    "keys in rows": lambda w, V: V.mT @ V.softmax(dim=-2),
    "groups": lambda w, V: w[:, :, None].expand(3, 2, 4, 5, 5) @ V[:, :, None],
    "groups, values first": lambda w, V: (
        V[:, :, None].mT @ w[:, :, None].expand(3, 2, 4, 5, 5).mT
    ),
    "groups, expanded": lambda w, V: (
        w[:, :, None].expand(3, 2, 4, 5, 5) @ V[:, :, None].expand(3, 2, 4, 5, 8)
    ),
    "groups by einsum": lambda w, V: torch.einsum(
        "bkgqs,bksd->bkgqd", w[:, :, None].expand(3, 2, 4, 5, 5), V
    ),
    "fused groups": lambda w, V: F.scaled_dot_product_attention(
        V[:, :, None].expand(3, 2, 4, 5, 8), V[:, :, None], V[:, :, None]
    ),
    "torch's inner function": lambda w, V: torch._scaled_dot_product_attention_math(
        V, V, V
    ),
    "talking heads": lambda w, V: (
        F.linear(w.transpose(1, 3), nn.Parameter(torch.eye(2))).transpose(1, 3) @ V
    ),
    "pooling": lambda w, V: (V[..., :1].softmax(dim=2) * V).sum(dim=2),
    "pooling, expanded": lambda w, V: (
        V[..., 0].softmax(dim=-1).unsqueeze(-1).expand_as(V) * V
    ).sum(dim=2),
    "the largest": lambda w, V: (
        torch.zeros_like(w).scatter(-1, w.topk(2).indices, w.topk(2).values) @ V
    ),
    "an axis moved": lambda w, V: w.swapdims(1, 2).moveaxis(1, 2) @ V,
    "the shape of another": lambda w, V: (
        w.reshape_as(V.new_zeros(6, 5, 5)) @ V.flatten(0, 1)
    ),
    "broadcast": lambda w, V: w[:1, :1].broadcast_to(3, 2, 5, 5) @ V,
    "split": lambda w, V: w.tensor_split(2, dim=2)[0] @ V,
    "written into another": lambda w, V: written(torch.zeros(w.shape), w) @ V,
    "written over": lambda w, V: written(w, 0.0) @ V,
    "another number in place": lambda w, V: w.pow_(2) @ V,
    "softmin": lambda w, V: F.softmin(w, dim=-1) @ V,
    "Gumbel": lambda w, V: F.gumbel_softmax(w, dim=-1) @ V,
}
NO_ATTENTION = [
    lambda w, V: w,
    lambda w, V: w.argmax(dim=-1),
    lambda w, V: w.log() @ V,
    lambda w, V: (w > 0.2).float() @ V,
    lambda w, V: w[..., :1] * V + w[..., 1:2] * V,  # a router's
    lambda w, V: w.topk(2).values[..., :1] * V,
    lambda w, V: V @ (V / w.norm()).mT,
    lambda w, V: w.new_zeros(5, 8) @ V.mT,
    lambda w, V: F.linear(w, nn.Parameter(torch.ones(8, 5))),
    lambda w, V: V.mT @ V.log_softmax(dim=-1),
]


class TestWhatIsNotRecorded:
    @pytest.mark.parametrize("use", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED.keys())
    def test_a_warning_names_the_layers_that_have_no_map(self, use):
        model = Model(lambda x, *QKV: (model.layer(x), model.own(*QKV)))
        model.layer = SelfAttention()
        model.own = softmax_model(use)
        with (
            pytest.warns(
                UserWarning, match="could not be followed in 'own'$"
            ) as warned,
            record_attention(model) as maps,
        ):
            model(torch.randn(3, 5, 8), *torch.randn(3, 3, 2, 5, 8))
        assert warned[0].filename == __file__
        assert list(maps) == ["layer"]

    @pytest.mark.parametrize("use", [*NOT_FOLLOWED.values(), *NO_ATTENTION])
    def test_where_nothing_is_recorded_an_error_says_so(self, use):
        message = "Model ran, but no attention could be recorded: .*"
        model = softmax_model(use)
        with (
            pytest.raises(ValueError, match=message) as error,
            record_attention(model) as maps,
        ):
            model(*torch.randn(3, 3, 2, 5, 8))
        assert maps == {}
        assert "\n" not in str(error.value)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("use", NO_ATTENTION)
    def test_a_softmax_that_weighs_no_values_is_not_missed(self, use):
        model = Model(lambda x, *QKV: (model.layer(x), model.own(*QKV)))
        model.layer = SelfAttention()
        model.own = softmax_model(use)
        maps = recorded(model, torch.randn(3, 5, 8), *torch.randn(3, 3, 2, 5, 8))
        assert list(maps) == ["layer"]

    @pytest.mark.filterwarnings("ignore:.*torch.jit")
    @pytest.mark.parametrize(
        "compiled",
        [
            torch.compile,
            torch.fx.symbolic_trace,
            lambda module: torch.jit.trace(module, torch.randn(1, 5, 8)),
            lambda module: torch.export.export(
                module, (torch.randn(1, 5, 8),)
            ).module(),
        ],
        ids=["compile", "fx", "jit", "export"],
    )
    def test_what_is_compiled_or_traced_is_refused(self, compiled):
        model = nn.Sequential(compiled(SelfAttention()))
        message = "the module '0' cannot be seen: record the model from before"
        with pytest.raises(ValueError, match=message), record_attention(model):
            pass

    def test_what_is_compiled_in_place_is_refused(self):
        model = nn.Sequential(SelfAttention())
        model[0].compile()
        with pytest.raises(ValueError, match="from before"), record_attention(model):
            pass
        model = nn.Sequential(SelfAttention())
        model[0].forward = torch.compile(model[0].forward)
        with pytest.raises(ValueError, match="from before"), record_attention(model):
            pass


class Attends(nn.Module):
    """Multiplies values by weights in a way of its own."""

    def __init__(self, multiply):
        super().__init__()
        self.multiply = multiply

    def forward(self, x):
        return self.multiply((x @ x.mT).softmax(dim=-1), x)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize(
    "multiply",
    [
        lambda weights, x: torch.baddbmm(x, weights, x),
        lambda weights, x: torch.tensordot(weights[0], x[0], 1)[None],
        lambda weights, x: torch.matmul(input=weights, other=x),
        lambda weights, x: weights**2 @ x,
        lambda weights, x: weights.cumsum(dim=-1) @ x,
        lambda weights, x: weights.roll(1, -1) @ x,
        lambda weights, x: (x @ x.mT).softmax(dim=1).mT @ x,
        lambda weights, x: F.linear(weights, x[0].mT),
        lambda weights, x: torch.sparse.mm(weights[0].to_sparse(), x[0])[None],
        lambda weights, x: torch.linalg.multi_dot([weights[0], x[0]])[None],
        lambda weights, x: flex_attention(*[x[:, None]] * 3)[:, 0],
    ],
    ids=[
        "baddbmm",
        "tensordot",
        "keywords",
        "pow",
        "cumsum",
        "roll",
        "axis",
        "linear",
        "sparse",
        "multi_dot",
        "flex",
    ],
)
def test_a_layer_that_multiplies_in_another_way_is_named(multiply):
    model = nn.Sequential(Attends(torch.matmul), Attends(multiply))
    with (
        pytest.warns(UserWarning, match="could not be followed in '1'"),
        record_attention(model) as maps,
    ):
        model(torch.rand(1, 3, 4))
    assert [*maps] == ["0"]


class InAThread(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.layer, x).result()


def test_a_layer_that_runs_in_another_thread_is_named():
    attends = [Attends(torch.matmul) for _ in range(3)]
    model = nn.Sequential(attends[0], InAThread(attends[1]), attends[2])
    with (
        pytest.warns(UserWarning, match=r"another thread ran '1\.layer'"),
        record_attention(model) as maps,
    ):
        model(torch.rand(1, 3, 4))
    assert [*maps] == ["0", "2"]


def test_a_part_that_was_exported_and_made_modules_again_is_refused():
    x = torch.rand(1, 3, 4)
    exported = torch.export.export(nn.Sequential(Attends(torch.matmul)), (x,))
    model = nn.Sequential(Attends(torch.matmul), torch.export.unflatten(exported))
    with pytest.raises(ValueError, match="cannot be seen"), record_attention(model):
        model(x)
