"""Checks for chapter 2: kernel regression and the choice of its width.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise
from tutorial_lib.kernels import boxcar, epanechnikov, gaussian

window = Exercise(
    "2.1",
    "A window that may be empty",
    name="boxcar_weights",
    returns="query key",
    hints=[
        "`queries[:, None] - keys` holds every difference, (query, key). Which are "
        "near, on either side?",
        "Divide each row by the number of its near keys: a sum over the keys with "
        "`keepdim=True`, so that it still lines up with the rows.",
        "Where nobody is near, that number is 0. `.clamp(min=1)` makes it 1, and 0 / 1 "
        "is 0.",
    ],
)


@window.spec
def boxcar_weights(queries, keys, width):
    """Count the near keys of one query after the other."""
    weights = torch.zeros(len(queries), len(keys))
    for i, query in enumerate(queries):
        near = [j for j, key in enumerate(keys) if abs(query - key) <= width]
        for j in near:
            weights[i, j] = 1 / len(near)
    return weights


@window.step("every row sums to 1 where a key is near")
def _(probe):
    # As many queries as keys, so that a lost axis gives numbers and no error.
    queries = torch.tensor([0.4, 1.1, 2.3, 2.9])
    weights = probe(queries, torch.tensor([0.0, 0.5, 1.2, 2.6]), 0.75)
    probe.shape(weights, query=4, key=4)
    probe.sums_to_one(weights)


@window.step("one weight for each query and key")
def _(probe):
    weights = probe(torch.tensor([0.4, 1.1, 2.3]), torch.linspace(0, 3, 7), 0.8)
    probe.shape(weights, query=3, key=7)


@window.step("near keys share the attention equally")
def _(probe):
    probe(torch.tensor([0.4, 1.1, 2.3]), torch.linspace(0, 3, 7), 0.65)
    probe.same()


@window.step("a key at exactly the width counts")
def _(probe):
    probe(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.5, 2.0, 4.5]), 1.0)
    probe.same()


@window.step("a query with nobody near gets weights 0")
def _(probe):
    probe(torch.tensor([0.5, 9.0, 2.0]), torch.tensor([0.0, 0.4, 1.8, 2.2]), 0.5)
    probe.same()


def fast_scores(queries, keys, widths):
    """Score all pairs at once; what `use` hands out instead of the loops."""
    return -torch.cdist(queries / widths, keys / widths).square() / 2


by_coordinate = Exercise(
    "2.2",
    "A width for each coordinate",
    name="scores_by_widths",
    returns="query key",
    fallback=fast_scores,
    hints=[
        "`queries[:, None] - keys` holds every difference, (query, key, d_k). Which of "
        "its axes do the widths belong to?",
        "Divide the differences by the widths first: then every coordinate is "
        "measured in widths, and only the lengths of the rows are missing.",
        "A squared length is the sum of squares: `.square().sum(dim=-1)`.",
    ],
)


@by_coordinate.spec
def scores_by_widths(queries, keys, widths):
    """Add up the squares of one coordinate after the other, pair by pair."""
    rows = []
    for query in queries:
        squares = [
            sum(((q - k) / w) ** 2 for q, k, w in zip(query, key, widths, strict=True))
            for key in keys
        ]
        rows.append(torch.stack([-square / 2 for square in squares]))
    return torch.stack(rows)


@by_coordinate.step("one score for each query and key")
def _(probe):
    scores = probe(torch.randn(3, 2), torch.randn(5, 2), torch.ones(2))
    probe.shape(scores, query=3, key=5)


@by_coordinate.step("with width 1 everywhere, minus half the squared distance")
def _(probe):
    queries = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    keys = torch.tensor([[3.0, 4.0], [1.0, 0.0], [2.0, -1.0]])
    probe(queries, keys, torch.ones(2))
    probe.same(-torch.tensor([[25.0, 1.0, 5.0], [13.0, 1.0, 5.0]]) / 2)


@by_coordinate.step("each coordinate by its own width")
def _(probe):
    for d_k in (2, 3):  # as many coordinates as keys, too
        widths = torch.tensor([0.5, 3.0, 1.7])[:d_k]
        probe(torch.randn(4, d_k), torch.randn(3, d_k), widths)
        probe.same()


@by_coordinate.step("the scores can teach the widths")
def _(probe):
    widths = torch.tensor([0.5, 3.0], requires_grad=True)
    probe(torch.randn(4, 2), torch.randn(3, 2), widths)
    probe.gradients(widths)


left_out = Exercise(
    "2.3",
    "The error of a width",
    name="leave_one_out_error",
    hints=[
        "`kernel(keys[:, None] - keys)` holds the similarity of every key to every "
        "key. Which of its entries must not be used?",
        "Set the diagonal to 0 BEFORE you divide by the row sums, for example by "
        "multiplying with `1 - torch.eye(len(keys))`.",
        "A row of zeros has the sum 0. `total.where(total > 0, 1)` divides it by 1.",
    ],
)


@left_out.spec
def leave_one_out_error(keys, values, kernel):
    """Remove one key after the other and predict its value from the rest."""
    squares = []
    for i, value in enumerate(values):
        rest = [j for j in range(len(keys)) if j != i]
        similarities = [kernel(keys[i] - keys[j]) for j in rest]
        votes = [s * values[j] for s, j in zip(similarities, rest, strict=True)]
        total = sum(similarities)
        squares.append(((sum(votes) / total if total > 0 else 0.0) - value) ** 2)
    return sum(squares) / len(squares)


@left_out.step("the kernel you are given decides")
def _(probe):
    data = torch.rand(9), torch.randn(9)
    narrow, wide = probe(*data, gaussian(0.2)), probe(*data, gaussian(0.5))
    message = (
        "Two kernels give the same error: use the argument `kernel`, not a kernel "
        "that you chose yourself."
    )
    probe.require(not probe.close(narrow, wide), "fixed-kernel", message)


@left_out.step("three keys predict each other")
def _(probe):
    probe(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, 4.0, 10.0]), boxcar(9.0))
    probe.same(torch.tensor(31.5))  # (6² + 1.5² + 7.5²) / 3


@left_out.step("no key looks at itself")
def _(probe):
    keys = torch.rand(9)
    keys[7] = keys[3]  # another key, although it lies at the same place
    keys[0] = 1.4  # so far from the others that its similarities sum to less than 1
    probe(keys, torch.randn(9), gaussian(0.2))
    probe.same()


@left_out.step("a key without neighbors is predicted as 0")
def _(probe):
    keys = torch.tensor([0.0, 0.1, 0.2, 5.0])
    probe(keys, torch.tensor([1.0, 2.0, 3.5, 4.0]), boxcar(0.5))
    probe.same()


@left_out.step("the error can teach the kernel its width")
def _(probe):
    width = torch.tensor(0.3, requires_grad=True)
    for kernel in (gaussian, epanechnikov):  # the second leaves one key alone
        keys = torch.tensor([0.0, 0.1, 0.3, 5.0])
        error = probe(keys, torch.randn(4), kernel(width))
        message = (
            "You return a plain number, which cannot say how it depends on the width: "
            "return a tensor, without `.item()` or `float()` on the way."
        )
        probe.require(torch.is_tensor(error), "plain-number", message)
        probe.gradients(width)


sphere = Exercise(
    "2.4",
    "Predict: dot products on the unit sphere",
    tolerance=1e-2,
    hints=[
        "For vectors of length 1, ‖q - k‖² = ‖q‖² - 2 q · k + ‖k‖² = 2 - 2 q · k.",
        "The score of the Gaussian kernel is -‖q - k‖² / (2σ²). Which part of it "
        "depends on the key?",
    ],
)


@sphere.spec
def scale_of_the_dot_product():
    """Measure how much the log-weight grows for each unit of the dot product."""
    query, *keys = torch.nn.functional.normalize(torch.randn(3, 4).double(), dim=-1)
    first, second = (math.log(gaussian(0.25)((query - key).norm())) for key in keys)
    return (first - second) / float(query @ (keys[0] - keys[1]))
