"""Exercises of chapter 2: kernel regression and the choice of its bandwidth."""

import math

import torch

from tutorial_exercises import Exercise
from tutorial_exercises.compare import alike
from tutorial_lib.kernels import boxcar, epanechnikov, gaussian


@Exercise("2.1", "A window that may be empty", axes="query key")
def boxcar_weights(queries, keys, bandwidth):
    """Distribute each query's attention equally over the keys within the bandwidth."""
    near = ((queries[:, None] - keys).abs() <= bandwidth).float()  # (query, key)
    total = near.sum(dim=-1, keepdim=True)
    return near / total.clamp(min=1)  # where no key is near: 0 / 1


@boxcar_weights.oracle
def _(queries, keys, bandwidth):
    weights = torch.zeros(len(queries), len(keys))
    for i, query in enumerate(queries):
        near = [j for j, key in enumerate(keys) if abs(query - key) <= bandwidth]
        for j in near:
            weights[i, j] = 1 / len(near)
    return weights


@boxcar_weights.demand("a row for each query, a column for each key")
def _(answer):
    shape = answer(torch.rand(2), torch.rand(5), 0.5).shape
    if shape == answer(torch.rand(4), torch.rand(6), 0.5).shape:
        return (
            "Other queries and keys give weights of the same shape: use the arguments "
            "`queries` and `keys`, not those of the notebook."
        )


@boxcar_weights.cases
def _():
    label = "near keys get equal weights"
    yield label, torch.tensor([0.4, 1.1, 2.3]), torch.linspace(0, 3, 7), 0.65
    label = "a key at exactly the bandwidth counts as near"
    yield label, torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.5, 2.0, 4.5]), 1.0
    label = "a query with no key near gets weights 0"
    yield label, torch.tensor([0.5, 9, 2]), torch.tensor([0.0, 0.4, 1.8, 2.2]), 0.5


boxcar_weights.hints = """
- `queries[:, None] - keys` holds every difference, (query, key). Which are near, on
  either side?
- Divide each row by the number of its near keys: a sum over the keys with
  `keepdim=True`, so that it still lines up with the rows.
- Where no key is near, that number is 0. `.clamp(min=1)` makes it 1, and 0 / 1 is 0.
"""

boxcar_weights.mistakes = """
Without their last axis, the row sums line up with the columns, not with the rows: pass
`keepdim=True` to `sum`.
    dim=-1, keepdim=True → dim=-1
`queries - keys` compares query 0 with key 0 only, query 1 with key 1, and so on.
`queries[:, None] - keys` compares every query with every key: (query, key).
    queries[:, None] - keys → queries - keys
A query with no key near gets NaN: its zeros are divided by a sum of 0. Make sure that
the number you divide by is never 0.
    total.clamp(min=1) → total
A query with no key near distributes its attention over ALL the keys, as a softmax over
equal scores does. Its weights must be 0.
    near / total.clamp(min=1) → torch.where(near > 0, 0, -1e9).softmax(dim=-1)
You divide by sums over the queries. Every query distributes its own attention over
the KEYS: sum over the last axis.
    dim=-1, keepdim=True → dim=0
Keys far beyond the query count as near, because a negative difference is below every
bandwidth. Take its absolute value.
    (queries[:, None] - keys).abs() → (queries[:, None] - keys)
A softmax of the similarities gives far keys a weight too, because exp(0) is 1. Divide
the similarities themselves by their sum.
    near / total.clamp(min=1) → near.softmax(dim=-1)
These are similarities: 1 for every near key. The weights of a row sum to 1, so divide
each row by its sum.
    near / total.clamp(min=1) → near
A key at exactly the bandwidth should count as near: use `<=`, not `<`.
    <= bandwidth → < bandwidth
You compare the square of the difference with the bandwidth. Take its absolute value.
    .abs() → .square()
You let keys count up to half the bandwidth. The bandwidth is how far the window reaches
on EITHER side.
    <= bandwidth → <= bandwidth / 2
right:
    total.clamp(min=1) → total.where(total > 0, 1)
    near / total.clamp(min=1) → torch.nan_to_num(near / total)
    total.clamp(min=1) → (total + 1e-9)
"""


@Exercise("2.2", "A bandwidth for each coordinate", axes="query key")
def scores_by_bandwidths(queries, keys, bandwidths):
    """Score by distance, with a bandwidth for each coordinate."""
    differences = (queries[:, None] - keys) / bandwidths  # (query, key, d_k)
    return -differences.square().sum(dim=-1) / 2  # (query, key)


@scores_by_bandwidths.oracle
def _(queries, keys, bandwidths):
    scores = torch.zeros(len(queries), len(keys))
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            for q, k, bandwidth in zip(query, key, bandwidths, strict=True):
                scores[i, j] = scores[i, j] - ((q - k) / bandwidth) ** 2 / 2
    return scores


@scores_by_bandwidths.cases
def _():
    label = "with all bandwidths 1: minus half the squared distance"
    yield label, torch.randn(4, 2), torch.randn(3, 2), torch.ones(2)
    label = "each coordinate has its own bandwidth"
    yield label, torch.randn(4, 2), torch.randn(3, 2), torch.tensor([0.5, 3.0])


@scores_by_bandwidths.demand("gradients reach the bandwidths")
def _(answer):
    bandwidths = torch.tensor([0.5, 3.0], requires_grad=True)
    answer(torch.randn(4, 2), torch.randn(3, 2), bandwidths)
    answer.gradients(bandwidths)
    keys = torch.randn(3, 2)
    answer(keys, keys, bandwidths)  # a query may be a key: its distance is 0
    answer.gradients(bandwidths)


scores_by_bandwidths.hints = """
- `queries[:, None] - keys` holds every difference, (query, key, d_k). Which of its axes
  do the bandwidths belong to?
- Divide the differences by the bandwidths first: then every coordinate is measured in
  bandwidths, and only the squared lengths are missing.
- A squared length is the sum of squares: `.square().sum(dim=-1)`.
"""

scores_by_bandwidths.mistakes = """
All coordinates get the same bandwidth. Each has its own: divide the differences,
(query, key, d_k), by the bandwidths, (d_k,), before you sum.
    / bandwidths → / bandwidths.mean()
You multiply by the bandwidths: the wider a coordinate, the more it counts. Divide.
    / bandwidths → * bandwidths
You divide squares by bandwidths, so that a bandwidth of 3 counts as one of √3. Divide
the differences, and square after that.
    / bandwidths → / bandwidths.sqrt()
The half is missing: a Gaussian divides the square by 2.
    sum(dim=-1) / 2 → sum(dim=-1)
The sign is wrong: far keys get the highest scores.
    -differences → differences
You average over the coordinates: sum over them.
    .sum(dim=-1) → .mean(dim=-1)
This is the distance, not its square: leave out the root.
    square().sum(dim=-1) → norm(dim=-1)
You sum absolute differences: square them instead.
    square() → abs()
You sum the differences and square the sum, so that one coordinate can cancel another. Square first.
    square().sum(dim=-1) → sum(dim=-1).square()
These are similarities. The task asks for the scores, before `exp`.
    -differences.square().sum(dim=-1) / 2 → torch.exp(…)
These are weights. The task asks for the scores, before the softmax.
    -differences.square().sum(dim=-1) / 2 → (…).softmax(dim=-1)
right:
    -differences.square().sum(dim=-1) / 2 → -torch.cdist(queries / bandwidths, keys / bandwidths) ** 2 / 2
    / bandwidths → / (2**0.5 * bandwidths)
    and sum(dim=-1) / 2 → sum(dim=-1)
"""


@Exercise("2.3", "The error of a bandwidth")
def leave_one_out_error(keys, values, kernel):
    """Predict each value from all the others; return the mean squared error."""
    similarities = kernel(keys[:, None] - keys)  # (key, key)
    similarities = similarities * (1 - torch.eye(len(keys)))
    total = similarities.sum(dim=-1)  # (key,)
    predictions = similarities @ values / total.where(total > 0, 1)
    return (predictions - values).square().mean()


@leave_one_out_error.oracle
def _(keys, values, kernel):
    squares = []
    for i, value in enumerate(values):
        prediction = total = 0.0
        for j in range(len(keys)):
            if j != i:
                similarity = kernel(keys[i] - keys[j])
                prediction = prediction + similarity * values[j]
                total = total + similarity
        squares.append((prediction / (total if total > 0 else 1) - value) ** 2)
    return sum(squares) / len(squares)


@leave_one_out_error.demand("the error depends on the keys and the values")
def _(answer):
    errors = [answer(torch.rand(9), torch.randn(9), gaussian(0.2)) for _ in range(2)]
    if alike(*errors, 1e-5):
        return (
            "Other keys and values give the same error: use the arguments `keys` and "
            "`values`, not the notebook's `stops` and `readings`."
        )


@leave_one_out_error.demand("the error depends on the kernel")
def _(answer):
    data = torch.rand(9), torch.randn(9)
    narrow, wide = answer(*data, gaussian(0.2)), answer(*data, gaussian(0.5))
    if alike(narrow, wide, 1e-5):
        return (
            "Two kernels give the same error: use the argument `kernel`, not one of "
            "your own."
        )


@leave_one_out_error.cases
def _():
    values = torch.tensor([1.0, 4.0, 10.0])
    yield "three keys predict each other", torch.tensor([0.0, 1, 2]), values, boxcar(9)
    keys = torch.rand(9)
    keys[7] = keys[3]  # another key, although at the same position
    keys[0] = 1.4  # so far from the others that its similarities sum to less than 1
    yield "no key helps to predict its own value", keys, torch.randn(9), gaussian(0.2)
    keys = torch.tensor([0.0, 0.1, 0.2, 5.0])
    values = torch.tensor([1.0, 2, 3.5, 4])
    yield "a key without neighbors is predicted as 0", keys, values, boxcar(0.5)


@leave_one_out_error.demand("gradients reach the bandwidth of the kernel")
def _(answer):
    bandwidth = torch.tensor(0.3, requires_grad=True)
    for kernel in (gaussian, epanechnikov):  # the second leaves one key alone
        keys = torch.tensor([0.0, 0.1, 0.3, 5.0])
        if not torch.is_tensor(answer(keys, torch.randn(4), kernel(bandwidth))):
            return (
                "You return a plain number, through which no gradient reaches the "
                "bandwidth: return a tensor, without `.item()` or `float()` on the way."
            )
        answer.gradients(bandwidth)


leave_one_out_error.hints = """
- `kernel(keys[:, None] - keys)` holds the similarity of every key to every key. Which
  of its entries must not be used?
- Set the diagonal to 0 BEFORE you divide by the row sums, for example by multiplying
  with `1 - torch.eye(len(keys))`.
- A row of zeros has the sum 0. `total.where(total > 0, 1)` divides it by 1.
"""

leave_one_out_error.mistakes = """
Every key also helps to predict its own value. This is the training error, which is
smallest for the narrowest kernel. Set the diagonal of the similarities to 0.
    similarities * (1 - torch.eye(len(keys))) → similarities
Your row sums still contain the diagonal, so the weights of the others sum to less than
1. Set the diagonal to 0 first, then sum and divide.
    total = similarities.sum(dim=-1) → total = kernel(keys[:, None] - keys).sum(dim=-1)
You set the similarity to 0 wherever the distance is 0, but two different keys may have
the same position. Only the diagonal must be 0.
    (1 - torch.eye(len(keys))) → (keys[:, None] != keys)
You take a softmax of similarities, but a kernel's similarities are not scores: set
the diagonal to 0 and divide each row by its sum.
    similarities * (1 - torch.eye(len(keys))) → similarities.masked_fill(torch.eye(len(keys)) > 0, -torch.inf).softmax(dim=-1)
This is the SUM of the squared errors: return their mean.
    .mean() → .sum()
You divide the sum of the squared errors by one less than their number: divide by n.
    .mean() → .sum() / (len(keys) - 1)
This is the root of the mean squared error: return the mean itself.
    .mean() → .mean().sqrt()
This is the mean of the absolute errors: square them first.
    .square() → .abs()
These are the squared errors, one for each key: return their mean.
    .mean() →
The error is NaN: a key with no other key within reach divides by a sum of 0. Make sure
that the number you divide by is never 0.
    total.where(total > 0, 1) → total
You divide by 1 wherever the sum is below 1. Similarities are not counts: their sum
may be 0.3. Divide by 1 only where it is 0.
    total.where(total > 0, 1) → total.clamp(min=1)
You leave out the keys that have no other key within reach. They count too: such a key
is predicted as 0, and its error is its value.
    (predictions - values) → (predictions - values)[total > 0]
right:
    similarities * (1 - torch.eye(len(keys))) → similarities.masked_fill(torch.eye(len(keys)).bool(), 0)
    (predictions - values).square().mean() → torch.nn.functional.mse_loss(predictions, values)
"""


@Exercise("2.4", "Predict: the kernel of a GPT-2 head", tolerance=0.01)
def bandwidth_of_a_head():
    """With keys of equal norm, softmax(q · k / σ²) are the weights of
    a Gaussian kernel of bandwidth σ. Here σ² = √64 = 8, so σ is √8."""
    return 2.83


@bandwidth_of_a_head.oracle
def _():
    # Measure how much the logarithm of a weight grows with the square of the distance.
    query, *keys = torch.nn.functional.normalize(torch.randn(3, 64).double(), dim=-1)
    first, second = (float(query @ key) / 64**0.5 for key in keys)  # scores
    near, far = (float((query - key).square().sum()) for key in keys)
    return math.sqrt((far - near) / (2 * (first - second)))


bandwidth_of_a_head.hints = """
- Equation 2.3: if all keys have the same norm, the weights of the Gaussian kernel are a
  softmax of q · k / σ². What stands in place of σ² in GPT-2?
- √d_k is 8, and that is the SQUARE of the bandwidth.
"""

bandwidth_of_a_head.mistakes = """
8 is σ², the square of the bandwidth: take its root.
    2.83 → 8.0
64 is d_k. The scores are divided by its root, 8: the square of the bandwidth.
    2.83 → 64.0
2 is the root of 8 / 2. The 2 of 2σ² is gone: ‖q - k‖² has the term 2 q · k, which
cancels it.
    2.83 → 2.0
4 is the root of 2 · 8. The 2 of 2σ² is gone: ‖q - k‖² has the term 2 q · k, which
cancels it.
    2.83 → 4.0
You divide where you should multiply: q · k / σ² = q · k / 8, so σ² is 8, not 1 / 8.
    2.83 → 0.354
"""
