"""The probabilities of French sentences are those with which they are drawn."""

import random
from collections import Counter

import pytest

from tutorial_lib.data import french
from tutorial_lib.data.french import french_sentences, grammatical, probability
from tutorial_lib.data.grammar import translate_clauses
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
        assert abs(clauses[clause] - mean) < 5 * mean**0.5, translate_clauses(
            [clause]
        ).target


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
        if translate_clauses([clause]).target == words
    ]
    assert sorted(ways) == ["her", "his"]


def test_a_seed_gives_the_same_sentences():
    some = french_sentences(5, seed=1)
    assert some == french_sentences(5, seed=1) != french_sentences(5, seed=2)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("les souris chantent", "les souris chante"),
        ("elle ne la regarde jamais", "elle la ne regarde jamais"),
        ("une pomme heureuse dort", "une pomme heureux dort"),
        ("elle n' aime jamais le lait", "elle ne aime jamais le lait"),
        ("la montre est heureuse", "la montre est heureux"),
        ("il regarde ma petite femme", "il regarde mon petite femme"),
        ("le chat arrose un arbre", "le chat dort un arbre"),
    ],
)
def test_what_is_never_said_may_be_grammatical(right, wrong):
    assert probability(right.split()) == probability(wrong.split()) == 0
    assert grammatical(right.split()) and not grammatical(wrong.split())


def test_all_that_the_grammar_says_is_grammatical():
    assert all(map(grammatical, french_sentences(300, seed=3)))
    assert not grammatical([]) and not grammatical(["dort"])
