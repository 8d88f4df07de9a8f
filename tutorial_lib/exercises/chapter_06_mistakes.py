"""Known wrong answers of chapter 6, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.attention import masked_softmax
from tutorial_lib.metrics import heaviest_links


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


def _error(*, count=lambda hits, shares: 1 - hits / shares, merge=True, average=False):
    """Return an answer that counts, pools or merges in another way."""

    def answer(weights, sure, possible):
        hits, sizes = [], []
        for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
            allowed = allowed | certain if merge else allowed
            links = heaviest_links(sentence)
            hits.append(len(links & certain) + len(links & allowed))
            sizes.append(len(links) + len(certain))
        if average:
            rates = [count(*pair) for pair in zip(hits, sizes, strict=True)]
            return sum(rates) / len(rates)
        return count(sum(hits), sum(sizes))

    return answer


def _transposed(weights, sure, possible):
    turned = [
        [{(j, i) for i, j in links} for links in group] for group in (sure, possible)
    ]
    return _error()(weights, *turned)


def _by_columns(weights, sure, possible):
    hits = size = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = {(int(i), j) for j, i in enumerate(sentence.argmax(dim=0))}
        hits += len(links & certain) + len(links & (allowed | certain))
        size += len(links) + len(certain)
    return 1 - hits / size


def _tensors(weights, sure, possible):
    hits = size = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = set(enumerate(sentence.argmax(dim=1)))
        hits += len(links & certain) + len(links & (allowed | certain))
        size += len(links) + len(certain)
    return 1 - hits / size


def _possible_only(weights, sure, possible):
    hits = size = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = heaviest_links(sentence)
        hits += len(links & (allowed | certain))
        size += len(links) + len(certain)
    return 1 - hits / size


def _over_possible(weights, sure, possible):
    hits = size = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = heaviest_links(sentence)
        hits += len(links & certain) + len(links & (allowed | certain))
        size += len(links) + len(allowed | certain)
    return 1 - hits / size


ERRORS = [
    (
        "accuracy",
        "That is the share of agreement. The error rate is 1 minus it.",
        _error(count=lambda hits, shares: hits / shares),
    ),
    (
        "once",
        "A link of yours that is sure counts twice above the line: |A ∩ S| + |A ∩ P|.",
        _possible_only,
    ),
    (
        "sure-not-possible",
        "A sure link must count as possible, too, even if the set of possible links "
        "leaves it out: `possible | sure`.",
        _error(merge=False),
    ),
    (
        "averaged",
        "You average the rates of the sentences, so that a short one weighs as much "
        "as a long one. Add up counts over all sentences, and divide once.",
        _error(average=True),
    ),
    (
        "over-possible",
        "You divide by the number of possible links. Below the line stand your links "
        "and the SURE ones: a possible link that is not found is no error.",
        _over_possible,
    ),
    (
        "by-columns",
        "You took the heaviest row of each column. Each target word, a row, links to "
        "its heaviest source word.",
        _by_columns,
    ),
    (
        "transposed",
        "Your links are (source, target), the gold ones (target, source): row first.",
        _transposed,
    ),
    (
        "tensors",
        "None of your links is found in the sets. Do they hold tensors, as `argmax` "
        "returns them? In a set a tensor never equals a number: use `.tolist()`.",
        _tensors,
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
