"""Clauses in two languages: order of words, negation, agreement of the verb.

This module knows what a clause may say, and nothing of whether it makes sense.
"""

from typing import NamedTuple

from tutorial_lib.data.lexicon import CONJUNCTIONS, NEGATIONS, VERBS
from tutorial_lib.data.phrases import Phrase, elide
from tutorial_lib.data.text import SentencePair


class Clause(NamedTuple):
    """What a clause says: who does something or is something, or does not."""

    conjunction: str | None
    subject: Phrase
    negation: str | None
    verb: str
    complement: Phrase | None  # an object; after "be" a predicate

    @property
    def referents(self):
        """Whom and what the clause speaks of, the subject first."""
        parts = (self.subject, self.complement)
        return [part.referent for part in parts if part and part.referent]


def translate(clauses):
    """Write ``clauses`` in both languages, as a SentencePair with gold alignment."""
    english, french = [], []
    for clause in clauses:
        words = _english(clause)
        places = {}
        for position, (role, _, _) in enumerate(words, start=len(english)):
            places.setdefault(role, []).append(position)
        english += [(word, tag) for _, word, tag in words]
        french += _french(clause, places)
    source, tags = zip(*english, strict=True)
    target = tuple(elide([word for word, _ in french]))
    links = frozenset(
        (row, key) for row, (_, keys) in enumerate(french) for key in keys
    )
    return SentencePair(source, target, links, tags, len(clauses))


def _english(clause):
    """List the English words of a clause in order, as (role, word, tag)."""
    words = [("subject", *word) for word in _tagged(clause.subject)]
    words += _english_verb(clause)
    if clause.conjunction:
        tag, _ = CONJUNCTIONS[clause.conjunction]
        words.insert(0, ("conjunction", clause.conjunction, tag))
    if clause.complement:
        words += [("complement", *word) for word in _tagged(clause.complement)]
    return words


def _tagged(phrase):
    return zip(phrase.source, phrase.tags, strict=True)


def _english_verb(clause):
    """List verb and negation: is not, does not see, never sees."""
    person, plural = clause.subject.referent.person, clause.subject.referent.plural
    third = person == 3 and not plural
    plain, form = VERBS[clause.verb].english[0], VERBS[clause.verb].english[third]
    verb = ("verb", form, "AUX" if clause.verb == "are" else "VERB")
    if not clause.negation:
        return [verb]
    negation = ("negation", clause.negation, NEGATIONS[clause.negation][0])
    if clause.verb == "are":
        return [verb, negation]
    if clause.negation == "never":
        return [negation, verb]
    do = ("verb", "does" if third else "do", "AUX")
    return [do, negation, ("verb", plain, "VERB")]


def _french(clause, places):
    """List the French words of a clause, each with the places of its English words."""
    referent, complement = clause.subject.referent, clause.complement
    verb = VERBS[clause.verb].french[referent.person, referent.plural]
    core = [(verb, places["verb"])]
    if complement and complement.tags == ("PRON",):
        core = _placed(complement, places["complement"]) + core
        complement = None
    if clause.negation:
        _, french = NEGATIONS[clause.negation]
        at = places["negation"]
        core = [("ne", at), *core, (french, at)]
    words = _placed(clause.subject, places["subject"]) + core
    if complement:
        words += _placed(complement, places["complement"], bare=clause.negation)
    if clause.conjunction:
        _, french = CONJUNCTIONS[clause.conjunction]
        words = [(word, places["conjunction"]) for word in french.split()] + words
    return words


def _placed(phrase, places, *, bare=False):
    """List the French words of a phrase; ``bare``: with "de" in place of "un"."""
    words = [(word, [places[position]]) for word, position in phrase.target]
    if bare and words[0][0] in ("un", "une"):
        words[0] = ("de", words[0][1])
    return words
