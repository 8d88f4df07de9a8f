"""The GPT agrees with GPT-2 as it was published, and its cache changes nothing."""

import math
from functools import partial

import pytest
import torch

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import beam_search, greedy
from tutorial_lib.gpt import GPT, from_gpt2
from tutorial_lib.interpret import record_attention


def make(seed=0, **options):
    """Make a model whose logits are far from uniform."""
    torch.manual_seed(seed)
    model = GPT(13, 16, 2, 2, **{"max_tokens": 12, **options}).eval()
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, mean="norm.weight" in name, std=0.3)
    return model


def texts(rows=3, tokens=9):
    return torch.randint(13, (rows, tokens), generator=torch.Generator().manual_seed(1))


# --- GPT-2, written from its paper and the names of its weights -------------------


def published_weights(d_model=24, num_layers=2, vocab=17, max_tokens=10):
    """Return random weights by the names and in the shapes of GPT-2's."""
    torch.manual_seed(0)
    shapes = {"wte.weight": (vocab, d_model), "wpe.weight": (max_tokens, d_model)}
    for i in range(num_layers):
        for name, (a, b) in {
            "attn.c_attn": (d_model, 3 * d_model),
            "attn.c_proj": (d_model, d_model),
            "mlp.c_fc": (d_model, 4 * d_model),
            "mlp.c_proj": (4 * d_model, d_model),
        }.items():
            shapes |= {f"h.{i}.{name}.weight": (a, b), f"h.{i}.{name}.bias": (b,)}
        for name in ("ln_1", "ln_2"):
            shapes[f"h.{i}.{name}.weight"] = shapes[f"h.{i}.{name}.bias"] = (d_model,)
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (d_model,)
    return {name: torch.randn(shape) * 0.5 for name, shape in shapes.items()}


def published_logits(weights, tokens, num_heads):
    """Compute GPT-2's logits (token, vocab) of one text, one query at a time."""

    def linear(name, x):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def norm(name, x):
        x = (x - x.mean(-1, keepdim=True)) / (
            x.var(-1, keepdim=True, correction=0) + 1e-5
        ).sqrt()
        return x * weights[name + ".weight"] + weights[name + ".bias"]

    def attention(name, x):
        d_model = x.shape[-1]
        size, context = d_model // num_heads, torch.zeros_like(x)
        Q, K, V = linear(name + ".c_attn", x).split(d_model, dim=-1)
        for head in range(num_heads):
            part = slice(head * size, (head + 1) * size)
            for i in range(len(x)):
                scores = K[: i + 1, part] @ Q[i, part] / math.sqrt(size)
                context[i, part] = scores.softmax(0) @ V[: i + 1, part]
        return linear(name + ".c_proj", context)

    def mlp(name, x):
        x = linear(name + ".c_fc", x)
        x = x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return linear(name + ".c_proj", x)

    x = weights["wte.weight"][tokens] + weights["wpe.weight"][: len(tokens)]
    num_layers = sum(name.endswith("c_attn.weight") for name in weights)
    for i in range(num_layers):
        x = x + attention(f"h.{i}.attn", norm(f"h.{i}.ln_1", x))
        x = x + mlp(f"h.{i}.mlp", norm(f"h.{i}.ln_2", x))
    return norm("ln_f", x) @ weights["wte.weight"].T


@torch.no_grad()
@pytest.mark.parametrize("num_heads", [1, 3])
@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt_2_s_weights_give_what_gpt_2_computes(num_heads, prefix):
    weights = published_weights()
    named = {prefix + name: weight for name, weight in weights.items()}
    # What files of it hold besides: the mask, and the table once more.
    named |= {prefix + "h.0.attn.bias": torch.ones(1, 1, 10, 10).tril()}
    named |= {"lm_head.weight": weights["wte.weight"]}
    model, tokens = from_gpt2(named, num_heads), torch.randint(17, (2, 10))
    for row, logits in zip(tokens, model(tokens), strict=True):
        expected = published_logits(weights, row, num_heads)
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


def test_the_size_of_gpt_2_small_is_that_of_its_weights():
    with torch.device("meta"):
        model = GPT(50_257, 768, 12, 12, max_tokens=1024)
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808


# --- Predicting and generating ------------------------------------------------------


@torch.no_grad()
def test_the_future_changes_nothing_before_it():
    model, tokens = make(), texts()
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 13
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])
    assert not model(tokens)[:, 5:].allclose(model(changed)[:, 5:])


@torch.no_grad()
@pytest.mark.parametrize("sizes", [[9], [1] * 9, [3, 1, 5], [4, 5]])
def test_with_a_cache_any_pieces_give_what_the_whole_gives(sizes):
    model, tokens, cache = make(), texts(), KVCache()
    pieces = [model(piece, cache) for piece in tokens.split(sizes, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), model(tokens))
    assert cache.length == 9 and len(cache) == 2  # layers


@torch.no_grad()
@pytest.mark.parametrize("decode", [greedy, partial(beam_search, num_beams=4)])
@pytest.mark.parametrize("length", [1, 3])
def test_decoding_gives_the_log_probabilities_of_the_uncached_model(decode, length):
    model, prompt = make(), texts()[:, :length]
    found = decode(model, prompt, KVCache(), max_new_tokens=5, eos=2)
    for row, tokens, total in zip(prompt.tolist(), *found, strict=True):
        text = torch.tensor([*row, *tokens, *[2] * (len(tokens) < 5)])
        log_probs = model(text[None, :-1])[0].log_softmax(-1)[length - 1 :]
        if decode is greedy:
            assert log_probs.argmax(-1).equal(text[length:])
        expected = log_probs.gather(1, text[length:, None]).sum()
        torch.testing.assert_close(total, expected, atol=1e-4, rtol=0)


def test_its_maps_are_recorded():
    model = make()
    with record_attention(model) as maps:
        model(texts())
    assert maps["layers.1.attention"].shape == (3, 2, 9, 9)
    assert maps["layers.1.attention"].triu(1).eq(0).all()


def test_at_first_all_tokens_are_about_as_likely():
    torch.manual_seed(0)
    logits = GPT(13, 16, 2, 2, max_tokens=12)(texts())
    assert logits.softmax(-1).max() < 0.12


def test_what_is_added_to_the_tokens_begins_smaller_the_more_layers_add():
    torch.manual_seed(0)
    model = GPT(50, 128, 2, 8, max_tokens=50)
    weights = dict(model.named_parameters())
    for name, weight in weights.items():
        adds = name.endswith(("W_O.weight", "W_2.weight"))
        if weight.ndim == 2:  # sixteen sub-layers add
            assert abs(weight.std() / (0.02 / 4 if adds else 0.02) - 1) < 0.04, name


def test_dropout_is_that_of_every_part():
    model = make(dropout=0.3)
    rates = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
    rates |= {layer.attention.dropout for layer in model.layers}
    assert rates == {0.3}


def test_no_token_and_too_many_tokens_are_refused_with_advice():
    model = make()
    with pytest.raises(ValueError, match="begin with <bos>"):
        model(texts()[:, :0])
    with pytest.raises(ValueError, match=r"13 tokens are more than this model's 12: s"):
        model(texts(tokens=13))
    with pytest.raises(ValueError, match=r"13 tokens .* max_new_tokens"):
        greedy(model, texts(), KVCache(), max_new_tokens=9, eos=99)


def broken(change):
    """Return published weights with one thing about them changed."""
    weights = published_weights()
    attention = "h.1.attn.c_attn.weight"
    if change == "untied":
        weights["lm_head.weight"] = weights["wte.weight"] + 1
    elif change == "more":
        weights["h.0.crossattention.c_attn.weight"] = weights[attention]
    elif change == "missing":
        del weights["h.1.ln_1.bias"]
    elif change == "transposed":
        weights[attention] = weights[attention].T
    elif change == "axes":
        weights["h.1.mlp.c_fc.bias"] = torch.tensor(0.0)
    elif change == "prefixed":
        weights = {f"module.{name}": weight for name, weight in weights.items()}
    elif change == "empty":
        weights.clear()
    elif change == "a path":
        weights = "pytorch_model.bin"
    return weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("untied", "lm_head.weight is not wte.weight"),
        ("more", "1 weights are not GPT-2's: h.0.crossattention"),
        ("missing", "1 weights are missing: h.1.ln_1.bias"),
        ("transposed", "layers.1.attention.W_Q.weight .* have to be transposed"),
        ("axes", r"h\.1\.mlp\.c_fc\.bias is \(\), expected 1 axes"),
        ("prefixed", "28 weights are missing: h.0.attn.c_attn.bias"),
        ("empty", "weights are missing: h.0.attn.c_attn.bias"),
        ("a path", r"torch.load\(path\).*: got str"),
    ],
)
def test_weights_of_something_else_are_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        from_gpt2(broken(change), 3)


def test_weights_may_be_arrays_of_numpy():
    weights = published_weights()
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    tokens = torch.randint(17, (2, 10))
    assert not from_gpt2(weights, 3).training
    logits = from_gpt2(weights, 3)(tokens)
    assert from_gpt2(arrays, 3)(tokens).equal(logits)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_become_float32(dtype):
    halves = {name: weight.to(dtype) for name, weight in published_weights().items()}
    model = from_gpt2(halves, 3)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert model.norm.bias.equal(halves["ln_f.bias"].float())
