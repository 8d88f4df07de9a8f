"""The French side of the small grammar: sentences, and how probable each of them is.

Sentences of one clause, drawn independently. For each, all clauses are found that are
translated into it, and their probabilities added up, so that what a model believes can
be held against the truth. `grammatical` tells wrong French from what is never said.

This module knows no model, and no token ids.
"""

import random
from collections import defaultdict
from functools import cache
from itertools import permutations, product

from tutorial_lib.data.grammar import (
    Clause,
    Referent,
    elide,
    noun_phrase,
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


def french_sentences(count, *, seed):
    """Draw ``count`` sentences of one clause, as tuples of words; some come again."""
    rng = random.Random(f"french {seed}")
    return [translate_clauses(make_story(rng, 1)).target for _ in range(count)]


def probability(words):
    """Return how probable it is that the grammar says just these ``words``.

    It is 0 for what the grammar never says.
    """
    words = tuple(words)
    clauses = {*_candidates(words)}
    said = (clause for clause in clauses if translate_clauses([clause]).target == words)
    return sum(map(clause_probability, said))


def grammatical(words):
    """Tell whether ``words`` agree and stand in order, whatever sense they make.

    "une pomme heureuse dort" is grammatical, though the grammar never says it; "un
    pomme dort" is not.
    """
    words = tuple(words)
    clauses = _candidates(words, sense=False)
    return any(translate_clauses([clause]).target == words for clause in clauses)


def _candidates(words, *, sense=True):
    """Yield clauses that show their subject first and, somewhere, all their parts.

    Without ``sense`` an adjective may be said of any noun.
    """
    shown = set(words)
    subjects = _phrases(as_object=False, sense=sense)
    negations = [name for name, (_, french) in NEGATIONS.items() if french in shown]
    for cut in range(1, len(words)):
        for subject in subjects.get(words[:cut], ()):
            verbs = _verbs(subject.referent, shown)
            for verb, negation in product(verbs, negations or [None]):
                rest = words[cut:]
                for complement in _complements(verb, subject, rest, sense=sense):
                    yield Clause(None, subject, negation, verb, complement)


def _verbs(who, shown):
    return [
        name
        for name, verb in VERBS.items()
        if verb.french[who.person, who.plural] in shown
    ]


def _complements(verb, subject, rest, *, sense):
    """List what may be said after a subject: nothing, a predicate, or an object."""
    if verb == "are":
        said = [predicate(name, subject.referent) for name in ADJECTIVES]
        return [phrase for phrase in said if phrase.target[0][0] == rest[-1]]
    if not VERBS[verb].objects:
        return [None]
    parts = {(word,) for word in rest} | {rest[cut:] for cut in range(len(rest))}
    objects = _phrases(as_object=True, sense=sense)
    return [phrase for part in parts for phrase in objects.get(part, ())]


@cache
def _phrases(*, as_object, sense):
    """Return noun phrases, and pronouns of a first clause, by the words they show.

    The "un" of an object may be "de", after a negation.
    """
    found = defaultdict(list)
    for name in NOUNS:
        for phrase in _noun_phrases(name, sense=sense):
            words = [word for word, _ in phrase.target]
            found[tuple(elide(words))].append(phrase)
            if as_object and words[0] in ("un", "une"):
                found[tuple(elide(["de", *words[1:]]))].append(phrase)
    for person, plural, gender, human in PRONOUNS:
        if human:
            who = Referent(None, "person", gender, plural, person)
            phrase = pronoun(who, as_object=as_object)
            [(word, _)] = phrase.target
            for shown in {word, elide([word, "aime"])[0]}:
                found[shown,].append(phrase)
    return found


def _noun_phrases(name, *, sense):
    """Return the phrases around a noun; without ``sense``, with any adjectives."""
    if sense:
        return noun_phrases(name, indefinite=True)
    adjectives = [(), *((one,) for one in ADJECTIVES), *permutations(ADJECTIVES, 2)]
    english = NOUNS[name].english
    numbers = (False, True)
    return [
        noun_phrase(name, determiner, said, plural=plural)
        for determiner, entry in DETERMINERS.items()
        for plural in numbers
        if entry.english[plural] and english[plural]
        for said in adjectives
    ]
