"""The English side of the small grammar: sentences, and how probable each of them is.

Sentences of one clause, drawn independently. For each, all clauses that are said in its
words are found, and their probabilities added up, so that what a model believes can be
held against the truth. `first_error` says which word breaks the grammar, and
`grammatical` whether one does: "a happy apple sleeps" is grammatical, though the
grammar never says it.

This module knows no model, and no token ids.
"""

import random
from collections import defaultdict
from functools import cache
from typing import NamedTuple

from tutorial_lib.data.grammar import (
    Clause,
    Referent,
    noun_phrases,
    predicate,
    pronoun,
    translate_clauses,
)
from tutorial_lib.data.lexicon import (
    ADJECTIVES,
    DETERMINERS,
    NEGATIONS,
    NOUNS,
    PRONOUNS,
    VERBS,
)
from tutorial_lib.data.stories import clause_probability, make_story

MOST_ADJECTIVES = 2  # of one noun


def english_sentences(count, *, seed):
    """Draw ``count`` sentences of one clause, as tuples of words; some come again."""
    rng = random.Random(f"english {seed}")
    return [translate_clauses(make_story(rng, 1)).source for _ in range(count)]


# --- How probable a sentence is ---------------------------------------------------


def probability(words):
    """Return how probable it is that the grammar says just these ``words``.

    It is 0 for what the grammar never says.
    """
    words = tuple(words)
    clauses = {*_candidates(words)}
    said = (clause for clause in clauses if translate_clauses([clause]).source == words)
    return sum(map(clause_probability, said))


def _candidates(words):
    """Yield clauses that begin with their subject and have a verb of the words."""
    negations = [name for name in NEGATIONS if name in words]
    for cut in range(1, len(words)):
        for subject in _phrases(as_object=False).get(words[:cut], ()):
            for verb, entry in VERBS.items():
                if not {*entry.english} & {*words[cut:]}:
                    continue
                for complement in _complements(verb, subject, words[cut:]):
                    for negation in negations or [None]:
                        yield Clause(None, subject, negation, verb, complement)


def _complements(verb, subject, rest):
    """List what ``rest`` may end with: nothing, a predicate, or an object."""
    if verb == "are":
        said = rest[-1] if rest[-1] in ADJECTIVES else None
        return [predicate(said, subject.referent)] if said else []
    if not VERBS[verb].objects:
        return [None]
    found = []
    for cut in range(len(rest)):
        found += _phrases(as_object=True).get(rest[cut:], ())
    return found


@cache
def _phrases(*, as_object):
    """Return noun phrases, and pronouns of a first clause, by their words."""
    found = defaultdict(list)
    for name in NOUNS:
        for phrase in noun_phrases(name, indefinite=True):
            found[phrase.source].append(phrase)
    for person, plural, gender, human in PRONOUNS:
        if human:
            who = Referent(None, "person", gender, plural, person)
            phrase = pronoun(who, as_object=as_object)
            found[phrase.source].append(phrase)
    return found


# --- Whether it is grammatical ----------------------------------------------------


def grammatical(words):
    """Tell whether ``words`` agree and stand in order, whatever sense they make."""
    return first_error(words) is None


def first_error(words):
    """Return the position of the first word that breaks the grammar, or None.

    No grammatical sentence has this word after those before it. A sentence that ends
    too early has its error behind its last word: len(words) is returned.
    """
    states = {State("subject")}
    for position, word in enumerate(words):
        following = set()
        for state in states:
            following.update(_read(state, word))
        if not following:
            return position
        states = following
    if any(state.part == "end" for state in states):
        return None
    return len(words)


class State(NamedTuple):
    """How far a sentence has been read, and what the rest must agree with."""

    part: str  # what comes next
    singular: bool = False  # the subject, third person
    speaker: bool = False  # the subject is "i"
    determiner: str = ""  # of the noun phrase that has begun
    plural: bool = False  # that noun phrase
    adjectives: tuple = ()  # those that it has
    is_object: bool = False  # that noun phrase


def _read(state, word):
    """Yield the states to which a word leads; none if it cannot come next."""
    if state.part in ("subject", "object"):
        yield from _begin_phrase(state, word)
    elif state.part == "noun":
        yield from _continue_phrase(state, word)
    elif state.part == "verb":
        yield from _read_verb(state, word)
    elif state.part == "not" and word == "not":
        yield state._replace(part="plain form")
    elif state.part in ("plain form", "form"):
        yield from _after_form(state, word)
    elif state.part == "predicate":
        if word in NEGATIONS:
            yield state._replace(part="adjective")
        elif word in ADJECTIVES:
            yield State("end")
    elif state.part == "adjective" and word in ADJECTIVES:
        yield State("end")


def _begin_phrase(state, word):
    """Read a pronoun, or a determiner."""
    is_object = state.part == "object"
    for (person, plural, _, human), forms in PRONOUNS.items():
        if human and word == forms[2 if is_object else 0]:
            if is_object:
                yield State("end")
            else:
                singular = person == 3 and not plural
                yield State("verb", singular, speaker=word == "i")
    for name, entry in DETERMINERS.items():
        for plural in (False, True):
            if word == entry.english[plural] or (name, word) == ("a", "an"):
                yield state._replace(
                    part="noun", determiner=word, plural=plural, is_object=is_object
                )


def _continue_phrase(state, word):
    """Read an adjective, or the noun."""
    has_vowel = word[0] in "aeiou"
    refused = {True: "a", False: "an"}[has_vowel]
    if state.determiner == refused and not state.adjectives:
        return
    may_add = len(state.adjectives) < MOST_ADJECTIVES
    if may_add and word in ADJECTIVES and word not in state.adjectives:
        yield state._replace(adjectives=(*state.adjectives, word))
    for noun in NOUNS.values():
        is_wrong = noun.kind == "mass" and state.determiner in ("a", "an")
        if word != noun.english[state.plural] or is_wrong:
            continue
        if state.is_object:
            yield State("end")
        else:
            yield State("verb", singular=not state.plural)


def _read_verb(state, word):
    """Read a verb, or the negation before it."""
    if word == ("does" if state.singular else "do"):
        yield state._replace(part="not")
    if word == "never":
        yield state._replace(part="form")
    if word == ("is" if state.singular else "are") and not state.speaker:
        yield state._replace(part="predicate")
    yield from _after_form(state, word)


def _after_form(state, word):
    """Read a verb in its form for the subject, or in its plain form after "not"."""
    is_third = state.singular and state.part != "plain form"
    for name, verb in VERBS.items():
        if name != "are" and word == verb.english[is_third]:
            yield State("object" if verb.objects else "end")
