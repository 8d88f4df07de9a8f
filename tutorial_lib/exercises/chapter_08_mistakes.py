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
        "counts-swapped",
        "You cut d_model / h heads of h numbers. Cut h heads, each of d_model / h "
        "numbers that stand side by side.",
        lambda x, heads: x.unflatten(-1, (-1, heads)).transpose(1, 2),
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
        "with-bias",
        "You share the bias of W_O out among the heads. It belongs to none of them: "
        "leave it out.",
        lambda context, W_O: (
            _terms(context, W_O.weight.T) + W_O.bias / context.shape[1]
        ),
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
        "output-cut",
        "You cut the finished output into columns. A head adds to all d_model of them: "
        "cut what goes into W_O.",
        lambda context, W_O: (
            _terms(context, W_O.weight.T)
            .sum(dim=1)
            .unflatten(-1, (context.shape[1], -1))
            .transpose(1, 2)
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
