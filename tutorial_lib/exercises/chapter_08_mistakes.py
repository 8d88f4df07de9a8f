"""Known wrong answers of chapter 8, as (code, message, answer).

This module does not know the right answers.
"""

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


def _layer(
    *,
    heads=None,
    split="batch token (head d_k) -> batch head token d_k",
    scale=lambda Q: Q.shape[-1] ** 0.5,
    hide=lambda mask: ~mask,
    axis=-1,
    join=lambda context: rearrange(
        context, "batch head token d_k -> batch token (head d_k)"
    ),
    project=True,
):
    """Return a function that makes a mistaken class of the right one."""

    def forward(self, queries, keys, values, mask=None):
        count = heads or self.heads
        layers = (self.W_Q, queries), (self.W_K, keys), (self.W_V, values)
        Q, K, V = (rearrange(W(each), split, head=count) for W, each in layers)
        scores = Q @ K.transpose(-2, -1) / scale(Q)
        if mask is not None and hide is not None:
            scores = scores.masked_fill(hide(mask.unsqueeze(1)), -1e9)
        context = join(scores.softmax(dim=axis) @ V)
        return self.W_O(context) if project else context

    return lambda right: type("Mistaken", (right,), {"forward": forward})


_INVERTED = (
    "Your mask is inverted: True means that a query may look. `masked_fill` wants the "
    "places to hide, ~mask; `masked_softmax` takes the mask as it is."
)

LAYER = [
    (
        "one-head",
        "That is one head with d_model numbers: `heads` is not used. Split Q, K and V "
        "after the projections.",
        _layer(heads=1),
    ),
    (
        "wrong-axis",
        "The softmax runs over the queries. Each query shares out its attention over "
        "the keys: the last axis.",
        _layer(axis=-2),
    ),
    (
        "scaled-by-model",
        "You divide by the root of d_model. The products of a head are sums over its "
        "own d_k numbers: take the root of d_k.",
        _layer(scale=lambda Q: (Q.shape[1] * Q.shape[-1]) ** 0.5),
    ),
    (
        "scaled-by-size",
        "You divide by d_k itself: by its root, `d_k ** 0.5`.",
        _layer(scale=lambda Q: Q.shape[-1]),
    ),
    (
        "unscaled",
        "The scores are not divided by the root of d_k.",
        _layer(scale=lambda Q: 1),
    ),
    (
        "every-third",
        "The columns of a head do not stand side by side: with `(d_k head)` the head "
        "runs fastest. W_O expects `(head d_k)`.",
        _layer(
            split="batch token (d_k head) -> batch head token d_k",
        ),
    ),
    (
        "joined-by-view",
        "The heads are joined by a view alone, which mixes up tokens and heads: "
        "exchange the head and token axes first.",
        _layer(join=lambda context: context.reshape(*context.shape[::2], -1)),
    ),
    (
        "joined-in-order",
        "You join by `(d_k head)`: W_O expects all numbers of head 0 first, then those "
        "of head 1: `(head d_k)`.",
        _layer(
            join=lambda context: rearrange(
                context, "batch head token d_k -> batch token (d_k head)"
            )
        ),
    ),
    ("mask-inverted", _INVERTED, _layer(hide=lambda mask: mask)),
    ("unmasked", "The mask is not used.", _layer(hide=None)),
    ("no-W_O", "The joined heads have still to go through W_O.", _layer(project=False)),
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


def _greedy(*, pick=max, since="all", stop=False):
    """Return an answer that takes heads out one by one, with one thing changed."""

    def answer(score, heads, loss):
        kept = list(range(heads))
        enough = score(kept) - loss
        while len(kept) > 1:
            candidates = [[j for j in kept if j != i] for i in kept]
            best = pick(candidates, key=score)
            if score(best) < enough:
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
