"""The probabilities of French sentences are those with which they are drawn."""

import random
from collections import Counter

import pytest

from tutorial_lib.data import french
from tutorial_lib.data.french import french_sentences, nonsense, probability
from tutorial_lib.data.grammar import elide, translate
from tutorial_lib.data.lexicon import NOUNS
from tutorial_lib.data.stories import clause_probability, make_story


def test_sentences_come_as_often_as_their_probability_says():
    # Whom to count is chosen by other draws, so that no count is chosen for itself.
    seen = {*french_sentences(8000, seed=0)}
    likely = sorted(seen, key=probability)[-200:]
    count = 20_000
    counts = Counter(french_sentences(count, seed=1))
    expected = [count * probability(words) for words in likely]
    misfit = sum(
        (counts[words] - mean) ** 2 / mean
        for words, mean in zip(likely, expected, strict=True)
    )
    assert 0.6 < misfit / 200 < 1.5
    together = sum(counts[words] for words in likely)
    assert together == pytest.approx(sum(expected), rel=0.06)


@pytest.mark.parametrize(
    "kind", ["le", "la", "les", "l'", "un", "une", "ce", "je", "nous", "il", "elle"]
)
def test_every_sentence_has_a_probability_whatever_it_begins_with(kind):
    said = {words for words in french_sentences(3000, seed=2) if words[0] == kind}
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
        assert abs(clauses[clause] - mean) < 5 * mean**0.5, translate([clause]).target


@pytest.mark.parametrize(
    ("said", "never"),
    [
        ("le chat noir dort", "la chat noir dort"),
        ("le chat noir dort", "le noir chat dort"),
        ("le chat noir dort", "le chat noir dorment"),
        ("l' oiseau dort", "le oiseau dort"),
        ("le chat est noir", "le chat noir est fatigué"),
        ("elle ne mange pas de pomme", "elle ne mange pas une pomme"),
        ("je l' aime", "je le aime"),
        ("elle aime le chien", "elle n' aime jamais le chien"),
        ("il est fatigué", "je suis fatigué"),
        ("la pomme est petite", "la pomme est heureuse"),
        ("la pomme est rouge", "l' appel est rouge"),
    ],
)
def test_what_the_grammar_never_says_has_probability_0(said, never):
    assert probability([]) == probability(["dort"]) == 0
    never, said = never.split(), said.split()
    assert probability(never) == 0 < probability(said)


def test_all_ways_to_say_a_thing_are_added_up():
    # "his" and "her" are "sa": two clauses, one sentence.
    words = ("sa", "montre", "est", "belle")
    clauses = {*french._candidates(words)}
    ways = [
        clause.subject.source[0]
        for clause in clauses
        if translate([clause]).target == words
    ]
    assert sorted(ways) == ["her", "his"]


@pytest.mark.parametrize("make", [french_sentences, nonsense])
def test_a_seed_gives_the_same_sentences(make):
    assert make(5, seed=1) == make(5, seed=1) != make(5, seed=2)


def test_nonsense_is_never_said_and_differs_in_the_number_of_its_verb():
    pairs = nonsense(300, seed=0)
    for right, wrong, distance in pairs:
        assert probability(right) == 0
        assert tuple(elide(right)) == right
        [position] = [i for i, word in enumerate(right) if word != wrong[i]]
        assert {word[-2:] == "nt" or word.endswith("ent") for word in
                (right[position], wrong[position])} == {True, False}  # fmt: skip
        assert 1 <= distance <= position
        noun = right[position - distance]
        plural = right[position].endswith("nt")
        number = [plural for x in NOUNS.values() for plural in (0, 1)
                  if x.french[plural] == noun]  # fmt: skip
        assert plural in number  # "souris" is both
    assert len({pair.right for pair in pairs}) > 250
