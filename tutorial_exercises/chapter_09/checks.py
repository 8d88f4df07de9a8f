"""Checks for chapter 9: positions.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise
from tutorial_lib.position import PositionedAttention, SinusoidalEncoding

shift = Exercise(
    "9.1",
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
        "A shift by 0 must leave every place as it is: M must be the identity, 1 "
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
        _expect_blocks(probe, shift, 8)


@shift.step("backward as well")
def _(probe):
    _expect_blocks(probe, -3, 16)


def _expect_blocks(probe, shift, d_model):
    """Expect the oracle's matrix, not one that only does the same to some places."""
    M, first = probe(shift, d_model), max(0, -shift)
    table = SinusoidalEncoding(d_model, 300).table
    right, moved = table[first + shift :][:20], table[first : first + 20] @ M
    message = (
        "Your matrix moves the first places right, but it does not turn each pair. "
        "If it was solved for: slow hands hardly move, so many matrices fit a few "
        "places nearly as well. Write the 2 × 2 block of each pair instead."
    )
    fits = probe.close(moved, right, 1e-3) and not probe.close(M, probe.oracle())
    probe.require(not fits, "solved", message)
    probe.same()


halves = Exercise(
    "9.2",
    "Halves or neighbors",
    name="for_halves",
    returns="d_model width",
    hints=[
        "Write down for d_k = 6 which column must come out where: 0, 2, 4, then 1, 3, "
        "5.",
        "`W.unflatten(1, (num_heads, -1))` has an axis for the heads: (d_model, head, "
        "d_k). Every head gets the same new order, and `flatten(1)` joins them again.",
        "`W.unflatten(1, (num_heads, -1, 2))` is (d_model, head, pair, 2). Which two "
        "axes must change places, so that `flatten(1)` lists all first numbers before "
        "all second ones?",
    ],
)


@halves.spec
def for_halves(W, num_heads):
    """Move column by column."""
    moved, d_k = torch.zeros_like(W), W.shape[1] // num_heads
    for head in range(num_heads):
        for i in range(d_k // 2):
            first = head * d_k
            moved[:, first + i] = W[:, first + 2 * i]
            moved[:, first + d_k // 2 + i] = W[:, first + 2 * i + 1]
    return moved


@halves.step("as many columns as before")
def _(probe):
    probe.shape(probe(torch.randn(5, 8), 1), d_model=5, width=8)


@halves.step("the columns of one head")
def _(probe):
    probe(torch.randn(5, 8), 1)
    probe.same()


@halves.step("each head by itself")
def _(probe):
    probe(torch.randn(4, 24), 3)
    probe.same()


twin = Exercise(
    "9.3",
    "Find the twin",
    hints=[
        "After which numbers of places has the first hand come round? And the second?",
        "Both have come round after a common multiple of 6 and 8. The smallest one is "
        "the distance between the right key and its twin.",
        "The right key is itself three back. And a key n back needs n words before the "
        "word that looks.",
    ],
)


@twin.spec
def find_twin():
    """Walk back until both hands stand as they do at three back."""
    back = next(n for n in range(4, 100) if (n - 3) % 6 == (n - 3) % 8 == 0)
    return {"back": back, "words": back + 1}


word = Exercise(
    "9.4",
    "Word by word",
    name="read_word_by_word",
    returns="batch token d_model",
    fallback="tutorial_exercises.chapter_09.solutions:read_word_by_word",
    hints=[
        "What does `encoding(word)` take the place of a single word to be? Its "
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
    """An encoding that remembers how many words it got, at once at most and in all."""

    most = total = 0

    def forward(self, x, start=0):
        _expect_token_axis(x)
        self.most = max(self.most, x.shape[-2])
        self.total += x.shape[-2]
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
    alone = encoding.most == 1 and encoding.total <= 2 * 6  # for query, and for key
    probe.require(alone, "encoded-again", message)


slow = Exercise(
    "9.5",
    "Stretch only the slow hands",
    name="stretched",
    returns="pair",
    hints=[
        "How far does a hand turn in `tokens` places? A whole turn is 2π radians.",
        "A hand is slow if speed · tokens is less than 2π. `torch.where(condition, a, "
        "b)` takes a where the condition is true, and b elsewhere.",
        "A slow hand turns `factor` times more slowly: its speed is divided.",
    ],
)


@slow.spec
def stretched(speeds, tokens, factor):
    """Ask each hand whether it has come round."""
    changed = speeds.clone()
    for i, speed in enumerate(speeds.tolist()):
        if speed * tokens < 2 * math.pi:
            changed[i] = speed / factor
    return changed


@slow.step("one speed for each hand")
def _(probe):
    probe.shape(probe(torch.tensor([1.0, 0.5, 0.01]), 20, 3), pair=3)


@slow.step("slow hands are slowed, fast ones are not")
def _(probe):
    probe(torch.tensor([1.0, 0.61, 0.38, 0.32, 0.31, 0.12, 0.07, 0.01]), 20, 3)
    probe.same()


@slow.step("for other lengths and factors")
def _(probe):
    probe(torch.tensor([1.0, 0.1, 0.01, 0.001]), 4096, 8)
    probe.same()
