"""Known wrong answers of chapter 2, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _near(queries, keys, width):
    return ((queries[:, None] - keys).abs() <= width).float()


def _zero_by_zero(queries, keys, width):
    near = _near(queries, keys, width)
    return near / near.sum(dim=-1, keepdim=True)


def _everybody(queries, keys, width):
    near = _near(queries, keys, width)
    near = near + (near.sum(dim=-1, keepdim=True) == 0)
    return near / near.sum(dim=-1, keepdim=True)


def _columns(queries, keys, width):
    near = _near(queries, keys, width)
    return near / near.sum(dim=0).clamp(min=1)


def _softmax(queries, keys, width):
    return _near(queries, keys, width).softmax(dim=-1)


def _one_sided(queries, keys, width):
    near = (queries[:, None] - keys <= width).float()
    return near / near.sum(dim=-1, keepdim=True).clamp(min=1)


def _strict(queries, keys, width):
    near = ((queries[:, None] - keys).abs() < width).float()
    return near / near.sum(dim=-1, keepdim=True).clamp(min=1)


WINDOW = [
    (
        "zero-by-zero",
        "A query with nobody near gets NaN: its zeros are divided by a sum of 0. Make "
        "sure that the number you divide by is never 0.",
        _zero_by_zero,
    ),
    (
        "everybody",
        "A query with nobody near shares its attention over ALL the keys, as a softmax "
        "over equal scores does. Its weights must be 0.",
        _everybody,
    ),
    (
        "columns",
        "You divide by sums over the queries. Every query shares its own attention "
        "over the KEYS: sum over the last axis.",
        _columns,
    ),
    (
        "one-sided",
        "Keys far beyond the query count as near, because a negative difference is "
        "below every width. Compare its absolute value.",
        _one_sided,
    ),
    (
        "softmax",
        "A softmax of the similarities gives far keys a weight too, because exp(0) is "
        "1. Divide the similarities themselves by their sum.",
        _softmax,
    ),
    (
        "not-shared",
        "These are similarities: 1 for every near key. Weights share one whole among "
        "the near keys, so divide each row by its sum.",
        _near,
    ),
    (
        "strict",
        "A key at exactly the width should count as near: use `<=`, not `<`.",
        _strict,
    ),
]


def _votes(queries, keys, labels, *, classes, kernel):
    return kernel(torch.cdist(queries, keys)) @ torch.eye(classes)[labels]


def _votes_by_zero(queries, keys, labels, *, classes, kernel):
    votes = _votes(queries, keys, labels, classes=classes, kernel=kernel)
    return votes / votes.sum(dim=-1, keepdim=True)


def _classes_with_keys(queries, keys, labels, *, classes, kernel):
    present = int(labels.max()) + 1
    return _votes_by_zero(queries, keys, labels, classes=present, kernel=kernel)


def _mean_of_labels(queries, keys, labels, *, classes, kernel):
    similarities = kernel(torch.cdist(queries, keys))
    return similarities @ labels.float() / similarities.sum(dim=-1)


def _shares_of_classes(queries, keys, labels, *, classes, kernel):
    return torch.eye(classes)[labels].mean(dim=0).expand(len(queries), classes)


def _shared_over_queries(queries, keys, labels, *, classes, kernel):
    similarities = kernel(torch.cdist(queries, keys))
    return similarities / similarities.sum(dim=0) @ torch.eye(classes)[labels]


VOTES = [
    (
        "zero-by-zero",
        "A query with nobody near gets NaN: its votes are divided by a sum of 0. Make "
        "sure that the number you divide by is never 0.",
        _votes_by_zero,
    ),
    (
        "missing-class",
        "A class without keys has no column. `one_hot` counts the classes it sees, "
        "unless you tell it how many there are: `one_hot(labels, classes)`.",
        _classes_with_keys,
    ),
    (
        "mean-of-labels",
        "You average the labels as if they were amounts, but what lies between a 2 "
        "and a 4 is not a 3. Average one-hot vectors: one column for each class.",
        _mean_of_labels,
    ),
    (
        "argmax",
        "You return the most probable class. Return the probabilities: whoever wants "
        "the class can take their `argmax`.",
        lambda *points, **how: _votes(*points, **how).argmax(dim=-1),
    ),
    (
        "not-shared",
        "These are sums of similarities, which grow with the number of keys. Divide "
        "by the sum of all similarities of the query to get probabilities.",
        _votes,
    ),
    (
        "softmax-of-votes",
        "A softmax of the votes gives even a class without keys a probability. Divide "
        "the votes by their sum instead.",
        lambda *points, **how: _votes(*points, **how).softmax(dim=-1),
    ),
    (
        "kernel-ignored",
        "Every query gets the same answer, the share of each class among the keys: "
        "the kernel is not used.",
        _shares_of_classes,
    ),
    (
        "columns",
        "You divide by sums over the queries. The weights of one query must sum to 1 "
        "over the KEYS: sum over the last axis.",
        _shared_over_queries,
    ),
]


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
]

SPHERE = [
    ("one-power", "4 is 1 / w: the kernel divides by the SQUARE of the width.", 4.0),
    (
        "lost-two",
        "8 is 1 / 2w². Write out ‖q - k‖² once more: qᵀk comes with a factor of 2, "
        "which cancels the 2 in 2w².",
        8.0,
    ),
    (
        "lost-half",
        "32 is 2 / w². The factor of 2 is right, but the Gaussian divides by 2w².",
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
        "This is w². A narrower kernel is sharper, so c must grow as w shrinks.",
        0.0625,
    ),
]
