"""Masks against their definitions, key by key."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tutorial_lib.masks import causal_mask, padding_mask, window_mask

few = st.integers(0, 6)


@given(few)
def test_under_a_causal_mask_a_token_attends_to_itself_and_the_past(num_tokens):
    for query, row in enumerate(causal_mask(num_tokens).tolist()):
        assert row == [key <= query for key in range(num_tokens)]


@given(few, few)
def test_under_a_window_mask_a_token_attends_to_neighbors(num_tokens, radius):
    for query, row in enumerate(window_mask(num_tokens, radius).tolist()):
        assert row == [abs(query - key) <= radius for key in range(num_tokens)]


@pytest.mark.parametrize("radius", [-1, float("nan")])
def test_a_radius_below_0_is_refused(radius):
    with pytest.raises(ValueError, match="radius must be 0 or more"):
        window_mask(3, radius)


@given(st.lists(few), st.integers(6, 8))
def test_under_a_padding_mask_queries_attend_to_the_first_keys(lengths, num_keys):
    mask = padding_mask(lengths, num_keys)
    assert mask.shape == (len(lengths), 1, num_keys)
    for length, [row] in zip(lengths, mask.tolist(), strict=True):
        assert row == [key < length for key in range(num_keys)]
    assert padding_mask(torch.tensor(lengths), num_keys).equal(mask)


def test_masks_combine_with_and():
    both = causal_mask(3) & padding_mask([2, 0], 3)
    assert both[0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert not both[1].any()


def test_a_mask_is_made_on_the_given_device_or_on_that_of_the_lengths():
    with torch.device("meta"):  # the default device
        assert causal_mask(3, device="cpu").device.type == "cpu"
        assert window_mask(3, 1, device="cpu").device.type == "cpu"
    lengths = torch.empty(0, device="meta")
    assert padding_mask(lengths, 3).device.type == "meta"
