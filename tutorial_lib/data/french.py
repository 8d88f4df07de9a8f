"""The French side of the small grammar: sentences, and how probable each of them is.

Sentences of one clause, drawn one independently of the other. For each, all clauses are
found that are translated into it, and their probabilities added up, so that what a
model believes can be held against the truth.

At the end, sentences that are grammatical and make no sense.

This module knows no model, and no words as numbers.
"""

import random
from functools import cache
from itertools import product
from typing import NamedTuple

from tutorial_lib.data.counts import check_counts
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
from tutorial_lib.data.stories import chance, make_story


def french_sentences(count, *, seed):
    """Draw ``count`` sentences of one clause, as tuples of words; some come again.

    The same ``seed`` gives the same sentences everywhere.
    """
    check_counts(count=count)
    rng = random.Random(f"french {seed}")
    return [translate(make_story(rng, 1)).target for _ in range(count)]


def probability(words):
    """Return how probable it is that the grammar says just these ``words``.

    It is 0 for what the grammar never says.
    """
    words = tuple(words)
    clauses = {*_candidates(words)}
    said = (clause for clause in clauses if translate([clause]).target == words)
    return sum(map(chance, said))


def _candidates(words):
    """Yield clauses that show their subject first and, somewhere, all their parts."""
    spoken = {*words}
    for cut in range(1, len(words)):
        for subject in _subjects().get(words[:cut], ()):
            rest = words[cut:]
            for verb, negation in product(_verbs(subject, spoken), _negations(spoken)):
                for complement in _complements(verb, subject, rest):
                    yield Clause(None, subject, negation, verb, complement)


def _verbs(subject, spoken):
    who = subject.referent
    forms = (
        (name, verb.french[who.person, who.plural]) for name, verb in VERBS.items()
    )
    return [name for name, form in forms if form in spoken]


def _negations(spoken):
    found = [name for name, (_, french) in NEGATIONS.items() if french in spoken]
    return found or [None]


def _complements(verb, subject, rest):
    """List what may be said after a subject: nothing, a predicate, or an object."""
    if verb == "are":
        said = [predicate(name, subject.referent) for name in ADJECTIVES]
        return [phrase for phrase in said if phrase.target[0][0] == rest[-1]]
    if not VERBS[verb].objects:
        return [None]
    objects, pronouns = _objects()
    found = [phrase for word in {*rest} for phrase in pronouns.get(word, ())]
    for cut in range(len(rest)):
        found += objects.get(rest[cut:], ())
    return found


@cache
def _subjects():
    """Return the phrases that may be subjects, by the words that they show."""
    found = _nouns()
    for phrase in map(pronoun, _people()):
        [(word, _)] = phrase.target
        for shown in {word, elide([word, "aime"])[0]}:
            found.setdefault((shown,), []).append(phrase)
    return found


@cache
def _objects():
    """Return the noun phrases that may be objects, and the pronouns, by their words."""
    found, pronouns = _nouns(negated=True), {}
    for who in _people():
        phrase = pronoun(who, as_object=True)
        [(word, _)] = phrase.target
        for shown in {word, elide([word, "aime"])[0]}:
            pronouns.setdefault(shown, []).append(phrase)
    return found, pronouns


def _nouns(*, negated=False):
    """Return all noun phrases by their French words; "un" may be "de", ``negated``."""
    found = {}
    for name in NOUNS:
        for phrase in noun_phrases(name, indefinite=True)[0]:
            words = [word for word, _ in phrase.target]
            found.setdefault(tuple(elide(words)), []).append(phrase)
            if negated and words[0] in ("un", "une"):
                bare = tuple(elide(["de", *words[1:]]))
                found.setdefault(bare, []).append(phrase)
    return found


def _people():
    """List whom the pronouns of a first clause may mean."""
    forms = [key[:3] for key in PRONOUNS if key[3]]
    return [
        Referent(None, "person", gender, plural, person=person)
        for person, plural, gender in forms
    ]


# --- Sentences that make no sense -------------------------------------------------


_REGULAR = [verb for name, verb in VERBS.items() if name != "are"]


class Nonsense(NamedTuple):
    """A grammatical sentence that nobody says, and one with the verb's other number."""

    right: tuple
    wrong: tuple
    distance: (
        int  # words from the subject's noun to the verb, 1 if there is none between
    )


def nonsense(count, *, seed):
    """Draw ``count`` sentences that are grammatical, and that the grammar never says.

    In a sentence of the grammar every noun, adjective and verb is replaced by any other
    of its form: "les pommes fatiguées n' appellent jamais l' arbre". What agrees with
    the subject, and how words are elided, stays right. The verb is never "est", as
    "n'" before it would tell its number. The same ``seed`` gives the same everywhere.
    """
    check_counts(count=count)
    rng, found = random.Random(f"nonsense {seed}"), []
    while len(found) < count:
        words = list(translate(make_story(rng, 1)).target)
        nouns = [i for i, word in enumerate(words) if "noun" in _form(word)]
        verbs = [i for i, word in enumerate(words) if "verb" in _form(word)]
        if len(verbs) != 1 or not nouns or nouns[0] >= verbs[0]:
            continue  # the subject is a pronoun, or a word may be noun and verb
        right = [rng.choice(_alike()[_form(word)] or [word]) for word in words]
        if not probability(right):
            wrong = list(right)
            wrong[verbs[0]] = _other_number()[right[verbs[0]]]
            subject = max(i for i in nouns if i < verbs[0])
            found.append(Nonsense(tuple(right), tuple(wrong), verbs[0] - subject))
    return found


@cache
def _forms():
    """Return for each word that has a meaning what others in its place must share."""
    forms = {}
    for noun in NOUNS.values():
        for plural, word in enumerate(noun.french):
            if word:
                forms.setdefault(word, set()).add(("noun", noun.gender, plural))
    for adjective in ADJECTIVES.values():
        for agrees, word in adjective.french.items():
            forms.setdefault(word, set()).add(("adjective", *agrees, adjective.before))
    for verb in _REGULAR:
        for plural in (False, True):
            word = verb.french[3, plural]
            forms.setdefault(word, set()).add(("verb", plural))
    return forms


def _form(word):
    """Name the form of a word: kinds, and whether words before it are elided."""
    kinds = _forms().get(word, ())
    return frozenset().union(*({kind[0], kind} for kind in kinds)) | (
        {starts_with_vowel(word)} if kinds else set()
    )


@cache
def _alike():
    """Return the words of each form."""
    alike = {frozenset(): []}
    for word in _forms():
        alike.setdefault(_form(word), []).append(word)
    return alike


@cache
def _other_number():
    """Map the third person of each verb to that of the other number."""
    pairs = [(verb.french[3, False], verb.french[3, True]) for verb in _REGULAR]
    return dict(pairs) | {many: one for one, many in pairs}
