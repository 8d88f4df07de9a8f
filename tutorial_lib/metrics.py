"""Metrics: how good predictions, translations and alignments are.

Scores are taken over a whole corpus, never averaged over sentences. What cannot be
scored, because there is nothing to compare, is refused: no metric returns NaN.

This module knows no model and no data set: numbers, words and links go in.
"""

from operator import index
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

    Both are integer tensors or lists of one shape, whatever it is. Raises ValueError
    for two shapes, logits instead of class numbers, and nothing to compare.
    """
    predictions = torch.as_tensor(predictions)
    targets = torch.as_tensor(targets, device=predictions.device)
    _check_some(predictions.flatten(), "predictions")
    shapes = tuple(predictions.shape), tuple(targets.shape)
    if shapes[0] != shapes[1] or predictions.is_floating_point():
        raise ValueError(
            f"predictions {shapes[0]} of {predictions.dtype} must be class numbers in "
            f"the shape of targets {shapes[1]}: of logits pass logits.argmax(-1)"
        )
    return predictions.eq(targets).double().mean().item()


def exact_match(outputs, targets):
    """Return the share of ``outputs`` that equal their targets word for word.

    Both are lists with a list of words per sentence. Raises ValueError for strings,
    different numbers of sentences, and no sentence.
    """
    _check_pairs("outputs", outputs, "targets", targets)
    _check_each("outputs", outputs, (list, tuple), "words: sentence.split()")
    _check_each("targets", targets, (list, tuple), "words: sentence.split()")
    pairs = zip(outputs, targets, strict=True)
    return sum(list(output) == list(target) for output, target in pairs) / len(outputs)


def bleu(outputs, references):
    """Return the corpus ``Bleu`` of translations: Papineni et al. (2002), by sacrebleu.

    The geometric mean, all four weighing the same, of the shares of n-grams of 1 to 4
    words that occur in the reference, times a penalty where the outputs are shorter.
    ``outputs`` are sentences as strings, not as words: sacrebleu splits them its own
    way (13a). ``references[i]`` is the reference of ``outputs[i]``, or a list of
    several; capitals count as small letters. Raises ValueError for words instead of
    strings, different numbers of outputs and references, and no sentence.
    """
    from sacrebleu.metrics import BLEU

    _check_pairs("outputs", outputs, "references", references)
    _check_each("outputs", outputs, str, 'a string: "the cat", not its words')
    several = [[one] if isinstance(one, str) else one for one in references]
    _check_each("references", several, (list, tuple), "a string or a list of strings")
    for i, choices in enumerate(several):
        _check_some(choices, f"references[{i}]")
        _check_each(f"references[{i}]", choices, str, "a string, a whole sentence")
    most = max(map(len, several))
    padded = [[*choices, *[None] * (most - len(choices))] for choices in several]
    metric = BLEU(lowercase=True)
    score = metric.corpus_score(outputs, list(zip(*padded, strict=True))).score
    return Bleu(score, str(metric.get_signature()))


def heaviest_links(weights):
    """Return the links (target, source) from each target word to its heaviest source.

    ``weights`` is (target, source). A row of zeros links to nothing, and of equal
    weights the first one counts. Drop the row of <eos> before: it is no word. Raises
    ValueError for another shape, NaN, and no source word.
    """
    weights = torch.as_tensor(weights).detach().cpu()
    if weights.ndim != 2 or not weights.shape[1] or weights.isnan().any():
        raise ValueError(
            "weights must be (target, source), of one sentence and head and without "
            f"NaN, got {tuple(weights.shape)} with {int(weights.isnan().sum())} NaN"
        )
    largest, source = weights.max(-1)
    return {(i, j) for i, j in enumerate(source.tolist()) if largest[i] > 0}


def alignment_accuracy(weights, gold):
    """Return the share of target words whose heaviest source word is a gold link.

    ``weights`` is (target, source) and ``gold`` a set of links (target, source); or
    both are lists with one per sentence, pooled. Target words without a gold link are
    not counted, so neither is a row of <eos>; a linked word beyond the last row counts
    as wrong. Raises ValueError where ``gold`` does not fit, or links nothing.
    """
    if isinstance(gold, (set, frozenset)):
        weights, gold = [weights], [gold]
    _check_pairs("weights", weights, "gold", gold)
    gold = _read_links("gold", gold)
    right, linked = 0, 0
    for i, (sentence, links) in enumerate(zip(weights, gold, strict=True)):
        _check_columns(i, torch.as_tensor(sentence).shape[-1], links)
        right += len(heaviest_links(sentence) & links)
        linked += len({target for target, _ in links})
    if not linked:
        raise ValueError("gold has no link at all: there is no target word to score")
    return right / linked


def alignment_error_rate(links, gold):
    """Return the alignment error rate, 0 for the gold links to 1: Och and Ney (2003).

    1 − 2 |links ∩ gold| / (|links| + |gold|), with gold links that are all sure ones.
    Both are sets of (target, source), or lists with one set per sentence, pooled.
    Nothing found where there is nothing to find is no error: 0. Raises ValueError for
    anything but sets, and different numbers of sentences.
    """
    if isinstance(gold, (set, frozenset)):
        links, gold = [links], [gold]
    _check_pairs("links", links, "gold", gold)
    links, gold = _read_links("links", links), _read_links("gold", gold)
    shared = sum(len(a & b) for a, b in zip(links, gold, strict=True))
    total = sum(map(len, links)) + sum(map(len, gold))
    return 1 - 2 * shared / total if total else 0.0


def _check_some(values, name):
    if not len(values):
        raise ValueError(f"{name} hold nothing: pass at least one")


def _check_pairs(name, values, other, others):
    for title, given in ((name, values), (other, others)):
        if isinstance(given, str):
            raise ValueError(f"{title} is one string: pass a list of sentences")
    if len(values) != len(others):
        raise ValueError(
            f"{len(values)} {name} but {len(others)} {other}: {other}[i] is compared "
            f"with {name}[i], so pass one for each"
        )
    _check_some(values, name)


def _check_each(name, values, kinds, expected):
    for i, value in enumerate(values):
        if not isinstance(value, kinds):
            kind = type(value).__name__
            raise ValueError(f"{name}[{i}] is a {kind}: pass {expected}")


def _check_columns(i, columns, links):
    last = max((source for _, source in links), default=0)
    if last >= columns:
        raise ValueError(
            f"gold[{i}] links source word {last}, but weights[{i}] have {columns} "
            "columns: both must be (target, source)"
        )


def _read_links(name, values):
    """Return sets of pairs of ints, since equal tensors are two things in a set."""
    _check_each(name, values, (set, frozenset), "a set of pairs (target, source)")
    return [
        {_read_link(f"{name}[{i}]", link) for link in links}
        for i, links in enumerate(values)
    ]


def _read_link(name, link):
    try:
        target, source = map(index, link)
    except (TypeError, ValueError):
        target = source = -1
    if not isinstance(link, tuple) or min(target, source) < 0:
        raise ValueError(
            f"{name} holds {link!r}: pass (target, source), the numbers of two words "
            "counted from 0"
        )
    return target, source
