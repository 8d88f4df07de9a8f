import itertools
import math

import pytest
import sacrebleu
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tutorial_lib.metrics import (
    accuracy,
    alignment_accuracy,
    alignment_error_rate,
    bleu,
    exact_match,
    heaviest_links,
)

# Three target words looking at three source words, and the row of <eos>.
WEIGHTS = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0, 0, 1.0]])
OUTPUTS = ["the black cat sleeps here", "a bird"]
REFERENCES = ["The black cat sleeps on it", "a bird sings"]


few = st.integers(0, 3)
links = st.frozensets(st.tuples(few, few))
corpora = st.lists(st.tuples(links, links), min_size=1)
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


@given(st.lists(st.tuples(sentences, sentences), min_size=1))
def test_exact_match_is_the_share_of_equal_sentences(pairs):
    outputs, targets = zip(*pairs, strict=True)
    share = sum(one == other for one, other in pairs) / len(pairs)
    assert exact_match(outputs, targets) == share
    assert exact_match([*map(tuple, outputs)], targets) == share
    assert exact_match(outputs, [*map(tuple, targets)]) == share


# ---- BLEU


def test_bleu_is_the_geometric_mean_of_the_corpus_times_the_brevity_penalty():
    # Of 7 words 6 occur, of 5 pairs 4, of 3 triples 2, of 2 quadruples 1: over the
    # corpus, for the second sentence alone has no triple. 7 words stand for 9.
    mean = (6 / 7 * 4 / 5 * 2 / 3 * 1 / 2) ** (1 / 4)
    expected = 100 * math.exp(1 - 9 / 7) * mean
    assert bleu(OUTPUTS, REFERENCES).score == pytest.approx(expected, abs=1e-9)


@given(translations)
def test_bleu_is_sacrebleus_whatever_the_words_and_references(corpus):
    outputs = [" ".join(output) for output, _ in corpus]
    references = [[" ".join(words) for words in several] for _, several in corpus]
    columns = itertools.zip_longest(*references)
    oracle = sacrebleu.corpus_bleu(outputs, [*map(list, columns)], lowercase=True)
    assert bleu(outputs, references).score == oracle.score
    first = [several[0] for several in references]
    assert bleu(outputs, first) == bleu(outputs, [[one] for one in first])


def test_the_signature_says_how_the_score_was_taken():
    result = bleu(OUTPUTS, REFERENCES)
    version = sacrebleu.__version__
    signature = f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert result.signature == signature
    assert str(result) == repr(result) == f"BLEU 51.96 ({signature})"
    assert result == (result.score, signature)


def test_of_several_references_the_best_counts_for_each_sentence():
    outputs = ["a b c d", "e f g h"]
    both = [["x x x x", "a b c d"], ["e f g h", "y y y y"]]
    result = bleu(outputs, both)
    assert result.score == pytest.approx(100) and "nrefs:2" in result.signature
    assert bleu(outputs, [first for first, _ in both]).score < 60


# ---- alignments


def test_each_target_word_is_linked_to_its_heaviest_source_word():
    assert heaviest_links(WEIGHTS) == {(0, 0), (1, 2), (2, 1), (3, 2)}


def test_a_row_of_zeros_links_to_nothing_and_the_first_of_equals_counts():
    assert heaviest_links([[0.0, 0.0], [0.5, 0.5]]) == {(1, 0)}


def test_alignment_accuracy_by_hand():
    # Word 1 looks most at source 2, word 2 at source 1; word 0 is right twice over.
    assert alignment_accuracy(WEIGHTS, {(0, 0), (0, 1), (1, 1), (2, 2)}) == 1 / 3
    assert alignment_accuracy(WEIGHTS, {(0, 0), (1, 2), (2, 1)}) == 1
    other = torch.tensor([[1.0, 0.0]])
    corpus = [{(0, 0), (1, 1), (2, 2)}, {(0, 0)}]
    assert alignment_accuracy([WEIGHTS, other], corpus) == 2 / 4  # not (1/3 + 1) / 2


def test_rows_of_eos_and_words_without_a_gold_link_are_not_counted():
    gold = {(0, 0), (1, 1)}
    assert alignment_accuracy(WEIGHTS, gold) == 0.5
    assert alignment_accuracy(WEIGHTS[:2], gold) == 0.5


def test_a_linked_word_that_the_output_never_reached_counts_as_wrong():
    assert alignment_accuracy(WEIGHTS[:1], {(0, 0), (1, 2), (2, 1)}) == 1 / 3
    assert alignment_accuracy(WEIGHTS[:0], {(0, 0)}) == 0


@given(st.lists(st.tuples(rows, links), min_size=1))
def test_alignment_accuracy_counts_the_target_words_that_gold_links(corpus):
    weights, gold = zip(*corpus, strict=True)
    linked = sum(len({target for target, _ in links}) for links in gold)
    assume(linked)
    right = sum(
        (target, row.index(0.5)) in links
        for sentence, links in corpus
        for target, row in enumerate(sentence)
    )
    assert alignment_accuracy(weights, gold) == right / linked
    alone = alignment_accuracy(weights[:1], gold[:1]) if gold[0] else None
    assert alone is None or alignment_accuracy(weights[0], gold[0]) == alone


@pytest.mark.parametrize("read", [lambda x: x, torch.Tensor.numpy, torch.Tensor.int])
def test_links_may_be_read_off_a_tensor_as_numbers_of_its_own_type(read):
    gold = {tuple(link) for link in read(torch.eye(3).nonzero())}
    plain = {(0, 0), (1, 1), (2, 2)}
    assert alignment_accuracy(torch.eye(3), gold) == 1
    assert alignment_error_rate(gold, plain) == alignment_error_rate(plain, gold) == 0
    twice = gold | {tuple(link) for link in read(torch.eye(3).nonzero())}
    assert alignment_error_rate(twice, plain) == 0  # equal links are one


def test_alignment_error_rate_by_hand():
    # "cat black the" for "the black cat": 2 of 4 links are right, of 3 gold links.
    links, gold = {(0, 2), (1, 1), (2, 1), (2, 2)}, {(0, 2), (1, 1), (2, 0)}
    assert alignment_error_rate(links, gold) == 1 - 2 * 2 / (4 + 3)


@given(corpora)
def test_the_alignment_error_rate_of_a_corpus_is_pooled(corpus):
    found, gold = zip(*corpus, strict=True)
    total = sum(len(one) + len(other) for one, other in corpus)
    wrong = sum(len(one ^ other) for one, other in corpus)
    rate = pytest.approx(wrong / total if total else 0)
    assert alignment_error_rate(found, gold) == rate
    assert alignment_error_rate(gold, found) == rate
    alone = alignment_error_rate(found[:1], gold[:1])
    assert alignment_error_rate(found[0], gold[0]) == alone
    assert alignment_error_rate({*found[0]}, {*gold[0]}) == alone


# ---- what does not fit


WRONG = [
    (accuracy, ([1, 2], [1]), r"predictions \(2,\) .* targets \(1,\)"),
    (accuracy, (torch.rand(4, 3), [1, 2, 0, 1]), r"of logits pass logits\.argmax"),
    (accuracy, (torch.rand(2), [1, 0]), r"float32 must be class numbers"),
    (accuracy, ([], []), "predictions hold nothing"),
    (exact_match, ([["a"]], [["a"], ["b"]]), "1 outputs but 2 targets: targets"),
    (exact_match, (["a b"], [["a", "b"]]), r"outputs\[0\] is a str: pass words"),
    (exact_match, ([["a"]], ["a"]), r"targets\[0\] is a str: pass words"),
    (exact_match, ("a b", "a b"), "outputs is one string: pass a list"),
    (exact_match, ([], []), "outputs hold nothing: pass at least one"),
    (bleu, (["a", "b"], ["a"]), "2 outputs but 1 references: references"),
    (bleu, ([["a", "b"]], ["a b"]), r"outputs\[0\] is a list: pass a string"),
    (bleu, (["a b"], [3]), r"references\[0\] is a int: pass a string or"),
    (bleu, (["a b"], [[]]), r"references\[0\] hold nothing"),
    (bleu, (["a b"], [[["a", "b"]]]), r"references\[0\]\[0\] is a list: pass a str"),
    (bleu, (["a b"], "a b"), "references is one string: pass a list"),
    (bleu, ([], []), "outputs hold nothing"),
    (heaviest_links, (WEIGHTS[None],), r"must be \(target, source\).* \(1, 4, 3\)"),
    (heaviest_links, ([[0.5, math.nan]],), r"\(1, 2\) with 1 NaN"),
    (heaviest_links, (torch.zeros(3, 0),), r"got \(3, 0\)"),
    (alignment_accuracy, (WEIGHTS, set()), "gold has no link at all"),
    (alignment_accuracy, (WEIGHTS, {(0, 3)}), r"source word 3, but .* 3 columns"),
    (alignment_accuracy, ([WEIGHTS], []), "1 weights but 0 gold"),
    (alignment_accuracy, ([], []), "weights hold nothing"),
    (alignment_accuracy, ([WEIGHTS], [None]), r"gold\[0\] is a NoneType: pass a set"),
    (alignment_accuracy, (WEIGHTS, {3}), r"gold\[0\] holds 3: pass \(target, source"),
    (alignment_error_rate, ([{(0, 0)}], [{(0, 0)}] * 2), "1 links but 2 gold"),
    (alignment_error_rate, (WEIGHTS, {(0, 0)}), r"links\[0\] is a Tensor: pass a set"),
    (alignment_error_rate, ({(0, 0)}, {(0, 0, 1)}), r"gold\[0\] holds \(0, 0, 1\)"),
    (alignment_error_rate, ([], []), "links hold nothing"),
    (alignment_accuracy, (WEIGHTS, {(0, -1)}), r"holds \(0, -1\): .* from 0"),
    (alignment_accuracy, (WEIGHTS, {(-1, 0)}), r"holds \(-1, 0\): .* from 0"),
    (alignment_accuracy, (WEIGHTS, {(0, 0.5)}), r"holds \(0, 0\.5\): .* from 0"),
    (alignment_error_rate, ({(0, -1)}, {(0, 0)}), r"links\[0\] holds \(0, -1\)"),
    (alignment_error_rate, ({(0, 0)}, {"ab"}), r"gold\[0\] holds 'ab': pass"),
    (alignment_error_rate, ({(0, 1, 2)}, {(0, 0)}), r"links\[0\] holds \(0, 1, 2\)"),
]


@pytest.mark.parametrize(("metric", "arguments", "message"), WRONG)
def test_what_does_not_fit_is_refused_in_one_line(metric, arguments, message):
    with pytest.raises(ValueError, match=message) as refusal:
        metric(*arguments)
    assert "\n" not in str(refusal.value)
