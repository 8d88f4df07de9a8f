"""Known wrong answers of chapter 9, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.position import RotaryEncoding, frequencies

ADDED = [
    (
        "not-undone",
        "You add W_p before the product, and the product with W_x then changes it. "
        "E must be such that E W_x is W_p: undo W_x.",
        lambda W_x, W_p: W_p.clone(),
    ),
    (
        "twice",
        "You multiply W_p by W_x once more. E W_x must become W_p: multiply by the "
        "inverse of W_x.",
        lambda W_x, W_p: W_p @ W_x,
    ),
    (
        "transposed",
        "The transpose undoes a matrix only where it is a rotation, and W_x is any "
        "matrix. Use the inverse.",
        lambda W_x, W_p: W_p @ W_x.T,
    ),
    (
        "divided",
        "`/` divides number by number, which is not the inverse of a product with a "
        "matrix: `torch.linalg.inv(W_x)` is.",
        lambda W_x, W_p: W_p / W_x if _square(W_p) else W_p.mT,
    ),
    (
        "divided",
        "`1 / W_x` divides number by number, which is not the inverse of a matrix: "
        "`torch.linalg.inv(W_x)` is.",
        lambda W_x, W_p: W_p @ (1 / W_x),
    ),
    (
        "wrong-side",
        "You solve W_x E = W_p, as for columns. Tokens are rows here: E W_x = W_p, so "
        "the inverse stands on the right (`left=False`).",
        lambda W_x, W_p: torch.linalg.solve(W_x, W_p) if _square(W_p) else W_p.mT,
    ),
    (
        "other-undone",
        "You undo W_p. In E W_x = W_p it is W_x that stands in the way: multiply W_p "
        "by the inverse of W_x, from the right.",
        lambda W_x, W_p: torch.linalg.inv(W_p) @ W_x if _square(W_p) else W_p.mT,
    ),
    (
        "inverse-transposed",
        "This is W_p times the inverse of W_xᵀ: leave the transpose out, or transpose "
        "W_x as well.",
        lambda W_x, W_p: W_p @ torch.linalg.inv(W_x).T,
    ),
]


def _square(matrix):
    return matrix.shape[0] == matrix.shape[1]


def _shift(*, speeds=lambda s: s, signs=(-1, 1), halves=False):
    """Return an answer that builds the turns with one thing wrong."""

    def answer(shift, d_model):
        angles = shift * speeds(frequencies(d_model))
        pairs = d_model // 2
        sine = torch.arange(pairs) if halves else torch.arange(0, d_model, 2)
        cosine = sine + (pairs if halves else 1)
        M = torch.zeros(d_model, d_model)
        M[sine, sine] = M[cosine, cosine] = angles.cos()
        M[sine, cosine] = signs[0] * angles.sin()
        M[cosine, sine] = signs[1] * angles.sin()
        return M

    return answer


SHIFT = [
    (
        "sign-lost",
        "Forward is right, but backward moves forward, too. Does the sign of the shift "
        "get lost on the way?",
        lambda shift, d_model: _shift()(abs(shift), d_model),
    ),
    (
        "backward",
        "Your matrix moves the positions the other way: the minus stands at the wrong "
        "sine. Positions are rows, so column c of M says what the new column c is "
        "made of.",
        _shift(signs=(1, -1)),
    ),
    (
        "not-a-turn",
        "Both sines of a pair have the same sign, and that is no turn: one of the two "
        "must be negative.",
        _shift(signs=(1, 1)),
    ),
    (
        "not-a-turn",
        "Both sines of a pair have the same sign, and that is no turn: only one of the "
        "two must be negative.",
        _shift(signs=(-1, -1)),
    ),
    (
        "cosines-only",
        "A turn mixes the sine and the cosine of a pair: two entries beside the "
        "diagonal are missing for each.",
        _shift(signs=(0, 0)),
    ),
    (
        "columns-moved",
        "You move the columns along, which are sines and cosines, not positions. A "
        "shift turns each pair of columns by an angle.",
        lambda shift, d_model: torch.ones(d_model - abs(shift)).diag(shift),
    ),
    (
        "shift-unused",
        "Whatever the shift, you turn by the speeds alone. An angle is speed times "
        "shift.",
        lambda shift, d_model: _shift()(1, d_model),
    ),
    (
        "too-fast",
        "Your speeds fall off half as fast as those of the chapter. They are "
        "`frequencies(d_model)`, one for each pair.",
        _shift(speeds=torch.sqrt),
    ),
    (
        "halves",
        "You put all sines in the first half of the columns and all cosines in the "
        "second. Here they alternate: pair i is columns 2i and 2i + 1.",
        _shift(halves=True),
    ),
    (
        "one-speed",
        "All pairs turn by the same angle in your matrix. Each has its own speed: "
        "`frequencies(d_model)`.",
        _shift(speeds=torch.ones_like),
    ),
    (
        "reversed",
        "The speeds are in reverse order: the first pair is the fastest.",
        _shift(speeds=lambda s: s.flip(0)),
    ),
]


def _grid(by_row, by_column, *, first="row", joined="in order"):
    """Return an answer that turns the halves by functions of (rotary, half)."""

    def answer(x, height, width):
        rotary = RotaryEncoding(x.shape[-1] // 2)
        halves = list(x.unflatten(-2, (height, width)).chunk(2, dim=-1))
        turns = [by_row, by_column] if first == "row" else [by_column, by_row]
        halves = [turn(rotary, half) for turn, half in zip(turns, halves, strict=True)]
        halves = halves if joined == "in order" else halves[::-1]
        return torch.cat(halves, dim=-1).flatten(-3, -2)

    return answer


def _along_rows(rotary, half):
    return rotary(half.transpose(-3, -2)).transpose(-3, -2)


def _along_columns(rotary, half):
    return rotary(half)


def _leave(rotary, half):
    return half


GRID = [
    (
        "columns-twice",
        "Both halves are turned by the column. `RotaryEncoding` turns along the last "
        "axis but one: for the rows, bring the height there, and back afterwards.",
        _grid(_along_columns, _along_columns),
    ),
    (
        "swapped",
        "The first half of the numbers is for the row, the second for the column: you "
        "have them the other way round.",
        _grid(_along_rows, _along_columns, first="column"),
    ),
    (
        "order",
        "Each half is turned as it should be, but they are joined in the wrong order: "
        "the numbers have changed places.",
        _grid(_along_rows, _along_columns, joined="reversed"),
    ),
    (
        "order",
        "The halves have changed places: the first half of the numbers belongs to the "
        "row, and must come out first.",
        _grid(_along_rows, _along_columns, first="column", joined="reversed"),
    ),
    (
        "rows-not-turned",
        "The first half is not turned at all, so the row plays no part.",
        _grid(_leave, _along_columns),
    ),
    (
        "columns-not-turned",
        "The second half is not turned at all, so the column plays no part.",
        _grid(_along_rows, _leave),
    ),
    (
        "one-row",
        "You turn by the number of the patch, as if all stood in one row. Then the "
        "last patch of a row and the first of the next are neighbors.",
        lambda x, height, width: RotaryEncoding(x.shape[-1])(x),
    ),
    (
        "one-row",
        "You turn both halves by the number of the patch, as if all stood in one row.",
        lambda x, height, width: torch.cat(
            [RotaryEncoding(x.shape[-1] // 2)(half) for half in x.chunk(2, dim=-1)], -1
        ),
    ),
]

GRID_ERRORS = [  # part of what Python says, code, message
    (
        "must match the size of tensor",
        "whole-rotary",
        "Each half has half of the d_k numbers, and `RotaryEncoding` wants to know how "
        "many it turns.",
    ),
    (
        "must match except in dimension",
        "half-axes",
        "Your halves no longer fit together. For the rows exchange the axes of height "
        "and width, `transpose(-3, -2)`, and exchange them back (`.mT` exchanges the "
        "last two, width and numbers).",
    ),
]
