"""Known wrong answers of chapter 1, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _kept(scores, k, *, largest=True):
    """Tell which scores are among the k best of their row: boolean (query, key)."""
    places = scores.topk(k, dim=-1, largest=largest).indices
    return torch.zeros_like(scores).scatter(-1, places, 1.0).bool()


def _smallest(scores, k):
    kept = _kept(scores, k, largest=False)
    return scores.masked_fill(~kept, -torch.inf).softmax(dim=-1)


def _whole_matrix(scores, k):
    kept = scores >= scores.flatten().topk(k).values.min()
    return scores.masked_fill(~kept, -torch.inf).softmax(dim=-1)


WHOLE = (
    "You keep the k best of the whole matrix; each query, each row, has its own k best."
)


TOP = [
    (
        "not-shared",
        "The weights you keep are right, but the others' share is lost: a row must add "
        "up to 1. Choose first, then take the softmax.",
        lambda scores, k: scores.softmax(dim=-1) * _kept(scores, k),
    ),
    (
        "smallest",
        "You keep the k smallest scores: the best keys have the largest ones.",
        _smallest,
    ),
    (
        "zero-scores",
        "You set the other scores to 0 and not to minus infinity; e to the power 0 is "
        "1, so they still get weight.",
        lambda scores, k: (scores * _kept(scores, k)).softmax(dim=-1),
    ),
    (
        "equal-shares",
        "Every kept key gets 1/k. They should share by softmax, the better the more.",
        lambda scores, k: _kept(scores, k).float() / k,
    ),
    ("whole-matrix", WHOLE, _whole_matrix),
    ("whole-matrix", WHOLE, lambda scores, k: _whole_matrix(scores, k).nan_to_num()),
    (
        "only-kept",
        "You return the weights of the kept keys alone: every key needs its place in "
        "the row, and those left out a 0 there.",
        lambda scores, k: scores.topk(k, dim=-1).values.softmax(dim=-1),
    ),
]


def _slope(center_values="weighted", center_keys="weighted", scale=lambda query: 1):
    """Return an answer that centers, or does not, by weighted or by plain means."""

    def center(vectors, weights, how):
        means = {"weighted": weights @ vectors, "plain": vectors.mean(dim=0), None: 0}
        return vectors - means[how]

    def answer(query, keys, values):
        weights = (keys @ query / scale(query)).softmax(dim=0)
        values = center(values, weights, center_values)
        return (weights[:, None] * values).T @ center(keys, weights, center_keys)

    return answer


def _overflowing(query, keys, values):
    """Take exp of the scores as they are, which is infinite for large ones."""
    powers = (keys @ query).exp()
    weights = powers / powers.sum()
    return (weights[:, None] * (values - weights @ values)).T @ keys


def _evenly(scale):
    """Return an answer that counts every key ``scale(keys)`` times, not by weight."""

    def answer(query, keys, values):
        weights = (keys @ query).softmax(dim=0)
        return scale(keys) * (values - weights @ values).T @ (keys - weights @ keys)

    return answer


SLOPE = [
    (
        "not-centered",
        "You forgot to subtract the averages: the sum is over v and k less their "
        "means.",
        _slope(None, None),
    ),
    (
        "plain-mean",
        "You subtract the plain means; the averages are taken with the weights.",
        _slope("plain", "plain"),
    ),
    (
        "unweighted",
        "All keys count the same in your sum: multiply each outer product by its "
        "weight.",
        _evenly(lambda keys: 1 / len(keys)),
    ),
    (
        "no-weights",
        "Each outer product must be multiplied by its weight before you add.",
        _evenly(lambda keys: 1),
    ),
    (
        "transposed",
        "Your matrix is transposed: row i says how output i moves.",
        lambda query, keys, values: _slope()(query, keys, values).T,
    ),
    (
        "temperature",
        "These are the weights at T = 0.2; the formula is for T = 1.",
        _slope(scale=lambda query: 0.2),
    ),
    (
        "scaled",
        "You divide the scores by √d_k. This formula has the plain products, T = 1.",
        _slope(scale=lambda query: len(query) ** 0.5),
    ),
    (
        "overflow",
        "exp() of a large score is infinite, and the division makes NaN of it. "
        "`torch.softmax` takes care of that.",
        _overflowing,
    ),
    (
        "divided",
        "You divide by the number of keys; the weights add up to 1 already.",
        lambda query, keys, values: _slope()(query, keys, values) / len(keys),
    ),
]
