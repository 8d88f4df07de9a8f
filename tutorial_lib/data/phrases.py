"""Phrases in two languages: noun phrases and pronouns with their agreement in French.

This module knows no clause: what stands around a phrase.
"""

from functools import cache
from itertools import accumulate
from typing import NamedTuple

from tutorial_lib.data.lexicon import ADJECTIVES, DETERMINERS, NOUNS, PRONOUNS

BEFORE_VOWEL = {
    "le": "l'",
    "la": "l'",
    "je": "j'",
    "me": "m'",
    "ne": "n'",
    "de": "d'",
    "que": "qu'",
    "ce": "cet",
    "ma": "mon",
    "sa": "son",
}


class Referent(NamedTuple):
    """Whom or what a phrase speaks of; two with equal fields are the same."""

    noun: str | None  # None: nobody has said
    kind: str
    gender: str
    plural: bool = False
    person: int = 3


class Phrase(NamedTuple):
    """A noun phrase, a pronoun or a predicate in both languages."""

    referent: Referent | None  # None for a predicate
    source: tuple[str, ...]
    tags: tuple[str, ...]
    target: tuple[tuple[str, int], ...]  # French word, position of its English word


def starts_with_vowel(word):
    """Tell whether French elides before ``word``; every h of the lexicon is mute."""
    return word[0] in "aàâeéèêhiîoôuœ"


def elide(words):
    """Shorten French words before a vowel: ``le oiseau`` becomes ``l' oiseau``.

    Also gives ``ce``, ``ma`` and ``sa`` their forms ``cet``, ``mon``, ``son``.
    """
    following = [*words[1:], "."]
    return [
        BEFORE_VOWEL.get(word, word) if starts_with_vowel(after) else word
        for word, after in zip(words, following, strict=True)
    ]


@cache
def pronoun(referent, *, as_object=False):
    """Name ``referent`` by its personal pronoun, subject or object, as a Phrase."""
    human = referent.kind == "person"
    forms = PRONOUNS[referent.person, referent.plural, referent.gender, human]
    english, french = forms[2:] if as_object else forms[:2]
    return Phrase(referent, (english,), ("PRON",), ((french, 0),))


@cache
def predicate(adjective, referent):
    """Say ``adjective`` of ``referent``, with which it agrees, as a Phrase."""
    french = ADJECTIVES[adjective].french[referent.gender, referent.plural]
    return Phrase(None, (adjective,), ("ADJ",), ((french, 0),))


@cache
def noun_phrases(noun, *, indefinite):
    """List every phrase around ``noun``, with and without "a", and its weight.

    Returns a tuple of Phrases and the running sums of their weights: two in five of
    the phrases drawn by them have no adjective, most others one.
    """
    phrases, weights = [], []
    for name, determiner in DETERMINERS.items():
        if name == "a" and not (indefinite and NOUNS[noun].kind != "mass"):
            continue
        if name in ("my", "his", "her") and NOUNS[noun].kind == "person":
            continue  # "ma femme" is a wife
        for plural in (False, True):
            if not (determiner.english[plural] and NOUNS[noun].english[plural]):
                continue
            for adjectives, weight in attributes(noun):
                phrases.append(noun_phrase(noun, name, adjectives, plural=plural))
                weights.append(weight * determiner.weight * (0.4 if plural else 0.6))
    return tuple(phrases), tuple(accumulate(weights))


def attributes(noun):
    """List the adjectives that ``noun`` may carry, none to two, with their weights."""
    single = [(name,) for name in NOUNS[noun].adjectives]
    double = [
        (first, second)
        for (first,) in single
        for (second,) in single
        if ADJECTIVES[first].before
        and not (ADJECTIVES[second].before or ADJECTIVES[second].passing)
    ]
    choices = [((), 0.4)]
    choices += [(names, 0.45 / len(single)) for names in single]
    return choices + [(names, 0.15 / len(double)) for names in double]


def noun_phrase(noun, determiner, adjectives=(), *, plural=False):
    """Put a noun phrase into both languages, as a Phrase.

    Adjectives and determiner agree with the noun in French, where the adjectives stand
    before or after it, each in its place.
    """
    entry = NOUNS[noun]
    source = [DETERMINERS[determiner].english[plural], *adjectives]
    source.append(entry.english[plural])
    if determiner == "a" and source[1][0] in "aeiou":
        source[0] = "an"
    column = 2 if plural else "mf".index(entry.gender)
    target = [(entry.french[plural], len(source) - 1)]
    for position, name in enumerate(adjectives, start=1):
        form = agreeing(name, entry, plural=plural)
        if ADJECTIVES[name].before:
            target.insert(0, (form, position))
        else:
            target.append((form, position))
    target.insert(0, (DETERMINERS[determiner].french[column], 0))
    tags = ("DET", *["ADJ"] * len(adjectives), "NOUN")
    referent = Referent(noun, entry.kind, entry.gender, plural)
    return Phrase(referent, tuple(source), tags, tuple(target))


def agreeing(adjective, noun, *, plural):
    """Give an attribute the form that agrees with ``noun``: ``bel`` before "oiseau"."""
    entry, vowel = ADJECTIVES[adjective], starts_with_vowel(noun.french[0])
    if entry.before and vowel and not plural and noun.gender == "m":
        return entry.before_vowel
    return entry.french[noun.gender, plural]
