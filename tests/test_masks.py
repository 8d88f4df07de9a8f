import pytest
import torch

from tutorial_lib.masks import causal_mask, length_mask, window_mask


def test_a_causal_mask_shows_each_token_itself_and_the_past():
    expected = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(3).equal(torch.tensor(expected).bool())


def test_a_length_mask_shows_the_first_keys_of_each_sequence():
    mask = length_mask([2, 0, 3], 3)
    assert mask.tolist() == [[[True, True, False]], [[False] * 3], [[True] * 3]]


def test_a_length_mask_takes_a_tensor_of_lengths_too():
    assert length_mask(torch.tensor([2, 3]), 3).equal(length_mask([2, 3], 3))


@pytest.mark.parametrize("lengths", [[4], [-1]])
def test_a_length_outside_the_sequence_is_refused_by_name(lengths):
    with pytest.raises(ValueError, match=r"between 0 and keys=3, got \[-?\d\]"):
        length_mask(lengths, 3)


def test_a_window_mask_shows_the_neighbours_within_the_radius():
    expected = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert window_mask(4, 1).equal(torch.tensor(expected).bool())


def test_a_window_of_radius_zero_shows_only_the_token_itself():
    assert window_mask(5, 0).equal(torch.eye(5).bool())


def test_masks_combine_with_and():
    both = causal_mask(3) & length_mask([2], 3)
    expected = [[[1, 0, 0], [1, 1, 0], [1, 1, 0]]]
    assert both.equal(torch.tensor(expected).bool())
