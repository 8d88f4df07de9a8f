"""Stories: which clauses make sense, alone and one after the other, and pairs of them.

A sentence has one to three clauses, joined by *and, but, because, while, when*. More
than four million sentences have one clause, more than 10¹² two, 10¹⁸ three. Every
English sentence has exactly one translation:

- the pronouns of a first clause mean people not named before, and *they* are *ils*;
  later, a pronoun takes up somebody or something of the clause just before, and all
  that it could mean in the sentence so far has one gender in French;
- nobody is addressed (*tu* or *vous*?), and no adjective is said of *I* and *we*,
  whose gender nobody knows.

This module knows what goes with what, how often, and nothing of how it is said.
"""

import random
from functools import cache

from tutorial_lib.data.grammar import (
    Clause,
    Referent,
    noun_phrases,
    predicate,
    pronoun,
    translate_clauses,
)
from tutorial_lib.data.lexicon import ADJECTIVES, NOUNS, VERBS

CLAUSES = (1, 2)  # how many a sentence has, in turn
TRIES = 1000  # clauses drawn for a story before it is begun anew

_SPEAKERS = tuple(  # I, we
    Referent(None, "person", "m", plural, person=1) for plural in (False, True)
)
_STRANGERS = (  # he, she, they
    Referent(None, "person", "m"),
    Referent(None, "person", "f"),
    Referent(None, "person", "m", plural=True),
)
_UNNAMED = 2 * _SPEAKERS + _STRANGERS  # whom the pronouns of a first clause mean
# What a clause is drawn from, by weight; what makes no sense is drawn again.
_VERBS = {name: verb.weight for name, verb in VERBS.items()}
_CONJUNCTIONS = {"and": 1, "but": 1, "because": 4, "while": 2, "when": 2}
_NEGATIONS = {None: 6, "not": 2, "never": 1}
# More than training has, and no conjunction twice.
LONGER = range(max(CLAUSES) + 1, len(_CONJUNCTIONS) + 2)
_REASONS = ("are", "love", "see", "hear")
_PRONOUN = 0.35  # how often a participant is a pronoun where it may be one


def split(train, valid, test, *, seed, longer=()):
    """Make training, validation and test pairs, no source sentence in two of the parts.

    Returns three lists of so many SentencePairs, in each of which sentences of one and
    of two clauses take turns. For each number of clauses in ``longer``, of LONGER, the
    test part gets half as many sentences more: a length never seen in training. The
    same ``seed`` gives the same sentences everywhere. Raises ValueError for another
    length.
    """
    if isinstance(longer, int) or not {*longer} <= {*LONGER}:
        raise ValueError(f"longer must list numbers from 3 to 6, got {longer!r}")
    rng = random.Random(f"grammar {seed}")
    seen = set()
    parts = [_distinct(rng, count, CLAUSES, seen) for count in (train, valid, test)]
    for number in longer:
        parts[-1] += _distinct(rng, test // len(CLAUSES), (number,), seen)
    return tuple(parts)


def _distinct(rng, count, clauses, seen):
    """Make pairs whose sources are not yet ``seen``, and add these to it."""
    pairs = []
    while len(pairs) < count:
        pair = translate_clauses(make_story(rng, clauses[len(pairs) % len(clauses)]))
        if pair.source not in seen:
            seen.add(pair.source)
            pairs.append(pair)
    return pairs


def make_story(rng, clauses):
    """Draw so many ``clauses`` that make sense together, as a list of Clause."""
    story = []
    tries = 0
    while len(story) < clauses:
        tries += 1
        if tries % TRIES == 0:
            story = []  # for nothing may be left that follows
        clause = _draft(rng, story)
        if clause and _makes_sense(clause, story) and _follows(clause, story):
            story.append(clause)
    return story


def _draft(rng, story):
    """Draw a clause that might continue ``story``; None if nobody is left for it."""
    conjunction = _draw(rng, _CONJUNCTIONS) if story else None
    verb = _draw(rng, _VERBS)
    negation = _draw(rng, _NEGATIONS)
    subjects, objects = _roles(verb, negation)
    subject = _participant(rng, story, subjects)
    complement = None
    if subject and verb == "are" and subject.referent.person == 3:
        adjectives = NOUNS[subject.referent.noun or "man"].adjectives
        complement = predicate(rng.choice(adjectives), subject.referent)
    elif subject and objects:
        complement = _participant(rng, story, objects, subject)
    if subject is None or (complement is None and (objects or verb == "are")):
        return None
    return Clause(conjunction, subject, negation, verb, complement)


def _roles(verb, negation):
    """Return what may be subject and object, with "a" where they may be indefinite."""
    subjects, objects = VERBS[verb].subjects, VERBS[verb].objects
    if verb != "are" and not negation:
        subjects = ("a", *subjects)
    return subjects, objects


def _draw(rng, weights):
    return rng.choices(tuple(weights), weights.values())[0]


def _participant(rng, story, allowed, beside=None):
    """Draw a subject, or an object ``beside`` it, by pronoun or by noun, as a Phrase.

    Returns None if ``story`` has used up all that is ``allowed``.
    """
    known = _possible(_nameable(rng, story), allowed, beside)
    if known and rng.random() < _PRONOUN:
        return pronoun(rng.choice(known), as_object=beside is not None)
    taken = {who.noun for clause in story for who in clause.referents}
    if beside:
        taken.add(beside.referent.noun)
    names = _noun_weights(allowed, taken)
    if not names:
        return None
    return _draw(rng, noun_phrases(_draw(rng, names), indefinite="a" in allowed))


def _noun_weights(allowed, taken):
    """Return the nouns that are ``allowed`` and not ``taken``, with their weights."""
    return {
        name: noun.weight
        for name, noun in NOUNS.items()
        if (name in allowed or noun.kind in allowed) and name not in taken
    }


def _possible(known, allowed, beside):
    """Keep those of ``known`` whom a pronoun may mean, and not the subject itself."""
    known = [who for who in known if who.kind in allowed or who.noun in allowed]
    if beside is None:
        return known
    known = [who for who in known if pronoun(who).source != beside.source]
    return [who for who in known if not who.person == beside.referent.person == 1]


def _nameable(rng, story):
    """List whom a pronoun may stand for after ``story``."""
    if not story:
        return _UNNAMED
    if rng.random() < 0.3:
        return _SPEAKERS
    mentioned = [who for clause in story for who in clause.referents]
    known = [who for who in story[-1].referents if _clear(who, mentioned)]
    told = ("i", "we", "he", "she")  # "it" and "they" hide their French gender
    return [
        who for who in known if pronoun(who).source[0] in told or rng.random() < 0.25
    ]


def _clear(who, mentioned):
    """Tell whether all that the pronoun of ``who`` may mean have one French gender."""
    name = pronoun(who).source
    return all(
        other.gender == who.gender
        for other in mentioned
        if pronoun(other).source == name
    )


def _makes_sense(clause, story):
    """Keep away what nobody says: "the old tree is never red", "she never loves it"."""
    if clause.negation == "never" and (clause.verb == "love" or _lasts(clause)):
        return False
    if clause.verb != "are":
        return True
    described = {  # nouns with an adjective, or of which one is said
        (phrase.referent or before.subject.referent).noun
        for before in story
        for phrase in (before.subject, before.complement)
        if phrase and "ADJ" in phrase.tags
    }
    plain = "ADJ" not in clause.subject.tags
    return plain and clause.subject.referent.noun not in described


def _follows(clause, story):
    """Tell whether a clause makes sense where it stands, after its conjunction."""
    if not story:
        return True
    for earlier in story:
        if clause.conjunction == earlier.conjunction:
            return False
        if clause.verb == earlier.verb != "are":
            return False
    if clause.conjunction in ("and", "but"):
        return True
    before = story[-1]
    itself = clause.subject.referent in before.referents
    if clause.conjunction == "because":
        return clause.verb in _REASONS and itself and not _lasts(before)
    verbs = {before.verb, clause.verb}
    if "love" in verbs or ("sleep" in verbs and itself):
        return False  # nobody does anything else while asleep
    if clause.conjunction == "when":
        return clause.negation != "never" and not (_lasts(clause) or _lasts(before))
    return not clause.negation and "are" not in verbs


def _lasts(clause):
    """Tell "is red", a lasting quality, from "is tired" and from what is done."""
    return clause.verb == "are" and not ADJECTIVES[clause.complement.source[0]].passing


# --- How probable a story of one clause is ----------------------------------------


def clause_probability(clause):
    """Return the probability that ``make_story`` says this and no more."""
    return _drawn(clause) / _sense()


def _drawn(clause):
    """Return how likely a clause is to be drawn for a beginning, and to make sense."""
    if not _makes_sense(clause, []):
        return 0.0
    subjects, objects = _roles(clause.verb, clause.negation)
    share = _share(_VERBS, clause.verb) * _share(_NEGATIONS, clause.negation)
    share *= _named(clause.subject, subjects)
    if clause.verb == "are":
        who, [adjective] = clause.subject.referent, clause.complement.source
        possible = NOUNS[who.noun or "man"].adjectives if who.person == 3 else ()
        return share * possible.count(adjective) / max(len(possible), 1)
    return share * (
        _named(clause.complement, objects, clause.subject) if objects else 1
    )


def _named(phrase, allowed, beside=None):
    """Return how likely ``_participant`` is to draw a phrase for a first clause."""
    known = _possible(_UNNAMED, allowed, beside)
    who = phrase.referent
    if phrase.tags == ("PRON",):
        return _PRONOUN * known.count(who) / max(len(known), 1)
    names = _noun_weights(allowed, {beside.referent.noun} if beside else ())
    share = _share(names, who.noun) * (1 - _PRONOUN if known else 1)
    return share * _share(noun_phrases(who.noun, indefinite="a" in allowed), phrase)


def _share(weights, name):
    return weights.get(name, 0) / sum(weights.values())


@cache
def _sense():
    """Return the share of all clauses drawn for a beginning that make sense."""
    loveless = _share(_VERBS, "love") * _share(_NEGATIONS, "never")
    subjects = [pronoun(who) for who in _STRANGERS]
    for name in NOUNS:
        subjects += noun_phrases(name, indefinite=True)
    said = [
        Clause(None, subject, negation, "are", predicate(adjective, subject.referent))
        for subject in subjects
        for adjective in NOUNS[subject.referent.noun or "man"].adjectives
        for negation in _NEGATIONS
    ]
    return 1 - _share(_VERBS, "are") - loveless + sum(map(_drawn, said))
