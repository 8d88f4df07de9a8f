"""Known wrong answers of Exercises 2.1 and 2.2, as (code, message, answer).

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


def _lost_axis(queries, keys, width):
    near = _near(queries, keys, width)
    return near / near.sum(dim=-1).clamp(min=1)


def _pair_by_pair(queries, keys, width):
    near = ((queries - keys).abs() <= width).float()
    return near / near.sum(dim=-1, keepdim=True).clamp(min=1)


def _half(queries, keys, width):
    near = _near(queries, keys, width / 2)
    return near / near.sum(dim=-1, keepdim=True).clamp(min=1)


WINDOW = [
    (
        "keepdim",
        "Without their last axis, the sums of the rows are laid along the columns, and "
        "entries are divided by the sums of other rows: give `sum` `keepdim=True`.",
        _lost_axis,
    ),
    (
        "pair-by-pair",
        "`queries - keys` compares query 0 with key 0 only, query 1 with key 1, and "
        "so on. `queries[:, None] - keys` compares each with each: (query, key).",
        _pair_by_pair,
    ),
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
    (
        "half",
        "You let keys count up to half the width. The width is how far the window "
        "reaches on EITHER side.",
        _half,
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


def _by_squared_distance(queries, keys, labels, *, classes, kernel):
    def squaring(distance):
        return kernel(distance.square())

    return _probabilities(queries, keys, labels, classes=classes, kernel=squaring)


def _softmax_weights(queries, keys, labels, *, classes, kernel):
    weights = kernel(torch.cdist(queries, keys)).softmax(dim=-1)
    return weights @ torch.eye(classes)[labels]


def _mean_by_class(queries, keys, labels, *, classes, kernel):
    """Average over the keys of each class: 0 / 0 for a class without keys."""
    votes = _votes(queries, keys, labels, classes=classes, kernel=kernel)
    means = votes / labels.bincount(minlength=classes)
    return means / means.sum(dim=-1, keepdim=True)


def _mean_by_class_or_zero(*points, classes, kernel):
    votes = _votes(*points, classes=classes, kernel=kernel)
    means = votes / points[2].bincount(minlength=classes).clamp(min=1)
    return means / means.sum(dim=-1, keepdim=True).clamp(min=1e-9)


BY_CLASS = (
    "You average over the keys of each class, so that a class with few keys counts as "
    "much as one with many. Add up their votes instead."
)


def _probabilities(queries, keys, labels, *, classes, kernel):
    weights = _weights(queries, keys, labels, classes=classes, kernel=kernel)
    return weights @ torch.eye(classes)[labels]


def _weights(queries, keys, labels, *, classes, kernel):
    similarities = kernel(torch.cdist(queries, keys))
    return similarities / similarities.sum(dim=-1, keepdim=True).clamp(min=1e-9)


VOTES = [
    (
        "both",
        "You return both results of `nadaraya_watson`, the outputs and the weights. "
        "Keep the first: `outputs, _ = nadaraya_watson(…)`.",
        lambda *points, **how: (
            _probabilities(*points, **how),
            _weights(*points, **how),
        ),
    ),
    (
        "weights",
        "These are the weights, one for each key. The probabilities are their sums "
        "over the keys of each class: the OUTPUTS for one-hot values.",
        _weights,
    ),
    (
        "softmax-on-top",
        "You put a softmax on top of probabilities, which flattens them. They already "
        "sum to 1: return them as they are.",
        lambda *points, **how: _probabilities(*points, **how).softmax(dim=-1),
    ),
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
        "squared",
        "You hand the kernel SQUARED distances. A kernel takes the distance itself.",
        _by_squared_distance,
    ),
    (
        "softmax-of-similarities",
        "You take a softmax of similarities, which gives even the farthest key a vote. "
        "Divide the similarities themselves by their sum.",
        _softmax_weights,
    ),
    ("mean-by-class", BY_CLASS, _mean_by_class),
    ("mean-by-class", BY_CLASS, _mean_by_class_or_zero),
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
