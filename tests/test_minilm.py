"""MiniLM in the book's `Bert`: its tokens, its vectors, and what padding changes."""

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from tutorial_lib.pretrained import minilm

QUESTION = "How do I cook rice?"
# How the hidden state of its [CLS] begins, as transformers computes it: see
# full/test_transformers.py.
HIDDEN_STATE = [-0.0495, -0.1183, -0.2125, 0.3455]


@pytest.fixture(scope="module")
def loaded():
    return minilm()


def sentence_vectors(loaded, sentences):
    """Return the mean over each sentence's tokens, of length 1."""
    model, tokenizer = loaded
    rows = []
    for sentence in sentences:
        tokens = torch.tensor([tokenizer.encode(sentence).ids])
        with torch.no_grad():
            rows.append(model(tokens, [tokens.shape[1]]).mean(dim=1))
    return torch.nn.functional.normalize(torch.cat(rows), dim=-1)


def test_it_has_22_million_weights_and_is_ready_to_be_used(loaded):
    model, _ = loaded
    assert sum(weight.numel() for weight in model.parameters()) == 22_565_376
    assert not model.training
    assert {part.eps for part in model.modules() if hasattr(part, "eps")} == {1e-12}


def test_its_tokens_are_those_of_bert_and_as_many_as_the_text_has(loaded):
    _, tokenizer = loaded
    tokens = tokenizer.encode("The animal didn't cross the unhappy street").tokens
    assert tokens[:7] == ["[CLS]", "the", "animal", "didn", "'", "t", "cross"]
    assert tokens[-1] == "[SEP]" and "[PAD]" not in tokens
    assert len(tokenizer.encode("rice " * 300).ids) == 302


@torch.no_grad()
def test_its_hidden_states_are_those_of_transformers(loaded):
    model, tokenizer = loaded
    tokens = torch.tensor([tokenizer.encode(QUESTION).ids])
    x = model(tokens, [tokens.shape[1]])
    assert x[0, 0, :4].tolist() == pytest.approx(HIDDEN_STATE, abs=1e-4)


def test_a_question_is_nearest_to_the_sentence_that_answers_it(loaded):
    question, *others = sentence_vectors(
        loaded,
        [
            QUESTION,
            "Boil the grains in water until they are soft.",
            "The striker scored in the last minute.",
            "The bank raised its interest rates.",
        ],
    )
    cosines = torch.stack(others) @ question
    assert cosines.argmax() == 0
    assert cosines[0] > cosines[1:].max() + 0.2


@torch.no_grad()
def test_padding_changes_nothing(loaded):
    model, tokenizer = loaded
    texts = ["bank", QUESTION]
    rows = [torch.tensor(tokenizer.encode(text).ids) for text in texts]
    lengths = [len(row) for row in rows]
    batch = model(pad_sequence(rows, batch_first=True), lengths)
    for row, length, x in zip(rows, lengths, batch, strict=True):
        alone = model(row[None], [length])[0]
        torch.testing.assert_close(x[:length], alone, atol=1e-5, rtol=1e-5)


def test_a_text_beyond_its_positions_is_refused(loaded):
    model, _ = loaded
    with pytest.raises(ValueError, match="513 tokens are more than max_tokens=512"):
        model(torch.zeros(1, 513, dtype=torch.long), [513])
