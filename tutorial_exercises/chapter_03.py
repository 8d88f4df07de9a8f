"""Exercises of chapter 3: attention scores and their scale."""

import math

import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise
from tutorial_exercises.verdict import false_alarms, verdict, what_it_remembers
from tutorial_exercises.watch import Watch
from tutorial_lib.attention import masked_softmax, scaled_dot_product_attention


@Exercise("3.1", "Predict the standard deviation of a score", tolerance=0.05)
def score_deviation():
    """The product of two entries has the variance 2² · 3² = 36. 25 of them sum to 900,
    whose root is 30, and √d_k = 5 makes it 6. The division removes the effect of d_k;
    the scale of the entries remains."""
    return 6


@score_deviation.oracle
def _():
    return math.sqrt(sum(2**2 * 3**2 for _ in range(25))) / math.sqrt(25)


@score_deviation.demand("the standard deviation of the scaled score")
def _(answer):
    answer()
    if answer.same():
        return (
            f"{answer.same()} Measure it: take `2 * torch.randn(100_000, 25)` as "
            "queries and as many keys; their scaled scores have this deviation."
        )


score_deviation.hints = """
- The product of a query entry and a key entry has the variance 2² · 3² = 36.
- Variances of independent terms add up: how many terms does q · k have?
- The standard deviation of q · k is √(25 · 36) = 30. Now divide by √d_k.
"""

score_deviation.mistakes = """
30 is the standard deviation of q · k, before the division by √d_k.
    return 6 → return 30
900 = 25 · 36 is the variance of q · k. Take its root, then divide by √d_k.
    return 6 → return 900
180 is the variance of q · k divided by √d_k. Take the root of the variance first.
    return 6 → return 180
36 is the variance of the score: take its square root.
    return 6 → return 36
It would be 1 if all entries had standard deviation 1: here it is 2 and 3.
    return 6 → return 1
This adds query and key (2 + 3, 4 + 9 or its root). Variances multiply in a product.
    return 6 → return 5
    return 6 → return 13
    return 6 → return 3.6056
150 is the sum of 25 standard deviations of 6, and it is 30 · 5. Variances add up, not
standard deviations, and the score is divided by √d_k.
    return 6 → return 150
2 and 3 are standard deviations: a product of two entries has the variance 2² · 3².
    return 6 → return 2.4495
    return 6 → return 12.247
7.2 is 36 / 5, for one product. Take the root of the variance of q · k, then divide.
    return 6 → return 7.2
1.2 is 30 / 25: divide by the root of d_k, not by d_k itself.
    return 6 → return 1.2
"""


@Exercise("3.2", "Distance attention without distances", axes="query d_v")
def distance_attention(queries, keys, values, bandwidth):
    """Average the values, weighted by softmax(-‖q - k‖² / (2 bandwidth²))."""
    norms = keys.square().sum(dim=-1)  # (key,)
    scores = (queries @ keys.mT - norms / 2) / bandwidth**2  # (query, key)
    return scores.softmax(dim=-1) @ values


@distance_attention.oracle
def _(queries, keys, values, bandwidth):
    outputs = []
    for query in queries.double():  # which may lie far from all keys
        apart = torch.stack([(query - key.double()).square().sum() for key in keys])
        weights = (-apart / (2 * bandwidth**2)).softmax(dim=0)
        outputs.append(weights.float() @ values)
    return torch.stack(outputs)


@distance_attention.cases
def _():
    label = "agrees with attention by distances, for both bandwidths"
    yield label, torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2), 0.7
    yield label, torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2), 2.0


@distance_attention.demand("uses dot products: no cdist, no tensor (query, key, d_k)")
def _(answer):
    with Watch() as seen:
        answer(torch.randn(6, 16), torch.randn(7, 16), torch.randn(7, 2), 1.0)
    if "cdist" in seen.sizes or max(seen.sizes.values()) >= 6 * 7 * 16:
        return (
            "The outputs are right, but you computed the distances. Use "
            "queries @ keys.mT and the norms of the keys only."
        )
    # Queries that are long, and orthogonal to all keys: ‖q‖² swallows all else.
    queries, keys = torch.randn(4, 3), torch.randn(5, 3)
    queries[:, 2], keys[:, 2] = 10_000, 0
    answer(queries, keys, torch.randn(5, 2), 1.0)
    if answer.same():
        return (
            "For short queries the outputs are right, for long ones they are not: "
            "‖q‖² is part of your scores, and float32 rounds all else away beside it. "
            "It is the same for every key, so leave it out."
        )


distance_attention.hints = """
- Write ‖q - k‖² out. Which of its three terms is the same for every key?
- What is left of the score is (q · k - ‖k‖² / 2) / bandwidth².
- `keys.square().sum(dim=-1)` is (key,): it broadcasts over the rows of Q Kᵀ.
"""

distance_attention.mistakes = """
This is the plain dot product: -‖k‖² / 2 and the division by bandwidth² are missing.
    (queries @ keys.mT - norms / 2) / bandwidth**2 → queries @ keys.mT
-‖k‖² / 2 is missing from the scores. (What is the same for all keys, as ‖q‖², cancels.)
    queries @ keys.mT - norms / 2 → queries @ keys.mT
For short queries the outputs are right, for long ones they are not: ‖q‖² is part of
your scores, and float32 rounds all else away beside it. Leave it out: it is the same for
every key.
    queries @ keys.mT - norms / 2 → … - queries.square().sum(dim=-1, keepdim=True) / 2
You subtract ‖k‖² whole. Half of it belongs to q · k, as ‖q - k‖² contains 2 q · k.
    norms / 2 → norms
‖q - k‖² contains the dot product twice: 2 q · k. Yours has it once.
    queries @ keys.mT - norms / 2 → queries @ keys.mT / 2 - norms / 2
The sign is wrong: the farther a key, the lower its score must be.
    (queries @ keys.mT - norms / 2) → -(…)
You add ‖k‖² / 2. A long key is far away, so its norm must lower the score.
    queries @ keys.mT - norms → queries @ keys.mT + norms
You divide by 2 twice: ‖k‖² / 2 has the 2 of 2σ². Divide the whole by σ².
    / bandwidth**2 → / (2 * bandwidth**2)
You divide only ‖k‖² / 2 by bandwidth², not the dot product: put both in parentheses.
    (queries @ keys.mT - norms / 2) → queries @ keys.mT - norms / 2
You divide only the dot product by bandwidth², not ‖k‖² / 2: put both in parentheses.
    (queries @ keys.mT - norms / 2) / bandwidth**2 → queries @ keys.mT / bandwidth**2 - norms / 2
You also divide by √d_k. The formula has bandwidth² alone.
    / bandwidth**2 → / bandwidth**2 / keys.shape[-1] ** 0.5
You subtract ‖k‖ / 2. The norm must be squared: leave the square root out.
    norms / 2 → norms.sqrt() / 2
Your weights do not depend on the bandwidth: divide the scores by bandwidth².
    / bandwidth**2 →
You divide by the bandwidth itself. The exponent is a square: divide by bandwidth².
    / bandwidth**2 → / bandwidth
Your softmax runs over the queries. Each query's weights sum to 1 over the keys: dim=-1.
    softmax(dim=-1) → softmax(dim=0)
right:
    queries @ keys.mT → torch.cat([queries, torch.ones(len(queries), 1)], 1)
    and - norms / 2) → @ torch.cat([keys, -norms[:, None] / 2], 1).mT)
"""


@Exercise("3.3", "Queries and keys of different sizes", axes="batch query d_v")
def bilinear_attention(queries, keys, values, M, mask=None):
    """Average the values, weighted by softmax(q M kᵀ / √d_key)."""
    scores = queries @ M @ keys.mT / keys.shape[-1] ** 0.5
    return masked_softmax(scores, mask) @ values


@bilinear_attention.oracle
def _(queries, keys, values, M, mask=None):
    shape = (*queries.shape[:2], keys.shape[1])
    visible = torch.ones(shape).bool() if mask is None else mask.expand(shape)
    outputs = torch.zeros(*shape[:2], values.shape[-1])
    for b, i in visible.any(dim=-1).nonzero().tolist():
        seen = visible[b, i]
        terms = queries[b, i, :, None] * M * keys[b, seen, None]
        scores = terms.sum(dim=(1, 2)) / math.sqrt(M.shape[1])
        outputs[b, i] = scores.softmax(dim=0) @ values[b, seen]
    return outputs


@bilinear_attention.cases
def _():
    sizes = (2, 4, 3), (2, 5, 6), (2, 5, 7), (3, 6)  # that differ where they may
    inputs = [torch.randn(size) for size in sizes]
    yield "outputs are right without a mask", *inputs
    padding = torch.arange(5) < torch.tensor([4, 2])[:, None, None]
    yield "outputs are right with a padding mask", *inputs, padding
    mask = torch.ones(2, 4, 5, dtype=torch.bool)
    mask[1, 2] = False
    yield "a query that may attend to nothing gets 0", *inputs, mask


bilinear_attention.hints = """
- `queries @ M` is (…, query, d_key): now queries and keys have the same size.
- Scores: `queries @ M`, times the keys with their last two axes transposed.
- Divide by the root of `keys.shape[-1]`; let `masked_softmax` do the rest.
"""

bilinear_attention.mistakes = """
A query that may attend to nothing should get 0, not an average: use `masked_softmax`.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(dim=-1)
A query that may attend to nothing gets NaN. `masked_softmax` handles that case.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1)
You multiply the scores by the mask, but a score of 0 does not hide a key: e⁰ is 1.
    masked_softmax(scores, mask) → (scores if mask is None else scores * mask).softmax(dim=-1)
You multiply the values by the scores themselves. Turn scores into weights first.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, 0))
The division by √d_key is missing.
    / keys.shape[-1] ** 0.5 →
You divide by √d_query. The projected query q M has d_key dimensions: divide by √d_key.
    / keys.shape[-1] → / queries.shape[-1]
You divide by the root of the NUMBER of keys. d_key is the dimension of a key.
    / keys.shape[-1] → / keys.shape[1]
You divide by d_key instead of its square root.
    keys.shape[-1] ** 0.5 → keys.shape[-1]
Your softmax runs over the queries. Each query's weights sum to 1 over the keys: dim=-1.
    masked_softmax(scores, mask) → scores.softmax(dim=-2)
Your result is the same with and without a mask: hand the mask to `masked_softmax`.
    masked_softmax(scores, mask) → masked_softmax(scores)
Your mask is inverted: True means that the query may attend to the key.
    masked_softmax(scores, mask) → masked_softmax(scores, None if mask is None else ~mask)
You mask after the softmax, so the weights no longer sum to 1. Mask the scores instead.
    masked_softmax(scores, mask) → (scores.softmax(dim=-1) * (1 if mask is None else mask))
right:
    queries @ M @ keys.mT → torch.einsum("bqi,ij,bkj->bqk", queries, M, keys)
    masked_softmax(scores, mask) @ values → scaled_dot_product_attention(queries @ M, keys, values, mask)[0]
"""


@Exercise("3.4", "Additive scores in little memory", axes="batch query key")
def frugal_additive_scores(queries, keys, W_Q, W_K, w_v):
    """Score by tanh(q W_Q + k W_K) w_v, one query at a time."""
    Q, K = queries @ W_Q, keys @ W_K  # (batch, query, d_hidden), (batch, key, d_hidden)
    rows = [torch.tanh(Q[:, i, None] + K) @ w_v for i in range(Q.shape[1])]
    return torch.stack(rows, dim=1)  # (batch, query, key)


@frugal_additive_scores.oracle
def _(queries, keys, W_Q, W_K, w_v):
    scores = torch.zeros(*queries.shape[:2], keys.shape[1])
    for b, i, j in (scores == 0).nonzero().tolist():
        hidden = torch.tanh(queries[b, i] @ W_Q + keys[b, j] @ W_K)
        scores[b, i, j] = (w_v * hidden).sum()
    return scores


def network(query=6, d_hidden=8):
    """Return queries, keys, W_Q, W_K and w_v of sizes that all differ."""
    sizes = (2, query, 3), (2, 5, 4), (3, d_hidden), (4, d_hidden), (d_hidden,)
    return [torch.randn(size) for size in sizes]


@frugal_additive_scores.cases
def _():
    yield "scores are right", *network()


@frugal_additive_scores.demand("never holds (batch, query, key, d_hidden) entries")
def _(answer):
    with Watch() as seen:
        answer(*network(query=12, d_hidden=32))
    largest = max(seen.sizes.values())
    limit = 2 * 12 * 32
    everything = 2 * 12 * 5 * 32
    if largest > limit or seen.held >= everything:
        return (
            f"The scores are right, but one tensor has {largest} entries (at most "
            f"{limit}), and {seen.held} are held at once (below {everything}). Loop "
            "over the queries or the keys, not over the batch alone, and multiply by w_v "
            "inside the loop."
        )


frugal_additive_scores.hints = """
- Project first, once: `queries @ W_Q` and `keys @ W_K`.
- Loop over the queries. Each projected query, (batch, 1, d_hidden), broadcasts over the
  projected keys.
- Collect one (batch, key) tensor per query; `torch.stack(rows, dim=1)`.
"""

frugal_additive_scores.mistakes = """
This is the dot product of query and key. Add them, take tanh, then multiply by w_v.
    torch.stack(rows, dim=1) → Q @ K.mT
The tanh is missing: the score is a sum of a term for the query and one for the key.
    torch.tanh(Q[:, i, None] + K) → (Q[:, i, None] + K)
You take the tanh of query and key separately. Add them first, so that they interact.
    torch.tanh(Q[:, i, None] + K) → (Q[:, i, None].tanh() + K.tanh())
You multiply by w_v before the tanh. Take the tanh of each hidden unit first, then w_v.
    torch.tanh(Q[:, i, None] + K) @ w_v → torch.tanh((Q[:, i, None] + K) @ w_v)
These are weights, which sum to 1. The exercise asks for scores: no softmax.
    torch.stack(rows, dim=1) → torch.stack(rows, dim=1).softmax(dim=-1)
You multiply the projected query and key. The additive score adds them.
    Q[:, i, None] + K → Q[:, i, None] * K
right:
    torch.tanh(Q[:, i, None] + K) @ w_v for i in range(Q.shape[1]) → torch.tanh(Q + K[:, j, None]) @ w_v for j in range(K.shape[1])
    and torch.stack(rows, dim=1) → torch.stack(rows, dim=2)
    torch.stack(rows, dim=1) → sum(w * torch.tanh(q[..., None] + k[:, None]) for w, q, k in zip(w_v, Q.unbind(-1), K.unbind(-1)))
"""


@Exercise("3.5", "A test that finds the bug")
def finds_bug(attention):
    """Tell whether attention(queries, keys, values, mask) is wrong in any way."""
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1], [0, 0, 0, 0, 0]]).bool()
    mask = mask.expand(2, -1, -1)  # (batch, query, key)
    for size in (1, 1000):
        queries = size * torch.randn(2, 3, 4)
        keys, values = torch.randn(2, 5, 4), torch.randn(2, 5, 6)
        inputs = [queries, keys, values, mask]
        given = [tensor.clone() for tensor in inputs]
        outputs = attention(*given)
        expected, _ = scaled_dot_product_attention(*inputs)
        if not torch.allclose(outputs, expected, atol=1e-4):
            return True
        if not all(map(torch.equal, given, inputs)):
            return True
    return False


ADVICE = {  # what brings a bug to light
    "1/√d_k left out": "Equal or very large scores hide it, and so does d_k = 1.",
    "softmax over the queries": "Use random queries and keys, not equal ones.",
    "mask ignored": "Use a mask with some False in it, and values that differ.",
    "mask inverted": "Use a mask with more True than False, or the other way round.",
    "mask applied after the softmax": "Compare outputs: the weights do not sum to 1.",
    "scaled by √(number of keys)": "Use small inputs, and not as many keys as d_k.",
    "overflow at large scores": "Multiply queries by 1000: exp(100) overflows float32.",
    "a fully masked query gets the average": "Use a mask with a row of only False.",
    "an input changed in place": "Compare all inputs after the call with clones.",
}


def attention_with(bug):
    """Return scaled dot-product attention, written step by step, with a bug or None."""

    def attention(queries, keys, values, mask):
        sizes = {"1/√d_k left out": 1, "scaled by √(number of keys)": keys.shape[-2]}
        scores = queries @ keys.mT / sizes.get(bug, queries.shape[-1]) ** 0.5
        weights = masked_softmax(scores, mask)
        match bug:
            case "softmax over the queries":
                weights = masked_softmax(scores.mT, mask.expand(scores.shape).mT).mT
            case "mask ignored":
                weights = masked_softmax(scores)
            case "mask inverted":
                weights = masked_softmax(scores, ~mask)
            case "mask applied after the softmax":
                weights = scores.softmax(dim=-1) * mask
            case "overflow at large scores":
                powers = scores.exp() * mask
                total = powers.sum(dim=-1, keepdim=True)
                weights = powers / total.where(mask.any(dim=-1, keepdim=True), 1)
            case "a fully masked query gets the average":
                weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
            case "an input changed in place":
                keys /= 2
        return weights @ values

    return attention


def fused(queries, keys, values, mask):
    """Compute it by torch's own function, which rounds a little differently."""
    outputs = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return outputs.where(mask.any(dim=-1, keepdim=True), 0)


RIGHT = {"step by step": attention_with(None), "by torch": fused}
BROKEN = {bug: attention_with(bug) for bug in ADVICE}


@finds_bug.oracle
def _(attention):
    return attention not in RIGHT.values()


@finds_bug.demand("accepts right attentions")
def _(answer):
    refused, inverted = false_alarms(answer, RIGHT, BROKEN)
    if inverted:
        return (
            "You answer True for a right attention and False for most broken ones: it "
            "is the other way round. True must mean that a bug was found."
        )
    if refused:
        return (
            f"Your test calls a right attention broken (the one written {refused[0]}). "
            "It returns the outputs alone, and 0 for a fully masked query. Compare by "
            "`torch.allclose` with an attention that divides by √d_k."
        )


for bug, attention in BROKEN.items():

    @finds_bug.demand(f"finds the bug: {bug}")
    def _(answer, bug=bug, attention=attention):
        if not verdict(answer, attention):
            return f"This bug passes your test unseen. {ADVICE[bug]}"
        return what_it_remembers(answer, RIGHT)


finds_bug.hints = """
- Random queries, keys and values, d_k and both numbers all different, and a mask with
  both True and False, but in one row only False; compare with an attention you trust.
- Call it twice, the second time with queries 1000 times as large; give it clones of
  the inputs, and compare them with the inputs afterwards.
"""

finds_bug.mistakes = """
This bug passes your test unseen. Multiply queries by 1000: exp(100) overflows float32.
    (1, 1000) → (1,)
This bug passes your test unseen. Compare all inputs after the call with clones.
    not all(map(torch.equal, given, inputs)) → False
right:
    not torch.allclose(outputs, expected, atol=1e-4) → not (outputs - expected).abs().max() < 1e-4
"""
