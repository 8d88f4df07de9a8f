"""Sentences to tokens, tokens to ids, pairs to batches, and back."""

import math
import random
import unicodedata
from collections import Counter

import pytest
import torch

from tutorial_lib.data import (
    BOS,
    EOS,
    PAD,
    Batches,
    SentencePair,
    Vocabulary,
    detokenize,
    pad,
    tokenize,
)
from tutorial_lib.data.text import UNK


@pytest.mark.parametrize(
    ("language", "sentence", "words"),
    [
        ("en", "Tom's dog won't bark!", "tom 's dog won 't bark !"),
        ("en", "It's 10:30, isn't it?", "it 's 10:30 , isn 't it ?"),
        ("en", "A well-known (old) man...", "a well-known ( old ) man ..."),
        ("en", "He said 'no' at $1,000.50.", "he said ' no ' at $ 1,000.50 ."),
        ("en", "İzmir is far ❤️ 👍🏽!", "i\u0307zmir is far ❤️ 👍🏽 !"),  # marks stay
        ("fr", "L'oiseau qu'il a vu.", "l' oiseau qu' il a vu ."),
        ("fr", "Aujourd'hui, c'est toi !", "aujourd'hui , c' est toi !"),
        ("fr", "Quelqu'un l'a dit à d'autres.", "quelqu'un l' a dit à d' autres ."),
        ("fr", "Jusqu'où, lorsqu'on s'en va ?", "jusqu' où , lorsqu' on s' en va ?"),
        ("fr", "Puisqu'elle n'a qu'un œil.", "puisqu' elle n' a qu' un œil ."),
        ("fr", "Donne-m'en, va-t'en !", "donne-m' en , va-t' en !"),
        ("fr", "Qu'est-ce que c'est ?", "qu' est-ce que c' est ?"),
        ("fr", "J'ai 3,5 m d'eau.", "j' ai 3,5 m d' eau ."),
        ("fr", "Une presqu'île, un grand-père.", "une presqu'île , un grand-père ."),
    ],
)
def test_words_are_split_as_each_language_writes_them(language, sentence, words):
    assert tokenize(sentence, language) == words.split(" ")


def test_spaces_apostrophes_and_accents_are_written_one_way():
    spaced = "Ça\u202fva\u00a0?\u2009«\u00a0Oui\u00a0»\t!\u3000"
    assert tokenize(spaced, "fr") == ["ça", "va", "?", "«", "oui", "»", "!"]
    assert tokenize("l’été", "fr") == ["l'", "été"]
    assert tokenize(unicodedata.normalize("NFD", "l'été"), "fr") == ["l'", "été"]
    assert tokenize("don’t", "en") == ["don", "'t"]
    assert tokenize("", "en") == tokenize(" \u202f ", "fr") == []
    hidden = "\ufeffThe\u200b c\u00ada\x00t\u200e.\x1f"  # pasted from a page or a PDF
    assert tokenize(hidden, "en") == ["the", "cat", "."]
    with pytest.raises(ValueError, match='must be "en" or "fr", got \'de\''):
        tokenize("Guten Tag", "de")


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "don't stop at tom's (old) house, 'please'!"),
        ("en", 'it says "no way" on a 5-foot sign: "go".'),
        ("fr", "qu'est-ce qu'il n'a pas vu aujourd'hui, lorsqu'il l'a dit?"),
        ("fr", "quelqu'un porte l'\"uniforme\" d'une grand-mère..."),
        ("fr", "« bonjour », dit-il à l'oiseau."),
    ],
)
def test_words_join_to_the_sentence_they_came_from(language, sentence):
    assert detokenize(tokenize(sentence, language)) == sentence


PAIRS = [
    SentencePair(("go", "on"), ("va",)),
    SentencePair(("go",), ("va", "!")),
    SentencePair(("stop",), ("arrête", "!")),
]
SOURCE = Vocabulary(pair.source for pair in PAIRS)
TARGET = Vocabulary(pair.target for pair in PAIRS)


def test_a_vocabulary_begins_with_four_special_tokens_and_goes_on_by_frequency():
    assert SOURCE.tokens == ["<pad>", "<bos>", "<eos>", "<unk>", "go", "on", "stop"]
    assert TARGET.tokens[4:] == ["!", "va", "arrête"]
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert len(SOURCE) == 7
    assert "go" in SOURCE and "va" not in SOURCE
    frequent = Vocabulary((pair.source for pair in PAIRS), min_count=2)
    assert frequent.tokens[4:] == ["go"]
    assert frequent.encode(["go", "on"]) == [4, UNK]
    marked = Vocabulary([["<unk>", "go", "<eos>"]])  # no second entry
    assert marked.tokens[4:] == ["go"]
    assert marked.encode(["<unk>"]) == [UNK]


def test_decoding_undoes_encoding_and_stops_at_the_end():
    words = ["stop", "go", "go", "on"]
    assert SOURCE.decode(SOURCE.encode(words)) == words
    ids = [BOS, 4, UNK, PAD, 5, EOS, 6, EOS]
    assert SOURCE.decode(ids) == ["go", "<unk>", "on"]
    assert SOURCE.decode(torch.tensor(ids)) == ["go", "<unk>", "on"]
    assert SOURCE.decode([]) == []
    with pytest.raises(ValueError, match="no token has the id -1"):
        SOURCE.decode([4, -1])
    for ids in ([4, 99], torch.tensor([99]), [4.5], torch.tensor([4.0])):
        with pytest.raises(ValueError, match=r"no token has the id (99|4\.)"):
            SOURCE.decode(ids)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_a_least_count_is_a_whole_number(count):
    with pytest.raises(ValueError, match="min_count must be a positive whole"):
        Vocabulary([["go"]], min_count=count)


def test_padding_fills_at_the_end_and_tells_the_lengths():
    source, lengths = pad([["go", "on"], ["now"]], SOURCE)
    assert source.tolist() == [[4, 5], [UNK, PAD]]
    assert lengths.tolist() == [2, 1]
    assert source.dtype == lengths.dtype == torch.long


def test_a_sentence_that_was_not_tokenized_is_refused():
    message = "'go on' is not a list of words: tokenize it first"
    with pytest.raises(ValueError, match=message):
        pad([["go"], "go on"], SOURCE)


def test_a_target_stands_between_its_marks_and_a_source_does_not():
    [batch] = Batches(PAIRS, SOURCE, TARGET, batch_size=3, shuffle=False)
    assert batch.source.tolist() == [[4, 5], [4, PAD], [6, PAD]]
    assert batch.source_lengths.tolist() == [2, 1, 1]
    assert batch.target.tolist() == [
        [BOS, 5, EOS, PAD],
        [BOS, 5, 4, EOS],
        [BOS, 6, 4, EOS],
    ]
    assert batch.target_lengths.tolist() == [3, 4, 4]
    assert all(field.dtype == torch.long for field in batch)


def numbered(count):
    """Make pairs of 3 to 20 words, each with its own number as its first word."""
    rng = random.Random(0)
    pairs = []
    for i in range(count):
        source = (f"s{i}", *"a" * rng.randint(2, 19))
        target = (f"t{i}", *"b" * rng.randint(2, 19))
        pairs.append(SentencePair(source, target))
    return pairs


def batches_of(pairs, **options):
    source_vocabulary = Vocabulary(pair.source for pair in pairs)
    target_vocabulary = Vocabulary(pair.target for pair in pairs)
    return Batches(pairs, source_vocabulary, target_vocabulary, **options)


def words_in(batch, batches):
    """Return the sentence pairs of a batch as words."""
    sources = [tuple(batches.source_vocabulary.decode(row)) for row in batch.source]
    targets = [tuple(batches.target_vocabulary.decode(row)) for row in batch.target]
    return list(zip(sources, targets, strict=True))


@pytest.mark.parametrize("batch_size", [7, 1000])
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_has_every_pair_once_in_as_many_batches_as_len_says(
    batch_size, shuffle
):
    pairs = numbered(200)
    batches = batches_of(pairs, shuffle=shuffle, batch_size=batch_size)
    expected = [(pair.source, pair.target) for pair in pairs]
    for epoch in range(3):
        batches.set_epoch(epoch)
        sizes = []
        words = []
        for batch in batches:
            sizes.append(len(batch.source))
            words += words_in(batch, batches)
        assert len(sizes) == len(batches) == math.ceil(200 / batch_size)
        assert max(sizes) == min(batch_size, 200)
        assert Counter(words) == Counter(expected)
        assert (words == expected) == (not shuffle)


def contents(batches, epoch):
    batches.set_epoch(epoch)
    return [batch.source.tolist() for batch in batches]


def test_seed_and_epoch_decide_the_batches():
    pairs = numbered(100)
    batches = batches_of(pairs, batch_size=10, seed=1)
    again = batches_of(pairs, batch_size=10, seed=1)
    other = batches_of(pairs, batch_size=10, seed=2)
    first = contents(batches, 1)
    assert contents(batches, 2) != first
    assert contents(batches, 1) == contents(again, 1) == first
    assert contents(other, 1) != first


def test_a_pair_stands_beside_others_in_every_epoch():
    pairs = [SentencePair((f"s{i}",), (f"t{i}",)) for i in range(40)]
    batches = batches_of(pairs, batch_size=10)
    first = {str(sources) for sources in contents(batches, 1)}
    second = {str(sources) for sources in contents(batches, 2)}
    assert not first & second


def padding_share(batches):
    num_tokens = 0
    size = 0
    for batch in batches:
        num_tokens += batch.target_lengths.sum().item()
        size += batch.target.numel()
    return 1 - num_tokens / size


def test_bucketing_leaves_little_padding_and_batches_in_no_order_of_length():
    pairs = numbered(1_000)
    bucketed = batches_of(pairs, batch_size=20)
    in_order = batches_of(pairs, batch_size=20, shuffle=False)
    assert padding_share(bucketed) < 0.02
    assert padding_share(in_order) > 0.3
    lengths = [batch.target.shape[1] for batch in bucketed]
    assert lengths != sorted(lengths)
    assert lengths != sorted(lengths, reverse=True)


@pytest.mark.parametrize("batch_size", [0, -2, 2.5])
def test_a_batch_size_must_be_a_positive_whole_number(batch_size):
    message = f"batch_size must be a positive whole number, got {batch_size}"
    with pytest.raises(ValueError, match=message):
        Batches(PAIRS, SOURCE, TARGET, batch_size=batch_size)


def test_no_pairs_and_empty_sides_are_refused():
    with pytest.raises(ValueError, match="no sentence pair"):
        Batches([], SOURCE, TARGET, batch_size=2)
    empty = SentencePair(("go",), ())
    with pytest.raises(ValueError, match=r"must have a word, got .*\('go',\)"):
        Batches([*PAIRS, empty], SOURCE, TARGET, batch_size=2)
