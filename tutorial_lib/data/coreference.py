"""Sentences in which *it* means one thing, and the same with another thing instead.

French says *il* or *elle*, *le* or *la*, by the gender of the antecedent, the noun that
is meant, which stands in the clause before. In ordinary sentences of the grammar one in
a hundred has an *it*; here each is made to have one.

This module knows no model, and no token ids.
"""

import random
from typing import NamedTuple

from tutorial_lib.data.grammar import noun_phrase, predicate, pronoun, translate
from tutorial_lib.data.lexicon import NOUNS, VERBS
from tutorial_lib.data.stories import is_thing, make_story
from tutorial_lib.data.text import SentencePair

GENDERED = {"il", "elle", "le", "la"}  # "l'" hides the gender


class Coreference(NamedTuple):
    """A sentence with *it*, and a counterfactual with a noun of the other gender."""

    pair: SentencePair
    counterfactual: SentencePair
    pronoun: int  # the position of "it" in both sources
    antecedent: int  # and that of the noun which it means


def coreferences(count, *, seed):
    """Draw ``count`` sentences with *it* and their counterfactuals, no source twice.

    The antecedent is the only noun that could be meant, and the French word for *it*
    shows its gender.
    """
    rng, found = random.Random(f"references {seed}"), {}
    while len(found) < count:
        story = make_story(rng, 2, it=True)
        others = _counterfactuals(story)
        if others:
            pair, other = translate(story), translate(rng.choice(others))
            position = pair.source.index("it")
            words = aligned_word(pair, position), aligned_word(other, position)
            if GENDERED.issuperset(words):
                antecedent = _antecedent(pair, story)
                one = Coreference(pair, other, position, antecedent)
                found.setdefault(pair.source, one)
    return list(found.values())


def aligned_word(pair, position):
    """Return the French word, or the first, for the English word at ``position``."""
    return pair.target[min(row for row, key in pair.alignment if key == position)]


def _antecedent(pair, story):
    """Return the position of the noun that *it* means."""
    [thing] = [who for who in story[0].referents if is_thing(who)]
    word = NOUNS[thing.noun].english[0]
    words = zip(pair.source, pair.tags, strict=True)
    return next(i for i, said in enumerate(words) if said == (word, "NOUN"))


def _counterfactuals(story):
    """Return the stories that speak of another thing of the other gender, if any."""
    [thing] = [who for who in story[0].referents if is_thing(who)]
    taken = {who.noun for clause in story for who in clause.referents}
    changed = [
        [_replace(clause, thing, name) for clause in story]
        for name, noun in NOUNS.items()
        if noun.kind == thing.kind and noun.gender != thing.gender and name not in taken
    ]
    return [clauses for clauses in changed if None not in clauses]


def _replace(clause, thing, name):
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
