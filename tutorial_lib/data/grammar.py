"""A small English-French grammar: as many sentence pairs as a model can read.

A sentence has one to three clauses, joined by *and, but, because, while, when*. More
than four million sentences have one clause, more than 10¹² two, 10¹⁸ three. French
agrees in gender, number and person, puts each adjective in its place, moves object
pronouns before the verb, splits *not* and *never* in two and elides before a vowel.
Every English sentence has exactly one translation:

- the pronouns of a first clause mean people not named before, and *they* are *ils*;
  later, a pronoun takes up somebody or something of the clause just before, and all
  that it could mean in the sentence so far has one gender in French;
- nobody is addressed (*tu* or *vous*?), and no adjective is said of *I* and *we*,
  whose gender nobody knows.

The gold alignment covers every word of both sides. *not* and *never* belong to both
halves of their negation; *do* and *does* to the French verb; *because* and *while* to
both words of *parce que* and *pendant que*; *a* to the *de* that it becomes after a
negation; all other words go one to one. Tags are those of Universal Dependencies, but
that *my*, *his* and *her* before a noun are DET.

This module knows no vocabulary and no model.
"""

import random

from tutorial_lib.data.clauses import translate
from tutorial_lib.data.stories import combinations, make_story

HELD_OUT = frozenset(  # (adjective, noun), as attribute or as predicate
    {
        ("small", "girl"),
        ("old", "cat"),
        ("beautiful", "flower"),
        ("red", "house"),
        ("black", "dog"),
        ("white", "bird"),
        ("cold", "fish"),
        ("happy", "cook"),
        ("tired", "woman"),
    }
)


def generate(count, *, seed, clauses=(1, 2)):
    """Make ``count`` sentence pairs with distinct sources, as a list of SentencePair.

    ``clauses`` lists how many clauses the sentences have, each number in turn. The same
    ``seed``, a whole number, gives the same sentences everywhere.
    """
    return _distinct(random.Random(f"grammar {seed}"), count, clauses, set())


def split(
    train=3000,
    valid=300,
    test=300,
    *,
    seed=0,
    clauses=(1, 2),
    longer=(),
    held_out_combinations=False,
):
    """Make training, validation and test pairs, no source sentence in two of the parts.

    Returns three lists of so many SentencePairs, in each of which the numbers of
    ``clauses`` take turns. For each number in ``longer`` the test part gets further
    sentences, ``test // len(clauses)`` of them: a length never seen in training. With
    ``held_out_combinations`` no sentence of the first two parts, and every sentence of
    the test part, puts an adjective to a noun as in ``HELD_OUT``, each word of which
    training has in other company.
    """
    rng, seen = random.Random(f"grammar {seed}"), set()
    known, unknown = (False, True) if held_out_combinations else (None, None)
    parts = [
        _distinct(rng, count, clauses, seen, held_out=held_out)
        for count, held_out in ((train, known), (valid, known), (test, unknown))
    ]
    for number in longer:
        count = test // len(clauses)
        parts[-1] += _distinct(rng, count, (number,), seen, held_out=unknown)
    return tuple(parts)


def _distinct(rng, count, clauses, seen, *, held_out=None):
    """Make pairs whose sources are not yet ``seen``, and add these to it.

    ``held_out`` says whether they have a combination of ``HELD_OUT``; None: either.
    """
    pairs = []
    while len(pairs) < count:
        story = make_story(rng, clauses[len(pairs) % len(clauses)])
        if held_out not in (None, not HELD_OUT.isdisjoint(combinations(story))):
            continue
        pair = translate(story)
        if pair.source not in seen:
            seen.add(pair.source)
            pairs.append(pair)
    return pairs
