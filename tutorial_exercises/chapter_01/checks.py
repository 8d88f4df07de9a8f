"""Checks for chapter 1: soft look-up.

The definitions here are slow loops; this module does not know the chapter's rivers.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise

difference = Exercise(
    "1.1",
    "How far apart are the scores?",
    tolerance=0.01,
    hints=[
        "The ratio of the two weights is e to the power of the difference of "
        "the scores.",
        "The ratio is 9. Which number must e be raised to, to give 9?",
    ],
)


@difference.spec
def score_difference():
    """Try differences in steps of a ten-thousandth until the weight reaches 0.9."""
    step = 0
    while 1 / (1 + math.exp(-step / 10_000)) < 0.9:
        step += 1
    return step / 10_000


@difference.step("the difference of the two scores")
def _(probe):
    probe()
    probe.same()


top = Exercise(
    "1.2",
    "Only the best k",
    name="top_k_weights",
    returns="query key",
    hints=[
        "A score of minus infinity becomes a weight of exactly 0.",
        "`scores.topk(k, dim=-1)` gives the values and the places of the k largest.",
        "Start from `torch.full_like(scores, -torch.inf)` and `scatter` the k largest "
        "scores back to their places; then take the softmax.",
    ],
)


def softmax_over(row, kept):
    """Softmax of one row of scores over the kept places, by loop; 0 elsewhere."""
    weights = torch.zeros_like(row)
    largest = max(float(row[j]) for j in kept)
    total = sum(math.exp(float(row[j]) - largest) for j in kept)
    for j in kept:
        weights[j] = math.exp(float(row[j]) - largest) / total
    return weights


def best_places(row, k):
    """List the places of a row's k largest scores."""
    return sorted(range(len(row)), key=lambda j: -float(row[j]))[:k]


@top.spec
def top_k_weights(scores, k):
    """Let the k best places of each row share the weight."""
    return torch.stack([softmax_over(row, best_places(row, k)) for row in scores])


@top.step("one weight for each query and key")
def _(probe):
    probe.shape(probe(torch.randn(3, 5), 2), query=3, key=5)


@top.step("every row adds up to 1")
def _(probe):
    probe.sums_to_one(probe(torch.randn(4, 6), 3))


@top.step("all but k weights of a row are exactly 0")
def _(probe):
    kept = probe(torch.randn(4, 6), 3).gt(0).sum(dim=-1)
    message = f"A row keeps {kept.tolist()} keys where k = 3."
    probe.require(kept.eq(3).all(), "count", message)


@top.step("of equal scores no more than k are kept")
def _(probe):
    kept = probe(torch.tensor([[1.0, 0, 0, 0], [2, 2, 2, 2]]), 2).gt(0).sum(dim=-1)
    message = "Equal scores slip through: compare places, not scores with a threshold."
    probe.require(kept.eq(2).all(), "ties", message)


@top.step("the kept keys share the weight by softmax")
def _(probe):
    probe(2 * torch.randn(4, 6), 2)
    probe.same()


@top.step("k = 1 is the hard look-up, and k = all the plain softmax")
def _(probe):
    probe(torch.randn(3, 4), 1)
    probe.same()
    probe(torch.randn(3, 4), 4)
    probe.same()


slope = Exercise(
    "1.3",
    "The slope is a covariance",
    name="slope_of_lookup",
    returns="d_v d_k",
    hints=[
        "The weights are `(keys @ query).softmax(dim=0)`.",
        "The average value is `weights @ values`, the average key `weights @ keys`. "
        "Subtract them from every value and every key.",
        "A sum of outer products is one matrix product: "
        "`(weights[:, None] * centered_values).T @ centered_keys`.",
    ],
)


def weights_by_loop(query, keys):
    """Softmax of the scores of one query, by loop: (key,)."""
    scores = torch.stack([(query * key).sum() for key in keys])
    return softmax_over(scores, range(len(keys)))


@slope.spec
def slope_of_lookup(query, keys, values):
    """Move each coordinate of the query by a little and see the output move."""
    query, keys, values = query.double(), keys.double(), values.double()
    columns = []
    for nudge in 1e-5 * torch.eye(len(query), dtype=torch.float64):
        up = weights_by_loop(query + nudge, keys) @ values
        down = weights_by_loop(query - nudge, keys) @ values
        columns.append((up - down) / 2e-5)
    return torch.stack(columns, dim=-1).float()


@slope.step("one row for each coordinate of the output, one column for the query's")
def _(probe):
    inputs = torch.randn(4), torch.randn(5, 4), torch.randn(5, 3)
    probe.shape(probe(*inputs), d_v=3, d_k=4)


@slope.step("it is the slope that small nudges of the query show")
def _(probe):
    probe(torch.randn(3), torch.randn(5, 3), torch.randn(5, 3))
    probe.same(tolerance=1e-4)


@slope.step("it does not change when all keys move together")
def _(probe):
    query, keys, values = torch.randn(3), torch.randn(5, 3), torch.randn(5, 2)
    before = probe(query, keys, values)
    message = "Adding one vector to all keys changes no weight, so it changes no slope."
    probe.require(probe.close(before, probe(query, keys + 1, values)), "shift", message)


@slope.step("where all weight lies on one key, nothing moves")
def _(probe):
    keys = torch.eye(3)
    probe(100 * keys[0], keys, torch.randn(3, 2))
    probe.same()


gone = Exercise(
    "1.4",
    "When is the slope gone?",
    tolerance=0,
    hints=[
        "How one weight answers to a score is a product of two weights, or a(1 - a). "
        "The largest is that of the first weight and its own score.",
        "Look at it in a loop: a is the first number of "
        "`torch.tensor([float(lead), 0, 0]).softmax(dim=0)`.",
    ],
)


def steepest(lead):
    """Find the largest slope, in size, where one score of three leads by so much."""
    weights = torch.tensor([lead, 0, 0], dtype=torch.float64).softmax(dim=0)
    return (weights.diag() - weights[:, None] * weights).abs().max().item()


@gone.spec
def smallest_lead():
    """Try lead after lead."""
    lead = 0
    while steepest(lead) >= 1e-6:
        lead += 1
    return lead


@gone.step("one whole number")
def _(probe):
    try:
        lead = -1.0 if isinstance(probe(), str) else float(probe())
    except (TypeError, ValueError):
        lead = -1.0
    message = "Give one whole number: the lead of the first score."
    probe.require(lead >= 0 and lead % 1 == 0, "whole", message)


@gone.step("at this lead every slope is below a millionth")
def _(probe):
    slope = steepest(probe())
    message = f"At this lead the largest slope is still {slope:.1e}."
    probe.require(slope < 1e-6, "still-there", message)


@gone.step("and at every smaller one some slope is not")
def _(probe):
    message = "Every slope is below a millionth there, but a smaller lead is enough."
    probe.require(steepest(float(probe()) - 1) >= 1e-6, "not-smallest", message)


nothing = Exercise(
    "1.5",
    "Let it say that nothing fits",
    name="weights_or_nothing",
    returns="query key",
    hints=[
        "Nothing is one key more, with the same score for every query.",
        "`torch.full((len(scores), 1), nothing)` is a column of that score; "
        "`torch.cat([scores, column], dim=-1)` puts it beside the others.",
        "Take the softmax with the column, and then leave the column out: `[:, :-1]`.",
    ],
)


@nothing.spec
def weights_or_nothing(scores, nothing):
    """Let the keys of each row share the weight with one key more."""
    rows = [torch.cat([row, torch.tensor([float(nothing)])]) for row in scores]
    return torch.stack([softmax_over(row, range(len(row)))[:-1] for row in rows])


@nothing.step("one weight for each query and key")
def _(probe):
    probe.shape(probe(torch.randn(3, 5), 0.0), query=3, key=5)


@nothing.step("where no key fits better than nothing, each gets the same as nothing")
def _(probe):
    probe(torch.tensor([[2.0, 2, 2], [0, 0, 0]]), 2.0)
    probe.same()


@nothing.step("what the keys lack to 1 is the weight of nothing")
def _(probe):
    probe(2 * torch.randn(4, 6), 1.5)
    probe.same()


@nothing.step("a very small score for nothing gives the plain softmax")
def _(probe):
    probe(torch.randn(3, 4), -1000.0)
    probe.same()


@nothing.step("large scores are no trouble")
def _(probe):
    probe(torch.tensor([[300.0, 299.0], [0.0, 1.0]]), 300.0)
    probe.same()
