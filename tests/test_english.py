"""The probabilities of English sentences are those with which they are drawn."""

import random
from collections import Counter

import pytest

from tutorial_lib.data import english
from tutorial_lib.data.english import (
    english_sentences,
    first_error,
    grammatical,
    probability,
)
from tutorial_lib.data.grammar import translate_clauses
from tutorial_lib.data.stories import clause_probability, make_story


def test_sentences_come_as_often_as_their_probability_says():
    # Whom to count is chosen by other draws, so that no count is chosen for itself.
    seen = {*english_sentences(8000, seed=0)}
    likely = sorted(seen, key=probability)[-200:]
    count = 20_000
    counts = Counter(english_sentences(count, seed=1))
    expected = [count * probability(words) for words in likely]
    misfit = sum(
        (counts[words] - mean) ** 2 / mean
        for words, mean in zip(likely, expected, strict=True)
    )
    assert 0.6 < misfit / 200 < 1.5
    together = sum(counts[words] for words in likely)
    assert together == pytest.approx(sum(expected), rel=0.06)


@pytest.mark.parametrize(
    "kind", ["the", "a", "an", "this", "these", "my", "i", "we", "he", "she", "they"]
)
def test_every_sentence_has_a_probability_whatever_it_begins_with(kind):
    said = {words for words in english_sentences(3000, seed=2) if words[0] == kind}
    assert said
    assert all(0 < probability(words) < 0.01 for words in said)


def test_a_clause_is_as_likely_as_it_is_drawn():
    rng = random.Random(0)
    count = 30_000
    clauses = Counter(make_story(rng, 1)[0] for _ in range(count))
    often = [clause for clause in clauses if clause_probability(clause) > 1e-3]
    assert len(often) > 30
    for clause in often:
        mean = count * clause_probability(clause)
        assert abs(clauses[clause] - mean) < 5 * mean**0.5, translate_clauses(
            [clause]
        ).source


@pytest.mark.parametrize(
    ("said", "never"),
    [
        ("the black cat sleeps", "the black cat sleep"),
        ("the black cat sleeps", "the cat black sleeps"),
        ("he buys an apple", "he buys a apple"),
        ("she does not eat an apple", "she does not eats an apple"),
        ("the cat is black", "the black cat is tired"),
        ("i love him", "i love he"),
        ("she loves the dog", "she never loves the dog"),
        ("he is tired", "i am tired"),
        ("the apple is small", "the apple is happy"),
        ("the apple is red", "the call is red"),
    ],
)
def test_what_the_grammar_never_says_has_probability_0(said, never):
    assert probability([]) == probability(["sleeps"]) == 0
    never, said = never.split(), said.split()
    assert probability(never) == 0 < probability(said)


def test_a_pronoun_means_a_person():
    # "they" may be men or women, and no thing: one clause, of those found, is drawn.
    words = ("they", "sleep")
    found = {*english._candidates(words)}
    drawn = [clause for clause in found if clause_probability(clause) > 0]
    assert len(found) > len(drawn) == 1
    assert drawn[0].subject.referent.kind == "person"


def test_a_seed_gives_the_same_sentences():
    some = english_sentences(5, seed=1)
    assert some == english_sentences(5, seed=1) != english_sentences(5, seed=2)


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("the old mice sing", "the old mice sings", 3),
        ("an old red apple sleeps", "a old red apple sleeps", 1),
        ("a happy red apple sleeps", "an happy red apple sleeps", 1),
        ("she does not watch him", "she does not watches him", 3),
        ("she does not watch him", "she do not watch him", 1),
        ("she does not watch him", "she not watches him", 1),
        ("he never sings", "he never sing", 2),
        ("they are never happy", "they are never happy never", 4),
        ("the watch is not happy", "the watch are not happy", 2),
        ("the cat waters a tree", "the cat sleeps a tree", 3),
        ("these watches watch her watch", "this watches watch her watch", 1),
        ("we see the small old dog", "we see the small old big dog", 5),
        ("we see the small old dog", "we see the small small dog", 4),
        ("she eats the rice", "she eats a rice", 3),
        ("she eats the rice", "she eats", 2),
        ("we are old", "i are old", 1),
        ("the cats watch me", "the cats watch i", 3),
        ("the cats watch them", "it watches them", 0),
    ],
)
def test_what_is_never_said_may_be_grammatical(right, wrong, error):
    assert probability(wrong.split()) == 0
    assert grammatical(right.split()) and not grammatical(wrong.split())
    assert first_error(right.split()) is None
    assert first_error(wrong.split()) == error


def test_an_error_is_the_first_word_that_no_sentence_has_there():
    words = ["the", "small", "cat", "never", "eats", "an", "orange"]
    assert [first_error(words[:end]) for end in range(7)] == [0, 1, 2, 3, 4, 5, 6]
    assert grammatical(words)


def test_all_that_the_grammar_says_is_grammatical():
    assert all(map(grammatical, english_sentences(2000, seed=3)))
    assert not grammatical([]) and not grammatical(["sleeps"])
