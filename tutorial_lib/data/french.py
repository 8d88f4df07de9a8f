"""The French side of the small grammar: sentences, and how probable each of them is.

Sentences of one clause, drawn independently. For each, all clauses are found that are
translated into it, and their probabilities added up, so that what a model believes can
be held against the truth. At the end, sentences that are grammatical and make no sense.

This module knows no model, and no token ids.
"""

import random
from collections import defaultdict
from functools import cache
from itertools import product
from typing import NamedTuple

from tutorial_lib.data.grammar import (
    Clause,
    Referent,
    elide,
    noun_phrases,
    predicate,
    pronoun,
    starts_with_vowel,
    translate,
)
from tutorial_lib.data.lexicon import ADJECTIVES, NEGATIONS, NOUNS, PRONOUNS, VERBS
from tutorial_lib.data.stories import clause_probability, make_story


def french_sentences(count, *, seed):
    """Draw ``count`` sentences of one clause, as tuples of words; some come again."""
    rng = random.Random(f"french {seed}")
    return [translate(make_story(rng, 1)).target for _ in range(count)]


def probability(words):
    """Return how probable it is that the grammar says just these ``words``.

    It is 0 for what the grammar never says.
    """
    words = tuple(words)
    clauses = {*_candidates(words)}
    said = (clause for clause in clauses if translate([clause]).target == words)
    return sum(map(clause_probability, said))


def _candidates(words):
    """Yield clauses that show their subject first and, somewhere, all their parts."""
    shown, subjects = {*words}, _phrases(as_object=False)
    negations = [name for name, (_, french) in NEGATIONS.items() if french in shown]
    for cut in range(1, len(words)):
        for subject in subjects.get(words[:cut], ()):
            verbs = _verbs(subject.referent, shown)
            for verb, negation in product(verbs, negations or [None]):
                for complement in _complements(verb, subject, words[cut:]):
                    yield Clause(None, subject, negation, verb, complement)


def _verbs(who, shown):
    return [
        name
        for name, verb in VERBS.items()
        if verb.french[who.person, who.plural] in shown
    ]


def _complements(verb, subject, rest):
    """List what may be said after a subject: nothing, a predicate, or an object."""
    if verb == "are":
        said = [predicate(name, subject.referent) for name in ADJECTIVES]
        return [phrase for phrase in said if phrase.target[0][0] == rest[-1]]
    if not VERBS[verb].objects:
        return [None]
    parts = {(word,) for word in rest} | {rest[cut:] for cut in range(len(rest))}
    objects = _phrases(as_object=True)
    return [phrase for part in parts for phrase in objects.get(part, ())]


@cache
def _phrases(*, as_object):
    """Return noun phrases, and pronouns of a first clause, by the words they show.

    The "un" of an object may be "de", after a negation.
    """
    found = defaultdict(list)
    for name in NOUNS:
        for phrase in noun_phrases(name, indefinite=True):
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


class Nonsense(NamedTuple):
    """A grammatical sentence that nobody says, and one with the verb's other number."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    distance: int  # from the subject's noun to its verb, 1 if no word is between


def nonsense(count, *, seed):
    """Draw ``count`` sentences that are grammatical, and that the grammar never says.

    In a sentence of the grammar every noun, adjective and verb is replaced by any other
    of its form: "les pommes fatiguées n' appellent jamais l' arbre". What agrees with
    the subject, and how words are elided, stays right. The verb is never "est", as
    "n'" before it would tell its number.
    """
    rng, found = random.Random(f"nonsense {seed}"), []
    forms, alike = _forms()
    while len(found) < count:
        words = translate(make_story(rng, 1)).target
        nouns = [i for i, word in enumerate(words) if "noun" in forms.get(word, ())]
        verbs = [i for i, word in enumerate(words) if "verb" in forms.get(word, ())]
        if len(verbs) != 1 or not nouns or nouns[0] >= verbs[0]:
            continue  # the subject is a pronoun, or a word may be noun and verb
        right = [rng.choice(alike.get(forms.get(word), [word])) for word in words]
        if not probability(right):
            wrong = list(right)
            wrong[verbs[0]] = _OTHER_NUMBER[right[verbs[0]]]
            subject = max(i for i in nouns if i < verbs[0])
            found.append(Nonsense(tuple(right), tuple(wrong), verbs[0] - subject))
    return found


_REGULAR = [verb for name, verb in VERBS.items() if name != "are"]
_OTHER_NUMBER = {  # the third person of each verb, and that of the other number
    verb.french[3, plural]: verb.french[3, not plural]
    for verb in _REGULAR
    for plural in (False, True)
}


@cache
def _forms():
    """Return the form of each word that has a meaning, and the words of each form.

    A form is what a word may be, and whether words before it are elided.
    """
    forms = defaultdict(set)
    for noun in NOUNS.values():
        for plural, word in enumerate(noun.french):
            forms[word] |= {"noun", ("noun", noun.gender, plural)}
    for adjective in ADJECTIVES.values():
        for agrees, word in adjective.french.items():
            forms[word] |= {"adjective", ("adjective", *agrees, adjective.before)}
    for verb in _REGULAR:
        for plural in (False, True):
            forms[verb.french[3, plural]] |= {"verb", ("verb", plural)}
    del forms[""]  # the plurals that are left out
    alike = defaultdict(list)
    for word, form in forms.items():
        forms[word] = frozenset({*form, starts_with_vowel(word)})
        alike[forms[word]].append(word)
    return forms, alike
