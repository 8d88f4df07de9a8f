"""Other people's weights give in the book's classes what they give in their own."""

import math
import struct

import numpy as np
import pytest
import torch

from tutorial_lib.gpt import GPT
from tutorial_lib.pretrained import from_gpt2, from_llama2c, load_weights

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
            shapes[f"h.{i}.{name}.weight"] = (a, b)
            shapes[f"h.{i}.{name}.bias"] = (b,)
        for name in ("ln_1", "ln_2"):
            shapes[f"h.{i}.{name}.weight"] = (d_model,)
            shapes[f"h.{i}.{name}.bias"] = (d_model,)
    shapes["ln_f.weight"] = (d_model,)
    shapes["ln_f.bias"] = (d_model,)
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
        size = d_model // num_heads
        context = torch.zeros_like(x)
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
    named[prefix + "h.0.attn.bias"] = torch.ones(1, 1, 10, 10).tril()
    named["lm_head.weight"] = weights["wte.weight"]
    model = from_gpt2(named, num_heads)
    tokens = torch.randint(17, (2, 10))
    for row, logits in zip(tokens, model(tokens), strict=True):
        expected = published_logits(weights, row, num_heads)
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)


def broken(change):
    """Return published weights with one thing about them changed."""
    weights = published_weights()
    attention = "h.1.attn.c_attn.weight"
    if change == "untied":
        weights["lm_head.weight"] = weights["wte.weight"] + 1
    elif change == "left over":
        weights["h.0.crossattention.c_attn.weight"] = weights[attention]
    elif change == "missing":
        del weights["h.1.ln_1.bias"]
    elif change == "missing first":
        del weights["h.1.ln_1.weight"]
    elif change == "transposed":
        weights[attention] = weights[attention].T
    elif change == "empty":
        weights.clear()
    return weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("untied", "lm_head.weight is not wte.weight"),
        ("left over", "no place for h.0.crossattention.c_attn.weight"),
        ("missing", "the weight h.1.ln_1.bias is missing"),
        ("missing first", "the weight h.1.ln_1.weight is missing"),
        ("transposed", r"layers.1.attention.W_Q.weight are \(8, 72\), expected \(24"),
        ("empty", "the weight wte.weight is missing"),
    ],
)
def test_weights_of_something_else_are_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        from_gpt2(broken(change), 3)


def test_weights_may_be_arrays_of_numpy_and_halves():
    weights = published_weights()
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    tokens = torch.randint(17, (2, 10))
    model = from_gpt2(weights, 3)
    assert not model.training
    assert from_gpt2(arrays, 3)(tokens).equal(model(tokens))
    halves = {name: weight.half() for name, weight in weights.items()}
    assert from_gpt2(halves, 3).norm.bias.equal(halves["ln_f.bias"].float())


# --- llama2.c's format, read and computed by NumPy --------------------------------

SIZES = 16, 28, 2, 4, 2, 13, 12  # as a file begins


def checkpoint(sizes=SIZES, seed=0):
    """Return the bytes of a checkpoint whose weights are random."""
    d_model, _, _, num_heads, _, _, max_tokens = sizes
    generator = np.random.default_rng(seed)
    angles = np.full(max_tokens * d_model // num_heads, np.nan)  # which nobody reads
    content = struct.pack("<7i", *sizes)
    for name, shape in shapes(sizes):
        weights = generator.normal("norm" in name, 0.3, shape)
        if name == "output":
            content += angles.astype("<f4").tobytes()
        content += weights.astype("<f4").tobytes()
    return content if sizes[5] < 0 else content + angles.astype("<f4").tobytes()


def shapes(sizes):
    d_model, d_ff, layers, num_heads, num_kv_heads, vocab, _ = sizes
    d_kv = d_model // num_heads * num_kv_heads
    named = [("embedding", (abs(vocab), d_model)), ("norm1", (layers, d_model))]
    named += [("q", (layers, d_model, d_model)), ("k", (layers, d_kv, d_model))]
    named += [("v", (layers, d_kv, d_model)), ("o", (layers, d_model, d_model))]
    named += [("norm2", (layers, d_model)), ("w1", (layers, d_ff, d_model))]
    named += [("w2", (layers, d_model, d_ff)), ("w3", (layers, d_ff, d_model))]
    named += [("norm", (d_model,))]
    return named + [("output", (-vocab, d_model))] * (vocab < 0)


def read(content):
    """Return the sizes and the weights of a checkpoint, by llama2.c's names."""
    sizes = struct.unpack("<7i", content[:28])
    numbers = np.frombuffer(content[28:], "<f4").astype(float)
    weights = {}
    for name, shape in shapes(sizes):
        if name == "output":
            numbers = numbers[sizes[6] * sizes[0] // sizes[3] :]
        weights[name] = numbers[: np.prod(shape)].reshape(shape)
        numbers = numbers[np.prod(shape) :]
    return sizes, weights


def numpy_logits(content, tokens):
    """Compute the logits (token, vocab), head by head and query by query."""
    (d_model, _, layers, num_heads, num_kv_heads, _, _), w = read(content)
    d_k = d_model // num_heads

    def norm(x, gain):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain

    def rotate(x, position):
        pairs = x[0::2] + 1j * x[1::2]
        pairs = pairs * np.exp(
            1j * position * 10_000.0 ** (-np.arange(0, d_k, 2) / d_k)
        )
        return np.stack([pairs.real, pairs.imag], -1).ravel()

    x = w["embedding"][tokens]
    for i in range(layers):
        y = norm(x, w["norm1"][i])
        q, k, v = (y @ w[name][i].T for name in "qkv")
        context = np.zeros_like(x)
        for head in range(num_heads):
            own = slice(head * d_k, (head + 1) * d_k)
            shared = head * num_kv_heads // num_heads
            shared = slice(shared * d_k, (shared + 1) * d_k)
            keys = [rotate(key[shared], t) for t, key in enumerate(k)]
            for t in range(len(x)):
                query = rotate(q[t, own], t)
                scores = np.array([query @ key for key in keys[: t + 1]]) / np.sqrt(d_k)
                weights = np.exp(scores - scores.max())
                context[t, own] = weights / weights.sum() @ v[: t + 1, shared]
        x = x + context @ w["o"][i].T
        y = norm(x, w["norm2"][i])
        gate = y @ w["w1"][i].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ w["w3"][i].T)) @ w["w2"][i].T
    return norm(x, w["norm"]) @ w.get("output", w["embedding"]).T


@pytest.fixture
def saved(tmp_path):
    def save(content):
        path = tmp_path / "model.bin"
        path.write_bytes(content)
        return path

    return save


@torch.no_grad()
@pytest.mark.parametrize("vocab", [13, -13])
@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_a_checkpoint_gives_what_its_format_says(saved, vocab, num_kv_heads):
    content = checkpoint((*SIZES[:4], num_kv_heads, vocab, 12))
    tokens = torch.randint(13, (1, 12))
    logits = from_llama2c(saved(content))(tokens)[0]
    expected = numpy_logits(content, tokens[0].numpy())
    np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-4)
    assert expected.std() > 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no checkpoint"),
        (b"\x89PNG\r\n\x1a\n" * 20, "is no checkpoint"),
        (b"<html>Please log in</html>" * 9, "is no checkpoint"),
        (b"24ka" + checkpoint(), "is no checkpoint"),  # llama2.c's second format
        (checkpoint((16, 28, 2, 3, 1, 13, 12))[:28], "is no checkpoint"),
        (checkpoint((16, 28, 2, 4, 3, 13, 12))[:28], "is no checkpoint"),
        (struct.pack("<7i", 16, 28, 2, 0, 2, 13, 12), "is no checkpoint"),
        (struct.pack("<7i", 16, 28, -2, 4, 2, 13, 12), "is no checkpoint"),
        (checkpoint()[:28], r"has 28 bytes, and a model of its sizes needs 18,"),
        (checkpoint()[:-1], "download or export it again"),
        (checkpoint() + bytes(4), "download or export it again"),
        (checkpoint((*SIZES[:5], -13, 12))[:-52], "download or export it again"),
    ],
)
def test_another_file_and_a_part_of_one_are_refused_in_one_sentence(
    saved, content, message
):
    path = saved(content)
    with pytest.raises(ValueError, match=message) as caught:
        from_llama2c(path)
    assert str(caught.value).startswith(f"{path} ") and "\n" not in str(caught.value)


# --- The book's own weights -------------------------------------------------------


def test_the_weights_of_chapter_12_prefer_what_was_trained():
    model = load_weights(GPT(104, 64, 4, 2, max_tokens=32), "english_gpt")
    assert not model.training
    assert model.token_embedding.weight.dtype == torch.float32
    tokens = torch.tensor([[0, 26, 34, 38, 18]])  # <eos> the cats
    probs = model(tokens)[0].softmax(dim=-1)  # (token, vocab)
    assert probs[2, 38] > 0.9  # no word but cat goes on as in "the c"
    assert 0.2 < probs[3, 18] < 0.8  # "the cat" may be "the cats"
    assert probs[4, 18] < 0.01  # which takes no second "s"


def test_weights_of_other_sizes_are_refused():
    with pytest.raises(RuntimeError, match="size mismatch for token_embedding"):
        load_weights(GPT(104, 32, 4, 2, max_tokens=32), "english_gpt")
