"""Known wrong answers of Exercise 6.3, as (code, message, answer).

This module does not know the right answers.
"""

from tutorial_lib.metrics import heaviest_links


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


def _without_possible(weights, sure, possible):
    return _error()(weights, sure, sure)


def _in_one_set(weights, sure, possible):
    """Join the links of all sentences: those with the same numbers become one."""
    links, certain, allowed = (
        set().union(*group)
        for group in (map(heaviest_links, weights), sure, (*sure, *possible))
    )
    hits = len(links & certain) + len(links & allowed)
    return 1 - hits / (len(links) + len(certain))


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
        "without-possible",
        "You never use the possible links: one that is found is right, too.",
        _without_possible,
    ),
    (
        "one-set",
        "You join the links of all sentences in one set, where (0, 0) of one sentence "
        "and of another become one link. Count each sentence, then add the counts.",
        _in_one_set,
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
