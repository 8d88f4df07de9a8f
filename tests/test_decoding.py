"""Decoding agrees with the model's own probabilities, at every position."""

from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tutorial_lib.data.text import BOS, EOS, Vocabulary
from tutorial_lib.decoding import beam_search, greedy, select, translate
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq

VOCAB = 6
LENGTHS = torch.tensor([4, 1, 3, 2])
SOURCE = torch.tensor([[4, 5, 6, 7], [5, 0, 0, 0], [7, 7, 4, 0], [6, 4, 0, 0]])


def make_model(seed, *, decoder=AttentionDecoder, vocab=VOCAB, dropout=0.0):
    """Make a model whose logits are far from uniform and differ from word to word."""
    torch.manual_seed(seed)
    sizes = (vocab, 4, 7, 12, *([5] if decoder is AttentionDecoder else []))
    model = Seq2Seq(Encoder(9, 4, 6, dropout=dropout), decoder(*sizes, dropout=dropout))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


@torch.no_grad()
def log_probability(model, i, words, *, ended=True):
    """Sum what teacher forcing gives the words, for source i."""
    target = torch.tensor([[BOS, *words]])
    length = LENGTHS[i : i + 1]
    logits = model(SOURCE[i : i + 1, : length[0]], length, target)[0].log_softmax(-1)
    expected = [*words, EOS] if ended else words
    return sum(float(logits[t, word]) for t, word in enumerate(expected))


@pytest.mark.parametrize("decoder", [Decoder, AttentionDecoder])
@pytest.mark.parametrize("seed", range(8))
def test_greedy_takes_the_likeliest_word_at_every_position(decoder, seed):
    model = make_model(seed, decoder=decoder)
    found = greedy(model, SOURCE, LENGTHS, max_tokens=8)
    for i, words in enumerate(found.tokens):
        target = torch.tensor([[BOS, *words]])
        best = model(SOURCE[i : i + 1], LENGTHS[i : i + 1], target)[0].argmax(-1)
        ended = len(words) < 8
        assert best.tolist()[: len(words)] == words
        assert not ended or best[-1] == EOS
        expected = log_probability(model, i, words, ended=ended)
        assert float(found.log_probabilities[i]) == pytest.approx(expected, abs=1e-4)


def test_the_models_above_end_some_sentences_and_leave_others_open():
    written = [
        words
        for seed in range(8)
        for words in greedy(make_model(seed), SOURCE, LENGTHS, max_tokens=8).tokens
    ]
    lengths = [len(words) for words in written]
    assert lengths.count(8) < len(lengths) - 2 and len(set(lengths)) >= 3


def search_everything(model, i, longest, *, penalty=0.0):
    """Score every sentence of at most `longest` words, the unfinished ones included."""
    words = [word for word in range(VOCAB) if word != EOS]
    scores = {}
    for length in range(longest + 1):
        for sentence in product(words, repeat=length):
            score = log_probability(model, i, sentence, ended=length < longest)
            counted = length + 1 if length < longest else length
            scores[sentence] = score / ((5 + counted) / 6) ** penalty
    return max(scores, key=scores.get)


@pytest.mark.parametrize("seed", [1, 5])
@pytest.mark.parametrize("penalty", [0.0, 1.0, -0.5, 3.0])
def test_a_beam_as_wide_as_the_language_finds_the_best_sentence_of_all(penalty, seed):
    model = make_model(seed)
    found = beam_search(
        model, SOURCE, LENGTHS, width=200, max_tokens=3, length_penalty=penalty
    )
    for i, words in enumerate(found.tokens):
        assert tuple(words) == search_everything(model, i, 3, penalty=penalty)


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_one_is_greedy(seed):
    model = make_model(seed)
    wide = beam_search(model, SOURCE, LENGTHS, width=1, max_tokens=8)
    narrow = greedy(model, SOURCE, LENGTHS, max_tokens=8)
    assert wide.tokens == narrow.tokens
    torch.testing.assert_close(wide.log_probabilities, narrow.log_probabilities)


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_beams_log_probability_is_that_of_its_sentence(width, seed):
    model = make_model(seed)
    found = beam_search(model, SOURCE, LENGTHS, width=width, max_tokens=8)
    for i, words in enumerate(found.tokens):
        expected = log_probability(model, i, words, ended=len(words) < 8)
        assert float(found.log_probabilities[i]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("width", [1, 3])
def test_a_batch_gives_what_each_sentence_alone_gives(width):
    model = make_model(2)
    together = beam_search(model, SOURCE, LENGTHS, width=width, max_tokens=8)
    for i in range(len(SOURCE)):
        one, length = SOURCE[i : i + 1, : LENGTHS[i]], LENGTHS[i : i + 1]
        alone = beam_search(model, one, length, width=width, max_tokens=8)
        assert alone.tokens[0] == together.tokens[i]


def test_a_wider_beam_finds_sentences_that_greedy_misses():
    better = 0
    for seed in range(8):
        model = make_model(seed)
        narrow = greedy(model, SOURCE, LENGTHS, max_tokens=8).log_probabilities
        wide = beam_search(model, SOURCE, LENGTHS, width=6, max_tokens=8)
        better += (wide.log_probabilities > narrow + 1e-4).sum().item()
    assert better >= 5


def test_a_positive_length_penalty_favors_long_sentences():
    model = make_model(1)
    lengths = []
    for penalty in (-2.0, 0.0, 2.0):
        found = beam_search(
            model, SOURCE, LENGTHS, width=50, max_tokens=6, length_penalty=penalty
        )
        lengths.append(sum(len(words) for words in found.tokens))
    assert lengths[0] <= lengths[1] < lengths[2]


def test_a_width_below_one_is_refused():
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        beam_search(make_model(0), SOURCE, LENGTHS, width=0, max_tokens=3)


def test_select_reaches_into_every_kind_of_state():
    rows = torch.tensor([2, 0])
    state = {"a": [torch.arange(3), (torch.arange(6).view(3, 2),)]}
    chosen = select(state, rows)
    assert chosen["a"][0].tolist() == [2, 0]
    assert chosen["a"][1][0].tolist() == [[4, 5], [0, 1]]


@pytest.mark.parametrize("decode", [greedy, beam_search])
def test_dropout_is_off_and_comes_back(decode):
    model = make_model(0, dropout=0.5)
    width = {} if decode is greedy else {"width": 2}
    once, again = (
        decode(model, SOURCE, LENGTHS, max_tokens=8, **width) for _ in range(2)
    )
    assert once.log_probabilities.equal(again.log_probabilities)
    assert model.training and model.decoder.dropout.training
    with pytest.raises(RuntimeError):
        decode(model, SOURCE, LENGTHS * 0, max_tokens=8, **width)
    assert model.training
    assert not once.log_probabilities.requires_grad


@pytest.mark.parametrize("width", [1, 3])
def test_translate_takes_words_and_gives_words_in_their_order(width):
    data = SimpleNamespace(
        source_vocabulary=Vocabulary([["a", "b", "c", "d", "e"]]),
        target_vocabulary=Vocabulary([["x", "y"]]),
    )
    model = make_model(3)
    sentences = [["a", "b"], ["c"], ["unheard", "d", "e"], ["b"], ["e", "e"]]
    together = translate(model, sentences, data, width=width, size=2)
    alone = [translate(model, [s], data, width=width)[0] for s in sentences]
    assert [words[:5] for words in together] == [words[:5] for words in alone]
    assert {word for words in together for word in words} <= {"x", "y", "<unk>"}
    assert translate(model, [], data) == []
    with pytest.raises(ValueError, match="must have a word"):
        translate(model, [["a"], []], data)
