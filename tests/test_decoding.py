"""Decoding agrees with the model's own probabilities, at every position."""

import math
from functools import partial
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tutorial_lib.data.text import BOS, EOS, Vocabulary, pad
from tutorial_lib.decoding import Recomputing, beam_search, greedy, select, translate
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
    """Score every sentence that is finished after at most `longest` words."""
    words = [word for word in range(VOCAB) if word != EOS]
    scores = {}
    for length in range(longest):
        for sentence in product(words, repeat=length):
            score = log_probability(model, i, sentence)
            scores[sentence] = score / ((6 + length) / 6) ** penalty  # <eos> counts
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
    with pytest.raises(ValueError, match=r"width must be a positive .*, got 0"):
        beam_search(make_model(0), SOURCE, LENGTHS, width=0, max_tokens=3)


def test_select_reaches_into_every_kind_of_state():
    rows = torch.tensor([2, 0])
    state = {"a": [torch.arange(3), (torch.arange(6).view(3, 2),)], "step": 7}
    chosen = select(state, rows)
    assert chosen["a"][0].tolist() == [2, 0]
    assert chosen["a"][1][0].tolist() == [[4, 5], [0, 1]]
    assert chosen["step"] == 7  # which is the same for every row


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


@pytest.mark.parametrize("seed", range(4))
def test_who_reads_everything_anew_for_every_word_writes_the_same(seed):
    model = make_model(seed)
    for decode in (greedy, partial(beam_search, width=3)):
        found, slowly = (
            decode(m, SOURCE, LENGTHS, max_tokens=8)
            for m in (model, Recomputing(model))
        )
        assert slowly.tokens == found.tokens


@pytest.mark.parametrize("width", [1, 2, 3])
def test_translate_takes_words_and_gives_words_in_their_order(width):
    data = SimpleNamespace(
        source_vocabulary=Vocabulary([["a", "b", "c", "d", "e"]]),
        target_vocabulary=Vocabulary([["x", "y"]]),
    )
    model = make_model(4)  # its translations differ from width to width
    sentences = [["a", "b"], ["c"], ["unheard", "d", "e"], ["b"], ["e", "e"]]
    together = translate(model, sentences, data, width=width, size=2)
    alone = [translate(model, [s], data, width=width)[0] for s in sentences]
    assert [words[:5] for words in together] == [words[:5] for words in alone]
    for sentence, words in zip(sentences, alone, strict=True):
        options = {"max_tokens": 2 * len(sentence) + 10, "length_penalty": 1}
        source = pad([sentence], data.source_vocabulary)
        found = beam_search(model, *source, width=width, **options)
        assert data.target_vocabulary.decode(found.tokens[0]) == words
    assert {word for words in together for word in words} <= {"x", "y", "<unk>"}
    assert translate(model, [], data) == []
    with pytest.raises(ValueError, match="must have a word"):
        translate(model, [["a"], []], data)


class Languages(nn.Module):
    """As many models as sources, each with a table: logits after every beginning."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables  # (batch, beginning, vocab)

    def start(self, source, lengths):
        return {"language": source[:, 0], "beginning": torch.zeros_like(source[:, 0])}

    def step(self, tokens, state):
        beginning = number_of((state["beginning"], tokens), *self.tables.shape[1:])
        logits = self.tables[state["language"], beginning]
        return logits, {**state, "beginning": beginning}

    def decode(self, decode, **options):
        languages = torch.arange(len(self.tables))[:, None]
        lengths = torch.ones(len(languages), dtype=torch.long)
        return decode(self, languages, lengths, **{"bos": 0, "eos": 1, **options})


def number_of(beginning, rows, vocab):
    number, *words = beginning
    for word in words:
        number = (number * (vocab + 1) + word + 1) % rows
    return number


def log_probability_of(table, words):
    """Add up what a table, of log-probabilities in lists, gives to the words."""
    sizes = len(table), len(table[0])
    beginnings = [(0, 0, *words[:t]) for t in range(len(words))]
    return sum(
        table[number_of(b, *sizes)][w] for b, w in zip(beginnings, words, strict=True)
    )


def score_of(table, words, penalty):
    return log_probability_of(table, words) / ((5 + len(words)) / 6) ** penalty


def as_written(words):
    return [word for word in words if word != 1]


@pytest.mark.parametrize("penalty", [0.0, 1.0, -0.5])
def test_a_wide_beam_finds_the_best_finished_sentence_of_300_languages(penalty):
    tables = 2 * torch.randn(300, 97, 3, generator=torch.Generator().manual_seed(7))
    options = {"max_tokens": 4, "length_penalty": penalty}
    found = Languages(tables).decode(beam_search, width=50, **options)
    finished = [(*w, 1) for length in range(4) for w in product((0, 2), repeat=length)]
    for table, written in zip(
        tables.log_softmax(-1).tolist(), found.tokens, strict=True
    ):
        best = max(finished, key=lambda words: score_of(table, words, penalty))
        assert written == as_written(best)


def search_slowly(table, *, width, max_tokens, penalty):
    """Search one language with lists, and return the words, their <eos> included."""
    beams, found = [()], []
    for _ in range(max_tokens):
        ended = [words for words in beams if 1 in words]
        others = [words for words in beams if 1 not in words]
        longer = [(*words, word) for words in others for word in range(len(table[0]))]
        longer = sorted(
            ended + longer, key=lambda words: -log_probability_of(table, words)
        )
        beams = longer[:width]
        found += [words for words in beams if 1 in words]
    return max(found or beams, key=lambda words: score_of(table, words, penalty))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    width=st.integers(1, 6),
    vocab=st.integers(2, 5),
    max_tokens=st.integers(1, 5),
    penalty=st.sampled_from([0.0, 0.6, 1.0, -1.0, 3.0]),
    eos=st.floats(-6, 3),
)
def test_any_beam_finds_what_a_search_with_lists_finds(
    seed, width, vocab, max_tokens, penalty, eos
):
    tables = torch.randn(3, 97, vocab, generator=torch.Generator().manual_seed(seed))
    tables[..., 1] += eos  # sentences end soon, late or never
    options = {"width": width, "max_tokens": max_tokens}
    found = Languages(tables).decode(beam_search, length_penalty=penalty, **options)
    for table, *written in zip(tables.log_softmax(-1).tolist(), *found, strict=True):
        words = search_slowly(table, penalty=penalty, **options)
        total = pytest.approx(log_probability_of(table, words), abs=1e-4)
        assert written == [as_written(words), total]


def test_a_finished_sentence_that_was_pushed_out_of_the_beam_still_wins():
    # After <bos>: .3 to end, .7 for word 2; then .5 each for words 2 and 3. With two
    # beams the sentence that ended is pushed out by .35 and .35, which never end.
    first = torch.tensor([0, 0.3, 0.7, 0]).log()
    later = torch.tensor([0, 0, 0.5, 0.5]).log()
    tables = torch.stack((later, first, *[later] * 95))[None]
    found = Languages(tables).decode(beam_search, width=2, max_tokens=3)
    assert found.tokens == [[]]
    assert found.log_probabilities.tolist() == pytest.approx([math.log(0.3)])


def test_only_where_nothing_ended_a_sentence_that_was_cut_off_is_returned():
    never = torch.tensor([0, 0, 0.6, 0.4]).log().expand(1, 97, 4)
    found = Languages(never).decode(beam_search, width=30, max_tokens=2)
    assert found.tokens == [[2, 2]]
    assert found.log_probabilities.tolist() == pytest.approx([2 * math.log(0.6)])


every_decoding = pytest.mark.parametrize(
    "decode", [greedy, partial(beam_search, width=1), partial(beam_search, width=3)]
)


@every_decoding
def test_one_word_may_begin_and_end_every_sentence(decode):
    tables = torch.randn(9, 1, 4, generator=torch.Generator().manual_seed(3))
    model = Languages(tables.expand(9, 97, 4))  # what was written before says nothing
    usual, same = (model.decode(decode, max_tokens=4, bos=bos) for bos in (0, 1))
    assert same.tokens == usual.tokens and any(usual.tokens)


@every_decoding
def test_no_sentences_and_no_words_are_decoded_to_none(decode):
    model = make_model(0)
    found = decode(model, SOURCE[:0], LENGTHS[:0], max_tokens=5)
    assert found.tokens == [] and found.log_probabilities.shape == (0,)
    found = decode(model, SOURCE, LENGTHS, max_tokens=0)
    assert found.tokens == [[]] * 4 and found.log_probabilities.eq(0).all()


@every_decoding
@pytest.mark.parametrize("count", [-1, 2.5])
def test_a_number_of_words_that_is_none_is_refused(decode, count):
    with pytest.raises(ValueError, match=rf"0 or more, got {count}"):
        decode(make_model(0), SOURCE, LENGTHS, max_tokens=count)


@every_decoding
@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("word", [1, 3])
def test_logits_without_probabilities_are_refused_at_their_word(decode, broken, word):
    class Breaking(Languages):
        def step(self, tokens, state):
            logits, state = super().step(tokens, state)
            steps = state.get("steps", torch.zeros_like(tokens)) + 1
            if steps[0] == word:
                logits = logits.index_fill(0, torch.tensor([0]), broken)
            return logits, {**state, "steps": steps}

    model = Breaking(torch.tensor([0, -9.0, 1]).expand(2, 97, 3))
    with pytest.raises(ValueError, match=rf"no probabilities for word {word}.*NaN"):
        model.decode(decode, max_tokens=5)
    assert len(model.decode(decode, max_tokens=word - 1).tokens) == 2


def test_what_comes_after_a_sentence_has_ended_is_not_looked_at():
    class Breaking(Languages):
        def step(self, tokens, state):
            logits, state = super().step(tokens, state)
            return logits.where(tokens[:, None] != 1, torch.nan), state

    tables = torch.tensor([[0, 9.0, 0], [0, -9.0, 1]])[:, None].expand(2, 97, 3)
    for decode in (greedy, partial(beam_search, width=2)):
        written = Breaking(tables).decode(decode, max_tokens=4).tokens
        assert written[0] == [] and len(written) == 2


@pytest.mark.parametrize("size", [0, -1])
def test_translating_nothing_at_a_time_is_refused(size):
    with pytest.raises(ValueError, match=rf"size must be a positive .*, got {size}"):
        translate(make_model(0), [["a"]], SimpleNamespace(), size=size)
