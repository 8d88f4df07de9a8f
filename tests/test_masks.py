import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tutorial_lib.masks import causal_mask, padding_mask, window_mask

few = st.integers(0, 6)


@given(few)
def test_a_causal_mask_shows_each_token_itself_and_the_past(n):
    assert causal_mask(n).tolist() == [[k <= q for k in range(n)] for q in range(n)]


@given(few, few)
def test_a_window_mask_shows_the_neighbors_within_the_radius(n, radius):
    near = [[abs(q - k) <= radius for k in range(n)] for q in range(n)]
    assert window_mask(n, radius).tolist() == near


@given(st.lists(few), st.integers(6, 8))
def test_a_padding_mask_shows_the_first_keys_of_each_sequence(lengths, keys):
    first = [[[k < length for k in range(keys)]] for length in lengths]
    assert padding_mask(lengths, keys).tolist() == first
    assert padding_mask(torch.tensor(lengths), keys).tolist() == first


@pytest.mark.parametrize(
    "lengths", [[4], [-1], [1, 4, 2], [1, -1, 2], [2.5], [True, False]]
)
def test_a_length_outside_the_sequence_is_refused_by_name(lengths):
    with pytest.raises(ValueError, match=r"from 0 to num_keys=3, got \[\S"):
        padding_mask(lengths, 3)


def test_lengths_of_two_axes_are_refused_by_their_shape():
    with pytest.raises(
        ValueError, match=r"a number for each sequence, got .* \(1, 2\)"
    ):
        padding_mask([[1, 2]], num_keys=3)


def test_a_radius_below_0_is_refused():
    assert window_mask(3, 0).equal(torch.eye(3).bool())
    with pytest.raises(ValueError, match="radius must be 0 or more, got -1"):
        window_mask(3, -1)


def test_masks_combine_with_and():
    both = causal_mask(3) & padding_mask([2, 0], 3)
    expected = [[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[0] * 3] * 3]
    assert both.equal(torch.tensor(expected).bool())


def test_a_mask_is_made_on_the_device_asked_for_or_where_the_lengths_are():
    with torch.device("meta"):  # where it would be made else
        masks = causal_mask(3, device="cpu"), window_mask(3, 1, device="cpu")
    assert [mask.device.type for mask in masks] == ["cpu", "cpu"]
    assert padding_mask(torch.empty(0, device="meta"), 3).device.type == "meta"
