"""Known wrong answers about BLEU, as (code, message, answer).

This module does not know the right answers.
"""

import math
from collections import Counter
from itertools import chain


def _counts(outputs, references, n, clip, over="runs"):
    shared = total = 0
    for output, reference in zip(outputs, references, strict=True):
        runs, wanted = _ngrams(output, n), _ngrams(reference, n)
        known = sum(count for run, count in runs.items() if run in wanted)
        shared += (runs & wanted).total() if clip else known
        totals = {"runs": runs, "wanted": wanted, "words": _ngrams(output, 1)}
        total += totals[over].total()
    return shared, total


def _ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _score(
    outputs,
    references,
    *,
    drop=False,
    weights=(0.25,) * 4,
    clip=True,
    mean="geometric",
    penalty="short",
    over="runs",
):
    """Take BLEU with one thing done in another way."""
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    if not words:
        return 0.0
    ratio = 1 - wanted / words
    factor = {
        "short": math.exp(min(0, ratio)),
        "none": 1.0,
        "always": math.exp(ratio),
        "inverted": math.exp(min(0, 1 - words / wanted)),
    }[penalty]
    precisions = []
    for n in range(1, 5):
        shared, total = _counts(outputs, references, n, clip, over)
        if total or not drop:
            precisions.append(shared / total if total else 0.0)
    if mean == "arithmetic":
        return factor * sum(precisions) / len(precisions)
    powers = zip(precisions, weights, strict=False)
    return factor * math.prod(p**weight for p, weight in powers)


HALVES = (1 / 2, 1 / 4, 1 / 8, 1 / 16)


def _single(**faults):
    return lambda output, reference: _score([output], [reference], **faults)


def _several(**faults):
    return lambda outputs, references: _score(outputs, references, **faults)


_FAULTS = [
    *[
        (
            "no-fours",
            "The runs of four words are missing: `range(1, 4)` ends with 3.",
            {"weights": (weight, weight, weight, 0)},
        )
        for weight in (1 / 4, 1 / 3)
    ],
    (
        "recall",
        "You divide by the n-grams of the reference, which gives recall. A precision "
        "divides by those of the output.",
        {"over": "wanted"},
    ),
    (
        "by-words",
        "You divide by the number of words for every n. Seven words have only six runs "
        "of two.",
        {"over": "words"},
    ),
    (
        "weights",
        "Your precisions weigh ½, ¼, ⅛ and 1/16: long runs hardly count, and the "
        "weights do not sum to 1. All four have the power ¼.",
        {"weights": HALVES},
    ),
    (
        "no-root",
        "You multiply the four precisions without the fourth root: a geometric mean "
        "is (p₁ p₂ p₃ p₄) to the power ¼.",
        {"weights": (1, 1, 1, 1)},
    ),
    (
        "arithmetic-mean",
        "You average the precisions. The mean is geometric: one precision of 0 makes "
        "the score 0.",
        {"mean": "arithmetic"},
    ),
    (
        "no-clipping",
        "A word counts as often as the output has it: “le le le” would be perfect. "
        "Count it at most as often as the reference does: the & of two Counters.",
        {"clip": False},
    ),
    (
        "no-penalty",
        "The brevity penalty is missing, or always 1: leaving words out costs nothing.",
        {"penalty": "none"},
    ),
    (
        "rewards-length",
        "An output longer than its reference gets a factor above 1: the penalty is "
        "at most 1.",
        {"penalty": "always"},
    ),
    (
        "penalty-inverted",
        "You punish long outputs instead of short ones: r/o is the reference's length "
        "by the output's.",
        {"penalty": "inverted"},
    ),
]

PERCENT = "Your score is in percent. It goes from 0 to 1: leave the factor 100 out."


def _sentence_in_percent(output, reference):
    return 100 * _score([output], [reference])


def _corpus_in_percent(outputs, references):
    return 100 * _score(outputs, references)


SENTENCE = [
    ("percent", PERCENT, _sentence_in_percent),
    (
        "missing-dropped",
        "Where the output is too short for a run of n words, you leave that precision "
        "out. It counts as 0.",
        _single(drop=True),
    ),
    *[(code, message, _single(**fault)) for code, message, fault in _FAULTS],
]


def _mean_of_sentences(outputs, references):
    both = zip(outputs, references, strict=True)
    return sum(_score([o], [r]) for o, r in both) / len(outputs)


def _penalty_by_sentence(outputs, references):
    both = list(zip(outputs, references, strict=True))
    factors = [math.exp(min(0, 1 - len(r) / len(o))) if o else 0 for o, r in both]
    return sum(factors) / len(both) * _score(outputs, references, penalty="none")


def _short_skipped(outputs, references):
    both = zip(outputs, references, strict=True)
    kept = [pair for pair in both if len(pair[0]) >= 4]
    return _score(*zip(*kept, strict=True)) if kept else 0.0


def _in_one_row(outputs, references):
    return _score([list(chain(*outputs))], [list(chain(*references))])


def _precisions_averaged(outputs, references):
    precisions = []
    for n in range(1, 5):
        each = []
        for pair in zip(outputs, references, strict=True):
            shared, total = _counts([pair[0]], [pair[1]], n, clip=True)
            each.append(shared / total if total else 0.0)
        precisions.append(sum(each) / len(each))
    return _combined(outputs, references, precisions)


def _combined(outputs, references, precisions):
    """Take the geometric mean of precisions, times the right penalty."""
    ratio = 1 - sum(map(len, references)) / max(1, sum(map(len, outputs)))
    return math.exp(min(0, ratio)) * math.prod(precisions) ** 0.25


def _pooled(outputs, references):
    """Add up the n-grams of all sentences, and clip only then."""
    precisions = []
    for n in range(1, 5):
        runs, wanted = (
            sum((_ngrams(words, n) for words in side), Counter())
            for side in (outputs, references)
        )
        precisions.append((runs & wanted).total() / max(1, runs.total()))
    return _combined(outputs, references, precisions)


def _negative_totals(outputs, references):
    precisions = []
    for n in range(1, 5):
        shared, _ = _counts(outputs, references, n, clip=True)
        precisions.append(shared / sum(len(output) - n + 1 for output in outputs))
    return _combined(outputs, references, precisions)


def _ratios_averaged(outputs, references):
    both = zip(outputs, references, strict=True)
    ratio = sum(len(r) / len(o) for o, r in both) / len(outputs)
    factor = math.exp(min(0, 1 - ratio))
    return factor * _score(outputs, references, penalty="none")


def _other_ratios_averaged(outputs, references):
    both = zip(outputs, references, strict=True)
    ratio = len(outputs) / sum(len(o) / len(r) for o, r in both)
    factor = math.exp(min(0, 1 - ratio))
    return factor * _score(outputs, references, penalty="none")


RATIOS = (
    "Your penalty averages the ratios of the lengths, sentence by sentence. Sum the "
    "lengths of all outputs and of all references, then divide once."
)


CORPUS = [
    ("percent", PERCENT, _corpus_in_percent),
    (
        "mean-of-sentences",
        "You average the scores of the sentences: every short one pulls the mean to 0. "
        "Sum the counts over all sentences, then divide once.",
        _mean_of_sentences,
    ),
    (
        "precisions-averaged",
        "You average each precision over the sentences. Sum shared and total n-grams "
        "over all sentences, then divide once.",
        _precisions_averaged,
    ),
    (
        "penalty-by-sentence",
        "Your penalty is taken for each sentence. It compares the total length of "
        "the outputs with that of the references.",
        _penalty_by_sentence,
    ),
    (
        "short-skipped",
        "You leave out the sentences of fewer than four words. Their words and shorter "
        "runs count, too.",
        _short_skipped,
    ),
    (
        "in-one-row",
        "You join all sentences to one: runs of words now reach over the ends of "
        "sentences, and a word may be found in another sentence's reference.",
        _in_one_row,
    ),
    (
        "pooled",
        "Take & sentence by sentence, before summing: in your sums a word is also "
        "found in another sentence's reference.",
        _pooled,
    ),
    (
        "negative-total",
        "`len(o) - n + 1` can be negative: a sentence of two words has 0 runs of four, "
        "not −1. `ngrams(o, n).total()` counts right.",
        _negative_totals,
    ),
    ("ratios-averaged", RATIOS, _ratios_averaged),
    ("ratios-averaged", RATIOS, _other_ratios_averaged),
    *[(code, message, _several(**fault)) for code, message, fault in _FAULTS],
]
