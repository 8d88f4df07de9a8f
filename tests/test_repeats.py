"""Texts mention names again and again, and say where the next letter is known."""

import torch

from tutorial_lib.data.repeats import is_predictable, make_text, repeated_tokens


def test_names_are_mentioned_whole_and_share_no_letter():
    torch.manual_seed(0)
    for _ in range(20):
        names = make_text(24).view(8, 3).unique(dim=0)
        assert len(names) <= 5
        assert len(names.unique()) == names.numel()


def test_a_text_has_as_many_tokens_as_are_asked_for():
    for num_tokens in range(1, 10):
        assert make_text(num_tokens).shape == (num_tokens,)


def test_a_letter_of_a_name_that_comes_again_is_predictable_but_not_what_follows_it():
    tokens = torch.tensor(
        [3, 0, 10, 5, 12, 4, 3, 0, 10, 5, 12]
    )  # d a k f m e d a k f m
    expected = [0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1]
    assert is_predictable(tokens).tolist() == [bool(each) for each in expected]


def test_where_it_is_predictable_the_text_says_what_comes():
    torch.manual_seed(1)
    for _ in range(20):
        tokens = make_text(25).tolist()
        for i, predictable in enumerate(is_predictable(torch.tensor(tokens[:-1]))):
            if predictable:
                assert tokens[i + 1] == tokens[tokens.index(tokens[i]) + 1]


def test_the_second_half_of_random_tokens_is_the_first():
    texts = repeated_tokens(3, 5, seed=0)
    assert texts.shape == (3, 11) and texts[:, 0].eq(0).all()
    assert texts[:, 1:6].equal(texts[:, 6:]) and len(texts[:, 1:6].unique()) == 15
    assert texts.equal(repeated_tokens(3, 5, seed=0))
