"""Metrics against numbers worked by hand, and BLEU against sacrebleu's own."""

import itertools
import math

import pytest
import sacrebleu
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tutorial_lib.metrics import (
    accuracy,
    alignment_accuracy,
    bleu,
    exact_match,
)

# How three target words attend to three source words, and the row of <eos>.
WEIGHTS = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0, 0, 1.0]])
OUTPUTS = ["the black cat sleeps here", "a bird"]
REFERENCES = ["The black cat sleeps on it", "a bird sings"]
few = st.integers(0, 3)
links = st.frozensets(st.tuples(few, few))
words = st.sampled_from(["le", "Le", "chat", "l'", "où", "dort", ",", "."])
sentences = st.lists(words, max_size=6)
several = st.lists(sentences, min_size=1, max_size=3)
translations = st.lists(st.tuples(sentences, several), min_size=1, max_size=5)
rows = st.lists(st.permutations([0, 0.2, 0.3, 0.5]), min_size=1, max_size=4)


@given(st.lists(st.tuples(few, few), min_size=1))
def test_accuracy_is_the_share_of_equal_class_numbers(pairs):
    predictions, targets = torch.tensor(pairs).T
    share = pytest.approx(sum(one == other for one, other in pairs) / len(pairs))
    assert accuracy(predictions, targets) == share
    assert isinstance(accuracy(predictions, targets), float)
    assert accuracy([predictions.tolist()], [targets.tolist()]) == share


class NoDoubles(TorchDispatchMode):
    """A device without double precision."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        assert getattr(result, "dtype", None) != torch.float64
        return result


def test_accuracy_needs_no_double_precision():
    with NoDoubles():
        assert accuracy(torch.tensor([1, 2]), torch.tensor([1, 1])) == 1 / 2


@given(st.lists(st.tuples(sentences, sentences), min_size=1))
def test_exact_match_is_the_share_of_equal_sentences(pairs):
    outputs, targets = zip(*pairs, strict=True)
    share = sum(one == other for one, other in pairs) / len(pairs)
    assert exact_match(outputs, targets) == share
    assert exact_match([*map(tuple, outputs)], targets) == share


def test_bleu_is_the_geometric_mean_of_the_corpus_times_the_brevity_penalty():
    # Of 7 words 6 occur, of 5 pairs 4, of 3 triples 2, of 2 quadruples 1: over the
    # corpus, for the second sentence alone has no triple. 7 words stand for 9.
    mean = (6 / 7 * 4 / 5 * 2 / 3 * 1 / 2) ** (1 / 4)
    result = bleu(OUTPUTS, REFERENCES)
    version = sacrebleu.__version__
    expected = 100 * math.exp(1 - 9 / 7) * mean
    assert result.score == pytest.approx(expected, abs=1e-9)
    signature = f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert result.signature == signature


def test_bleu_is_smoothed_but_not_without_any_four_words():
    output, reference = "le chat noir dort ici", "le chat blanc dort ici"
    # Of 4 pairs 2 occur, of 3 triples half a one, of 2 quadruples a quarter of one.
    mean = (4 / 5 * 2 / 4 * 0.5 / 3 * 0.25 / 2) ** (1 / 4)
    assert bleu([output], [reference]).score == pytest.approx(100 * mean, abs=1e-9)
    assert bleu(["va !"], ["va !"]).score == 0


@given(translations)
def test_bleu_is_sacrebleus_whatever_the_words_and_references(corpus):
    outputs = [" ".join(output) for output, _ in corpus]
    references = [[*map(" ".join, several)] for _, several in corpus]
    columns = itertools.zip_longest(*references)
    oracle = sacrebleu.corpus_bleu(outputs, [*map(list, columns)], lowercase=True)
    assert bleu(outputs, references).score == oracle.score
    first = [several[0] for several in references]
    assert bleu(outputs, first) == bleu(outputs, [[one] for one in first])


@pytest.mark.parametrize(
    ("rows", "gold", "expected"),
    [
        # Word 1 is linked to source 2, word 2 to source 1; word 0 is right twice over.
        (4, {(0, 0), (0, 1), (1, 1), (2, 2)}, 1 / 3),
        (4, {(0, 0), (1, 2), (2, 1)}, 1),
        (4, {(0, 0), (1, 1)}, 1 / 2),  # word 2 and <eos> are not counted
        (1, {(0, 0), (1, 2), (2, 1)}, 1 / 3),  # words that were never reached are wrong
        (0, {(0, 0)}, 0),
    ],
)
def test_alignment_accuracy_by_hand(rows, gold, expected):
    assert alignment_accuracy([WEIGHTS[:rows]], [gold]) == expected


def test_a_row_of_zeros_links_to_nothing_and_of_equals_the_first_counts():
    weights = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    assert alignment_accuracy([weights], [{(0, 0), (1, 0)}]) == 1 / 2


@given(st.lists(st.tuples(rows, links), min_size=1))
def test_alignment_accuracy_counts_the_target_words_that_gold_links(corpus):
    weights, gold = zip(*corpus, strict=True)
    linked = len({(i, word) for i, links in enumerate(gold) for word, _ in links})
    assume(linked)
    right = sum(
        (target, row.index(0.5)) in links
        for sentence, links in corpus
        for target, row in enumerate(sentence)
    )
    assert alignment_accuracy([*map(torch.tensor, weights)], gold) == right / linked


WRONG = [
    (accuracy, ([1, 2], [1]), r"predictions \(2,\) .* targets \(1,\)"),
    (accuracy, (torch.rand(4, 3), [1, 2, 0, 1]), r"of logits pass logits\.argmax"),
    (accuracy, (torch.rand(2), [1, 0]), r"\(2,\) must be class numbers"),
    (accuracy, ([], []), r"predictions \(0,\) must be class numbers"),
    (exact_match, ([["a"]], [["a"], ["b"]]), "1 outputs and 2 targets: pass equally"),
    (exact_match, (["a b"], [["a", "b"]]), r"lists of words: sentence\.split"),
    (exact_match, ([["a"]], ["a"]), "lists of words"),
    (exact_match, ("a b", "a b"), "lists of words"),
    (exact_match, ([], []), "0 outputs and 0 targets: pass equally many, not 0"),
    (bleu, (["a", "b"], ["a"]), "2 outputs and 1 references"),
    (bleu, ([["a", "b"]], ["a b"]), 'sentences as strings: "the cat", not its words'),
    (bleu, ("a b", "a b"), "sentences as strings"),
    (bleu, ([], []), "0 outputs and 0 references"),
    (alignment_accuracy, ([WEIGHTS], [set()]), "gold has no link at all"),
    (alignment_accuracy, ([WEIGHTS], [{(0, 3)}]), r"the 3 columns of weights\[0\]"),
    (alignment_accuracy, ([WEIGHTS], [{(0, -1)}]), r"the 3 columns of weights\[0\]"),
    (alignment_accuracy, ([WEIGHTS], [{(0, 0), (1, 3)}]), r"the 3 columns of weights"),
    (alignment_accuracy, ([WEIGHTS], [{(-1, 0)}]), r"columns of weights\[0\], or bef"),
    (alignment_accuracy, ([WEIGHTS], []), "1 weights and 0 gold"),
]


@pytest.mark.parametrize(("metric", "arguments", "message"), WRONG)
def test_what_does_not_fit_is_refused_in_one_line(metric, arguments, message):
    with pytest.raises(ValueError, match=message) as refusal:
        metric(*arguments)
    assert "\n" not in str(refusal.value)
