"""The check of chapter 5's BLEU.

The definition here crosses n-grams off one by one; this module knows no counters.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise

REFERENCE = ["la", "petite", "fille", "ne", "garde", "pas", "le", "chat"]
SHORTER = ["la", "fille", "ne", "garde", "pas", "le", "chat"]
REPEATED = ["le", "le", "garde", "pas", "le", "chat", "la", "petite"]
MIXED = ["chat", "pas", "le", "la"]  # every word is right, but no run of three


def _runs(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _shared(output, reference, n):
    """Cross every n-gram off the reference that the output has."""
    left, count = _runs(reference, n), 0
    for run in _runs(output, n):
        if run in left:
            left.remove(run)
            count += 1
    return count


def _bleu(outputs, references):
    """Take BLEU of a corpus, from counts by crossing off."""
    both = list(zip(outputs, references, strict=True))
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    logarithm = min(0, 1 - wanted / words) if words else 0
    for n in range(1, 5):
        shared = sum(_shared(output, reference, n) for output, reference in both)
        total = sum(len(_runs(output, n)) for output in outputs)
        if shared == 0:
            return 0.0
        logarithm += math.log(shared / total) / 4
    return math.exp(logarithm)


def _expect_no_smoothing(probe, score):
    probe.require(
        probe.close(score, 0.0, tolerance=1e-6),
        "smoothed",
        "No run of three or four words is shared here, so two precisions are 0, and "
        f"so is the score; yours is {score:.3f}. A small number in place of 0 is "
        "called smoothing: sacrebleu does it (smooth:exp), the formula does not.",
    )


corpus = Exercise(
    "5.3",
    "BLEU of a corpus",
    name="corpus_bleu",
    tolerance=1e-6,
    hints=[
        "Nothing is divided until all sentences are counted.",
        "For each n sum `(ngrams(o, n) & ngrams(r, n)).total()` and "
        "`ngrams(o, n).total()` over all pairs o, r of output and reference.",
        "The penalty compares the sum of all output lengths with that of all "
        "reference lengths.",
    ],
)


@corpus.spec
def corpus_bleu(outputs, references):
    """Count by crossing off, over all sentences, and divide once."""
    return _bleu(outputs, references)


def _table():
    outputs = ["elle dort", "la fille ne garde pas le chat", "il voit un arbre et dort"]
    truth = ["elle dort", " ".join(REFERENCE), "il voit un arbre"]
    return [o.split() for o in outputs], [t.split() for t in truth]


@corpus.step("one sentence scores what the formula says")
def _(probe):
    probe([[*REFERENCE, "et", "dort"]], [REFERENCE])
    probe.same()
    probe([SHORTER], [REFERENCE])
    probe.same()
    probe([REPEATED], [REFERENCE])
    probe.same()
    probe([REFERENCE[:4]], [REFERENCE[:4]])
    probe.same()


@corpus.step("three sentences, worked by hand, score 0.705")
def _(probe):
    # n = 1: 2 + 7 + 4 of 2 + 7 + 6; n = 2: 1 + 5 + 3 of 1 + 6 + 5;
    # n = 3: 0 + 4 + 2 of 0 + 5 + 4; n = 4: 0 + 3 + 1 of 0 + 4 + 3; 15 words for 14.
    by_hand = (13 / 15 * 9 / 12 * 6 / 9 * 4 / 7) ** 0.25
    probe(*_table())
    probe.same()
    probe.same(by_hand)


@corpus.step("too long in one sentence makes up for too short in another")
def _(probe):
    # 5 words for 8 and 6 for 4 make 11 for 12; no mean of the ratios comes to that
    outputs, references = _table()
    probe([REFERENCE[:5], outputs[2]], [REFERENCE, references[2]])
    probe.same()


@corpus.step("clipping is per sentence, and an empty output is allowed")
def _(probe):
    probe([[*REFERENCE, *REFERENCE], [], ["le"]], [REFERENCE, REFERENCE, REFERENCE])
    probe.same()


@corpus.step("outputs that share words, but no run of four, score 0")
def _(probe):
    short = ["elle", "dort"]
    _expect_no_smoothing(probe, probe([MIXED, short], [REFERENCE, short]))


@corpus.step("nothing in common, or no words at all, scores 0")
def _(probe):
    probe([["un", "deux"], []], [["trois"], ["quatre"]])
    probe.same()
    probe([[], []], [["trois"], ["quatre"]])
    probe.same()


@corpus.step("agrees with sacrebleu")
def _(probe):
    from sacrebleu.metrics import BLEU

    outputs, references = _made_up(30), _made_up(30)
    score = probe(outputs, references)
    lines = [[" ".join(words) for words in side] for side in (outputs, references)]
    metric = BLEU(tokenize="none", smooth_method="none")
    theirs = metric.corpus_score(lines[0], [lines[1]]).score / 100
    probe.same(theirs, output=score)


def _made_up(count):
    """Make sentences of few different words, so that two of them share runs."""
    lengths = torch.randint(4, 12, (count,)).tolist()
    words = ["le", "la", "chat"]
    return [
        [words[i] for i in torch.randint(3, (length,)).tolist()] for length in lengths
    ]
