"""Exercises of chapter 9: positional encoding."""

import math

import torch

from tutorial_exercises import Exercise
from tutorial_lib.position import SinusoidalEncoding, frequencies


@Exercise("9.1", "The matrix of a shift", axes="d_model d_model")
def shift_matrix(shift, d_model):
    """Return the matrix that moves each position's encoding on by ``shift``."""
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
        M[i, i + 1] = -math.sin(angle)
        M[i + 1, i] = math.sin(angle)
    return M


@shift_matrix.cases
def _():
    yield "one pair is rotated", 1, 2


@shift_matrix.demand("a shift by 0 changes nothing")
def _(answer):
    answer(0, 4)
    if answer.same():
        return "A shift by 0 moves no encoding, so M must be the identity matrix."


@shift_matrix.demand("every pair is rotated by its own angle, forward and backward")
def _(answer):
    for shift, d_model in ((5, 8), (200, 8), (-3, 16)):
        M = answer(shift, d_model)
        differs = answer.same()
        if differs and M.shape == (d_model, d_model) and moves(M, shift):
            return (
                "Your matrix shifts the first positions nearly right, but it does not "
                "rotate each pair. Did you solve for it? Many matrices fit a few "
                "positions nearly as well: write the 2 × 2 block of each pair instead."
            )
        if differs:
            return differs


def moves(M, shift):
    """Whether a matrix shifts the encodings of twenty positions, nearly."""
    table = SinusoidalEncoding(len(M), 300).table
    first = max(0, -shift)
    moved = table[first : first + 20] @ M.float()
    return torch.allclose(moved, table[first + shift :][:20], atol=1e-3)


shift_matrix.hints = """
- Begin with d_model = 2: the matrix is the one in equation 9.2.
- The matrix of all pairs has these 2 × 2 blocks along its diagonal and zeros
  elsewhere. Which rows and columns belong to pair i?
- With `sine = torch.arange(0, d_model, 2)` and `cosine = sine + 1`, the line `M[sine,
  cosine] = -angles.sin()` fills one entry of every block.
"""

shift_matrix.mistakes = """
A shift forward is right, but a shift backward goes forward, too: mind the sign.
    shift * frequencies(d_model) → abs(shift) * frequencies(d_model)
Your matrix shifts in the other direction: the minus stands at the wrong sine. Encodings
are rows, so column c of M says what the new column c is made of.
    return M → return M.T
Both sines of a pair are positive, and that is no rotation: one must be negative.
    [sine, cosine] = -angles.sin() → [sine, cosine] = angles.sin()
Both sines of a pair are negative, and that is no rotation: one must be positive.
    [cosine, sine] = angles.sin() → [cosine, sine] = -angles.sin()
A rotation mixes both columns of a pair: two entries beside the diagonal are missing.
    M[sine, cosine] = -angles.sin() →
    and M[cosine, sine] = angles.sin() →
You move the columns along, which are sines and cosines, not positions. A shift rotates
each pair of columns by an angle.
    return M → return torch.ones(d_model - abs(shift)).diag(shift)
You rotate by the frequencies alone. An angle is frequency times shift.
    shift * frequencies(d_model) → frequencies(d_model)
Your frequencies fall off half as fast as the chapter's, `frequencies(d_model)`.
    frequencies(d_model) → … ** 0.5
You put all sines in the first half of the columns and all cosines in the second. Here
they alternate: pair i is columns 2i and 2i + 1.
    0, d_model, → d_model //
    and sine + 1 → sine + d_model // 2
You rotate all pairs by the same angle. Each has its own of `frequencies(d_model)`.
    frequencies(d_model) → torch.ones(d_model // 2)
You convert between degrees and radians. `frequencies`, `cos` and `sin` all use radians.
    frequencies(d_model) → ….rad2deg()
    frequencies(d_model) → ….deg2rad()
Your frequencies are in reverse order: the first pair has the highest.
    frequencies(d_model) → ….flip(0)
right:
    M = torch.zeros(d_model, d_model) → turns = [[[a.cos(), -a.sin()], [a.sin(), a.cos()]] for a in angles]
        return torch.block_diag(*map(torch.tensor, turns))
"""


@Exercise("9.2", "Halves or neighbors", axes="d_model width")
def for_halves(W, num_heads):
    """Reorder the columns of W for a model that rotates halves, not neighbors."""
    pairs = W.unflatten(1, (num_heads, -1, 2))  # (d_model, head, pair, 2)
    return pairs.mT.flatten(1)  # in each head, first entries before second ones


@for_halves.oracle
def _(W, num_heads):
    moved = torch.zeros_like(W)
    d_k = W.shape[1] // num_heads
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
- `W.unflatten(1, (num_heads, -1, 2))` is (d_model, head, pair, 2). Which two axes
  must be swapped, so that `flatten(1)` lists all first entries before all second
  ones?
"""

for_halves.mistakes = """
The columns are where they were. A model that rotates halves would pair column 0 with
column d_k / 2, which is the first entry of another pair.
    pairs.mT.flatten(1) → pairs.flatten(1)
This is the way back, from halves to neighbors: column 1 of a head must go to d_k / 2.
    (1, (num_heads, -1, 2)) → (1, (num_heads, 2, -1))
You treat all columns as one head. Reorder the d_k columns of each head by themselves.
    (1, (num_heads, -1, 2)) → (1, (1, -1, 2))
The second entries of the pairs come first, so every rotation would go the other way.
    .flatten(1) → .flip(2).flatten(1)
You mix the entries of different heads: keep the head axis in front of the pair axis.
    pairs.mT.flatten(1) → pairs.permute(0, 3, 2, 1).flatten(1)
The pairs come in reverse order, so each would be rotated by another's frequency.
    .flatten(1) → .flip(3).flatten(1)
You reorder rows, which belong to the token's dimensions. Columns are the queries'.
    pairs = W.unflatten(1, (num_heads, -1, 2)) → return torch.cat([W[0::2], W[1::2]])
right:
    pairs = W.unflatten(1, (num_heads, -1, 2)) → parts = W.chunk(num_heads, dim=1)
    and pairs.mT.flatten(1) → torch.cat([part[:, i::2] for part in parts for i in (0, 1)], dim=1)
    pairs = W.unflatten(1, (num_heads, -1, 2)) → d_k = W.shape[1] // num_heads
    and return pairs.mT.flatten(1) → order = [h * d_k + i for h in range(num_heads) for i in [*range(0, d_k, 2), *range(1, d_k, 2)]]
        return W[:, order]
"""


@Exercise("9.3", "When two pairs repeat together")
def next_match():
    """Both angles repeat together after 24 positions, the least common multiple of 6 and
    8. So the next match is 24 positions before the correct key, 27 tokens back, and the
    query is at least the 28th token."""
    return {"back": 27, "tokens": 28}


@next_match.oracle
def _():
    back = next(n for n in range(4, 100) if (n - 3) % 6 == (n - 3) % 8 == 0)
    return {"back": back, "tokens": back + 1}


next_match.hints = """
- List the distances at which the angle of the first pair repeats. And of the second?
- Both angles repeat after a common multiple of 6 and 8. The smallest one is the
  distance between the correct key and the next match.
- The correct key is itself three tokens back. And for a key n tokens back there must
  be n tokens before the query.
"""

next_match.mistakes = """
After 24 positions both angles repeat, but count them from the correct key, which is
itself three tokens back.
    "back": 27 → "back": 24
    and "tokens": 28 → "tokens": 25
You go 24 positions from the correct key in the other direction, so that the match lies
ahead of the query. The question asks for the one behind.
    "back": 27 → "back": 21
    and "tokens": 28 → "tokens": 22
At that distance only the angle of the first pair repeats.
    "back": 27 → "back": 9
    and "tokens": 28 → "tokens": 10
At that distance only the angle of the second pair repeats.
    "back": 27 → "back": 11
    and "tokens": 28 → "tokens": 12
After 6 · 8 positions both angles repeat, but not for the first time.
    "back": 27 → "back": 51
    and "tokens": 28 → "tokens": 52
    "back": 27 → "back": 48
    and "tokens": 28 → "tokens": 49
After 6 + 8 positions neither angle repeats. After how many do both?
    "back": 27 → "back": 17
    and "tokens": 28 → "tokens": 18
    "back": 27 → "back": 14
    and "tokens": 28 → "tokens": 15
Count the tokens again: the query is a token, too.
    "tokens": 28 → "tokens": 27
How long must a sequence be if its last token has a key so far back?
    "tokens": 28 → "tokens": 20
    "tokens": 28 → "tokens": 21
"""


@Exercise("9.4", "RoPE with a KV cache", axes="batch token d_k")
def attend_with_cache(queries, keys, values, rope):
    """Return causal attention with RoPE, computed token by token."""
    cached, outputs = [], []
    for t in range(queries.shape[1]):
        position = torch.tensor([t])
        query = rope(queries[:, t : t + 1], position)  # (batch, 1, d_k)
        cached.append(rope(keys[:, t : t + 1], position))
        rotated = torch.cat(cached, dim=1)  # (batch, key, d_k)
        scores = query @ rotated.mT / queries.shape[-1] ** 0.5  # (batch, 1, key)
        outputs.append(scores.softmax(dim=-1) @ values[:, : t + 1])
    return torch.cat(outputs, dim=1)  # (batch, token, d_k)


@attend_with_cache.oracle
def _(queries, keys, values, rope):
    outputs = torch.zeros_like(values)
    rotated = []
    for t in range(queries.shape[1]):
        query = rope(queries[:, t : t + 1], torch.tensor([t]))[:, 0]
        rotated.append(rope(keys[:, t : t + 1], torch.tensor([t]))[:, 0])
        scores = torch.stack([(query * key).sum(dim=-1) for key in rotated], dim=-1)
        weights = (scores / math.sqrt(queries.shape[2])).softmax(dim=-1)
        for j in range(t + 1):
            outputs[:, t] += weights[:, j, None] * values[:, j]
    return outputs


class Rope(torch.nn.Module):
    """Rotate (batch, token, d_k) to positions (token,); count the tokens of a call."""

    def __init__(self):
        super().__init__()
        self.counts = []

    def forward(self, x, positions):
        if x.ndim != 3:
            raise ValueError(
                f"one token of every sequence is (batch, 1, d_k), got "
                f"{tuple(x.shape)}: keep the token axis with queries[:, t : t + 1] "
                "(queries[:, t] drops it)"
            )
        if positions.shape != x.shape[1:2]:
            raise ValueError(
                f"{x.shape[1]} tokens need a tensor of as many positions, got "
                f"{tuple(positions.shape)}: use torch.tensor([t]) for one token"
            )
        self.counts.append(x.shape[1])
        angles = positions[:, None] * frequencies(x.shape[-1])  # (token, pair)
        cos, sin = angles.cos(), angles.sin()
        first, second = x[..., 0::2], x[..., 1::2]
        pairs = (first * cos - second * sin, first * sin + second * cos)
        return torch.stack(pairs, dim=-1).flatten(-2)


@attend_with_cache.cases
def _():
    label = "the same outputs as for all tokens at once"
    yield label, *(2 * torch.randn(3, 2, 6, 8)), Rope()
    yield label, *torch.randn(3, 2, 1, 8), Rope()


@attend_with_cache.demand("each query and each key is rotated once")
def _(answer):
    rope = Rope()
    answer(*torch.randn(3, 1, 6, 8), rope)
    if max(rope.counts, default=0) > 1:
        return (
            f"The outputs are right, but a call of rope got {max(rope.counts)} tokens. "
            "Give it one: the later tokens do not exist while a text is generated, and "
            "the earlier keys are in the cache, rotated."
        )
    if len(rope.counts) > 2 * 6:  # a query and a key for each token
        return (
            "The outputs are right, but you rotate earlier tokens again. A key keeps "
            "its position: rotate it once, and keep the rotated key in the cache."
        )


attend_with_cache.hints = """
- Token t has position t. `rope(queries[:, t : t + 1], torch.tensor([t]))` is its
  rotated query, (batch, 1, d_k).
- Keep a list of rotated keys, and append one in each step. Joined by `torch.cat(…,
  dim=1)` they are all keys up to token t. Values are not rotated.
- No mask is needed: later keys are not there yet. The scores of step t are (batch, 1,
  t + 1), and the values `values[:, : t + 1]`.
"""

attend_with_cache.mistakes = """
Every token is rotated to position 0, so nothing is rotated. Token t has position t.
    torch.tensor([t]) → torch.tensor([0])
The keys are rotated, the queries are not: their positions count, too.
    rope(queries[:, t : t + 1], position) → queries[:, t : t + 1]
The queries are rotated, the keys are not: rotate each before it goes into the cache.
    rope(keys[:, t : t + 1], position) → keys[:, t : t + 1]
You rotate the values, too. RoPE is applied to queries and keys only.
    @ values[:, : t + 1] → @ rope(values[:, : t + 1], torch.arange(t + 1))
A token does not attend to itself in your code: its own key and value are missing.
    torch.cat(cached, dim=1) → torch.cat(cached[:t] or cached, dim=1)
    and @ values[:, : t + 1] → @ values[:, : max(t, 1)]
Each token attends to itself only. Keep the rotated keys of the earlier tokens.
    torch.cat(cached, dim=1) → cached[-1]
    and @ values[:, : t + 1] → @ values[:, t : t + 1]
Each token attends to the later ones, too. Token t may attend to tokens 0 to t.
    cached, outputs = [], [] → positions = torch.arange(queries.shape[1])
        scores = rope(queries, positions) @ rope(keys, positions).mT
        return (scores / queries.shape[-1] ** 0.5).softmax(dim=-1) @ values
The scores are not divided by the square root of d_k.
    / queries.shape[-1] ** 0.5 →
You divide the scores by d_k, not by its square root.
    queries.shape[-1] ** 0.5 → queries.shape[-1]
The scores need a softmax: they are no weights yet.
    scores.softmax(dim=-1) → scores
The softmax goes over the keys, the last axis.
    softmax(dim=-1) → softmax(dim=1)
right:
    cached, outputs = [], [] → keys = list(keys.unbind(1))
        outputs = []
    and cached.append(rope(keys[:, t : t + 1], position)) → keys[t] = rope(keys[t][:, None], position)
    and torch.cat(cached, dim=1) → torch.cat(keys[: t + 1], dim=1)
"""


@Exercise("9.5", "Scale the low frequencies only", axes="pair")
def scale_low_frequencies(omega, tokens, factor):
    """Divide by ``factor`` the frequencies of less than one rotation in ``tokens``."""
    is_low = omega * tokens < 2 * torch.pi  # (pair,)
    return torch.where(is_low, omega / factor, omega)


@scale_low_frequencies.oracle
def _(omega, tokens, factor):
    changed = omega.clone()
    for i, frequency in enumerate(omega.tolist()):
        if frequency * tokens < 2 * math.pi:
            changed[i] = frequency / factor
    return changed


@scale_low_frequencies.cases
def _():
    omega = torch.tensor([1.0, 0.61, 0.38, 0.32, 0.31, 0.12, 0.07, 0.01])
    yield "low frequencies are lowered, high ones are kept", omega, 20, 3
    label = "other lengths and factors"
    yield label, torch.tensor([1.0, 0.1, 0.01, 0.001]), 4096, 8


scale_low_frequencies.hints = """
- By what angle is a pair rotated in `tokens` positions? A full rotation is 2π radians.
- A frequency is low if frequency · tokens is less than 2π. `torch.where(condition, a,
  b)` takes a where the condition is true, and b elsewhere.
- A low frequency is divided by `factor`.
"""

scale_low_frequencies.mistakes = """
You lower all frequencies. Then `factor` positions are as far apart as one was before,
and what the model finds by its position is lost: keep the high frequencies.
    torch.where(is_low, omega / factor, omega) → omega / factor
You lower the high frequencies and keep the low ones: it is the other way round.
    omega / factor, omega → omega, omega / factor
You multiply the low frequencies by `factor`. Divide: these pairs rotate more slowly.
    omega / factor → omega * factor
A full rotation is 2π radians, not 1.
    2 * torch.pi → 1
A full rotation is 2π radians: π is half of it.
    2 * torch.pi → torch.pi
Count the turns within the `tokens` positions of training, not within the extended
length: what counts is which angles training has covered.
    tokens < 2 * torch.pi → tokens * factor < 2 * torch.pi
You set the low frequencies to 0. Divide them by `factor`: these pairs still rotate.
    omega / factor → 0 * omega
You change no frequency.
    return torch.where(is_low, omega / factor, omega) → return omega.clone()
right:
    return torch.where(is_low, omega / factor, omega) → return omega / (1 + (factor - 1) * is_low)
    is_low = omega * tokens < 2 * torch.pi → turns = tokens * omega / (2 * torch.pi)
    and .where(is_low, omega / factor, omega) → .stack([f if n >= 1 else f / factor for f, n in zip(omega, turns)])
"""
