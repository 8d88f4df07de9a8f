"""Metrics: how good predictions, translations and alignments are.

Scores are taken over a whole corpus, never averaged over sentences. What cannot be
scored, because there is nothing to compare, is refused: no metric returns NaN.

This module knows no model and no data set: numbers, words and links go in.
"""

from itertools import zip_longest
from typing import NamedTuple

import torch


class Bleu(NamedTuple):
    """A corpus BLEU ``score`` from 0 to 100, and the ``signature`` of how it was taken.

    Two scores may be compared where their signatures agree: Post (2018).
    """

    score: float
    signature: str

    def __repr__(self):
        return f"BLEU {self.score:.2f} ({self.signature})"


def accuracy(predictions, targets):
    """Return the share of class numbers in ``predictions`` that equal ``targets``.

    Both are of one shape. Raises ValueError for two shapes, logits, and no numbers.
    """
    predictions, targets = torch.as_tensor(predictions), torch.as_tensor(targets)
    same = predictions.shape == targets.shape and not predictions.is_floating_point()
    if not same or not predictions.numel():
        raise ValueError(
            f"predictions {tuple(predictions.shape)} must be class numbers, as targets "
            f"{tuple(targets.shape)}: of logits pass logits.argmax(-1)"
        )
    return predictions.eq(targets).double().mean().item()


def exact_match(outputs, targets):
    """Return the share of ``outputs`` that equal their targets word for word.

    Both are lists with a list of words per sentence. Raises ValueError for strings,
    unequal numbers, and no sentence.
    """
    if any(isinstance(x, str) for x in (outputs, targets, *outputs, *targets)):
        raise ValueError("outputs and targets hold lists of words: sentence.split()")
    _check_pairs("outputs", outputs, "targets", targets)
    equal = [[*one] == [*other] for one, other in zip(outputs, targets, strict=True)]
    return sum(equal) / len(equal)


def bleu(outputs, references):
    """Return the corpus ``Bleu`` of translations: Papineni et al. (2002), by sacrebleu.

    The geometric mean, all four weighing the same, of the shares of n-grams of 1 to 4
    words that occur in the reference, times a penalty where the outputs are shorter.
    ``outputs`` are strings, which sacrebleu splits its own way (13a), in small letters;
    ``references[i]`` is the reference of ``outputs[i]``, or a list of several. Raises
    ValueError for words instead of strings, unequal numbers, and no sentence.
    """
    from sacrebleu.metrics import BLEU

    if isinstance(outputs, str) or not all(isinstance(x, str) for x in outputs):
        raise ValueError('outputs hold sentences as strings: "the cat", not its words')
    _check_pairs("outputs", outputs, "references", references)
    several = [[one] if isinstance(one, str) else one for one in references]
    metric, columns = BLEU(lowercase=True), [*zip_longest(*several)]
    score = metric.corpus_score(outputs, columns).score
    return Bleu(score, str(metric.get_signature()))


def heaviest_links(weights):
    """Return the links (target, source) from each target word to its heaviest source.

    ``weights`` is (target, source), without a row of <eos>, which is no word. A row of
    zeros links to nothing. Raises ValueError for another shape, and for NaN.
    """
    weights = torch.as_tensor(weights).detach().cpu()
    if weights.ndim != 2 or not weights.shape[1] or weights.isnan().any():
        raise ValueError(
            f"weights must be (target, source) without NaN, got {tuple(weights.shape)}"
        )
    largest, source = weights.max(-1)
    return {(i, j) for i, j in enumerate(source.tolist()) if largest[i] > 0}


def alignment_accuracy(weights, gold):
    """Return the share of target words whose heaviest source word is a gold link.

    ``weights`` is (target, source) and ``gold`` a set of links (target, source); or
    both are lists with one per sentence, pooled. Words without a gold link, as <eos>,
    are not counted; a linked word beyond the last row counts as wrong. Raises
    ValueError where ``gold`` does not fit, or links nothing.
    """
    weights, gold = _read_links("weights", weights, gold)
    right, linked = 0, 0
    for i, (sentence, links) in enumerate(zip(weights, gold, strict=True)):
        columns = torch.as_tensor(sentence).shape[-1]
        if any(source not in range(columns) for _, source in links):
            raise ValueError(
                f"gold[{i}] links words beyond the {columns} columns of weights[{i}]: "
                "both must be (target, source)"
            )
        right += len(heaviest_links(sentence) & links)
        linked += len({target for target, _ in links})
    if not linked:
        raise ValueError("gold has no link at all: there is no target word to score")
    return right / linked


def alignment_error_rate(links, gold):
    """Return the alignment error rate, 0 for the gold links to 1: Och and Ney (2003).

    1 − 2 |links ∩ gold| / (|links| + |gold|), with gold links that are all sure ones.
    Both are sets of (target, source), or lists with one set per sentence, pooled.
    No links where gold has none are no error: 0. Raises ValueError for unequal numbers.
    """
    links, gold = _read_links("links", links, gold)
    shared = sum(len(one & other) for one, other in zip(links, gold, strict=True))
    total = sum(map(len, [*links, *gold]))
    return 1 - 2 * shared / total if total else 0.0


def _read_links(name, values, gold):
    """Return lists with one per sentence, the gold links as pairs of ints."""
    if isinstance(gold, (set, frozenset)):
        values, gold = [values], [gold]
    _check_pairs(name, values, "gold", gold)
    return values, [{(int(i), int(j)) for i, j in links} for links in gold]


def _check_pairs(name, values, other, others):
    if len(values) != len(others) or not len(values):
        raise ValueError(
            f"{len(values)} {name} and {len(others)} {other}: pass equally many, not 0"
        )
