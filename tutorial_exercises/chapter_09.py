"""Exercises of chapter 9: positional encoding."""

import math

import torch

from tutorial_exercises import Exercise
from tutorial_lib.position import PositionedAttention, SinusoidalEncoding, frequencies


@Exercise("9.1", "The matrix of a shift", axes="d_model d_model")
def shift_matrix(shift, d_model):
    """Return the matrix that moves every vector of a place by ``shift``."""
    angles = shift * frequencies(d_model)  # (pair,)
    M = torch.zeros(d_model, d_model)
    sine = torch.arange(0, d_model, 2)
    cosine = sine + 1
    M[sine, sine] = M[cosine, cosine] = angles.cos()
    M[sine, cosine] = -angles.sin()
    M[cosine, sine] = angles.sin()
    return M


@shift_matrix.oracle
def _(shift, d_model):
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = shift / 10_000 ** (i / d_model)
        M[i, i] = M[i + 1, i + 1] = math.cos(angle)
        M[i, i + 1], M[i + 1, i] = -math.sin(angle), math.sin(angle)
    return M


@shift_matrix.cases
def _():
    yield "one pair is turned", 1, 2


@shift_matrix.demand("no shift changes nothing")
def _(answer):
    answer(0, 4)
    if answer.same():
        return (
            "A shift by 0 must leave every place as it is: M must be the identity, 1 "
            "on the diagonal and 0 elsewhere."
        )


@shift_matrix.demand("every pair by its own speed, forward and backward")
def _(answer):
    for shift, d_model in ((5, 8), (200, 8), (-3, 16)):
        M, differs = answer(shift, d_model), answer.same()
        if differs and M.shape == (d_model, d_model) and moves(M, shift):
            return (
                "Your matrix moves the first places right, but it does not turn each "
                "pair. If it was solved for: slow hands hardly move, so many matrices "
                "fit a few places nearly as well. Write the 2 × 2 block of each pair "
                "instead."
            )
        if differs:
            return differs


def moves(M, shift):
    """Whether a matrix moves the vectors of twenty places by a shift, nearly."""
    table, first = SinusoidalEncoding(len(M), 300).table, max(0, -shift)
    moved = table[first : first + 20] @ M.float()
    return torch.allclose(moved, table[first + shift :][:20], atol=1e-3)


shift_matrix.hints = """
- Begin with d_model = 2: the matrix is the one of the equation in the chapter.
- The matrix of all pairs has these 2 × 2 blocks along its diagonal and zeros elsewhere.
  Which rows and columns belong to pair i?
- With `sine = torch.arange(0, d_model, 2)` and `cosine = sine + 1`, the line `M[sine,
  cosine] = -angles.sin()` fills one entry of every block.
"""

shift_matrix.mistakes = """
Forward is right, but backward moves forward, too. Does the sign of the shift get lost
on the way?
    angles = shift * frequencies → angles = abs(shift) * frequencies
Your matrix moves the places the other way: the minus stands at the wrong sine. Places
are rows, so column c of M says what the new column c is made of.
    return M → return M.T
Both sines of a pair have the same sign, and that is no turn: one of the two must be
negative.
    [sine, cosine] = -angles.sin() → [sine, cosine] = angles.sin()
Both sines of a pair have the same sign, and that is no turn: only one of the two must
be negative.
    [cosine, sine] = angles.sin() → [cosine, sine] = -angles.sin()
A turn mixes the sine and the cosine of a pair: two entries beside the diagonal are
missing for each.
    M[sine, cosine] = -angles.sin() →
    and M[cosine, sine] = angles.sin() →
You move the columns along, which are sines and cosines, not places. A shift turns each
pair of columns by an angle.
    return M → return torch.ones(d_model - abs(shift)).diag(shift)
Whatever the shift, you turn by the speeds alone. An angle is speed times shift.
    angles = shift * frequencies(d_model) → angles = frequencies(d_model)
Your speeds fall off half as fast as those of the chapter. They are
`frequencies(d_model)`, one for each pair.
    (d_model)  # → (d_model) ** 0.5  #
You put all sines in the first half of the columns and all cosines in the second. Here
they alternate: pair i is columns 2i and 2i + 1.
    0, d_model, → d_model //
    and sine + 1 → sine + d_model // 2
All pairs turn by the same angle in your matrix. Each has its own speed:
`frequencies(d_model)`.
    shift * frequencies(d_model)  # → shift * torch.ones(d_model // 2)  #
`frequencies` are radians per place, and so are the angles of `cos` and `sin`: nothing
needs to be converted.
    angles = shift * frequencies(d_model)  # (pair,) → angles = (shift * frequencies(d_model)).rad2deg()
    angles = shift * frequencies(d_model)  # (pair,) → angles = (shift * frequencies(d_model)).deg2rad()
The speeds are in reverse order: the first pair is the fastest.
    (d_model)  # → (d_model).flip(0)  #
right:
    M = torch.zeros(d_model, d_model) → turns = [[[a.cos(), -a.sin()], [a.sin(), a.cos()]] for a in angles]
        return torch.block_diag(*map(torch.tensor, turns))
"""


@Exercise("9.2", "Halves or neighbors", axes="d_model width")
def for_halves(W, num_heads):
    """Reorder the columns of W for a model that turns halves, not neighbors."""
    pairs = W.unflatten(1, (num_heads, -1, 2))  # (d_model, head, pair, 2)
    return pairs.mT.flatten(1)  # in each head, first numbers before second ones


@for_halves.oracle
def _(W, num_heads):
    moved, d_k = torch.zeros_like(W), W.shape[1] // num_heads
    for first in range(0, W.shape[1], d_k):
        for i in range(d_k // 2):
            moved[:, first + i] = W[:, first + 2 * i]
            moved[:, first + d_k // 2 + i] = W[:, first + 2 * i + 1]
    return moved


@for_halves.cases
def _():
    yield "the columns of one head", torch.randn(5, 8), 1
    yield "each head by itself", torch.randn(4, 24), 3


for_halves.hints = """
- Write down for d_k = 6 which column must come out where: 0, 2, 4, then 1, 3, 5.
- `W.unflatten(1, (num_heads, -1))` has an axis for the heads: (d_model, head, d_k).
  Every head gets the same new order, and `flatten(1)` joins them again.
- `W.unflatten(1, (num_heads, -1, 2))` is (d_model, head, pair, 2). Which two axes must
  change places, so that `flatten(1)` lists all first numbers before all second ones?
"""

for_halves.mistakes = """
The columns stand where they stood. A model that turns halves would pair column 0 with
column d_k / 2, which is the first number of another pair.
    mT.flatten(1)  # in each head, first numbers before second ones → flatten(1)
This is the way back, from halves to neighbors. Column 1 of a head, the second number of
pair 0, must come out at d_k / 2.
    (1, (num_heads, -1, 2))  # (d_model, head, pair, 2) → (1, (num_heads, 2, -1))
You take all columns as one head. Each head turns its own d_k numbers: the first numbers
of its pairs must stay within it.
    (1, (num_heads, -1, 2))  # (d_model, head, pair, 2) → (1, (1, -1, 2))
The second numbers of the pairs come first in each head, so that the hands would turn
the other way.
    flatten(1)  # in each head, first numbers before second ones → flip(2).flatten(1)
The heads have changed places with the pairs: numbers of different heads stand side by
side. Keep the axis of the heads in front.
    mT.flatten(1)  # in each head, first numbers before second ones → permute(0, 3, 2, 1).flatten(1)
The pairs come in reverse order, so that the slow hands would turn fastest.
    flatten(1)  # in each head, first numbers before second ones → flip(3).flatten(1)
You reorder rows. The rows of W meet the token; its columns are the numbers of the
queries.
    pairs = W.unflatten(1, (num_heads, -1, 2))  # (d_model, head, pair, 2) → return torch.cat([W[0::2], W[1::2]])
right:
    pairs = W.unflatten(1, (num_heads, -1, 2))  # (d_model, head, pair, 2) → parts = W.chunk(num_heads, dim=1)
    and pairs.mT.flatten(1)  # in each head, first numbers before second ones → torch.cat([part[:, i::2] for part in parts for i in (0, 1)], dim=1)
    pairs = W.unflatten(1, (num_heads, -1, 2))  # (d_model, head, pair, 2) → d_k = W.shape[1] // num_heads
    and return pairs.mT.flatten(1)  # in each head, first numbers before second ones → order = [h * d_k + i for h in range(num_heads) for i in [*range(0, d_k, 2), *range(1, d_k, 2)]]
        return W[:, order]
"""


@Exercise("9.3", "Find the twin")
def find_twin():
    """The hands come round together after 24 places, the least common multiple of 6 and
    8. So the twin lies 24 behind the right key, 27 back, and the word that looks is
    at least the 28th."""
    return {"back": 27, "words": 28}


@find_twin.oracle
def _():
    back = next(n for n in range(4, 100) if (n - 3) % 6 == (n - 3) % 8 == 0)
    return {"back": back, "words": back + 1}


find_twin.hints = """
- After which numbers of places has the first hand come round? And the second?
- Both have come round after a common multiple of 6 and 8. The smallest one is the
  distance between the right key and its twin.
- The right key is itself three back. And a key n back needs n words before the word
  that looks.
"""

find_twin.mistakes = """
After 24 places both hands have come round, but count them from the right key, which is
itself three back.
    "back": 27 → "back": 24
    and "words": 28 → "words": 25
24 places from the right key the other way, and the twin stands ahead of the word. The
question asks for the one behind.
    "back": 27 → "back": 21
    and "words": 28 → "words": 22
There the first hand has come round, and the second has not.
    "back": 27 → "back": 9
    and "words": 28 → "words": 10
There the second hand has come round, and the first has not.
    "back": 27 → "back": 11
    and "words": 28 → "words": 12
After 6 · 8 places both have come round, but not for the first time.
    "back": 27 → "back": 51
    and "words": 28 → "words": 52
    "back": 27 → "back": 48
    and "words": 28 → "words": 49
After 6 + 8 places neither hand stands where it stood. Which is the first place at which
both have come round?
    "back": 27 → "back": 17
    and "words": 28 → "words": 18
    "back": 27 → "back": 14
    and "words": 28 → "words": 15
Right so far back. Count the words again: the one that looks is a word, too.
    "words": 28 → "words": 27
Right so far back. But how long must a sentence be that has a word so far back?
    "words": 28 → "words": 20
    "words": 28 → "words": 21
"""


@Exercise("9.4", "Word by word", axes="batch token d_model")
def read_word_by_word(x, encoding, attention):
    """Return attention(y, y, y, causal=True) for y = encoding(x), word by word."""
    seen, outputs = [], []
    for t, word in enumerate(x.split(1, dim=1)):  # (batch, 1, d_model)
        seen.append(encoding(word, start=t))
        keys = torch.cat(seen, dim=1)  # (batch, key, d_model)
        outputs.append(attention(seen[-1], keys, keys))
    return torch.cat(outputs, dim=1)  # (batch, token, d_model)


@read_word_by_word.oracle
def _(x, encoding, attention):
    outputs, words = torch.zeros_like(x), []
    for t in range(x.shape[1]):
        words.append(encoding(x[:, t : t + 1], start=t)[:, 0])
        y = torch.stack(words, dim=1)
        outputs[:, t] = attention(y[:, t:], y, y)[:, 0]
    return outputs


def count(layer, tokens):
    """Note in a layer how many tokens it got; each call gets (batch, token, d_model)."""
    if tokens.ndim != 3:
        raise ValueError(
            f"one word of every sentence is (batch, 1, d_model), got "
            f"{tuple(tokens.shape)}: keep the token axis with x[:, t : t + 1] (x[:, t] "
            "drops it, and `for word in x` goes through the sentences)"
        )
    layer.counts.append(tokens.shape[1])


class CountingEncoding(SinusoidalEncoding):
    """An encoding that counts its tokens."""

    def forward(self, x, start=0):
        count(self, x)
        return super().forward(x, start=start)


class CountingAttention(PositionedAttention):
    """An attention layer that counts its queries."""

    def forward(self, queries, keys, values, mask=None, *, causal=False):
        count(self, queries)
        return super().forward(queries, keys, values, mask, causal=causal)


@torch.no_grad()
def layers():
    """Make an encoding and an attention layer that count, in a list ``counts``."""
    encoding, attention = CountingEncoding(8, 16), CountingAttention(8, 2)
    encoding.counts, attention.counts = [], []
    for weight in attention.parameters():
        weight.mul_(3)  # so that it matters where a word looks
    return encoding, attention


@read_word_by_word.cases
def _():
    label = "word by word gives what all at once gives"
    yield label, torch.randn(2, 6, 8), *layers()
    yield label, torch.randn(2, 1, 8), *layers()


@read_word_by_word.demand("one word looks at a time, and is encoded once")
def _(answer):
    encoding, attention = layers()
    answer(torch.randn(1, 6, 8), encoding, attention)
    most = max(attention.counts, default=0)
    if most > 1:
        return (
            f"The outputs are right, but {most} words looked at once. "
            "Only the new word asks, one query a call: earlier looks need not be "
            "computed again, and while a sentence is being written its later words do "
            "not exist."
        )
    first, *others = encoding.counts or [0]
    if first > 1:
        return (
            f"The outputs are right, but {first} words were encoded before "
            " the first one was read. While a sentence is being written the "
            "later ones do not exist: encode each word when its turn comes."
        )
    if max(others, default=0) > 1 or len(others) >= 2 * 6:  # for query and key
        return (
            "The outputs are right, but you encode earlier words again. Encode each "
            "word once, alone: `start=` tells the encoding where it stands."
        )


read_word_by_word.hints = """
- What does `encoding(word)` take the place of a single word to be? Its second argument
  is `start`.
- Go through `enumerate(x.split(1, dim=1))`, which gives (t, word). Keep the encoded
  words in a list; joined by `torch.cat(…, dim=1)` they are the keys and the values.
- The query is the encoded word alone. Nothing needs to be masked: later words are not
  there yet.
"""

read_word_by_word.mistakes = """
Every word is encoded as the first one: an encoding that gets a single word takes it to
stand at place 0. Tell it where it stands: `start=`.
    word, start=t → word
Every word stands one place too far: the first one stands at place 0.
    (encoding(word, start=t)) → (encoding(word, start=t + 1))
The words go into the attention without places.
    encoding(word, start=t) → word
Keys and values are encoded, the query is not: it needs its place too.
    seen[-1] → word
Keys and values stand at their places, but every query is encoded as the first word: an
encoding that gets a single word needs `start=`.
    seen[-1] → encoding(word)
A word does not look at itself in your code: its own key and value belong to those it
looks at.
    keys = torch.cat(seen, dim=1)  # → keys = torch.cat(seen[:t] or seen, dim=1)  #
The query is encoded, keys and values are not: keep the encoded words.
    torch.cat(seen, dim=1) → x[:, : t + 1]
Each word looks at itself only. Keep the encoded words, and give all of them as keys and
values.
    keys, keys → seen[-1], seen[-1]
Each word looks at the later ones too. Word t may see words 0 to t.
    seen, outputs = [], [] → …
        y = encoding(x)
        return attention(y, y, y)
"""


@Exercise("9.5", "Stretch only the slow hands", axes="pair")
def stretched(speeds, tokens, factor):
    """Slow the hands that made no whole turn in so many tokens by the factor."""
    is_slow = speeds * tokens < 2 * torch.pi  # (pair,)
    return torch.where(is_slow, speeds / factor, speeds)


@stretched.oracle
def _(speeds, tokens, factor):
    changed = speeds.clone()
    for i, speed in enumerate(speeds.tolist()):
        if speed * tokens < 2 * math.pi:
            changed[i] = speed / factor
    return changed


@stretched.cases
def _():
    speeds = torch.tensor([1.0, 0.61, 0.38, 0.32, 0.31, 0.12, 0.07, 0.01])
    yield "slow hands are slowed, fast ones are not", speeds, 20, 3
    label = "for other lengths and factors"
    yield label, torch.tensor([1.0, 0.1, 0.01, 0.001]), 4096, 8


stretched.hints = """
- How far does a hand turn in `tokens` places? A whole turn is 2π radians.
- A hand is slow if speed · tokens is less than 2π. `torch.where(condition, a, b)` takes
  a where the condition is true, and b elsewhere.
- A slow hand turns `factor` times more slowly: its speed is divided.
"""

stretched.mistakes = """
You slow all hands. Then three places are as far apart as one was before, and what the
model looks for by its place is lost: keep the fast hands.
    torch.where(is_slow, speeds / factor, speeds) → speeds / factor
You slow the fast hands and keep the slow ones: it is the other way round.
    speeds / factor, speeds → speeds, speeds / factor
A slow hand shall turn `factor` times more slowly, and yours turns faster: divide.
    speeds / factor → speeds * factor
A whole turn is 2π radians, not 1.
    2 * torch.pi  # (pair,) → 1
A whole turn is 2π radians: π is half of it.
    2 * torch.pi  # (pair,) → torch.pi
Count the turns within the `tokens` places of training, not within the stretched length:
what training has shown is what counts.
    tokens < 2 * torch.pi  # (pair,) → tokens * factor < 2 * torch.pi
You stop the slow hands. They turn on, `factor` times more slowly.
    speeds / factor → 0 * speeds
No hand has another speed than before.
    return torch.where(is_slow, speeds / factor, speeds) → return speeds.clone()
right:
    return torch.where(is_slow, speeds / factor, speeds) → return speeds / (1 + (factor - 1) * is_slow)
    is_slow = speeds * tokens < 2 * torch.pi  # (pair,) → turns = tokens * speeds / (2 * torch.pi)
    and .where(is_slow, speeds / factor, speeds) → .stack([s if n >= 1 else s / factor for s, n in zip(speeds, turns)])
"""
