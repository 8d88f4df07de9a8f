"""Checks for chapter 9: positions.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from .chapter_09_mistakes import ADDED, GRID, GRID_ERRORS, SHIFT
from .chapter_09_most import most
from .chapter_09_word import word
from .exercise import Exercise, Wrong
from .expecting import call_advising

__all__ = ["added", "grid", "most", "shift", "word"]

added = Exercise(
    "9.1",
    "Add instead of append",
    name="table_to_add",
    returns="token d_model",
    tolerance=1e-4,
    hints=[
        "Both sides have x W_x. What is left on each?",
        "E W_x = W_p. Which matrix, multiplied from the right, takes W_x away?",
        "`torch.linalg.inv(W_x)` is the inverse; `torch.linalg.solve(W_x, W_p, "
        "left=False)` does the same without computing it.",
    ],
)


@added.spec
def table_to_add(W_x, W_p):
    """Solve for each place's row in turn, by Cramer's rule."""
    E = torch.zeros_like(W_p)
    for t, row in enumerate(W_p):
        for i in range(len(W_x)):
            changed = W_x.clone()
            changed[i] = row
            E[t, i] = torch.linalg.det(changed) / torch.linalg.det(W_x)
    return E


for code, message, answer in ADDED:
    added.misconception(code, message)(answer)


def _invertible(d_model):
    """Return a random matrix that is far from having no inverse."""
    return torch.randn(d_model, d_model) + 3 * torch.eye(d_model)


@added.step("a vector for each place")
def _(probe):
    probe.shape(probe(_invertible(4), torch.randn(4, 4)), token=4, d_model=4)


@added.step("added before the product, it does what the place does")
def _(probe):
    probe(_invertible(4), torch.randn(4, 4))
    probe.same()


@added.step("for any number of places")
def _(probe):
    probe(_invertible(3), torch.randn(5, 3))
    probe.same()


shift = Exercise(
    "9.2",
    "The matrix of a shift",
    name="shift_matrix",
    returns="d_model d_model",
    hints=[
        "Begin with d_model = 2: the matrix is the one of the equation in the chapter.",
        "The matrix of all pairs has these 2 × 2 blocks along its diagonal and zeros "
        "elsewhere. Which rows and columns belong to pair i?",
        "With `sine = torch.arange(0, d_model, 2)` and `cosine = sine + 1`, the line "
        "`M[sine, cosine] = -angles.sin()` fills one entry of every block.",
    ],
)


@shift.spec
def shift_matrix(shift, d_model):
    """Write the four numbers of each pair."""
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = shift / 10_000 ** (i / d_model)
        M[i, i] = M[i + 1, i + 1] = math.cos(angle)
        M[i, i + 1], M[i + 1, i] = -math.sin(angle), math.sin(angle)
    return M


for code, message, answer in SHIFT:
    shift.misconception(code, message)(answer)


@shift.step("a square matrix")
def _(probe):
    probe.shape(probe(1, 6), d_model=6, row=6)


@shift.step("no shift changes nothing")
def _(probe):
    M = probe(0, 4)
    message = (
        "A shift by 0 must leave every position as it is: M must be the identity, 1 "
        "on the diagonal and 0 elsewhere."
    )
    probe.require(probe.close(M, torch.eye(4)), "leftover", message)


@shift.step("one pair is turned")
def _(probe):
    probe(1, 2)
    probe.same()


@shift.step("every pair by its own speed")
def _(probe):
    probe(5, 8)
    probe.same()


@shift.step("backward as well")
def _(probe):
    probe(-3, 16)
    probe.same()


grid = Exercise(
    "9.3",
    "Rotary for pictures",
    name="rotary_grid",
    returns="… patch d_k",
    fallback="tutorial_lib.exercises.solutions.chapter_09:rotary_grid",
    hints=[
        "After `unflatten` the axes are (…, height, width, numbers): `rotary` turns "
        "along the width. For which half is that right as it stands?",
        "For the other half, bring the height to the last place but one, turn, and "
        "bring it back: `transpose(-3, -2)` does both, once before and once after. "
        "Each half has `x.shape[-1] // 2` numbers, so `RotaryEncoding` gets that.",
        "Join the halves with `torch.cat((by_row, by_column), dim=-1)`, and the rows "
        "into one row of patches with `flatten(-3, -2)`.",
    ],
)


@grid.spec
def rotary_grid(x, height, width):
    """Turn pair after pair of patch after patch."""
    turned, half = x.clone(), x.shape[-1] // 2
    for patch in range(height * width):
        for i in range(0, x.shape[-1], 2):
            position = patch // width if i < half else patch % width
            angle = position / 10_000 ** ((i % half) / half)
            sin, cos = math.sin(angle), math.cos(angle)
            first, second = x[..., patch, i], x[..., patch, i + 1]
            turned[..., patch, i] = first * cos - second * sin
            turned[..., patch, i + 1] = first * sin + second * cos
    return turned


for code, message, answer in GRID:
    grid.misconception(code, message)(answer)


@grid.step("as many patches as before, and as many numbers")
def _(probe):
    turned = call_advising(probe, (torch.randn(4, 8), 2, 2), GRID_ERRORS)
    probe.shape(turned, patch=4, d_k=8)


@grid.step("a turn changes no length")
def _(probe):
    x = torch.randn(4, 8)
    turned = probe(x, 2, 2)  # square, so that halves left transposed still fit
    message = (
        "A turn changes no length, but here patches come out longer or shorter: their "
        "halves have been mixed. If you brought an axis forward, bring it back."
    )
    kept = probe.close(turned.norm(dim=-1), x.norm(dim=-1), 1e-4)
    probe.require(kept, "not-back", message)


@grid.step("each half is turned by its own coordinate")
def _(probe):
    probe(torch.randn(12, 8), 3, 4)
    probe.same()


@grid.step("with axes for batch and head in front")
def _(probe):
    try:
        probe(torch.randn(2, 3, 10, 12), 5, 2)
        probe.same()
    except Wrong:
        raise Wrong(
            "fixed-axes",
            "Without axes in front it is right, with them it is not: you count axes "
            "from the front. Count them from the end: `transpose(-3, -2)`.",
        ) from None
