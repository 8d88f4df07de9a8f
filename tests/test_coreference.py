"""Sentences with *it*: what it means, and what changes with it."""

import pytest

from tutorial_lib.data.coreference import GENDERED, aligned_word, coreferences
from tutorial_lib.data.lexicon import NOUNS

BY_WORD = {noun.english[0]: noun for noun in NOUNS.values()}
SAYS = {"il": "m", "le": "m", "elle": "f", "la": "f"}


@pytest.fixture(scope="module")
def found():
    return coreferences(300, seed=3)


def test_it_stands_where_it_is_said_to_and_once(found):
    for one in found:
        for pair in (one.pair, one.counterfactual):
            assert pair.source.count("it") == 1
            assert pair.source[one.pronoun] == "it"
            assert pair.tags[one.antecedent] == "NOUN"
            assert one.antecedent < one.pronoun


def test_french_takes_the_gender_of_the_noun_that_is_meant(found):
    for one in found:
        for pair in (one.pair, one.counterfactual):
            noun = BY_WORD[pair.source[one.antecedent]]
            assert SAYS[aligned_word(pair, one.pronoun)] == noun.gender


def test_no_other_noun_before_could_be_meant(found):
    for one in found:
        words = one.pair.source[: one.pronoun]
        things = [
            i
            for i, word in enumerate(words)
            if one.pair.tags[i] == "NOUN"
            and word in BY_WORD
            and BY_WORD[word].kind != "person"
        ]
        clause = next(i for i, tag in enumerate(one.pair.tags) if "CONJ" in tag)
        assert [i for i in things if i < clause] == [one.antecedent]


def test_a_counterfactual_differs_in_the_noun_and_in_a_or_an_alone(found):
    for one in found:
        assert len(one.pair.source) == len(one.counterfactual.source)
        for place, words in enumerate(
            zip(one.pair.source, one.counterfactual.source, strict=True)
        ):
            if place == one.antecedent:
                assert BY_WORD[words[0]].gender != BY_WORD[words[1]].gender
            else:
                assert len({*words}) == 1 or {*words} == {"a", "an"}


def test_it_is_subject_and_object_of_both_genders_and_never_hidden(found):
    said = [aligned_word(one.pair, one.pronoun) for one in found]
    assert {*said} == GENDERED and min(map(said.count, GENDERED)) > 15


def test_no_sentence_comes_twice_and_a_seed_says_which(found):
    assert len({one.pair.source for one in found}) == 300
    assert coreferences(20, seed=3) == found[:20] != coreferences(20, seed=4)


def test_the_french_word_for_a_word_is_the_first_of_several():
    [one] = coreferences(1, seed=0)
    assert " ".join(one.pair.source).startswith("we do not love this cold milk")
    assert aligned_word(one.pair, 2) == "n'" and aligned_word(one.pair, 4) == "ce"
