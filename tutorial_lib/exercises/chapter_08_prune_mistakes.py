"""Known wrong answers of exercise 8.4, pruning, as (code, message, answer).

This module does not know the right answers.
"""

from itertools import combinations


def _greedy(*, pick=max, since="all", stop=False, more=False, relative=False):
    """Return an answer that takes heads out one by one, with one thing changed."""

    def answer(score, heads, loss):
        kept = list(range(heads))
        enough = score(kept) * (1 - loss) if relative else score(kept) - loss
        while len(kept) > 1:
            candidates = [[j for j in kept if j != i] for i in kept]
            best = pick(candidates, key=score)
            if score(best) < enough or (more and score(best) == enough):
                break
            enough = enough if since == "all" else score(best) - loss
            kept = best
            if stop:
                break
        return kept

    return answer


def _at_once(score, heads, loss):
    """Take out, all at once, every head that alone can be spared."""
    everybody = list(range(heads))
    enough = score(everybody) - loss
    kept = [i for i in everybody if score([j for j in everybody if j != i]) < enough]
    return kept or everybody[:1]


def _ranked(score, heads, loss):
    """Rank the heads once, and take them out in that order."""
    kept = list(range(heads))
    enough = score(kept) - loss
    spared = {i: score([j for j in kept if j != i]) for i in kept}
    for i in sorted(spared, key=spared.get, reverse=True):
        fewer = [j for j in kept if j != i]
        if not fewer or score(fewer) < enough:
            break
        kept = fewer
    return kept


def _in_order(score, heads, loss):
    """Go through the heads once, and take out each that can be spared."""
    kept = list(range(heads))
    enough = score(kept) - loss
    for i in range(heads):
        fewer = [j for j in kept if j != i]
        if fewer and score(fewer) >= enough:
            kept = fewer
    return kept


def _weakest_alone(score, heads, loss):
    """Take out the head that has the lowest score when it is alone."""
    kept = list(range(heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        weakest = min(kept, key=lambda i: score([i]))
        fewer = [j for j in kept if j != weakest]
        if score(fewer) < enough:
            break
        kept = fewer
    return kept


def _smallest_set(score, heads, loss):
    """Try every set of heads; of the smallest that do, return the best."""
    everybody = list(range(heads))
    enough = score(everybody) - loss
    for size in range(1, heads + 1):
        sets = [list(chosen) for chosen in combinations(everybody, size)]
        if score(max(sets, key=score)) >= enough:
            return max(sets, key=score)
    return everybody


def _too_far(score, heads, loss):
    """Take a head out first, and look at the score afterwards."""
    kept = list(range(heads))
    enough = score(kept) - loss
    while len(kept) > 1 and score(kept) >= enough:
        kept = max(([j for j in kept if j != i] for i in kept), key=score)
    return kept


def _removed(score, heads, loss):
    kept = _greedy()(score, heads, loss)
    return [i for i in range(heads) if i not in kept]


PRUNE = [
    (
        "more-than-within",
        "You stop at a score that is just good enough. A loss of exactly `loss` is "
        "still within the limit: stop only below it.",
        _greedy(more=True),
    ),
    (
        "relative",
        "You take `loss` as a share of the score of all heads. It is a difference: "
        "`score(all) - loss`.",
        _greedy(relative=True),
    ),
    (
        "smallest-set",
        "You look for the smallest set of heads that will do. The exercise takes out "
        "one head after the other, always the one whose loss hurts least.",
        _smallest_set,
    ),
    (
        "weakest-alone",
        "You take out the head that has the lowest score alone. Another may do the "
        "same work: take out the one without which the others have the highest score.",
        _weakest_alone,
    ),
    (
        "at-once",
        "You take out every head that can be spared by itself, all at once. Two heads "
        "may do the same work: score anew after each.",
        _at_once,
    ),
    (
        "ranked-once",
        "You rank the heads once. What a head is worth changes when another has gone: "
        "score all that are left anew after each.",
        _ranked,
    ),
    (
        "in-order",
        "You take the heads in their order, each that can be spared when its turn "
        "comes. Of all that are left, take out the one whose loss hurts least.",
        _in_order,
    ),
    (
        "loss-adds-up",
        "You compare with the score before the last step, so that small losses add up. "
        "Compare with the score of all heads.",
        _greedy(since="last"),
    ),
    (
        "one-too-many",
        "You take a head out and look at the score afterwards, when it is gone: keep "
        "it if the score would fall too far.",
        _too_far,
    ),
    (
        "most-important",
        "You take out the head whose loss hurts most: the best candidate is the one "
        "with the highest score.",
        _greedy(pick=min),
    ),
    (
        "only-one",
        "You stop after one head. Go on as long as the score stays within the limit.",
        _greedy(stop=True),
    ),
    (
        "removed",
        "You return the heads that were taken out. Return those that are kept.",
        _removed,
    ),
]
