"""Metrics against numbers worked by hand, and BLEU against sacrebleu's own."""

import itertools
import math

import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st

from tutorial_lib.data import SentencePair
from tutorial_lib.metrics import alignment_accuracy, bleu, exact_match

OUTPUTS = ["the black cat sleeps here", "a bird"]
REFERENCES = ["The black cat sleeps on it", "a bird sings"]
words = st.sampled_from(["le", "Le", "chat", "l'", "où", "dort", ",", "."])
sentences = st.lists(words, max_size=6)
references = st.lists(sentences, min_size=1, max_size=3)  # of one output
corpora = st.lists(st.tuples(sentences, references), min_size=1, max_size=5)


def test_exact_match_is_the_share_of_equal_sentences():
    outputs = [["le", "chat"], ["le", "chien"], ["il", "dort"], []]
    targets = [("le", "chat"), ("le", "chat"), ("dort", "il"), ()]
    assert exact_match(outputs, targets) == 2 / 4


def test_bleu_is_the_geometric_mean_of_the_corpus_times_the_brevity_penalty():
    # Of 7 words 6 occur, of 5 pairs 4, of 3 triples 2, of 2 quadruples 1: over the
    # corpus, for the second sentence alone has no triple. 7 words stand for 9.
    mean = (6 / 7 * 4 / 5 * 2 / 3 * 1 / 2) ** (1 / 4)
    result = bleu(OUTPUTS, REFERENCES)
    expected = 100 * math.exp(1 - 9 / 7) * mean
    assert result.score == pytest.approx(expected, abs=1e-9)
    version = sacrebleu.__version__
    signature = f"nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:{version}"
    assert result.signature == signature


def test_bleu_is_smoothed_but_not_without_any_four_words():
    output = "le chat noir dort ici"
    reference = "le chat blanc dort ici"
    # Of 4 pairs 2 occur, of 3 triples half a one, of 2 quadruples a quarter of one.
    mean = (4 / 5 * 2 / 4 * 0.5 / 3 * 0.25 / 2) ** (1 / 4)
    assert bleu([output], [reference]).score == pytest.approx(100 * mean, abs=1e-9)
    assert bleu(["va !"], ["va !"]).score == 0


@given(corpora)
def test_bleu_is_sacrebleus_whatever_the_words_and_references(corpus):
    outputs = []
    references = []
    for output, several in corpus:
        outputs.append(" ".join(output))
        references.append([" ".join(words) for words in several])
    columns = list(itertools.zip_longest(*references))
    expected = sacrebleu.corpus_bleu(outputs, columns, lowercase=True)
    assert bleu(outputs, references).score == expected.score


def test_one_reference_needs_no_list():
    listed = [[reference] for reference in REFERENCES]
    assert bleu(OUTPUTS, REFERENCES) == bleu(OUTPUTS, listed)


def test_alignment_accuracy_by_hand():
    weights = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])
    source = ("a", "b", "c")
    # Target word 0 has two links; the largest weight of word 1 is on source word 2.
    right = SentencePair(source, source, frozenset({(0, 0), (0, 1), (1, 2), (2, 1)}))
    partly = SentencePair(source, source, frozenset({(0, 1), (1, 1), (2, 1)}))
    assert alignment_accuracy([weights], [right]) == 1
    assert alignment_accuracy([weights], [partly]) == 1 / 3
    assert alignment_accuracy([weights, weights], [right, partly]) == 4 / 6


def test_bleu_of_fewer_references_than_outputs_is_refused():
    with pytest.raises(ValueError, match="2 outputs have 1 references"):
        bleu(["a cat", "a dog"], ["a cat"])
    with pytest.raises(ValueError, match="an empty list of references"):
        bleu(["a cat"], [[]])


def test_one_string_is_no_list_of_outputs_and_none_have_no_score():
    for outputs in ("a cat", [], iter(["a cat"])):
        with pytest.raises(ValueError, match="bleu takes a list of outputs"):
            bleu(outputs, outputs)


def test_a_string_is_not_compared_with_words_and_none_have_no_share():
    with pytest.raises(ValueError, match="not both lists of words"):
        exact_match(["le chat"], [["le", "chat"]])
    with pytest.raises(ValueError, match="no sentence to compare"):
        exact_match([], [])
