"""Sentences in which *it* means one thing, and the same with another thing instead.

French says *il* or *elle*, *le* or *la*, by the gender of the noun that is meant, and
that noun stands in the clause before. In ordinary sentences of the grammar one in a
hundred has an *it*; here each is made to have one.

This module knows no model, and no words as numbers.
"""

import random
from typing import NamedTuple

from tutorial_lib.data.counts import check_counts
from tutorial_lib.data.grammar import noun_phrase, predicate, pronoun, translate
from tutorial_lib.data.lexicon import NOUNS, VERBS
from tutorial_lib.data.stories import is_thing, make_story
from tutorial_lib.data.text import SentencePair

GENDERED = {"il", "elle", "le", "la"}  # "l'" hides the gender


class Reference(NamedTuple):
    """A sentence with *it*, and its twin with a noun of the other gender instead."""

    pair: SentencePair
    twin: SentencePair
    pronoun: int  # the place of "it" in both sources
    antecedent: int  # and that of the noun which it means


def references(count, *, seed):
    """Draw ``count`` sentences with *it* and their twins, no source twice.

    The noun that is meant is the only one that could be, and the French word for *it*
    shows its gender. The same ``seed`` gives the same everywhere.
    """
    check_counts(count=count)
    rng, found = random.Random(f"references {seed}"), {}
    while len(found) < count:
        story = make_story(rng, 2, it=True)
        twins = _twins(story)
        if twins:
            pair, twin = translate(story), translate(rng.choice(twins))
            place = pair.source.index("it")
            words = said_for(pair, place), said_for(twin, place)
            if GENDERED.issuperset(words):
                noun = _noun_of(pair, story)
                found.setdefault(pair.source, Reference(pair, twin, place, noun))
    return list(found.values())


def said_for(pair, place):
    """Return the French word, or the first, for the English word at ``place``."""
    return pair.target[min(row for row, key in pair.alignment if key == place)]


def gloss(pair):
    """Return the first French word for every English word: a translation by words."""
    return [said_for(pair, place) for place in range(len(pair.source))]


def _noun_of(pair, story):
    """Return where the noun stands that *it* means."""
    [thing] = [who for who in story[0].referents if is_thing(who)]
    word = NOUNS[thing.noun].english[0]
    words = zip(pair.source, pair.tags, strict=True)
    return next(i for i, said in enumerate(words) if said == (word, "NOUN"))


def _twins(story):
    """Return the stories that speak of another thing of the other gender, if any."""
    [thing] = [who for who in story[0].referents if is_thing(who)]
    taken = {who.noun for clause in story for who in clause.referents}
    others = [
        name
        for name, noun in NOUNS.items()
        if noun.kind == thing.kind and noun.gender != thing.gender
    ]
    changed = (
        [_exchange(clause, thing, name) for clause in story]
        for name in others
        if name not in taken
    )
    return [clauses for clauses in changed if None not in clauses]


def _exchange(clause, thing, name):
    """Say a clause of the noun ``name`` instead of ``thing``; None where none does."""
    who = thing._replace(noun=name, gender=NOUNS[name].gender)
    verb, parts = VERBS[clause.verb], {}
    for role, allowed in (("subject", verb.subjects), ("complement", verb.objects)):
        phrase = getattr(clause, role)
        if phrase and phrase.referent == thing:
            fits = {name, who.kind} & {*allowed}
            as_object = role == "complement"
            parts[role] = _phrase(phrase, who, as_object=as_object) if fits else None
    if clause.verb == "are" and clause.subject.referent == thing:
        [adjective] = clause.complement.source
        fits = adjective in NOUNS[name].adjectives
        parts["complement"] = predicate(adjective, who) if fits else None
    return None if None in parts.values() else clause._replace(**parts)


def _phrase(phrase, who, *, as_object):
    """Put another noun into a noun phrase, or mean it by a pronoun."""
    if phrase.tags == ("PRON",):
        return pronoun(who, as_object=as_object)
    determiner, *adjectives, _ = phrase.source
    if not {*adjectives} <= {*NOUNS[who.noun].adjectives}:
        return None
    return noun_phrase(who.noun, determiner.replace("an", "a"), tuple(adjectives))
