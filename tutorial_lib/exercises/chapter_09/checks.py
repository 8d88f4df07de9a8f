"""Checks for chapter 9: positions.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_lib.exercises.exercise import Exercise, Wrong
from tutorial_lib.exercises.probe import call_advising
from tutorial_lib.position import PositionedAttention, SinusoidalEncoding

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
    for shift in (5, 200):
        probe(shift, 8)
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
    fallback="tutorial_lib.exercises.chapter_09.solutions:rotary_grid",
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


@grid.step("as many patches as before, and as many numbers")
def _(probe):
    turned = call_advising(probe, (torch.randn(4, 8), 2, 2), GRID_ERRORS)
    probe.shape(turned, patch=4, d_k=8)


@grid.step("a turn changes no length")
def _(probe):
    x = torch.randn(4, 8)
    turned = probe(x, 2, 2)  # square, so that halves left transposed still fit
    message = (
        "A turn changes no length, but here patches come out longer or shorter. Has "
        "something been added to them, or an axis been brought forward and not back?"
    )
    kept = probe.close(turned.norm(dim=-1), x.norm(dim=-1), 1e-4)
    probe.require(kept, "not-back", message)


def _expect_products(probe, *arguments):
    """Compare what rotary is for: each half's products, wherever counting begins."""
    turned = [x.chunk(2, dim=-1) for x in (probe(*arguments), probe.oracle())]
    found, right = ([half @ half.mT for half in halves] for halves in turned)
    probe.same(right, output=found)


@grid.step("each half is turned by its own coordinate")
def _(probe):
    _expect_products(probe, torch.randn(12, 8), 3, 4)


@grid.step("with axes for batch and head in front")
def _(probe):
    try:
        _expect_products(probe, torch.randn(2, 3, 10, 12), 5, 2)
    except Wrong:
        raise Wrong(
            "fixed-axes",
            "Without axes in front it is right, with them it is not: you count axes "
            "from the front. Count them from the end: `transpose(-3, -2)`.",
        ) from None


most = Exercise(
    "9.4",
    "The most that ALiBi can give",
    tolerance=1e-3,
    hints=[
        "All weights together are 1 + r + r² + … = 1 / (1 - r), before they are "
        "divided by their sum. What is the share of the key 3 back?",
        "The share is r³ (1 - r). Where is its derivative 0?",
        "3 r² - 4 r³ = 0 gives r. The question asks for the weight, not for r.",
    ],
)


@most.spec
def most_three_back():
    """Try many slopes."""
    r = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    return (r**3 * (1 - r)).max().item()


word = Exercise(
    "9.5",
    "Word by word",
    name="read_word_by_word",
    returns="batch token d_model",
    fallback="tutorial_lib.exercises.chapter_09.solutions:read_word_by_word",
    hints=[
        "What does `encoding(word)` take the position of a single word to be? Its "
        "second argument is `start`.",
        "Go through `enumerate(x.split(1, dim=1))`, which gives (t, word). Keep the "
        "encoded words in a list; joined by `torch.cat(…, dim=1)` they are the keys "
        "and the values.",
        "The query is the encoded word alone. Nothing needs to be masked: "
        "later words are not there yet.",
    ],
)


@word.spec
def read_word_by_word(x, encoding, attention):
    """Begin anew for every word, with all words so far."""
    outputs = torch.zeros_like(x)
    for t in range(x.shape[1]):
        y = encoding(x[:, : t + 1])
        outputs[:, t] = attention(y, y, y)[:, -1]
    return outputs


def _expect_token_axis(x):
    if x.ndim != 3:
        raise ValueError(
            f"one word of every sentence is (batch, 1, d_model), got {tuple(x.shape)}: "
            "keep the token axis with x[:, t : t + 1] (x[:, t] drops it, and "
            "`for word in x` goes through the sentences)"
        )


class _CountingEncoding(SinusoidalEncoding):
    """An encoding that remembers the most words that it was given at once."""

    most = 0

    def forward(self, x, start=0):
        _expect_token_axis(x)
        self.most = max(self.most, x.shape[-2])
        return super().forward(x, start=start)


class _CountingAttention(PositionedAttention):
    """An attention layer that remembers how many words looked at once.

    ``ahead`` is how many words had been encoded at once when it was first called.
    """

    most = ahead = 0

    def forward(self, queries, keys, values, mask=None, *, causal=False):
        _expect_token_axis(queries)
        self.most = max(self.most, queries.shape[1])
        self.ahead = self.ahead or self.encoding.most
        return super().forward(queries, keys, values, mask, causal=causal)


@torch.no_grad()
def _layers():
    encoding, attention = _CountingEncoding(8, 16), _CountingAttention(8, 2)
    for weight in attention.parameters():
        weight.mul_(3)  # so that it matters where a word looks
    attention.encoding = encoding
    return encoding, attention


@word.step("one output for each word")
def _(probe):
    probe.shape(probe(torch.randn(2, 5, 8), *_layers()), batch=2, token=5, d_model=8)


@word.step("word by word gives what all at once gives")
def _(probe):
    for tokens in (6, 1):
        probe(torch.randn(2, tokens, 8), *_layers())
        probe.same()


@word.step("one word looks at a time, and is encoded once")
def _(probe):
    encoding, attention = _layers()
    probe(torch.randn(1, 6, 8), encoding, attention)
    message = (
        f"The outputs are right, but {attention.most} words looked at once. Only the "
        "new word asks, one query a call: earlier looks need not be computed again, "
        "and while a sentence is being written its later words do not exist."
    )
    probe.require(attention.most == 1, "at-once", message)
    message = (
        f"The outputs are right, but {attention.ahead} words were encoded before the "
        "first one was read. While a sentence is being written the later ones do not "
        "exist: encode each word when its turn comes."
    )
    probe.require(attention.ahead <= 1, "encoded-ahead", message)
    message = (
        "The outputs are right, but you encode earlier words again. Encode each word "
        "once, alone: `start=` tells the encoding where it stands."
    )
    probe.require(encoding.most == 1, "encoded-again", message)
