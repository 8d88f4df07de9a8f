import math

import pytest
import torch

from tutorial_lib.kernels import boxcar, constant, epanechnikov, gaussian, triangular

DISTANCES = torch.tensor([0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("kernel", "by_hand"),
    [
        (gaussian(2), [1, math.exp(-1 / 8), math.exp(-1 / 2), math.exp(-9 / 8)]),
        (boxcar(2), [1, 1, 1, 0]),
        (constant(), [1, 1, 1, 1]),
        (epanechnikov(2), [1, 3 / 4, 0, 0]),
        (triangular(3), [1, 2 / 3, 1 / 3, 0]),
    ],
)
def test_kernels_equal_the_values_worked_by_hand(kernel, by_hand):
    torch.testing.assert_close(kernel(DISTANCES), torch.tensor(by_hand).float())


@pytest.mark.parametrize("make", [gaussian, boxcar, epanechnikov, triangular])
def test_a_kernel_is_the_same_on_both_sides(make):
    assert make(0.7)(DISTANCES).equal(make(0.7)(-DISTANCES))


@pytest.mark.parametrize("make", [gaussian, boxcar, epanechnikov, triangular])
@pytest.mark.parametrize("width", [0, -1.5, float("nan")])
def test_a_width_that_is_not_positive_is_refused(make, width):
    with pytest.raises(ValueError, match="width must be positive, got"):
        make(width)


def test_a_width_can_be_learned():
    width = torch.tensor(0.5, requires_grad=True)
    gaussian(width)(torch.tensor(1.0)).backward()
    by_hand = math.exp(-2) * 1 / 0.5**3  # d/dw exp(-1 / 2w²) = exp(-1 / 2w²) / w³
    assert width.grad.item() == pytest.approx(by_hand)
