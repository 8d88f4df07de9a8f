"""Metrics: how good translations and alignments are.

Scores are taken over a whole corpus, never averaged over sentences.
"""

from itertools import zip_longest
from typing import NamedTuple


class Bleu(NamedTuple):
    """A corpus BLEU ``score`` from 0 to 100, and the ``signature`` of how it was taken.

    Two scores may be compared where their signatures agree: Post (2018).
    """

    score: float
    signature: str


def exact_match(outputs, targets):
    """Return the share of ``outputs`` that equal their targets word for word.

    Both are lists with a list of words for each sentence. Raises ValueError for none,
    and for a string beside a list of words.
    """
    if not len(targets):
        raise ValueError("there is no sentence to compare")
    matches = 0
    for output, target in zip(outputs, targets, strict=True):
        if isinstance(output, str) != isinstance(target, str):
            raise ValueError(f"{output!r} and {target!r} are not both lists of words")
        matches += list(output) == list(target)
    return matches / len(targets)


def bleu(outputs, references):
    """Return the corpus ``Bleu`` of translations: Papineni et al. (2002), by sacrebleu.

    Outputs are strings, which sacrebleu splits its own way (13a), in small letters;
    ``references[i]`` is the reference of ``outputs[i]``, or a list of several. Of a
    length none of whose n-grams occur, half of one counts, of the next a quarter
    (smooth:exp); without any n-gram of four words the score is 0. Raises ValueError
    unless there is a list of outputs, and a reference for each.
    """
    from sacrebleu.metrics import BLEU

    are_lists = all(isinstance(one, (list, tuple)) for one in (outputs, references))
    if not are_lists or not outputs:
        raise ValueError("bleu takes a list of outputs, each a string, and is of all")
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs have {len(references)} references")
    lists = []
    for reference in references:
        lists.append([reference] if isinstance(reference, str) else reference)
    if not all(lists):
        raise ValueError("an output has an empty list of references")
    columns = list(zip_longest(*lists))  # the first reference of all outputs, …
    metric = BLEU(lowercase=True)
    score = metric.corpus_score(outputs, columns).score
    return Bleu(score, str(metric.get_signature()))


def alignment_accuracy(maps, pairs):
    """Return the share of target tokens whose largest weight is on a gold link.

    ``maps`` lists the weights (target, source) of each of the ``pairs``.
    """
    correct = 0
    total = 0
    for weights, pair in zip(maps, pairs, strict=True):
        for i, j in enumerate(weights.argmax(dim=-1).tolist()):
            if (i, j) in pair.alignment:
                correct += 1
            total += 1
    return correct / total
