"""Known wrong answers of Exercises 6.1, 6.4 and 6.5, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.attention import masked_softmax


def _unroll(*, masked=True, moving=True, first=False, contexts=False):
    """Return an answer with one thing changed."""

    def answer(attention, cell, hidden, memory, mask, steps):
        keys, start, found = attention.W_K(memory), hidden, []
        mask = mask if masked else None
        for _ in range(steps):
            query = hidden if moving else start
            context = attention.read(query.unsqueeze(1), keys, memory, mask)[:, 0]
            if first:
                found.append(hidden)
            hidden = cell(context, hidden)
            if not first:
                found.append(context if contexts else hidden)
        return torch.stack(found, dim=1)

    return answer


UNROLL = [
    (
        "padding-read",
        "The padding is read, too: pass the mask on.",
        _unroll(masked=False),
    ),
    (
        "first-state",
        "Every look asks with the first state. The query is the state of the moment: "
        "`hidden`, which changes in the loop.",
        _unroll(moving=False),
    ),
    (
        "one-behind",
        "Your states begin with the one you were given: keep the state after each "
        "step.",
        _unroll(first=True),
    ),
    (
        "contexts",
        "You return the contexts. Return the states that the cell makes of them.",
        _unroll(contexts=True),
    ),
]


def _dot(*, scale=lambda layer: layer.out_features**0.5, weigh=masked_softmax):
    """Return a function that makes a wrong class from the right one."""

    def build(right):
        class Mistaken(right):
            def read(self, queries, projected_keys, values, mask=None):
                scores = self.W_Q(queries) @ projected_keys.transpose(-2, -1)
                return weigh(scores / scale(self.W_Q), mask) @ values

        return Mistaken

    return build


def _inverted(scores, mask):
    return masked_softmax(scores, None if mask is None else ~mask)


def _filled(lowest):
    """Return a softmax that hides what may be seen, with ``lowest`` for its scores."""

    def weigh(scores, mask):
        filled = scores if mask is None else scores.masked_fill(mask, lowest)
        return filled.softmax(dim=-1)

    return weigh


def _reads_keys(right):
    class Mistaken(right):
        def read(self, queries, projected_keys, values, mask=None):
            Q = self.W_Q(queries)
            scores = Q @ projected_keys.transpose(-2, -1) / Q.shape[-1] ** 0.5
            return masked_softmax(scores, mask) @ projected_keys

    return Mistaken


_INVERTED = (
    "Your mask is inverted: True means that a query may look. `masked_fill` wants the "
    "places to hide, ~mask; `masked_softmax` takes the mask as it is."
)

DOT = [
    (
        "unscaled",
        "The scores are not divided by the root of d_hidden: chapter 3 has the reason.",
        _dot(scale=lambda layer: 1),
    ),
    (
        "scaled-by-size",
        "You divide by d_hidden itself: by its root, `d_hidden ** 0.5`.",
        _dot(scale=lambda layer: layer.out_features),
    ),
    (
        "scaled-by-query",
        "You divide by the root of d_query. Each product is a sum over the d_hidden "
        "numbers of a projected query: take the root of that size.",
        _dot(scale=lambda layer: layer.in_features**0.5),
    ),
    (
        "wrong-axis",
        "The softmax runs over the queries. Each query shares out its attention over "
        "the keys: the last axis.",
        _dot(weigh=lambda scores, mask: scores.softmax(dim=-2)),
    ),
    (
        "unmasked",
        "The padding is read, too: give the mask to `masked_softmax`.",
        _dot(weigh=lambda scores, mask: scores.softmax(dim=-1)),
    ),
    ("mask-inverted", _INVERTED, _dot(weigh=_inverted)),
    ("mask-inverted", _INVERTED, _dot(weigh=_filled(-1e9))),
    ("mask-inverted", _INVERTED, _dot(weigh=_filled(-torch.inf))),
    (
        "reads-keys",
        "You average the projected keys. The keys decide where to look; what is read "
        "are the values.",
        _reads_keys,
    ),
]


def _is_word(weights, lengths):
    return torch.arange(weights.shape[1]) < lengths[:, None]


def _upto(weights, ends):
    return (weights * _is_word(weights, ends)[..., None]).sum(dim=1)


COVERAGE = [
    (
        "padding-counted",
        "The rows of the padding are counted, too: leave out those beyond `lengths`.",
        lambda weights, lengths: weights.sum(dim=1),
    ),
    (
        "rows",
        "You added up each row, which gives 1 for every target word. Add up each "
        "COLUMN: what a source word was given by all target words.",
        lambda weights, lengths: weights.sum(dim=2),
    ),
    (
        "rows",
        "You added up each row, which gives 1 for every target word. Add up each "
        "COLUMN: what a source word was given by all target words.",
        lambda weights, lengths: weights.sum(dim=2) * _is_word(weights, lengths),
    ),
    (
        "one-too-many",
        "One row of padding is counted: from 0 on, the words are the rows below the "
        "length.",
        lambda weights, lengths: _upto(weights, lengths + 1),
    ),
    (
        "one-too-few",
        "The last word of each target is not counted: from 0 on, the words are the "
        "rows below the length.",
        lambda weights, lengths: _upto(weights, lengths - 1),
    ),
    (
        "shortest",
        "All targets are cut where the shortest ends.",
        lambda weights, lengths: weights[:, : lengths.min()].sum(dim=1),
    ),
    (
        "mean",
        "You took the mean over the rows. Coverage is the sum: a word that two target "
        "words read is covered twice.",
        lambda weights, lengths: (
            (weights * _is_word(weights, lengths)[..., None]).sum(1) / lengths[:, None]
        ),
    ),
    (
        "mean",
        "You took the mean over the rows, padding included. Coverage is the sum over "
        "the rows of words.",
        lambda weights, lengths: weights.mean(dim=1),
    ),
    (
        "largest",
        "You took the largest weight of each column. Coverage is the sum.",
        lambda weights, lengths: (weights * _is_word(weights, lengths)[..., None]).amax(
            dim=1
        ),
    ),
]
