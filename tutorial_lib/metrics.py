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
    return predictions.eq(targets).sum().item() / targets.numel()


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
    words that occur in the reference, times a penalty where the outputs are shorter. Of
    a length none of whose n-grams occur, half of one counts, of the next a quarter
    (smooth:exp); without any n-gram of four words the score is 0. ``outputs`` are
    strings, which sacrebleu splits its own way (13a), in small letters;
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


def alignment_accuracy(weights, gold):
    """Return the share of target words whose heaviest source word is a gold link.

    ``weights`` lists a tensor (target, source) for each sentence, and ``gold`` a set of
    links (target, source); all sentences are pooled. Words without a gold link, as
    <eos>, are not counted; a linked word beyond the last row counts as wrong, and so
    does one whose weights are all 0. Raises ValueError where ``gold`` does not fit, or
    links nothing.
    """
    _check_pairs("weights", weights, "gold", gold)
    right, linked = 0, 0
    for i, (sentence, links) in enumerate(zip(weights, gold, strict=True)):
        columns = range(sentence.shape[-1])
        if any(target < 0 or source not in columns for target, source in links):
            raise ValueError(
                f"gold[{i}] links words beyond the {len(columns)} columns of "
                f"weights[{i}], or before the first: both must be (target, source)"
            )
        largest, heaviest = sentence.max(dim=-1)  # of each target word
        found = {(i, j) for i, j in enumerate(heaviest.tolist()) if largest[i] > 0}
        right += len(found & links)
        linked += len({target for target, _ in links})
    if not linked:
        raise ValueError("gold has no link at all: there is no target word to score")
    return right / linked


def _check_pairs(name, values, other, others):
    if len(values) != len(others) or not len(values):
        raise ValueError(
            f"{len(values)} {name} and {len(others)} {other}: pass equally many, not 0"
        )
