"""Known wrong answers of Exercises 2.3 and 2.4, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _errors(keys, values, kernel):
    """Return the error at each key, predicted by the others."""
    similarities = kernel(keys[:, None] - keys).masked_fill(torch.eye(len(keys)) > 0, 0)
    total = similarities.sum(dim=-1)
    return similarities @ values / total.where(total > 0, 1) - values


def _sees_itself(keys, values, kernel):
    similarities = kernel(keys[:, None] - keys)
    errors = similarities @ values / similarities.sum(dim=-1) - values
    return errors.square().mean()


def _masked_after(keys, values, kernel):
    similarities = kernel(keys[:, None] - keys)
    weights = similarities / similarities.sum(dim=-1, keepdim=True)
    weights = weights * (1 - torch.eye(len(keys)))
    return (weights @ values - values).square().mean()


def _softmax_of_similarities(keys, values, kernel):
    scores = kernel(keys[:, None] - keys)
    scores = scores.masked_fill(torch.eye(len(keys)) > 0, -torch.inf)
    return (scores.softmax(dim=-1) @ values - values).square().mean()


def _lonely_by_zero(keys, values, kernel):
    similarities = kernel(keys[:, None] - keys) * (1 - torch.eye(len(keys)))
    errors = similarities @ values / similarities.sum(dim=-1) - values
    return errors.square().mean()


def _lonely_skipped(keys, values, kernel):
    similarities = kernel(keys[:, None] - keys) * (1 - torch.eye(len(keys)))
    return _errors(keys, values, kernel)[similarities.sum(dim=-1) > 0].square().mean()


def _twins_skipped(keys, values, kernel):
    apart = (keys[:, None] - keys).abs()
    similarities = kernel(apart).masked_fill(apart == 0, 0)
    total = similarities.sum(dim=-1)
    errors = similarities @ values / total.where(total > 0, 1) - values
    return errors.square().mean()


LEFT_OUT = [
    (
        "sees-itself",
        "Every key also looks at itself, so this is the error on the readings, which "
        "the narrowest kernel always wins. Set the diagonal of the similarities to 0.",
        _sees_itself,
    ),
    (
        "masked-after",
        "You remove the diagonal AFTER dividing by the row sums, so the weights of the "
        "others sum to less than 1. Remove it first, then divide.",
        _masked_after,
    ),
    (
        "twins",
        "Two keys at one place do not see each other: you hide every distance of 0. "
        "Only the diagonal must be hidden.",
        _twins_skipped,
    ),
    (
        "softmax",
        "You take a softmax of similarities. A kernel's similarities are not scores: "
        "set the diagonal to 0 and divide each row by its sum.",
        _softmax_of_similarities,
    ),
    (
        "sum",
        "This is the SUM of the squared errors: return their mean.",
        lambda *data: _errors(*data).square().sum(),
    ),
    (
        "root",
        "This is the root of the mean squared error: return the mean itself.",
        lambda *data: _errors(*data).square().mean().sqrt(),
    ),
    (
        "absolute",
        "This is the mean of the absolute errors: square them first.",
        lambda *data: _errors(*data).abs().mean(),
    ),
    (
        "each-key",
        "These are the squared errors, one for each key: return their mean.",
        lambda *data: _errors(*data).square(),
    ),
    (
        "zero-by-zero",
        "The error is NaN: a key with no other key within reach divides by a sum of "
        "0. Make sure that the number you divide by is never 0.",
        _lonely_by_zero,
    ),
    (
        "lonely-skipped",
        "You leave out the keys that have no other key within reach. They count too: "
        "such a key is predicted as 0, and its error is its value.",
        _lonely_skipped,
    ),
]

SPHERE = [
    ("one-power", "4 is 1 / σ: the kernel divides by the SQUARE of the width.", 4.0),
    (
        "lost-two",
        "8 is 1 / (2σ²). Write out ‖q - k‖² once more: q · k comes with a factor of 2, "
        "which cancels the 2 in 2σ².",
        8.0,
    ),
    (
        "lost-half",
        "32 is 2 / σ². The factor of 2 is right, but the Gaussian divides by 2σ².",
        32.0,
    ),
    (
        "sign",
        "The sign is turned around: a larger dot product is a smaller distance, so "
        "the score must grow with it.",
        -16.0,
    ),
    (
        "inverse",
        "This is σ². A narrower kernel is sharper, so c must grow as σ shrinks.",
        0.0625,
    ),
]
