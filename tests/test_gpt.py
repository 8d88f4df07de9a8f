"""The GPT agrees with GPT-2 as it was published, and writes as it reads."""

import math

import pytest
import torch

from tutorial_lib.data.text import BOS
from tutorial_lib.decoding import beam_search, greedy
from tutorial_lib.gpt import GPT, from_gpt2
from tutorial_lib.recording import record_attention


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


def published_weights(d_model=24, blocks=2, vocab=17, max_tokens=10):
    """Return random weights by the names and in the shapes of GPT-2's."""
    torch.manual_seed(0)
    shapes = {"wte.weight": (vocab, d_model), "wpe.weight": (max_tokens, d_model)}
    for i in range(blocks):
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


def published_logits(weights, tokens, heads):
    """Compute GPT-2's logits (token, vocab) of one text, one query at a time."""

    def linear(name, x):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def norm(name, x):
        x = (x - x.mean(-1, keepdim=True)) / (
            x.var(-1, keepdim=True, correction=0) + 1e-5
        ).sqrt()
        return x * weights[name + ".weight"] + weights[name + ".bias"]

    def look(name, x):
        d_model = x.shape[-1]
        size, read = d_model // heads, torch.zeros_like(x)
        Q, K, V = linear(name + ".c_attn", x).split(d_model, dim=-1)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            for i in range(len(x)):
                scores = K[: i + 1, part] @ Q[i, part] / math.sqrt(size)
                read[i, part] = scores.softmax(0) @ V[: i + 1, part]
        return linear(name + ".c_proj", read)

    def think(name, x):
        x = linear(name + ".c_fc", x)
        x = x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return linear(name + ".c_proj", x)

    x = weights["wte.weight"][tokens] + weights["wpe.weight"][: len(tokens)]
    blocks = sum(name.endswith("c_attn.weight") for name in weights)
    for i in range(blocks):
        x = x + look(f"h.{i}.attn", norm(f"h.{i}.ln_1", x))
        x = x + think(f"h.{i}.mlp", norm(f"h.{i}.ln_2", x))
    return norm("ln_f", x) @ weights["wte.weight"].T


@torch.no_grad()
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_gpt_2_s_weights_give_what_gpt_2_computes(heads, prefix):
    weights = published_weights()
    named = {prefix + name: weight for name, weight in weights.items()}
    # What files of it hold besides: the mask, and the table once more.
    named |= {prefix + "h.0.attn.bias": torch.ones(1, 1, 10, 10).tril()}
    named |= {"lm_head.weight": weights["wte.weight"]}
    model, tokens = from_gpt2(named, heads=heads), torch.randint(17, (2, 10))
    expected = torch.stack([published_logits(weights, row, heads) for row in tokens])
    torch.testing.assert_close(model(tokens), expected, atol=1e-4, rtol=1e-4)


def test_gpt_2_has_a_head_for_every_64_numbers():
    model = from_gpt2(published_weights(d_model=128))
    assert [block.attention.heads for block in model.blocks] == [2, 2]


def test_weights_of_something_else_are_refused():
    with pytest.raises(ValueError, match="not the weights of a GPT-2"):
        from_gpt2({"wte.weight": torch.zeros(3, 4)})


def test_the_size_of_gpt_2_small_is_that_of_its_weights():
    with torch.device("meta"):
        model = GPT(50_257, 768, 12, 12, max_tokens=1024)
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808


# --- Reading and writing ----------------------------------------------------------


@torch.no_grad()
def test_what_follows_changes_nothing_before_it():
    model, tokens = make(), texts()
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 13
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])
    assert not model(tokens)[:, 5:].allclose(model(changed)[:, 5:])


@torch.no_grad()
@pytest.mark.parametrize("pieces", [[9], [1] * 9, [3, 1, 5], [4, 5]])
def test_a_text_read_in_pieces_is_read_as_a_whole(pieces):
    model, tokens = make(), texts()
    state, logits = model.start(tokens[:, :0], torch.zeros(3)).prefixes, []
    for piece in tokens.split(pieces, dim=1):
        found, state = model.read(piece, state)
        logits.append(found)
    torch.testing.assert_close(torch.cat(logits, 1), model(tokens))
    assert state[0][0].shape == (3, 2, 9, 8)


@torch.no_grad()
@pytest.mark.parametrize("prompt", [0, 1, 3])
def test_greedy_goes_on_from_a_prompt_with_the_likeliest_words(prompt):
    model, before = make(), texts()[:, :prompt]
    written = greedy(model, before, torch.full((3,), prompt), max_tokens=5, eos=99)
    for row, words in zip(before.tolist(), written.tokens, strict=True):
        text = [BOS, *row]
        for word in words:
            assert word == int(model(torch.tensor([text]))[0, -1].argmax())
            text.append(word)


@torch.no_grad()
def test_beams_share_a_gpt():
    model, prompt = make(), texts()[:, :2]
    found = beam_search(model, prompt, torch.full((3,), 2), width=4, max_tokens=4)
    for row, words, total in zip(prompt.tolist(), *found, strict=True):
        text = torch.tensor([BOS, *row, *words, *[2] * (len(words) < 4)])
        chances = model(text[None, :-1])[0].log_softmax(-1)[2:]
        expected = chances.gather(1, text[3:, None]).sum()
        assert float(total) == pytest.approx(float(expected), abs=1e-4)


def test_its_maps_are_recorded():
    model = make()
    with record_attention(model) as maps:
        model(texts())
    assert maps["blocks.1.attention"].shape == (3, 2, 9, 9)
    assert maps["blocks.1.attention"].triu(1).eq(0).all()


def test_at_first_all_words_are_about_as_likely():
    torch.manual_seed(0)
    logits = GPT(13, 16, 2, 2, max_tokens=12)(texts())
    assert logits.softmax(-1).max() < 0.12


def test_dropout_is_that_of_every_part():
    model = make(dropout=0.3)
    rates = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
    rates |= {block.attention.dropout for block in model.blocks}
    assert rates == {0.3}


def test_no_token_too_many_tokens_and_unequal_prompts_are_refused_with_advice():
    model = make()
    with pytest.raises(ValueError, match="begin with <bos>"):
        model(texts()[:, :0])
    with pytest.raises(ValueError, match=r"13 tokens are more than this model's 12: s"):
        model(texts(tokens=13))
    with pytest.raises(ValueError, match=r"13 tokens .* max_tokens"):
        greedy(model, texts(), torch.full((3,), 9), max_tokens=9, eos=99)
    with pytest.raises(ValueError, match=r"equally long, got lengths \[9, 2, 9\]"):
        model.start(texts(), torch.tensor([9, 2, 9]))
    assert model.start(texts(0), torch.zeros(0)).prompt.shape == (0, 9)
