"""Corpora: sentence pairs to learn from, to choose by and to be judged on.

``load_translation`` gives the small grammar, Tatoeba and Multi30k one form. No source
sentence stands in two parts, and the vocabularies know the training part only.

This module knows no model and no file.
"""

import random
from collections import Counter
from dataclasses import dataclass

from tutorial_lib.data.counts import check_counts
from tutorial_lib.data.downloads import read_multi30k, read_tatoeba
from tutorial_lib.data.stories import LONGER, split
from tutorial_lib.data.text import Batches, SentencePair, Vocabulary, tokenize

PARTS = ("train", "valid", "test")
MIN_COUNTS = {"grammar": 1, "tatoeba": 2, "multi30k": 5}


@dataclass(frozen=True, repr=False)
class Translation:
    """English sentences with their French translations, in three parts.

    ``references`` maps each source sentence of ``valid`` and ``test`` to all its
    translations; of Tatoeba's several, the pair has the first. ``left_out`` counts the
    pairs that were not taken, by reason. ``attribution`` says whom to name.
    """

    name: str
    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    attribution: str
    references: dict[tuple[str, ...], list[tuple[str, ...]]]
    left_out: dict[str, int]

    def batches(self, part="train", *, size=None, tokens=None, shuffle=True, seed=0):
        """Return the ``Batches`` of one part, "train", "valid" or "test"."""
        if part not in PARTS:
            raise ValueError(f'part must be "train", "valid" or "test", got {part!r}')
        return Batches(
            getattr(self, part),
            self.source_vocabulary,
            self.target_vocabulary,
            size=size,
            tokens=tokens,
            shuffle=shuffle,
            seed=seed,
        )

    def __repr__(self):
        sizes = ", ".join(f"{len(getattr(self, part)):,} {part}" for part in PARTS)
        english, french = len(self.source_vocabulary), len(self.target_vocabulary)
        left_out = [f"{count:,} {reason}" for reason, count in self.left_out.items()]
        return (
            f"{self.name}: {sizes} pairs; {english:,} English and {french:,} French "
            f"words; left out: {', '.join(left_out) or 'none'}"
        )


def load_translation(
    name,
    *,
    train=None,
    held_out=None,
    min_count=None,
    max_words=None,
    first=None,
    folder=None,
    longer=(),
    seed=0,
):
    """Return English–French sentence pairs in three parts, as a ``Translation``.

    ``name`` is "grammar" (made on the spot, with gold alignments), "tatoeba" (everyday
    sentences, the short ones first) or "multi30k" (captions of photographs; its
    official parts, tested on test_2016_flickr).

    ``train`` is the most training pairs: all, but 3,000 of the grammar. ``held_out``
    is the number of test sentences: 500, but all 1,000 of Multi30k; of the grammar and
    of Tatoeba a fifth as many more are for validation. A word is known if the training
    part has it ``min_count`` times: 1 for the grammar, 2 for Tatoeba, 5 for Multi30k.
    A pair with an empty side, or with more than ``max_words`` on one, is left out.

    Of files only: the ``first`` so many lines of the training file are read; ``folder``
    holds the files, which are read unchecked, and without it they are fetched and
    checked. Of the grammar only: ``longer`` lists numbers of clauses, 3 to 6, of
    which the test part gets half of ``held_out`` each: lengths that training never
    showed. ``seed`` chooses the held-out sentences and the grammar's. Raises ValueError
    for arguments that do not fit, and DataError for a file that is missing or damaged.
    """
    _check(name, (first, folder), longer)
    check_counts(train=train, held_out=held_out, first=first)
    check_counts(min_count=min_count, max_words=max_words)
    left_out = Counter()

    def keep(pairs):
        return [pair for pair in pairs if not _unfit(pair, max_words, left_out)]

    if name == "grammar":
        parts, attribution = _grammar(keep, train, held_out, seed, longer)
    elif name == "tatoeba":
        parts, attribution = _tatoeba(keep, held_out, seed, first, folder)
    else:
        parts, attribution = _multi30k(keep, held_out, first, folder)
    min_count = MIN_COUNTS[name] if min_count is None else min_count
    return _assemble(name, parts, train, min_count, attribution, left_out)


def _check(name, files, longer):
    if name not in MIN_COUNTS:
        raise ValueError(f"name must be one of {', '.join(MIN_COUNTS)}, got {name!r}")
    if name == "grammar" and files != (None, None):
        raise ValueError("the grammar reads no file: leave out first= and folder=")
    if name != "grammar" and longer:
        raise ValueError(f"{name} is what it is: leave out longer=, for the grammar")
    if isinstance(longer, int) or not {*longer} <= {*LONGER}:
        raise ValueError(f"longer must list numbers from 3 to 6, got {longer!r}")


def _unfit(pair, max_words, left_out):
    """Tell whether a pair is to be left out, and count it."""
    reason = None
    if not (pair.source and pair.target):
        reason = "with an empty side"
    elif max_words and max(len(pair.source), len(pair.target)) > max_words:
        reason = f"of more than {max_words} words"
    left_out.update([reason] if reason else [])
    return reason is not None


def _grammar(keep, train, held_out, seed, longer):
    train = 3000 if train is None else train
    test = 500 if held_out is None else held_out
    parts = split(train, test // 5, test, seed=seed, longer=longer)
    return map(keep, parts), "made by tutorial_lib.data.grammar"


def _tatoeba(keep, held_out, seed, first, folder):
    """Hold out English sentences, each with all its translations."""
    english, french, attribution = read_tatoeba(folder=folder, first=first)
    groups = {}
    for pair in keep(_tokenized(english, french)):
        groups.setdefault(pair.source, []).append(pair)
    test = 500 if held_out is None else held_out
    held = test + test // 5
    if held >= len(groups):
        raise ValueError(
            f"held_out={test} and a fifth as many for validation leave none of the "
            f"{len(groups)} English sentences to train on: hold out fewer"
        )
    sources = list(groups)
    random.Random(f"held out {seed}").shuffle(sources)
    cuts = sources[held:], sources[test:held], sources[:test]
    parts = [[pair for source in cut for pair in groups[source]] for cut in cuts]
    return parts, attribution


def _multi30k(keep, held_out, first, folder):
    parts = []
    for part, lines in ("train", first), ("val", None), ("test_2016_flickr", held_out):
        english, french, attribution = read_multi30k(part, folder=folder, first=lines)
        parts.append(keep(_tokenized(english, french)))
    return parts, attribution


def _tokenized(english, french):
    for source, target in zip(english, french, strict=True):
        source, target = tokenize(source, "en"), tokenize(target, "fr")
        yield SentencePair(tuple(source), tuple(target))


def _assemble(name, parts, limit, min_count, attribution, left_out):
    """Make the parts disjoint, held-out sentences single, and the vocabularies."""
    train, valid, test = parts
    references = {}
    for pair in (*test, *valid):
        references.setdefault(pair.source, []).append(pair.target)
    new = [pair for pair in train if pair.source not in references]
    if len(new) < len(train):
        left_out["also held out"] += len(train) - len(new)
    train = new[:limit]
    if not train:
        raise ValueError(f"{name} has no pair left to train on: left out {left_out}")
    return Translation(
        name,
        train,
        _one_each(valid),
        _one_each(test),
        Vocabulary((pair.source for pair in train), min_count=min_count),
        Vocabulary((pair.target for pair in train), min_count=min_count),
        attribution,
        references,
        dict(left_out),
    )


def _one_each(pairs):
    """Return the first pair of each source sentence."""
    firsts = {}
    for pair in pairs:
        firsts.setdefault(pair.source, pair)
    return list(firsts.values())
