"""Known wrong answers of chapter 7, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.attention import masked_softmax


def _attend(
    *,
    scale=lambda x, K: K.shape[-1] ** 0.5,
    softmax=masked_softmax,
    read=lambda x, K, V: V,
    ask=lambda x, Q, K: (Q, K),
):
    """Return an answer with one thing changed."""

    def answer(x, W_Q, W_K, W_V, mask=None):
        Q, K, V = x @ W_Q, x @ W_K, x @ W_V
        first, second = ask(x, Q, K)
        scores = first @ second.transpose(-2, -1) / scale(x, K)
        return softmax(scores, mask) @ read(x, K, V)

    return answer


def _inverted(scores, mask):
    return masked_softmax(scores, None if mask is None else ~mask)


def _after(scores, mask):
    weights = scores.softmax(dim=-1)
    return weights if mask is None else weights * mask


def _very_low(scores, mask):
    hidden = scores if mask is None else scores.masked_fill(~mask, -1e9)
    return hidden.softmax(dim=-1)


SELF = [
    (
        "unscaled",
        "The scores are not divided by √d_k.",
        _attend(scale=lambda x, K: 1),
    ),
    (
        "scaled-by-model",
        "You divide by √d_model. A query and a key have d_k numbers, the columns of "
        "W_K: divide by √d_k.",
        _attend(scale=lambda x, K: x.shape[-1] ** 0.5),
    ),
    (
        "scaled-by-size",
        "You divide by d_k. Divide by its root.",
        _attend(scale=lambda x, K: K.shape[-1]),
    ),
    (
        "reads-tokens",
        "The weights average the tokens x. Average the values, x W_V.",
        _attend(read=lambda x, K, V: x),
    ),
    (
        "reads-keys",
        "The weights average the keys. Average the values, x W_V.",
        _attend(read=lambda x, K, V: K),
    ),
    (
        "swapped",
        "Queries and keys are swapped: row i of the scores belongs to query i, so it "
        "is Q Kᵀ and not K Qᵀ.",
        _attend(ask=lambda x, Q, K: (K, Q)),
    ),
    (
        "symmetric",
        "Queries and keys come from the same matrix. The queries are x W_Q, the keys "
        "x W_K.",
        _attend(ask=lambda x, Q, K: (K, K)),
    ),
    (
        "wrong-axis",
        "The softmax runs over the queries. Each query shares out its attention over "
        "the keys: `dim=-1`.",
        _attend(softmax=lambda scores, mask: scores.softmax(dim=-2)),
    ),
    (
        "unmasked",
        "The mask is not used: `masked_softmax(scores, mask)`.",
        _attend(softmax=lambda scores, mask: scores.softmax(dim=-1)),
    ),
    (
        "mask-inverted",
        "The mask is the wrong way round: `True` means that a token may look.",
        _attend(softmax=_inverted),
    ),
    (
        "mask-after",
        "You mask after the softmax, so that the rows no longer sum to 1. Mask the "
        "scores (chapter 4).",
        _attend(softmax=_after),
    ),
    (
        "reads-all",
        "A token that may look at nothing reads the mean of all values here, as −1e9 "
        "is the same score for all. `masked_softmax` gives it weights of 0.",
        _attend(softmax=_very_low),
    ),
]

_TURN = (
    "For the scores turn the last two axes of K around: `K.mT`. `K.T` turns the batch "
    "around, too."
)
SELF_ERRORS = [  # (part of the error, code, message)
    (
        "cannot be multiplied",
        "matrix-side",
        "The matrices multiply from the right, as they are: `x @ W_Q`. Only PyTorch's "
        "`nn.Linear` keeps its matrix transposed.",
    ),
    *[(part, "transpose", _TURN) for part in ("batch2 tensor", "must match the size")],
]


def _ones(x, mask):
    tokens = x.shape[1]
    return torch.ones(tokens, tokens) if mask is None else mask.float()


def _by_columns(x, W_V, mask=None):
    table = _ones(x, mask)
    return (table / table.sum(dim=0)) @ (x @ W_V)


BLIND = [
    (
        "sum",
        "You add the values up. Equal weights sum to 1, so it is their mean.",
        lambda x, W_V, mask=None: _ones(x, mask) @ (x @ W_V),
    ),
    (
        "token-wise",
        "Every token reads only itself here. With equal scores it reads all tokens "
        "alike.",
        lambda x, W_V, mask=None: x @ W_V,
    ),
    (
        "unmasked",
        "The mask is not used: hidden tokens are averaged, too.",
        lambda x, W_V, mask=None: _ones(x, None) @ (x @ W_V) / x.shape[1],
    ),
    (
        "divided-by-all",
        "You divide by the number of all tokens. Divide by the number of those that "
        "the query may look at.",
        lambda x, W_V, mask=None: _ones(x, mask) @ (x @ W_V) / x.shape[1],
    ),
    (
        "columns",
        "You divide each column by its sum. The weights of a query are a row: sum "
        "over `dim=-1`, and keep that axis (`keepdim=True`).",
        _by_columns,
    ),
    (
        "zero-weights",
        "You return 0. Scores of 0 are not weights of 0: softmax makes all weights of "
        "a row alike, and they sum to 1.",
        lambda x, W_V, mask=None: torch.zeros(*x.shape[:2], W_V.shape[1]),
    ),
]


def _heard(*, table=lambda reads, eye: reads | eye, count=lambda layers, n: layers):
    """Return an answer that passes on along another table, or at other times."""

    def answer(reads, layers):
        eye = torch.eye(len(reads), dtype=torch.bool)
        one, known = table(reads, eye).float(), eye.float()
        for _ in range(count(layers, len(reads))):
            known = (one @ known > 0).float()
        return known.bool()

    return answer


HEARD = [
    (
        "forgets",
        "A node that does not read from itself forgets what it knew. The layer's "
        "output is added to what came in: give the table a diagonal, "
        "`reads | torch.eye(...).bool()`.",
        _heard(table=lambda reads, eye: reads),
    ),
    (
        "transposed",
        "The arrows run the wrong way: row i of `reads` says what node i reads FROM.",
        _heard(table=lambda reads, eye: reads.T | eye),
    ),
    (
        "all-layers",
        "News goes further than one step a layer: you pass on until nothing changes, "
        "or write into the table that the same layer still reads. Make each layer's "
        "table from the one before.",
        _heard(count=lambda layers, n: n),
    ),
    (
        "doubled",
        "You multiply the table by itself, so that the steps double with each layer: "
        "1, 2, 4, 8. A layer adds one step: multiply by the table of one layer.",
        _heard(count=lambda layers, n: 2 ** (layers - 1)),
    ),
    (
        "one-layer",
        "That is one layer, however many there are.",
        _heard(count=lambda layers, n: 1),
    ),
    (
        "one-less",
        "That is one layer too few. Begin with the identity: before the first layer "
        "every node knows itself.",
        _heard(count=lambda layers, n: layers - 1),
    ),
    (
        "one-more",
        "That is one layer too many. Begin with the identity: before the first layer "
        "every node knows itself alone.",
        _heard(count=lambda layers, n: layers + 1),
    ),
]

BOOLEANS = [  # what Python says, code, message
    (
        "'Bool'",
        "boolean-product",
        "Booleans have no matrix product. Turn the table into numbers first: "
        "`.float()`. If the result shall be boolean, ask which entries are `> 0`.",
    )
]
