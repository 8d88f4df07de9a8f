"""The chapter in one file is the library's GPT, tokenizes losslessly, and learns."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from tutorial_lib.gpt import GPT

FILE = Path(__file__).parents[1] / "notebooks" / "small_gpt.py"
TEXT = "The cat sleeps; the dog does not.\n  'Naïve'  cats\tsing: 3.14!\n" * 20


@pytest.fixture(scope="module")
def small_gpt():
    spec = importlib.util.spec_from_file_location("small_gpt", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_text_of_known_characters_comes_back(small_gpt):
    tokenizer = small_gpt.Tokenizer(TEXT, num_merges=40)
    for text in (TEXT, "not at all\n\n\tthat", "", "cat"):
        token_ids = tokenizer.encode(text)
        assert tokenizer.decode(token_ids) == text
    assert len(tokenizer.encode(TEXT)) < 0.6 * len(TEXT)
    assert len({*tokenizer.vocabulary}) == len(tokenizer.vocabulary)


def test_merges_are_found_by_hand(small_gpt):
    # "abab abab": (a, b) four times; then (ab, ab) twice, once with a space before it.
    assert small_gpt.train_bpe("abab abab", 1) == [("a", "b")]
    merges = small_gpt.train_bpe("abab abab", 9)
    assert merges[:2] == [("a", "b"), ("ab", "ab")]
    assert merges[2:] == [(" ", "abab")]  # then nothing is left to merge


def test_an_unknown_character_is_refused(small_gpt):
    with pytest.raises(ValueError, match=r"not in the text: \['é'\]"):
        small_gpt.Tokenizer("abc", 1).encode("caé")


@torch.no_grad()
def test_the_model_is_the_library_s(small_gpt):
    torch.manual_seed(0)
    ours = GPT(20, 16, 4, 2, max_tokens=9)
    theirs = small_gpt.GPT(20, 16, 4, 2, 9)
    theirs.load_state_dict(ours.state_dict())
    tokens = torch.randint(20, (3, 9))
    torch.testing.assert_close(theirs(tokens), ours(tokens))


def test_the_targets_are_the_inputs_shifted_by_one(small_gpt):
    inputs, targets = small_gpt.get_batch(torch.arange(50), max_tokens=6, batch_size=4)
    assert inputs.shape == (4, 6) and torch.equal(targets, inputs + 1)


@torch.no_grad()
def test_of_one_token_the_likeliest_is_sampled(small_gpt):
    torch.manual_seed(0)
    model = small_gpt.GPT(7, 16, 2, 1, 5)
    tokens = torch.tensor([[3]])
    text = small_gpt.generate(model, tokens, 8, top_k=1)  # longer than its context
    cold = small_gpt.generate(model, tokens, 8, temperature=1e-4)
    assert text.shape == (1, 9) and torch.equal(text, cold)
    for end in range(1, 9):
        logits = model(text[:, max(end - 5, 0) : end])[0, -1]
        assert text[0, end] == logits.argmax()


@pytest.fixture
def run(small_gpt, tmp_path, monkeypatch, capsys):
    def call(text, *arguments):
        path = tmp_path / "text.txt"
        path.write_text(text, encoding="utf-8")
        sizes = ["--d-model", "32", "--heads", "2", "--layers", "1", "--context", "16"]
        command = ["small_gpt.py", str(path), "--merges", "10", *sizes, *arguments]
        monkeypatch.setattr(sys, "argv", command)
        small_gpt.main()
        return capsys.readouterr().out

    return call


def test_it_learns_a_text_and_goes_on_writing(run):
    text = "one two three four five six seven\n"
    printed = run(text * 100, "--steps", "400", "--top-k", "1", "--prompt", "one two")
    lines = printed.split("\n")
    first, last = (float(lines[i].rsplit(" ", 1)[1]) for i in (1, 10))
    assert lines[10].startswith("step 400: loss ") and last < 0.5 * first
    assert "one two three four five" in "\n".join(lines[11:])


def test_a_text_that_is_too_short_is_refused(run):
    with pytest.raises(SystemExit):
        run("too short")
