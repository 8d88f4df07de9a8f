"""The small grammar: phrases and clauses in two languages, word for word aligned.

French agrees in gender, number and person, puts each adjective in its place, moves
object pronouns before the verb, splits *not* and *never* in two and elides before a
vowel.

The gold alignment covers every word of both sides. *not* and *never* belong to both
halves of their negation; *do* and *does* to the French verb; *because* and *while* to
both words of *parce que* and *pendant que*; *a* to the *de* that it becomes after a
negation; all other words go one to one. Tags are those of Universal Dependencies, but
that *my*, *his* and *her* before a noun are DET.

This module knows what a clause may say, and nothing of whether it makes sense.
"""

from collections import defaultdict
from functools import cache
from typing import NamedTuple

from tutorial_lib.data.lexicon import (
    ADJECTIVES,
    CONJUNCTIONS,
    DETERMINERS,
    NEGATIONS,
    NOUNS,
    PRONOUNS,
    VERBS,
)
from tutorial_lib.data.text import SentencePair

BEFORE_VOWEL = {word: f"{word[:-1]}'" for word in ("le", "la", "je", "me", "ne", "de")}
BEFORE_VOWEL.update({"que": "qu'", "ce": "cet", "ma": "mon", "sa": "son"})


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
    """Return every phrase around ``noun``, those with "a" if ``indefinite``, weighted.

    The weights of these Phrases are in a dict: two in five of those drawn by them have
    no adjective, most others one.
    """
    weights = {}
    entry = NOUNS[noun]
    for name, determiner in DETERMINERS.items():
        if name == "a" and not (indefinite and entry.kind != "mass"):
            continue
        if name in ("my", "his", "her") and entry.kind == "person":
            continue  # "ma femme" is a wife
        for plural, share in ((False, 0.6), (True, 0.4)):
            if determiner.english[plural] and entry.english[plural]:
                for adjectives, weight in attributes(noun):
                    phrase = noun_phrase(noun, name, adjectives, plural=plural)
                    weights[phrase] = weight * determiner.weight * share
    return weights


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
    source = [
        DETERMINERS[determiner].english[plural],
        *adjectives,
        entry.english[plural],
    ]
    if determiner == "a" and source[1][0] in "aeiou":
        source[0] = "an"
    column = 2 if plural else "mf".index(entry.gender)
    vowel = starts_with_vowel(entry.french[0])
    target = [(entry.french[plural], len(source) - 1)]
    for position, name in enumerate(adjectives, start=1):
        adjective = ADJECTIVES[name]
        form = adjective.french[entry.gender, plural]
        if adjective.before and (entry.gender, plural) == ("m", False) and vowel:
            form = adjective.before_vowel
        target.insert(0 if adjective.before else len(target), (form, position))
    target.insert(0, (DETERMINERS[determiner].french[column], 0))
    tags = ("DET", *["ADJ"] * len(adjectives), "NOUN")
    referent = Referent(noun, entry.kind, entry.gender, plural)
    return Phrase(referent, tuple(source), tags, tuple(target))


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


def translate_clauses(clauses):
    """Write ``clauses`` in both languages, as a SentencePair with gold alignment."""
    english, french = [], []
    for clause in clauses:
        words, positions = _english(clause), defaultdict(list)
        for position, (role, _, _) in enumerate(words, start=len(english)):
            positions[role].append(position)
        english += [(word, tag) for _, word, tag in words]
        french += _french(clause, positions)
    source, tags = zip(*english, strict=True)
    target = tuple(elide([word for word, _ in french]))
    links = frozenset(
        (row, key) for row, (_, keys) in enumerate(french) for key in keys
    )
    return SentencePair(source, target, links, tags, len(clauses))


def _english(clause):
    """List the English words of a clause in order, as (role, word, tag)."""
    words = []
    if clause.conjunction:
        tag, _ = CONJUNCTIONS[clause.conjunction]
        words.append(("conjunction", clause.conjunction, tag))
    words += _tagged("subject", clause.subject) + _english_verb(clause)
    if clause.complement:
        words += _tagged("complement", clause.complement)
    return words


def _tagged(role, phrase):
    words = zip(phrase.source, phrase.tags, strict=True)
    return [(role, word, tag) for word, tag in words]


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


def _french(clause, positions):
    """List a clause's French words, each with the positions of its English words."""
    referent, complement = clause.subject.referent, clause.complement
    verb = VERBS[clause.verb].french[referent.person, referent.plural]
    core = [(verb, positions["verb"])]
    if complement and complement.tags == ("PRON",):
        core = _aligned(complement, positions["complement"]) + core
        complement = None
    if clause.negation:
        _, french = NEGATIONS[clause.negation]
        core = [("ne", positions["negation"]), *core, (french, positions["negation"])]
    words = _aligned(clause.subject, positions["subject"]) + core
    if complement:
        words += _aligned(complement, positions["complement"], negated=clause.negation)
    if clause.conjunction:
        _, french = CONJUNCTIONS[clause.conjunction]
        words = [(word, positions["conjunction"]) for word in french.split()] + words
    return words


def _aligned(phrase, positions, *, negated=False):
    """List the French words of a phrase; ``negated``: with "de" in place of "un"."""
    words = [(word, [positions[position]]) for word, position in phrase.target]
    if negated and words[0][0] in ("un", "une"):
        words[0] = ("de", words[0][1])
    return words
