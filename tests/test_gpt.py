"""The GPT predicts from the past alone, and its KV cache changes nothing."""

import pytest
import torch

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import generate, greedy
from tutorial_lib.gpt import GPT
from tutorial_lib.interpret import record_attention


def make_gpt(seed=0):
    """Make a model whose logits are far from uniform."""
    torch.manual_seed(seed)
    model = GPT(13, 16, 2, 2, max_tokens=12)
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, mean=float("norm" in name), std=0.3)
    return model


def texts(rows=3, tokens=9):
    return torch.randint(13, (rows, tokens), generator=torch.Generator().manual_seed(1))


def test_the_size_of_gpt_2_small_is_that_of_its_weights():
    with torch.device("meta"):
        model = GPT(50_257, 768, 12, 12, max_tokens=1024)
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808


@torch.no_grad()
def test_the_future_changes_nothing_before_it():
    model = make_gpt()
    tokens = texts()
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 13
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])
    assert not model(tokens)[:, 5:].allclose(model(changed)[:, 5:])


@torch.no_grad()
@pytest.mark.parametrize("sizes", [[9], [1] * 9, [3, 1, 5], [4, 5]])
def test_with_a_cache_any_pieces_give_what_the_whole_gives(sizes):
    model = make_gpt()
    tokens = texts()
    cache = KVCache()
    pieces = [model(piece, cache) for piece in tokens.split(sizes, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))
    assert [cache.num_tokens(layer) for layer in range(3)] == [9, 9, 0]


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 3])
def test_greedy_decoding_chooses_the_likeliest_token_of_the_uncached_model(length):
    model = make_gpt()
    prompt = texts()[:, :length]
    new_tokens = generate(model, prompt, KVCache(), greedy, max_new_tokens=5, eos=99)
    text = torch.cat([prompt, new_tokens], dim=1)
    assert model(text).argmax(dim=-1)[:, length - 1 : -1].equal(new_tokens)


def test_its_maps_are_recorded():
    model = make_gpt()
    with record_attention(model) as maps:
        model(texts())
    assert maps["layers.1.attention"].shape == (3, 2, 9, 9)
    assert maps["layers.1.attention"].triu(1).eq(0).all()


def test_at_first_all_tokens_are_about_as_likely():
    torch.manual_seed(0)
    logits = GPT(13, 16, 2, 2, max_tokens=12)(texts())
    assert logits.softmax(dim=-1).max() < 0.12


def test_too_many_tokens_are_refused():
    with pytest.raises(ValueError, match="13 tokens are more than max_tokens=12"):
        make_gpt()(texts(tokens=13))
    with pytest.raises(ValueError, match="13 tokens are more"):
        generate(make_gpt(), texts(), KVCache(), greedy, max_new_tokens=9, eos=99)
