"""Exercises of chapter 1: queries, keys, values and soft look-up."""

import math

import torch

from tutorial_exercises import Exercise
from tutorial_exercises.compare import is_number


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
0.8 is how far the weights are apart, not the scores.
    2.1972 → 0.8
That is the logarithm to another base; the softmax uses e.
    2.1972 → 0.954
    2.1972 → 3.17
The first score is the larger one: the difference is positive.
    2.1972 → -2.1972
That is the logarithm of one weight. How far the scores are apart shows in BOTH: in
their ratio.
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
    """Return the softmax of one row of scores over the kept places; 0 elsewhere."""
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


@top_k_weights.demand("of equal scores no more than k are kept")
def _(answer):
    kept = answer(torch.tensor([[1.0, 0, 0, 0], [2, 2, 2, 2]]), 2).gt(0).sum(dim=-1)
    if kept.ne(2).any():
        return "Equal scores slip through: compare places, not scores with a threshold."


@top_k_weights.cases
def _():
    yield "the kept keys share the weight by softmax", 2 * torch.randn(4, 6), 2
    label = "k = 1 is the hard look-up, and k = all the plain softmax"
    yield label, torch.randn(3, 4), 1
    yield label, torch.randn(3, 4), 4


top_k_weights.hints = """
- A score of minus infinity becomes a weight of exactly 0.
- `scores.topk(k, dim=-1)` gives the values and the places of the k largest.
- Start from `torch.full_like(scores, -torch.inf)` and `scatter` the k largest scores
  back to their places; then take the softmax.
"""

top_k_weights.mistakes = """
The weights you keep are right, but the others' share is lost: a row must add up to 1.
Choose first, then take the softmax.
    hidden.scatter(-1, best.indices, best.values).softmax(dim=-1) → scores.softmax(dim=-1) * (hidden.scatter(-1, best.indices, 0) == 0)
You keep the k smallest scores: the best keys have the largest ones.
    scores.topk(k, dim=-1) → scores.topk(k, dim=-1, largest=False)
You set the other scores to 0 and not to minus infinity; e to the power 0 is 1, so they
still get weight.
    -torch.inf → 0
Every kept key gets 1/k. They should share by softmax, the better the more.
    best.values).softmax(dim=-1) → 1.0).clamp(min=0) / k
You keep the k best of the whole matrix; each query, each row, has its own k best.
    hidden.scatter(-1, best.indices, best.values) → scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf)
    hidden.scatter(-1, best.indices, best.values).softmax(dim=-1) → scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf).softmax(dim=-1).nan_to_num()
You return the weights of the kept keys alone: every key needs its place in the row, and
those left out a 0 there.
    hidden.scatter(-1, best.indices, best.values) → best.values
Each COLUMN of your weights sums to 1, but each ROW should: every query shares its
attention out over the keys. Look at `dim=`.
    softmax(dim=-1) → softmax(dim=0)
    softmax(dim=-1) → softmax(dim=0).nan_to_num()
"""


@Exercise("1.3", "The slope is a covariance", axes="d_v d_k")
def slope_of_lookup(query, keys, values):
    """Return the slope of the output by the query, from the formula above."""
    weights = (keys @ query).softmax(dim=0)  # (key,)
    centered_values = values - weights @ values
    centered_keys = keys - weights @ keys
    # With all weight on one key both differences are 0 there, and so is the slope.
    return (weights[:, None] * centered_values).T @ centered_keys  # (d_v, d_k)


@slope_of_lookup.oracle
def _(query, keys, values):
    query, keys, values = query.double(), keys.double(), values.double()

    def output(query):
        scores = torch.stack([(query * key).sum() for key in keys])
        return softmax_over(scores, range(len(keys))) @ values

    nudges = 1e-5 * torch.eye(len(query), dtype=torch.float64)
    columns = [(output(query + n) - output(query - n)) / 2e-5 for n in nudges]
    return torch.stack(columns, dim=-1).float()


@slope_of_lookup.cases
def _():
    label = "it is the slope that small nudges of the query show"
    yield label, torch.randn(3), torch.randn(5, 3), torch.randn(5, 2)
    label = "where all weight lies on one key, nothing moves"
    yield label, torch.tensor([100.0, 0, 0]), torch.eye(3), torch.randn(3, 2)


slope_of_lookup.hints = """
- The weights are `(keys @ query).softmax(dim=0)`.
- The average value is `weights @ values`, the average key `weights @ keys`. Subtract
  them from every value and every key.
- A sum of outer products is one matrix product: `(weights[:, None] * centered_values).T
  @ centered_keys`.
"""

slope_of_lookup.mistakes = """
You forgot to subtract the averages: the sum is over v and k less their means.
    (weights[:, None] * centered_values).T @ centered_keys → (weights[:, None] * values).T @ keys
You subtract the plain means; the averages are taken with the weights.
    values - weights @ values → values - values.mean(dim=0)
    and keys - weights @ keys → keys - keys.mean(dim=0)
All keys count the same in your sum: multiply each outer product by its weight.
    (weights[:, None] * centered_values) → (centered_values / len(keys))
Each outer product must be multiplied by its weight before you add.
    (weights[:, None] * centered_values) → centered_values
Your matrix is transposed: row i says how output i moves.
    (weights[:, None] * centered_values).T @ centered_keys → centered_keys.T @ (weights[:, None] * centered_values)
These are the weights at T = 0.2; the formula is for T = 1.
    (keys @ query) → (keys @ query / 0.2)
You divide the scores by √d_k. This formula has the plain products, T = 1.
    (keys @ query) → (keys @ query / len(query) ** 0.5)
exp() of a large score is infinite, and the division makes NaN of it. `torch.softmax`
takes care of that.
    .softmax(dim=0) → .exp() / (keys @ query).exp().sum()
You divide by the number of keys; the weights add up to 1 already.
    .T @ centered_keys → .T @ centered_keys / len(keys)
right:
    (weights[:, None] * centered_values).T @ centered_keys → torch.einsum("i,iv,ik->vk", weights, centered_values, centered_keys)
    weights = (keys @ query).softmax(dim=0)  # (key,) → return torch.autograd.functional.jacobian(lambda q: (keys @ q).softmax(0) @ values, query)
    values - weights @ values → values
    keys - weights @ keys → keys
"""


@Exercise("1.4", "When is the slope gone?", tolerance=0)
def smallest_lead():
    """The first weight is nearly 1 and misses 2e^-lead: 1.7e-6 at 14, 6e-7 at 15."""
    return 15


def steepest(lead):
    """Return the largest slope, in size, where one score of three leads by so much."""
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


@smallest_lead.demand("at this lead every slope is below a millionth")
def _(answer):
    slope = steepest(answer())
    if slope >= 1e-6:
        return f"At this lead the largest slope is still {slope:.1e}."


@smallest_lead.demand("and at every smaller one some slope is not")
def _(answer):
    if steepest(answer() - 1) < 1e-6:
        return "Every slope is below a millionth there, but a smaller lead is enough."


smallest_lead.hints = """
- How one weight answers to a score is a product of two weights, or a(1 - a). The
  largest is that of the first weight and its own score.
- Look at it in a loop: a is the first number of `torch.tensor([float(lead), 0,
  0]).softmax(dim=0)`.
"""

smallest_lead.mistakes = """
There e^-lead is below a millionth, but two keys share what the first leaves: its slope
is about twice as large.
    return 15 → return 14
There the largest slope is still far above a millionth: a softmax takes powers of e,
which fall more slowly than powers of 10.
    return 15 → return 6
    return 15 → return 7
"""


@Exercise("1.5", "Let it say that nothing fits", axes="query key")
def weights_or_nothing(scores, nothing):
    """Softmax over the keys and over nothing; return the weights of the keys."""
    column = torch.full((len(scores), 1), float(nothing))
    weights = torch.cat([scores, column], dim=-1).softmax(dim=-1)
    return weights[:, :-1]  # what is left out is the weight of nothing


@weights_or_nothing.oracle
def _(scores, nothing):
    rows = [torch.tensor([*row, float(nothing)]) for row in scores]
    return torch.stack([softmax_over(row, range(len(row)))[:-1] for row in rows])


@weights_or_nothing.cases
def _():
    label = "where no key fits better than nothing, each gets the same as nothing"
    yield label, torch.tensor([[2.0, 2, 2], [0, 0, 0]]), 2.0
    label = "what the keys lack to 1 is the weight of nothing"
    yield label, 2 * torch.randn(4, 6), 1.5
    label = "large scores are no trouble"
    yield label, torch.tensor([[300.0, 299.0], [0.0, 1.0]]), 300.0


weights_or_nothing.hints = """
- Nothing is one key more, with the same score for every query.
- `torch.full((len(scores), 1), nothing)` is a column of that score; `torch.cat([scores,
  column], dim=-1)` puts it beside the others.
- Take the softmax with the column, and then leave the column out: `[:, :-1]`.
"""

weights_or_nothing.mistakes = """
Your rows add up to 1: then nothing has no share. Give it a column in the softmax, leave
that column out afterwards, and do not divide again.
    weights[:, :-1] → weights[:, :-1] / weights[:, :-1].sum(dim=-1, keepdim=True)
    weights[:, :-1] → (scores - nothing).softmax(dim=-1)
You add the score of nothing to the sum as it is; like every score it must be raised to
e first.
    weights[:, :-1] → scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + nothing)
You take a share away that depends on the score of nothing alone. How much nothing takes
depends on the other scores, too: give it a column in the softmax.
    weights[:, :-1] → scores.softmax(dim=-1) * (1 - torch.tensor(float(nothing)).sigmoid())
You take away the keys that score below nothing. Let them keep their share, and give
nothing its own.
    weights[:, :-1] → scores.softmax(dim=-1).masked_fill(scores < nothing, 0)
You return the weight of nothing, too: leave its column out.
    weights[:, :-1] → weights
You leave out the first column, but nothing stands in the last.
    weights[:, :-1] → weights[:, 1:]
Nothing has the score 0 in your code, whatever it is given.
    float(nothing) → 0.0
exp() of a large score is infinite. `torch.softmax` takes care of that.
    torch.cat([scores, column], dim=-1).softmax(dim=-1) → torch.cat([scores, column], dim=-1).exp()
        weights = weights / weights.sum(dim=-1, keepdim=True)
Your softmax runs over the queries. The keys of one query, one row, share.
    softmax(dim=-1) → softmax(dim=0)
right:
    torch.full((len(scores), 1), float(nothing)) → torch.full_like(scores[:, :1], nothing)
    weights[:, :-1] → (scores - scores.logsumexp(-1, keepdim=True).logaddexp(column)).exp()
"""
