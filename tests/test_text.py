"""Sentences to words, words to indices, pairs to batches, and back."""

import gzip
import random
import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import sacrebleu
import torch

from tutorial_lib.data import (
    BOS,
    EOS,
    PAD,
    UNK,
    Batches,
    SentencePair,
    Vocabulary,
    detokenize,
    pad,
    tokenize,
)
from tutorial_lib.data.text import encode_prompt

MULTI30K = Path(__file__).parents[2] / "shared" / "data" / "multi30k"


@pytest.mark.parametrize(
    ("language", "sentence", "words"),
    [
        ("en", "Tom's dog won't bark!", "tom 's dog won 't bark !"),
        ("en", "It's 10:30, isn't it?", "it 's 10:30 , isn 't it ?"),
        ("en", "A well-known (old) man...", "a well-known ( old ) man ..."),
        ("en", "He said 'no' at $1,000.50.", "he said ' no ' at $ 1,000.50 ."),
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


def test_every_width_of_space_only_separates():
    spaced = "Ça\u202fva\u00a0?\u2009«\u00a0Oui\u00a0»\t!\u3000"
    assert tokenize(spaced, "fr") == ["ça", "va", "?", "«", "oui", "»", "!"]


def test_curly_apostrophes_and_loose_accents_are_written_one_way():
    assert tokenize("l’été", "fr") == ["l'", "été"]
    assert tokenize(unicodedata.normalize("NFD", "l'été"), "fr") == ["l'", "été"]
    assert tokenize("don’t", "en") == ["don", "'t"]


def test_only_two_languages_are_known():
    with pytest.raises(ValueError, match='must be "en" or "fr", got \'de\''):
        tokenize("Guten Tag", "de")


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("sentence", ["", " \u202f "])
def test_nothing_gives_no_words(language, sentence):
    assert tokenize(sentence, language) == []
    assert detokenize([]) == ""


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


def sample(name, language, *, count=2_000):
    path = MULTI30K / f"{name}.{language}.gz"
    if not path.exists():
        pytest.skip(f"needs a copy of {path.name} in {MULTI30K}")
    return gzip.open(path, "rt", encoding="utf-8").read().split("\n")[:count]


@pytest.mark.parametrize("name", ["train", "test_2016_flickr"])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_on_real_sentences_bleu_hardly_sees_the_way_there_and_back(name, language):
    sentences = sample(name, language)
    back = [detokenize(tokenize(sentence, language)) for sentence in sentences]
    score = sacrebleu.corpus_bleu(back, [sentences], lowercase=True).score
    assert score > 99.9
    words = [tokenize(sentence, language) for sentence in sentences]
    assert [tokenize(sentence, language) for sentence in back] == words


@pytest.mark.parametrize("language", ["en", "fr"])
def test_no_letter_is_lost(language):
    for sentence in sample("train", language):
        letters = re.sub(r"\s", "", sentence.lower().replace("’", "'"))
        assert "".join(tokenize(sentence, language)) == letters


PAIRS = [
    SentencePair(("go", "on"), ("va",)),
    SentencePair(("go",), ("va", "!")),
    SentencePair(("stop",), ("arrête", "!")),
]
SOURCE = Vocabulary(pair.source for pair in PAIRS)
TARGET = Vocabulary(pair.target for pair in PAIRS)


def test_a_vocabulary_begins_with_four_signs_and_goes_on_by_frequency():
    assert SOURCE.words == ["<pad>", "<bos>", "<eos>", "<unk>", "go", "on", "stop"]
    assert TARGET.words[4:] == ["!", "va", "arrête"]
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert len(SOURCE) == 7
    assert "go" in SOURCE
    assert "va" not in SOURCE


def test_rare_words_are_unknown():
    vocabulary = Vocabulary((pair.source for pair in PAIRS), min_count=2)
    assert vocabulary.words[4:] == ["go"]
    assert vocabulary.encode(["go", "on"]) == [4, UNK]


def test_signs_in_a_corpus_make_no_second_entry():
    vocabulary = Vocabulary([["<unk>", "go", "<eos>"]])
    assert vocabulary.words[4:] == ["go"]
    assert vocabulary.encode(["<unk>"]) == [UNK]


def test_decoding_stops_at_the_end_and_shows_what_is_unknown():
    indices = [BOS, 4, UNK, PAD, 5, EOS, 6, EOS]
    assert SOURCE.decode(indices) == ["go", "<unk>", "on"]
    assert SOURCE.decode(torch.tensor(indices)) == ["go", "<unk>", "on"]
    assert SOURCE.decode([4, 5]) == ["go", "on"]
    assert SOURCE.decode([]) == []


def test_decoding_undoes_encoding():
    words = ["stop", "go", "go", "on"]
    assert SOURCE.decode(SOURCE.encode(words)) == words


def test_padding_fills_at_the_end_and_tells_the_lengths():
    source, lengths = pad([["go", "on"], ["now"]], SOURCE)
    assert source.tolist() == [[4, 5], [UNK, PAD]]
    assert lengths.tolist() == [2, 1]
    assert source.dtype == lengths.dtype == torch.long


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ([], "a sentence must have a word, number 1 has none"),
        ("go on", "'go on' is not a list of words: tokenize it first"),
    ],
)
def test_a_sentence_that_does_not_fit_is_refused_by_name(sentence, message):
    with pytest.raises(ValueError, match=message):
        pad([["go"], sentence], SOURCE)


def test_a_target_stands_between_its_signs_and_a_source_does_not():
    [batch] = Batches(PAIRS, SOURCE, TARGET, size=3, shuffle=False)
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
    lengths = [(rng.randint(3, 20), rng.randint(3, 20)) for _ in range(count)]
    return [
        SentencePair((f"s{i}", *"a" * (s - 1)), (f"t{i}", *"b" * (t - 1)))
        for i, (s, t) in enumerate(lengths)
    ]


def batches_of(pairs, **options):
    vocabularies = [Vocabulary(getattr(p, side) for p in pairs) for side in SIDES]
    return Batches(pairs, *vocabularies, **options), *vocabularies


SIDES = ("source", "target")


@pytest.mark.parametrize("options", [{"size": 7}, {"tokens": 64}, {"size": 1000}])
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_has_every_pair_once(options, shuffle):
    pairs = numbered(200)
    batches, source, target = batches_of(pairs, shuffle=shuffle, **options)
    for epoch in range(3):
        batches.set_epoch(epoch)
        seen = [
            (tuple(source.decode(s)), tuple(target.decode(t)))
            for batch in batches
            for s, t in zip(batch.source, batch.target, strict=True)
        ]
        assert Counter(seen) == Counter((pair.source, pair.target) for pair in pairs)
        if not shuffle:
            assert seen == [(pair.source, pair.target) for pair in pairs]


def test_length_counts_the_batches_of_every_epoch():
    for options in ({"size": 7}, {"tokens": 64}):
        batches, *_ = batches_of(numbered(200), **options)
        for epoch in range(3):
            batches.set_epoch(epoch)
            assert len(list(batches)) == len(batches)


def test_a_batch_is_never_larger_than_was_asked():
    batches, *_ = batches_of(numbered(200), size=7)
    assert sorted(len(batch.source) for batch in batches) == [4, *[7] * 28]
    batches, *_ = batches_of(numbered(200), tokens=64)
    sizes = [batch.target.numel() for batch in batches]
    assert max(sizes) <= 64
    assert sum(sizes) / len(sizes) > 48  # and not much smaller either


def contents(batches, epoch):
    batches.set_epoch(epoch)
    return [batch.source.tolist() for batch in batches]


def test_seed_and_epoch_decide_the_batches():
    pairs = numbered(100)
    batches, *_ = batches_of(pairs, size=10, seed=1)
    again, *_ = batches_of(pairs, size=10, seed=1)
    other, *_ = batches_of(pairs, size=10, seed=2)
    first = contents(batches, 1)
    assert contents(batches, 2) != first
    assert contents(batches, 1) == first
    assert contents(again, 1) == first
    assert contents(other, 1) != first


def test_a_pair_meets_others_in_every_epoch():
    pairs = [SentencePair((f"s{i}",), (f"t{i}",)) for i in range(40)]
    batches, *_ = batches_of(pairs, size=10)
    first, second = (
        {frozenset(map(str, b)) for b in contents(batches, e)} for e in "12"
    )
    assert not first & second


def test_a_long_sentence_makes_only_its_own_batch_small():
    lengths = 8, 1, 1, 1, 1, 8  # with <bos> and <eos> 10, 3, 3, 3, 3, 10
    pairs = [SentencePair(("s",), ("t",) * length) for length in lengths]
    batches, *_ = batches_of(pairs, tokens=12, shuffle=False)
    assert [len(batch.source) for batch in batches] == [1, 4, 1]


def test_batches_come_in_no_order_of_length():
    batches, *_ = batches_of(numbered(200), size=5)
    lengths = [batch.target.shape[1] for batch in batches]
    assert lengths != sorted(lengths)
    assert lengths != sorted(lengths, reverse=True)


def padding_share(batches):
    batches = list(batches)
    used = sum(int(batch.target_lengths.sum()) for batch in batches)
    return 1 - used / sum(batch.target.numel() for batch in batches)


def test_bucketing_leaves_little_padding():
    bucketed, *_ = batches_of(numbered(1_000), size=20)
    in_order, *_ = batches_of(numbered(1_000), size=20, shuffle=False)
    assert padding_share(bucketed) < 0.02
    assert padding_share(in_order) > 0.3


@pytest.mark.parametrize("options", [{"size": 4}, {"tokens": 4}])
def test_one_pair_makes_one_batch(options):
    [batch] = Batches(PAIRS[1:2], SOURCE, TARGET, **options)
    assert batch.source.tolist() == [[4]]
    assert batch.target.tolist() == [[BOS, 5, 4, EOS]]


def test_a_target_sentence_that_fits_no_batch_is_refused():
    with pytest.raises(ValueError, match=r"has 4 tokens, .* tokens=3: raise it"):
        Batches(PAIRS, SOURCE, TARGET, tokens=3)


@pytest.mark.parametrize("size", [0, -2, 2.5])
@pytest.mark.parametrize("name", ["size", "tokens"])
def test_a_size_that_is_none_is_refused(name, size):
    message = f"{name} must be a positive whole number, got {size}"
    with pytest.raises(ValueError, match=message):
        Batches(PAIRS, SOURCE, TARGET, **{name: size})


@pytest.mark.parametrize("options", [{}, {"size": 2, "tokens": 9}])
def test_exactly_one_size_is_to_be_given(options):
    with pytest.raises(ValueError, match=r"one of size= .* and tokens="):
        Batches(PAIRS, SOURCE, TARGET, **options)


def test_no_pairs_and_empty_sides_are_refused():
    with pytest.raises(ValueError, match="no sentence pair"):
        Batches([], SOURCE, TARGET, size=2)
    empty = SentencePair(("go",), ())
    with pytest.raises(ValueError, match=r"must have a word, got .*\('go',\)"):
        Batches([*PAIRS, empty], SOURCE, TARGET, size=2)


def test_a_prompt_begins_with_bos_and_is_its_words():
    vocabulary = Vocabulary([["le", "chat", "dort"]])
    tokens = encode_prompt("le chat", vocabulary)
    assert tokens.tolist() == [[BOS, *vocabulary.encode(["le", "chat"])]]
    assert encode_prompt("", vocabulary).tolist() == [[BOS]]


def test_a_prompt_with_unknown_words_is_refused_and_they_are_named():
    vocabulary = Vocabulary([["le", "chat", "dort"]])
    said = "lacks chien, oie: a prompt may use its 7 words, such as chat, dort, le$"
    with pytest.raises(ValueError, match=said):
        encode_prompt("le chien oie chien", vocabulary)
