"""Kernels against values worked by hand."""

import math

import pytest
import torch

from tutorial_lib.kernels import boxcar, epanechnikov, gaussian, triangular

DISTANCES = torch.tensor([0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("kernel", "by_hand"),
    [
        (gaussian(2), [1, math.exp(-1 / 8), math.exp(-1 / 2), math.exp(-9 / 8)]),
        (boxcar(2), [1, 1, 1, 0]),
        (epanechnikov(2), [1, 3 / 4, 0, 0]),
        (triangular(3), [1, 2 / 3, 1 / 3, 0]),
    ],
)
def test_a_kernel_has_the_values_worked_by_hand_on_both_sides(kernel, by_hand):
    expected = torch.tensor(by_hand).float()
    torch.testing.assert_close(kernel(DISTANCES), expected)
    torch.testing.assert_close(kernel(-DISTANCES), expected)


@pytest.mark.parametrize("kernel", [boxcar, epanechnikov, triangular])
@pytest.mark.parametrize("bandwidth", [0, -0.5, math.nan, torch.tensor([1.0, -1.0])])
def test_a_bandwidth_that_is_not_above_0_is_refused(kernel, bandwidth):
    with pytest.raises(ValueError, match="a bandwidth must be above 0, got"):
        kernel(bandwidth)


def test_a_width_can_be_learned():
    bandwidth = torch.tensor(0.5, requires_grad=True)
    gaussian(bandwidth)(torch.tensor(1.0)).backward()
    by_hand = math.exp(-2) * 1 / 0.5**3  # d/dw exp(-1 / 2w²) = exp(-1 / 2w²) / w³
    assert bandwidth.grad.item() == pytest.approx(by_hand)
