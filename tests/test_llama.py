"""The Llama's parts are torch's or their formulas, and its KV cache changes nothing."""

import numpy as np
import pytest
import torch
from torch import nn

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.interpret import record_attention
from tutorial_lib.llama import GroupedQueryAttention, Llama, RMSNorm, SwiGLU
from tutorial_lib.position import apply_rope, frequencies


def make_llama(num_kv_heads=2):
    """Make a model whose logits are far from uniform."""
    torch.manual_seed(0)
    model = Llama(13, 16, 4, 2, num_kv_heads=num_kv_heads, d_ff=44)
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=float("norm" in name), std=0.3)
    return model


def texts(rows=3, tokens=9):
    return torch.randint(13, (rows, tokens), generator=torch.Generator().manual_seed(1))


# --- The parts --------------------------------------------------------------------


def test_the_norm_is_torchs():
    ours = RMSNorm(8)
    theirs = nn.RMSNorm(8, eps=1e-5)
    nn.init.normal_(ours.weight)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 8) * 5 + 1
    torch.testing.assert_close(ours(x), theirs(x))


def test_the_norm_of_two_numbers_by_hand():
    normed = RMSNorm(2, eps=0.0)(torch.tensor([[3.0, 4.0]]))  # the root of 12.5
    torch.testing.assert_close(normed, torch.tensor([[3.0, 4.0]]) / 12.5**0.5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_the_norm_is_as_precise_as_its_type(dtype):
    torch.manual_seed(0)
    x = 1000 * torch.randn(64, 32, dtype=torch.float64)  # squares exceed float16
    expected = torch.nn.functional.rms_norm(x.to(dtype).double(), (32,), eps=1e-5)
    assert RMSNorm(32).to(dtype)(x.to(dtype)).equal(expected.to(dtype))


def test_the_norm_of_float64_is_not_that_of_float32():
    tokens = torch.tensor([[1e20, 2e20, 3e20]], dtype=torch.float64)
    normed = RMSNorm(3).double()(tokens)
    torch.testing.assert_close(normed, tokens / (14 / 3) ** 0.5 / 1e20)


def test_the_network_is_its_formula():
    network = SwiGLU(6, 10)
    x = torch.randn(2, 3, 6)
    gate, up, down = (weight.detach().numpy() for weight in network.parameters())
    hidden = x.numpy() @ gate.T
    expected = (hidden / (1 + np.exp(-hidden)) * (x.numpy() @ up.T)) @ down.T
    torch.testing.assert_close(network(x).detach().numpy(), expected)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_shared_keys_are_as_repeated_ones(num_kv_heads):
    torch.manual_seed(0)
    grouped = GroupedQueryAttention(16, 4, num_kv_heads)
    repeated = GroupedQueryAttention(16, 4, 4)
    for name, weight in grouped.state_dict().items():
        if name[:3] in ("W_K", "W_V"):
            heads = weight.view(num_kv_heads, 4, 16)
            weight = torch.cat([heads[i * num_kv_heads // 4] for i in range(4)])
        repeated.get_parameter(name).data.copy_(weight)
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(grouped(x), repeated(x))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((16, 3, 1), "num_heads must divide d_model: 3 does not divide 16"),
        ((16, 4, 3), "num_kv_heads must divide num_heads: 3 does not divide 4"),
    ],
)
def test_heads_that_cannot_be_divided_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        GroupedQueryAttention(*sizes)


# --- The model --------------------------------------------------------------------


def test_the_size_of_llama_3_2_1b_is_that_of_its_weights():
    with torch.device("meta"):
        model = Llama(128_256, 2048, 32, 16, num_kv_heads=8, d_ff=8192)
    assert sum(weight.numel() for weight in model.parameters()) == 1_235_814_400


@torch.no_grad()
def test_the_future_changes_nothing_before_it():
    model = make_llama()
    tokens = texts()
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 13
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])
    assert not model(tokens)[:, 5:].allclose(model(changed)[:, 5:])


@torch.no_grad()
@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("sizes", [[9], [1] * 9, [3, 1, 5], [4, 5]])
def test_with_a_cache_any_pieces_give_what_the_whole_gives(sizes, num_kv_heads):
    model = make_llama(num_kv_heads)
    tokens = texts()
    cache = KVCache()
    pieces = [model(piece, cache) for piece in tokens.split(sizes, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))
    assert {K.shape for K, V in cache.values()} == {(3, num_kv_heads, 9, 4)}


@torch.no_grad()
def test_greedy_decoding_chooses_the_likeliest_token_of_the_uncached_model():
    model = make_llama()
    prompt = texts()[:, :3]
    new_tokens = generate(model, prompt, KVCache(), greedy, max_new_tokens=5, eos=99)
    text = torch.cat([prompt, new_tokens], dim=1)
    assert model(text).argmax(dim=-1)[:, 2:-1].equal(new_tokens)


@torch.no_grad()
def test_its_maps_are_recorded_one_for_each_head_of_queries():
    model = make_llama()
    with record_attention(model) as maps:
        model(texts())
    assert maps["layers.1.attention"].shape == (3, 4, 9, 9)
    assert maps["layers.1.attention"].triu(1).eq(0).all()
    attention = model.layers[0].attention
    x = model.layers[0].norm1(model.token_embedding(texts()))
    positions = torch.arange(9)
    Q = apply_rope(attention.split_heads(attention.W_Q(x)), positions, frequencies(4))
    K = apply_rope(attention.split_heads(attention.W_K(x)), positions, frequencies(4))
    scores = Q[:, 3] @ K[:, 1].mT / 2  # the last two heads share the second key
    weights = scores.masked_fill(torch.ones(9, 9).triu(1) > 0, -torch.inf).softmax(-1)
    torch.testing.assert_close(maps["layers.0.attention"][:, 3], weights)


def test_rotation_is_by_neighboring_dimensions_from_position_0():
    attention = GroupedQueryAttention(8, 2, 1)
    x = torch.randn(1, 1, 8)
    torch.testing.assert_close(
        attention(x), attention.W_O(attention.W_V(x).repeat(1, 1, 2))
    )
