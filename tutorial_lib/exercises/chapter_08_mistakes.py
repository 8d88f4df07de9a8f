"""Known wrong answers of chapter 8, as (code, message, answer).

This module does not know the right answers.
"""

from itertools import combinations

from einops import rearrange

SPLIT = [
    (
        "view-alone",
        "You read the numbers in their old order into new axes, so that a head gets "
        "parts of several tokens. Cut the last axis first, then exchange token and "
        "head.",
        lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], x.shape[2] // heads),
    ),
    (
        "every-third",
        "Head 0 gets columns 0, h, 2h, …: with `(d_k head)` the head runs fastest. "
        "Its columns stand side by side: `(head d_k)`.",
        lambda x, heads: rearrange(
            x, "batch token (d_k head) -> batch head token d_k", head=heads
        ),
    ),
    (
        "not-exchanged",
        "Your axes are (batch, token, head, d_k): token and head have still to change "
        "places.",
        lambda x, heads: x.unflatten(-1, (heads, -1)),
    ),
    (
        "copied",
        "Every head has all columns of a token. It gets d_model / h of them, its own.",
        lambda x, heads: x.unsqueeze(1).expand(-1, heads, -1, -1),
    ),
]


def _terms(context, weight):
    """Let each head meet its rows of a matrix (d_model, d_model)."""
    return context @ weight.reshape(context.shape[1], context.shape[3], -1)


TERMS = [
    (
        "with-bias",
        "Each of your terms contains the bias of W_O, so that their sum contains it "
        "once for every head. Leave it out.",
        lambda context, W_O: _terms(context, W_O.weight.T) + W_O.bias,
    ),
    (
        "not-transposed",
        "You cut `W_O.weight`, but nn.Linear multiplies by its transpose: cut the rows "
        "of `W_O.weight.T`.",
        lambda context, W_O: _terms(context, W_O.weight),
    ),
    (
        "every-third",
        "Head 0 meets the first d_k rows of W_Oᵀ, which lie side by side, not every "
        "h-th row.",
        lambda context, W_O: (
            context
            @ W_O.weight.T.reshape(context.shape[3], context.shape[1], -1).transpose(
                0, 1
            )
        ),
    ),
    (
        "summed",
        "You return the whole sum; keep one term for each head.",
        lambda context, W_O: _terms(context, W_O.weight.T).sum(dim=1),
    ),
    (
        "summed",
        "You return the whole sum, and the bias with it; keep one term for each head.",
        lambda context, W_O: W_O(context.transpose(1, 2).flatten(2)),
    ),
    (
        "equal-shares",
        "You share the output equally among the heads. Each adds what W_O makes of its "
        "own numbers.",
        lambda context, W_O: (
            (context.transpose(1, 2).flatten(2) @ W_O.weight.T)
            .div(context.shape[1])
            .unsqueeze(1)
            .expand(-1, context.shape[1], -1, -1)
        ),
    ),
]


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

HEADS = [
    (
        "rank-of-model",
        "A head has d_model / h columns of Q, not d_model: the rank is at most that.",
        {"rank": 64, "parameters": 16_640},
    ),
    (
        "rank-of-scores",
        "100 is the size of the matrix. It is the product of a matrix with d_k columns "
        "and one with d_k rows: its rank is at most d_k.",
        {"rank": 100, "parameters": 16_640},
    ),
    (
        "no-biases",
        "Each of the four layers has a bias of 64 numbers, too.",
        {"rank": 8, "parameters": 4 * 64**2},
    ),
    (
        "times-heads",
        "The heads share the four matrices: the count does not depend on h.",
        {"rank": 8, "parameters": 8 * 16_640},
    ),
    (
        "no-W_O",
        "There is a fourth layer, W_O, which joins the heads.",
        {"rank": 8, "parameters": 3 * (64**2 + 64)},
    ),
]
