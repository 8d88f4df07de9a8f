"""N-gram models count, and mix what they counted with shorter contexts."""

import math

import pytest

from tutorial_lib.ngram import EOS, NGram

TEXTS = [("a", "b"), ("a", "c"), ("a", "b")]


def test_a_unigram_mixes_counts_with_equal_probabilities():
    model = NGram(TEXTS, 1)  # a, b, c, <eos>: 3, 2, 1, 3 of 9
    assert model.probability((), "a") == pytest.approx((3 + 4 / 4) / (9 + 4))
    assert model.probability((), "new") == pytest.approx((4 / 4) / (9 + 4))


def test_a_bigram_mixes_its_counts_with_the_unigram_by_hand():
    model = NGram(TEXTS, 2)
    b = (2 + 1) / 13  # of the unigram
    assert model.probability(("a",), "b") == pytest.approx((2 + 2 * b) / (3 + 2))
    assert model.probability(("new",), "b") == pytest.approx(b)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_probabilities_of_all_words_sum_to_1(n):
    model = NGram(TEXTS, n)
    for context in (("a",) * (n - 1), (EOS,) * (n - 1), ("new",) * (n - 1)):
        total = sum(model.probability(context, word) for word in model.words)
        assert total == pytest.approx(1)


def test_the_log_probability_of_a_sentence_counts_its_end():
    model = NGram(TEXTS, 2)
    factors = [
        model.probability((EOS,), "a"),
        model.probability(("a",), "b"),
        model.probability(("b",), EOS),
    ]
    assert model.log_prob(("a", "b")) == pytest.approx(math.log(math.prod(factors)))


def test_a_trigram_falls_back_to_the_bigram_of_its_last_word():
    model = NGram(TEXTS, 3)
    b = (2 + 2 * 3 / 13) / 5  # of the bigram, after a
    assert model.probability(("new", "a"), "b") == pytest.approx(b)
    assert model.probability((EOS, "a"), "b") == pytest.approx((2 + 2 * b) / 5)
