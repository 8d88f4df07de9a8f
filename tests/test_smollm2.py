"""SmolLM2 in the book's `Llama`, and what a GGUF file must be to become one."""

import gguf
import numpy as np
import pytest
import torch

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.llama import Llama
from tutorial_lib.pretrained import chat_prompt, from_gguf, smollm2

# --- The published model -------------------------------------------------------------

TEXT = (
    "The animal didn't cross the street because it was too tired, and the street was "
    "too wide. The capital of France is"
)
# Logits of words after some positions, as transformers computes them: see
# full/test_transformers.py. Losses would not do: a wrong base of RoPE lowers some.
LOGITS = {
    3: {" have": 26.7157, " just": 25.8176, " the": 17.8354},
    12: {" and": 15.1572, " it": 14.8130, " tired": 12.7466},
    19: {" The": 15.7540, " Paris": 5.9275, ".": -0.5081},
    24: {" Paris": 17.4877, " the": 14.7739, " tired": 6.2664},
}


@pytest.fixture(scope="module")
def loaded():
    return smollm2()


def answer(loaded, text, **options):
    """Return what the model writes after a text, greedily."""
    model, tokenizer = loaded
    tokens = torch.tensor([tokenizer.encode(text).ids])
    eos = tokenizer.token_to_id("<|im_end|>")
    new = generate(model, tokens, KVCache(), greedy, eos=eos, **options)
    return tokenizer.decode(new[0].tolist())


def test_it_has_135_million_weights_and_is_ready_to_be_used(loaded):
    model, tokenizer = loaded
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not model.training
    assert model.output.weight is model.token_embedding.weight
    assert tokenizer.get_vocab_size() == 49_152


@torch.no_grad()
def test_its_logits_are_those_of_transformers(loaded):
    model, tokenizer = loaded
    logits = model(torch.tensor([tokenizer.encode(TEXT).ids]))[0]  # (token, vocab)
    for position, words in LOGITS.items():
        for word, expected in words.items():
            [token] = tokenizer.encode(word).ids
            assert logits[position, token].item() == pytest.approx(expected, abs=1e-3)


def test_it_knows_the_capital_of_france(loaded):
    assert answer(loaded, "The capital of France is", max_new_tokens=1) == " Paris"
    question = chat_prompt("What is the capital of France?")
    assert answer(loaded, question, max_new_tokens=9) == (
        "The capital of France is Paris."
    )


@torch.no_grad()
def test_it_computes_the_same_with_a_cache_and_without(loaded):
    model, tokenizer = loaded
    tokens = torch.tensor([tokenizer.encode("Attention is all you need.").ids])
    kv_cache = KVCache()
    logits = [model(part, kv_cache) for part in tokens.split([3, 1, 2], dim=1)]
    torch.testing.assert_close(
        torch.cat(logits, dim=1), model(tokens), atol=1e-3, rtol=0
    )


ODD_TEXTS = [
    "",
    "  two  spaces ",
    "don't can't I'LL we've",
    "tab\there\nnew\n\nlines  \n x",
    "a\r\nb",
    "naïve café Straße e\u0301",
    "日本語のテキスト हिन्दी नमस्ते مرحبا",
    "😀👩‍👩‍👧 \u00a0nbsp\u200bzwsp",
    "C++ != C#; under_score __init__ http://a.b/c?d=1&e=2",
    "a²b½ Ⅳ",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_any_text_comes_back_from_its_tokens(loaded, text):
    _, tokenizer = loaded
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_digits_are_tokens_of_their_own_and_so_are_marks_of_a_chat(loaded):
    _, tokenizer = loaded
    assert tokenizer.encode("in 2017").tokens == ["in", "Ġ", "2", "0", "1", "7"]
    tokens = tokenizer.encode("<|im_start|>user\nHi<|im_end|>").tokens
    assert tokens == ["<|im_start|>", "user", "Ċ", "Hi", "<|im_end|>"]


# --- GGUF files, written by the format's own library ---------------------------------

SIZES = {
    "embedding_length": 32,
    "block_count": 2,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
TOKENS = ["<|im_end|>", "a", "b", "Ġ", "ab", "1", "2", "12"]
NAMES = {
    "token_embd": "token_embedding",
    "output_norm": "norm",
}
LAYER_NAMES = {
    "attn_norm": "norm1",
    "attn_q": "attention.W_Q",
    "attn_k": "attention.W_K",
    "attn_v": "attention.W_V",
    "attn_output": "attention.W_O",
    "ffn_norm": "norm2",
    "ffn_gate": "feed_forward.W_gate",
    "ffn_up": "feed_forward.W_up",
    "ffn_down": "feed_forward.W_down",
}


def tiny_llama():
    torch.manual_seed(0)
    return Llama(
        len(TOKENS), 32, 4, 2, num_kv_heads=2, d_ff=64, rope_base=500.0, norm_eps=0.25
    )


def weights_of(model):
    """Return the model's weights by their names in a GGUF file."""
    names = dict(NAMES)
    for i in range(len(model.layers)):
        for theirs, ours in LAYER_NAMES.items():
            names[f"blk.{i}.{theirs}"] = f"layers.{i}.{ours}"
    state = model.state_dict()
    return {
        f"{theirs}.weight": state[f"{ours}.weight"].numpy()
        for theirs, ours in names.items()
    }


@pytest.fixture
def write(tmp_path):
    """Return a function that writes weights as a GGUF file."""

    def write(weights, *, architecture="llama", pre="smollm", kind="F32"):
        path = tmp_path / "model.gguf"
        writer = gguf.GGUFWriter(path, architecture)
        for name, size in SIZES.items():
            writer.add_uint32(f"llama.{name}", size)
        writer.add_rope_freq_base(500.0)
        writer.add_layer_norm_rms_eps(0.25)
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(TOKENS)
        writer.add_token_merges(["a b", "1 2"])
        writer.add_token_types([3] + [1] * 7)
        for name, weight in weights.items():
            is_norm = weight.ndim == 1
            as_type = gguf.GGMLQuantizationType["F32" if is_norm else kind]
            packed = gguf.quantize(weight, as_type)
            writer.add_tensor(name, packed, raw_dtype=as_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


@torch.no_grad()
def test_a_file_of_a_llama_gives_that_llama_back(write):
    expected = tiny_llama()
    model, tokenizer = from_gguf(write(weights_of(expected)))
    tokens = torch.randint(len(TOKENS), (2, 9))
    assert model(tokens).equal(expected(tokens))
    assert tokenizer.encode("ab 12<|im_end|>").tokens == [
        *("ab", "Ġ", "1", "2", "<|im_end|>")
    ]


@pytest.mark.parametrize(("kind", "bits"), [("Q8_0", 8), ("Q4_1", 4), ("Q4_0", 4)])
def test_blocks_of_few_bits_are_read_to_within_a_step(write, kind, bits):
    expected = tiny_llama()
    model, _ = from_gguf(write(weights_of(expected), kind=kind))
    weight = expected.layers[1].feed_forward.W_up.weight.detach()
    error = (model.layers[1].feed_forward.W_up.weight - weight).abs()
    blocks = weight.unflatten(-1, (-1, 32))  # each of which has a scale of its own
    largest = blocks.abs().amax(dim=-1, keepdim=True)
    step = 2 * largest / (2**bits - 1)
    assert (error.unflatten(-1, (-1, 32)) < 1.1 * step).all()
    assert error.max() > 0


def changed(change):
    weights = weights_of(tiny_llama())
    query = "blk.1.attn_q.weight"
    if change == "missing":
        del weights[query]
    elif change == "left over":
        weights["output.weight"] = weights["token_embd.weight"]
    elif change == "another shape":
        weights[query] = np.ascontiguousarray(weights[query][:1])
    return weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", "the weight layers.1.attention.W_Q.weight is missing"),
        ("left over", "the model has no place for output.weight"),
        ("another shape", r"W_Q.weight are \(1, 32\), expected \(32, 32\)"),
    ],
)
def test_weights_of_something_else_are_refused(write, change, message):
    with pytest.raises(ValueError, match=message):
        from_gguf(write(changed(change)))


def test_another_model_and_another_tokenizer_are_refused(write):
    weights = weights_of(tiny_llama())
    with pytest.raises(ValueError, match="a model of another kind: falcon"):
        from_gguf(write(weights, architecture="falcon"))
    with pytest.raises(ValueError, match="text is split as gpt-2, expected smollm"):
        from_gguf(write(weights, pre="gpt-2"))
