"""Exercises of chapter 1: queries, keys, values and soft lookup."""

import math

import torch

from tutorial_exercises import Exercise
from tutorial_exercises.compare import is_number
from tutorial_exercises.exercise import Wrong


@Exercise("1.1", "How far apart are the scores?", tolerance=0.01)
def score_difference():
    """0.9 / 0.1 = 9 is e to the difference of the scores, so the difference is ln 9."""
    return 2.1972


@score_difference.oracle
def _():
    step = 0  # of a ten-thousandth
    while 1 / (1 + math.exp(-step / 10_000)) < 0.9:
        step += 1
    return step / 10_000


score_difference.hints = """
- The ratio of the two weights is e to the power of the difference of the scores.
- The ratio is 9. Which number must e be raised to, to give 9?
"""

score_difference.mistakes = """
9 is the ratio of the weights; the scores differ by its logarithm.
    2.1972 → 9
0.8 is the difference of the weights, not of the scores.
    2.1972 → 0.8
That is the logarithm of 9 to another base; the softmax uses e.
    2.1972 → 0.954
    2.1972 → 3.17
The first score is the larger one: the difference is positive.
    2.1972 → -2.1972
That is the logarithm of one of the weights. How far the scores are apart depends on
BOTH weights: on their ratio.
    2.1972 → 2.3026
    2.1972 → -2.3026
    2.1972 → 0.1054
    2.1972 → -0.1054
"""


@Exercise("1.2", "Only the best k", axes="query key")
def top_k_weights(scores, k):
    """Softmax over the k largest scores of each query; all others get 0."""
    best = scores.topk(k, dim=-1)
    hidden = torch.full_like(scores, -torch.inf)
    return hidden.scatter(-1, best.indices, best.values).softmax(dim=-1)


def softmax_over(row, kept):
    """Return the softmax of one row of scores over the kept positions; 0 elsewhere."""
    weights = torch.zeros_like(row)
    largest = max(float(row[j]) for j in kept)
    total = sum(math.exp(float(row[j]) - largest) for j in kept)
    for j in kept:
        weights[j] = math.exp(float(row[j]) - largest) / total
    return weights


@top_k_weights.oracle
def _(scores, k):
    rows = []
    for row in scores:
        best = sorted(range(len(row)), key=lambda j: -float(row[j]))
        rows.append(softmax_over(row, best[:k]))
    return torch.stack(rows)


@top_k_weights.demand("all but k weights of a row are exactly 0")
def _(answer):
    kept = answer(torch.randn(4, 6), 3).gt(0).sum(dim=-1)
    if kept.ne(3).any():
        return f"A row keeps {kept.tolist()} keys where k = 3."


@top_k_weights.demand("of equal scores, too, no more than k are kept")
def _(answer):
    kept = answer(torch.tensor([[1.0, 0, 0, 0], [2, 2, 2, 2]]), 2).gt(0).sum(dim=-1)
    if kept.ne(2).any():
        return (
            "Where scores are equal you keep more than k keys: select positions "
            "(indices), not all scores above a threshold."
        )


@top_k_weights.cases
def _():
    yield "the kept weights are a softmax of the kept scores", 2 * torch.randn(4, 6), 2
    label = "k = 1 is the hard lookup, and k = all keys the plain softmax"
    yield label, torch.randn(3, 4), 1
    yield label, torch.randn(3, 4), 4


top_k_weights.hints = """
- A score of minus infinity becomes a weight of exactly 0.
- `scores.topk(k, dim=-1)` gives the values and the indices of the k largest.
- Start from `torch.full_like(scores, -torch.inf)` and `scatter` the k largest scores
  back to their positions; then take the softmax.
"""

top_k_weights.mistakes = """
You take the softmax first and then remove keys, so that a row no longer sums to 1.
Select the k best keys first, then take the softmax.
    hidden.scatter(-1, best.indices, best.values).softmax(dim=-1) → scores.softmax(dim=-1) * (hidden.scatter(-1, best.indices, 0) == 0)
You keep the k smallest scores: the best keys have the largest.
    scores.topk(k, dim=-1) → scores.topk(k, dim=-1, largest=False)
You set the other scores to 0 and not to minus infinity; e to the power 0 is 1, so
they still get some weight.
    -torch.inf → 0
Every kept key gets the weight 1/k. Their weights should be a softmax of their scores.
    best.values).softmax(dim=-1) → 1.0).clamp(min=0) / k
You keep the k largest scores of the whole matrix. Each query, that is each row, has its
own k largest.
    hidden.scatter(-1, best.indices, best.values) → scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf)
    hidden.scatter(-1, best.indices, best.values).softmax(dim=-1) → scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf).softmax(dim=-1).nan_to_num()
You return the weights of the kept keys alone. A row has an entry for every key, which is
0 for those left out.
    hidden.scatter(-1, best.indices, best.values) → best.values
Each COLUMN of your weights sums to 1, but each ROW should: every query
distributes its attention over the keys. Look at `dim=`.
    softmax(dim=-1) → softmax(dim=0)
    softmax(dim=-1) → softmax(dim=0).nan_to_num()
"""


@Exercise("1.3", "The derivative is a covariance", axes="d_v d_k")
def output_jacobian(query, keys, values):
    """Return the derivatives of the output with respect to the query."""
    weights = (keys @ query).softmax(dim=0)  # (key,)
    centered_values = values - weights @ values
    centered_keys = keys - weights @ keys
    # With all the weight on one key both differences are 0 there, and so is the sum.
    return (weights[:, None] * centered_values).T @ centered_keys  # (d_v, d_k)


@output_jacobian.oracle
def _(query, keys, values):
    query, keys, values = query.double(), keys.double(), values.double()

    def output(query):
        scores = torch.stack([(query * key).sum() for key in keys])
        return softmax_over(scores, range(len(keys))) @ values

    nudges = 1e-5 * torch.eye(len(query), dtype=torch.float64)
    columns = [(output(query + n) - output(query - n)) / 2e-5 for n in nudges]
    return torch.stack(columns, dim=-1).float()


@output_jacobian.cases
def _():
    label = "it agrees with finite differences"
    yield label, torch.randn(3), torch.randn(5, 3), torch.randn(5, 2)
    label = "where all the weight lies on one key, the derivative is 0"
    yield label, torch.tensor([100.0, 0, 0]), torch.eye(3), torch.randn(3, 2)


@output_jacobian.demand("it comes from the formula, without autograd")
def _(answer):
    with torch.inference_mode():  # here autograd records nothing
        try:
            answer(torch.randn(3), torch.randn(5, 3), torch.randn(5, 2))
            is_formula = not answer.same()
        except Wrong:
            is_formula = False
    if not is_formula:
        return "This is right, but autograd computed it. Compute it from the formula above."


output_jacobian.hints = """
- The weights are `(keys @ query).softmax(dim=0)`.
- The mean value is `weights @ values`, the mean key `weights @ keys`. Subtract
  them from every value and every key.
- A sum of outer products is one matrix product: `(weights[:, None] * centered_values).T
  @ centered_keys`.
"""

output_jacobian.mistakes = """
The weighted means are not subtracted: the formula has each value minus the mean value,
and each key minus the mean key.
    (weights[:, None] * centered_values).T @ centered_keys → (weights[:, None] * values).T @ keys
You subtract plain means; the formula has means weighted by the attention weights.
    values - weights @ values → values - values.mean(dim=0)
    and keys - weights @ keys → keys - keys.mean(dim=0)
All keys count the same in your sum: multiply each outer product by its key's weight.
    (weights[:, None] * centered_values) → (centered_values / len(keys))
Each outer product must be multiplied by its key's weight before you sum.
    (weights[:, None] * centered_values) → centered_values
Your matrix is transposed: a row belongs to a dimension of the output, a column to one of
the query.
    (weights[:, None] * centered_values).T @ centered_keys → centered_keys.T @ (weights[:, None] * centered_values)
These are the weights at T = 0.2; the formula is for T = 1.
    (keys @ query) → (keys @ query / 0.2)
You divide the scores by √d_k. This formula has plain dot products, T = 1.
    (keys @ query) → (keys @ query / len(query) ** 0.5)
exp() of a large score is infinite, and the division then gives NaN. `torch.softmax`
avoids that.
    .softmax(dim=0) → .exp() / (keys @ query).exp().sum()
You divide by the number of keys; the weights sum to 1 already.
    .T @ centered_keys → .T @ centered_keys / len(keys)
This is right, but autograd computed it. Compute it from the formula above.
    weights = (keys @ query).softmax(dim=0)  # (key,) → return torch.autograd.functional.jacobian(lambda q: (keys @ q).softmax(0) @ values, query)
    weights = (keys @ query).softmax(dim=0)  # (key,) → return torch.func.jacrev(lambda q: (keys @ q).softmax(0) @ values)(query)
    weights = (keys @ query).softmax(dim=0)  # (key,) → return torch.func.jacfwd(lambda q: (keys @ q).softmax(0) @ values)(query)
right:
    (weights[:, None] * centered_values).T @ centered_keys → torch.einsum("i,iv,ik->vk", weights, centered_values, centered_keys)
    values - weights @ values → values
    keys - weights @ keys → keys
"""


@Exercise("1.4", "When does the gradient vanish?", tolerance=0)
def smallest_lead():
    """The first weight is about 1 - 2e^-lead, so its derivative with respect to its own
    score is about 2e^-lead: 1.7e-6 at 14, 6e-7 at 15."""
    return 15


def steepest(lead):
    """Return the largest derivative, in size, where one score of three has this lead."""
    weights = torch.tensor([lead, 0, 0], dtype=torch.float64).softmax(dim=0)
    return (weights.diag() - weights[:, None] * weights).abs().max().item()


@smallest_lead.oracle
def _():
    lead = 0
    while steepest(lead) >= 1e-6:
        lead += 1
    return lead


@smallest_lead.demand("one whole number")
def _(answer):
    lead = answer()
    if not is_number(lead) or lead < 0 or lead % 1 != 0:
        return "Give one whole number: the lead of the first score."


@smallest_lead.demand("at this lead every derivative is below a millionth")
def _(answer):
    derivative = steepest(answer())
    if derivative >= 1e-6:
        return f"At this lead the largest derivative is still {derivative:.1e}."


@smallest_lead.demand("at every smaller lead some derivative is not")
def _(answer):
    if steepest(answer() - 1) < 1e-6:
        return (
            "There every derivative is below a millionth, but a smaller lead will do."
        )


smallest_lead.hints = """
- The derivative of a weight a with respect to its own score is a(1 - a); with respect to
  another score it is minus the product of the two weights. The largest is that of the
  first weight with respect to its own score.
- Compute it in a loop: a is the first number of `torch.tensor([float(lead), 0,
  0]).softmax(dim=0)`.
"""

smallest_lead.mistakes = """
There e^-lead is below a millionth, but there are two other keys: the first weight is
about 2e^-lead below 1, and its derivative is about as large.
    return 15 → return 14
There the largest derivative is still far above a millionth: a softmax takes powers of e,
which fall more slowly than powers of 10.
    return 15 → return 6
    return 15 → return 7
"""


@Exercise("1.5", "Let it say that nothing fits", axes="query key")
def weights_or_nothing(scores, null_score):
    """Softmax over the keys and a null key; return the weights of the keys."""
    column = scores.new_full((len(scores), 1), null_score)  # (query, 1)
    weights = torch.cat([scores, column], dim=-1).softmax(dim=-1)
    return weights[:, :-1]  # what is left out is the weight of the null key


@weights_or_nothing.oracle
def _(scores, null_score):
    rows = [torch.tensor([*row, float(null_score)]) for row in scores]
    return torch.stack([softmax_over(row, range(len(row)))[:-1] for row in rows])


@weights_or_nothing.cases
def _():
    label = "a key with the same score as the null key gets the same weight"
    yield label, torch.tensor([[2.0, 2, 2], [0, 0, 0]]), 2.0
    label = "the keys' weights sum to 1 minus the weight of the null key"
    yield label, 2 * torch.randn(4, 6), 1.5
    label = "large scores do not overflow"
    yield label, torch.tensor([[300.0, 299.0], [0.0, 1.0]]), 300.0
    yield label, torch.tensor([[300.0, 299.0], [0.0, 1.0]]), 0.5


weights_or_nothing.hints = """
- The null key is one more key, with the same score for every query.
- `scores.new_full((len(scores), 1), null_score)` is a column of that score, of the
  type of the scores; `torch.cat([scores, column], dim=-1)` appends it to the others.
- Take the softmax with the column, and then drop the column: `[:, :-1]`.
"""

weights_or_nothing.mistakes = """
Your rows sum to 1, which leaves no weight for the null key. Give it a column in the
softmax, and drop that column afterwards, without normalizing the rows again.
    weights[:, :-1] → weights[:, :-1] / weights[:, :-1].sum(dim=-1, keepdim=True)
    weights[:, :-1] → (scores - null_score).softmax(dim=-1)
You add the score of the null key to the sum as it is; like every score it must go
through exp() first.
    weights[:, :-1] → scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + null_score)
You take away a fraction that depends on the score of the null key alone. How much
weight it gets depends on the other scores, too: give it a column in the softmax.
    weights[:, :-1] → scores.softmax(dim=-1) * (1 - torch.tensor(float(null_score)).sigmoid())
You give no weight to keys that score below the null key. They keep some weight: give
the null key a column of its own in the softmax.
    weights[:, :-1] → scores.softmax(dim=-1).masked_fill(scores < null_score, 0)
You return the weight of the null key, too: drop its column.
    weights[:, :-1] → weights
You drop the first column, but the column of the null key is the last.
    weights[:, :-1] → weights[:, 1:]
In your code the null key always has the score 0: use the argument `null_score`.
    1), null_score) → 1), 0.0)
exp() of a large score is infinite. `torch.softmax` avoids that.
    torch.cat([scores, column], dim=-1).softmax(dim=-1) → torch.cat([scores, column], dim=-1).exp()
        weights = weights / weights.sum(dim=-1, keepdim=True)
Your softmax runs over the queries. Each query distributes its weight over the keys: the
last axis.
    softmax(dim=-1) → softmax(dim=0)
right:
    scores.new_full((len(scores), 1), null_score) → torch.full_like(scores[:, :1], null_score)
    weights[:, :-1] → (scores - scores.logsumexp(-1, keepdim=True).logaddexp(column)).exp()
"""
