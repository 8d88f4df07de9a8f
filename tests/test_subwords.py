import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tutorial_lib.data import BOS, EOS, PAD, SentencePair, Subwords, Vocabulary
from tutorial_lib.data.subwords import BYTES
from tutorial_lib.data.text import SPECIAL, Batches, pad

SENTENCES = [
    ["l'", "oiseau", "noir", "chante"],
    ["les", "oiseaux", "noirs", "chantent"],
    ["un", "oiseau", "chantera"],
] * 3
PIECES = Subwords(SENTENCES, size=300)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS.filter(lambda word: word not in SPECIAL), min_size=1))
def test_any_words_come_back_as_they_were(words):
    words = [piece for word in words for piece in word.split()]
    indices = PIECES.encode(words)
    assert all(len(SPECIAL) <= index < len(PIECES) for index in indices)
    assert PIECES.decode(indices) == words


def test_frequent_words_are_few_pieces_and_new_ones_many():
    assert len(PIECES.encode(["oiseau"])) == 1
    assert 1 < len(PIECES.encode(["oiselet"])) < len("oiselet")
    assert len(PIECES.encode(["zyx"])) >= 3


def test_pieces_end_with_their_word():
    apart, joined = PIECES.encode(["oiseau", "noir"]), PIECES.encode(["oiseaunoir"])
    assert apart == PIECES.encode(["oiseau"]) + PIECES.encode(["noir"]) != joined


def test_the_size_is_the_most_there_can_be():
    sizes = [len(Subwords(SENTENCES, size=size)) for size in (260, 270, 10_000)]
    assert sizes[:2] == [260, 270] and 270 < sizes[2] < 400
    assert len(Subwords([], size=500)) == BYTES + len(SPECIAL)


def test_the_same_sentences_give_the_same_pieces():
    again = Subwords(SENTENCES, size=300)
    assert again.encode(SENTENCES[0]) == PIECES.encode(SENTENCES[0])


def test_signs_are_left_out_of_what_is_decoded():
    bird = PIECES.encode(["oiseau"])
    rows = torch.tensor([BOS, *bird, PAD, *bird, EOS, *bird])
    assert PIECES.decode(rows) == ["oiseau", "oiseau"]
    assert PIECES.decode([]) == PIECES.decode([EOS, *bird]) == []


def test_they_stand_in_for_a_vocabulary():
    pair = SentencePair(("a", "bird"), ("un", "oiseau"))
    words = Vocabulary([pair.source])
    (batch,) = Batches([pair], words, PIECES, size=1)
    assert batch.target[0].tolist() == [BOS, *PIECES.encode(pair.target), EOS]
    source, lengths = pad([["oiseau"], ["oiselet"]], PIECES)
    assert lengths.tolist() == [1, len(PIECES.encode(["oiselet"]))]
    assert source[0, 1:].eq(PAD).all()


@pytest.mark.parametrize("size", [0, 259, 300.5])
def test_a_size_without_room_for_the_bytes_is_refused(size):
    with pytest.raises(ValueError, match="size must be"):
        Subwords(SENTENCES, size=size)
