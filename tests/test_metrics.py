import math

import pytest
import sacrebleu
import torch

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


def test_accuracy_is_the_share_of_equal_class_numbers():
    assert accuracy(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 0, 4])) == 0.75
    assert accuracy([[1, 2], [3, 4]], [[1, 0], [0, 0]]) == 0.25


def test_exact_match_counts_whole_sentences_only():
    outputs = [["le", "chat"], ["le", "chat", "dort"], [], ("un", "chien")]
    targets = [["le", "chat"], ["le", "chat"], ["oui"], ["un", "chien"]]
    assert exact_match(outputs, targets) == 0.5
    assert exact_match([["le", "chat"]], [["chat", "le"]]) == 0


# ---- BLEU


def test_bleu_is_the_geometric_mean_of_the_corpus_times_the_brevity_penalty():
    # Of 7 words 6 occur, of 5 pairs 4, of 3 triples 2, of 2 quadruples 1: over the
    # corpus, for the second sentence alone has no triple. 7 words stand for 9.
    mean = (6 / 7 * 4 / 5 * 2 / 3 * 1 / 2) ** (1 / 4)
    expected = 100 * math.exp(1 - 9 / 7) * mean
    assert bleu(OUTPUTS, REFERENCES).score == pytest.approx(expected, abs=1e-9)


def test_longer_outputs_pay_by_their_precision_alone():
    score = bleu(["a b c d e"], ["a b c d"]).score
    assert score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4))


def test_an_output_of_one_word_has_no_pair_and_so_no_score():
    assert bleu(["yes"], ["yes"]).score == 0
    assert bleu(["", "a b c d"], ["a b c d", "a b c d"]).score == pytest.approx(
        100 * math.exp(1 - 8 / 4)
    )


def test_upper_and_lower_case_are_one():
    score = bleu(["The black cat sleeps"], ["the black cat sleeps"]).score
    assert score == pytest.approx(100)


def test_bleu_agrees_with_sacrebleu_on_punctuation_and_accents():
    outputs = ["L'oiseau, qui chante, est là.", "Elle a dit : « Non ! »"]
    references = ["L'oiseau qui chante est ici.", "Elle a dit « Non ! »"]
    oracle = sacrebleu.corpus_bleu(outputs, [references], lowercase=True)
    assert bleu(outputs, references).score == oracle.score > 20


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


def test_sentences_may_have_different_numbers_of_references():
    uneven = [["x x x x", "a b c d"], "e f g h"]
    result = bleu(["a b c d", "e f g h"], uneven)
    assert result.score == pytest.approx(100) and "nrefs:var" in result.signature
    assert bleu(OUTPUTS, [[one] for one in REFERENCES]) == bleu(OUTPUTS, REFERENCES)


# ---- alignments


def test_each_target_word_is_linked_to_its_heaviest_source_word():
    assert heaviest_links(WEIGHTS) == {(0, 0), (1, 2), (2, 1), (3, 2)}


def test_a_row_of_zeros_links_to_nothing_and_the_first_of_equals_counts():
    assert heaviest_links([[0.0, 0.0], [0.5, 0.5]]) == {(1, 0)}


def test_alignment_accuracy_is_the_share_of_linked_target_words_that_are_right():
    # Word 1 looks most at source 2, word 2 at source 1; word 0 is right twice over.
    assert alignment_accuracy(WEIGHTS, {(0, 0), (0, 1), (1, 1), (2, 2)}) == 1 / 3
    assert alignment_accuracy(WEIGHTS, {(0, 0), (1, 2), (2, 1)}) == 1


def test_rows_of_eos_and_words_without_a_gold_link_are_not_counted():
    gold = {(0, 0), (1, 1)}
    assert alignment_accuracy(WEIGHTS, gold) == 0.5
    assert alignment_accuracy(WEIGHTS[:2], gold) == 0.5


def test_a_linked_word_that_the_output_never_reached_counts_as_wrong():
    assert alignment_accuracy(WEIGHTS[:1], {(0, 0), (1, 2), (2, 1)}) == 1 / 3
    assert alignment_accuracy(WEIGHTS[:0], {(0, 0)}) == 0


def test_the_words_of_a_corpus_are_pooled():
    other = torch.tensor([[1.0, 0.0]])
    corpus = [{(0, 0), (1, 1), (2, 2)}, {(0, 0)}]
    assert alignment_accuracy([WEIGHTS, other], corpus) == 2 / 4  # not (1/3 + 1) / 2
    assert alignment_accuracy([WEIGHTS, other], [{(0, 0)}, frozenset()]) == 1


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
    assert alignment_error_rate(gold, links) == 1 - 2 * 2 / (4 + 3)
    assert alignment_error_rate(gold, gold) == 0
    assert alignment_error_rate({(1, 0)}, {(0, 1)}) == 1


def test_finding_nothing_is_right_only_where_there_is_nothing():
    assert alignment_error_rate(set(), {(0, 0)}) == 1
    assert alignment_error_rate({(0, 0)}, set()) == 1
    assert alignment_error_rate(set(), set()) == 0


def test_the_links_of_a_corpus_are_pooled():
    links = [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]
    gold = [frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0)})]
    assert alignment_error_rate(links, gold) == 1 - 2 * 3 / 8  # not (0 + 1) / 2


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
    (heaviest_links, (WEIGHTS * torch.nan,), "with 12 NaN"),
    (heaviest_links, (torch.zeros(3, 0),), r"got \(3, 0\)"),
    (alignment_accuracy, (WEIGHTS, set()), "gold has no link at all"),
    (alignment_accuracy, (WEIGHTS, {(0, 3)}), r"source word 3, but .* 3 columns"),
    (alignment_accuracy, ([WEIGHTS], []), "1 weights but 0 gold"),
    (alignment_accuracy, ([], []), "weights hold nothing"),
    (alignment_accuracy, ([WEIGHTS], [None]), r"gold\[0\] is a NoneType: pass a set"),
    (alignment_accuracy, (WEIGHTS, {3}), r"gold\[0\] holds 3: pass \(target, source"),
    (alignment_error_rate, ([{(0, 0)}], [{(0, 0)}] * 2), "1 links but 2 gold"),
    (alignment_error_rate, (WEIGHTS, {(0, 0)}), r"links\[0\] is a Tensor: pass a set"),
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
