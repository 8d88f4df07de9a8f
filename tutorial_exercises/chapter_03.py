"""Exercises of chapter 3: attention scores and their scale."""

import math

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from tutorial_exercises import Exercise
from tutorial_exercises.compare import is_number
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import masked_softmax, scaled_dot_product_attention


class Watch(TorchFunctionMode):
    """Note the largest result of each torch function, and how much is held at once.

    Both are numbers of entries. Views hold nothing of their own.
    """

    def __init__(self):
        super().__init__()
        self.sizes, self.held, self.alive = {}, 0, WeakIdKeyDictionary()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        if torch.is_tensor(result):
            name, size = getattr(function, "__name__", ""), result.numel()
            self.sizes[name] = max(size, self.sizes.get(name, 0))
            self.alive[result] = 0 if result._is_view() else size
            self.held = max(self.held, sum(self.alive.values()))
        return result


@Exercise("3.1", "Predict the spread of a score", tolerance=0.05)
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
    is_a_number = is_number(answer())
    wrong = answer.same()
    if wrong and is_a_number:
        return (
            f"{wrong} Measure it: draw 100,000 queries, `2 * torch.randn(100_000, 25)`, "
            "and as many keys; their scaled dot products have this standard deviation."
        )
    return wrong


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
This adds query and key, as 2 + 3, 4 + 9 or its root. Their entries are multiplied, and
for independent entries of mean 0 the variances are multiplied, too.
    return 6 → return 5
    return 6 → return 13
    return 6 → return 3.6056
150 is the sum of 25 standard deviations of 6, and it is 30 · 5. Variances add up, not
standard deviations, and the score is divided by √d_k.
    return 6 → return 150
2 and 3 are standard deviations already: a product of two entries has the variance
2² · 3², not 2 · 3.
    return 6 → return 2.4495
    return 6 → return 12.247
7.2 is 36 / 5: the variance of one product, divided by √d_k. Take the variance of the
whole sum q · k and its root, then divide.
    return 6 → return 7.2
1.2 is 30 / 25: divide by the root of d_k, not by d_k itself.
    return 6 → return 1.2
"""


@Exercise("3.2", "Distance attention without distances", axes="query d_v")
def distance_attention(queries, keys, values, width):
    """Average the values, weighted by softmax(-‖q - k‖² / (2 width²))."""
    norms = keys.square().sum(dim=-1)  # (key,)
    scores = (queries @ keys.T - norms / 2) / width**2  # (query, key)
    return scores.softmax(dim=-1) @ values


def weighted_average(scores, values):
    """Average values (key, d_v) with the softmax of a list of scores as weights."""
    powers = [math.exp(score - max(scores)) for score in scores]
    weighted = [p * value for p, value in zip(powers, values, strict=True)]
    return sum(weighted) / sum(powers)


@distance_attention.oracle
def _(queries, keys, values, width):
    rows = []
    for query in queries:
        apart = [(query - key).square().sum().item() for key in keys]
        rows.append(weighted_average([-d / (2 * width**2) for d in apart], values))
    return torch.stack(rows)


@distance_attention.cases
def _():
    label = "agrees with attention by distances, for both widths"
    yield label, torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2), 0.7
    yield label, torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2), 2.0


@distance_attention.demand("uses dot products: no cdist, no tensor (query, key, d_k)")
def _(answer):
    with Watch() as seen:
        answer(torch.randn(6, 16), torch.randn(7, 16), torch.randn(7, 2), 1.0)
    if "cdist" in seen.sizes or max(seen.sizes.values()) >= 6 * 7 * 16:
        return (
            "The outputs are right, but you computed the distances. Use "
            "queries @ keys.T and the norms of the keys only."
        )


distance_attention.hints = """
- Write ‖q - k‖² out. Which of its three terms is the same for every key?
- What is left of the score is (q · k - ‖k‖² / 2) / width².
- `keys.square().sum(dim=-1)` is (key,): it broadcasts over the rows of Q Kᵀ.
"""

distance_attention.mistakes = """
This is the plain dot product: -‖k‖² / 2 is missing from the scores, and so is the division
by width².
    (queries @ keys.T - norms / 2) / width**2 → queries @ keys.T
This is plain dot-product attention: -‖k‖² / 2 is missing from the scores. (What is the
same for all keys, as ‖q‖² or a sum over them, cancels.)
    queries @ keys.T - norms / 2 → queries @ keys.T
You subtract ‖k‖² whole. Half of it belongs to q · k, because ‖q - k‖² contains
2 q · k.
    norms / 2 → norms
‖q - k‖² contains the dot product twice: 2 q · k. Yours has it once.
    queries @ keys.T - norms / 2 → queries @ keys.T / 2 - norms / 2
The sign is wrong: the farther a key, the lower its score must be.
    (queries @ keys.T - norms / 2) → -(…)
You add ‖k‖² / 2. A long key is far away, so its norm must lower the score.
    queries @ keys.T - norms → queries @ keys.T + norms
You divide by 2 twice: ‖k‖² / 2 already has the 2 of 2 width². Divide the whole by
width².
    / width**2 → / (2 * width**2)
You divide only ‖k‖² / 2 by width². The dot product must be divided as well: put
both in parentheses.
    (queries @ keys.T - norms / 2) → queries @ keys.T - norms / 2
You divide only the dot product by width². ‖k‖² / 2 must be divided as well: put both in
parentheses.
    (queries @ keys.T - norms / 2) / width**2 → queries @ keys.T / width**2 - norms / 2
You also divide by √d_k. The formula has width² alone.
    / width**2 → / width**2 / keys.shape[-1] ** 0.5
You subtract ‖k‖ / 2. The norm must be squared: leave the square root out.
    norms / 2 → norms.sqrt() / 2
Your weights do not depend on the width: divide the scores by width².
    / width**2 →
You divide by the width itself. The exponent contains the square of distance over
width: divide by width².
    / width**2 → / width
Your softmax runs over the queries. Each query distributes its weight over the keys: the
last axis.
    softmax(dim=-1) → softmax(dim=0)
right:
    queries @ keys.T → torch.cat([queries, torch.ones(len(queries), 1)], 1)
    and - norms / 2) → @ torch.cat([keys, -norms[:, None] / 2], 1).T)
    keys.square().sum(dim=-1) → (keys * keys).sum(dim=-1)
    keys.square().sum(dim=-1) → torch.linalg.vector_norm(keys, dim=-1) ** 2
    queries @ keys.T → torch.einsum("qd,kd->qk", queries, keys)
    norms / 2 → norms / 2 - queries.square().sum(dim=-1, keepdim=True) / 2
"""


@Exercise("3.3", "Queries and keys of different sizes", axes="batch query d_v")
def bilinear_attention(queries, keys, values, M, mask=None):
    """Average the values, weighted by softmax(q M kᵀ / √d_key)."""
    scores = queries @ M @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return masked_softmax(scores, mask) @ values


@bilinear_attention.oracle
def _(queries, keys, values, M, mask=None):
    outputs = queries.new_zeros(*queries.shape[:2], values.shape[-1])
    for b, i in torch.cartesian_prod(*map(torch.arange, queries.shape[:2])).tolist():
        seen = torch.arange(keys.shape[1])
        if mask is not None:
            seen = seen[mask.expand(-1, queries.shape[1], -1)[b, i]]
        terms = [queries[b, i, :, None] * M * keys[b, j] for j in seen]
        scores = [term.sum().item() / math.sqrt(M.shape[1]) for term in terms]
        if scores:
            outputs[b, i] = weighted_average(scores, values[b, seen])
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
A query that may attend to nothing should get 0, and yours gets an average.
`masked_softmax` handles that case.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(dim=-1)
The row of a query that may attend to nothing is NaN: its scores are all −∞, and the
softmax divides 0 by 0. `masked_softmax` handles that case.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1)
You multiply the scores by the mask. A score of 0 does not hide a key: e⁰ is 1.
`masked_softmax(scores, mask)` hides it.
    masked_softmax(scores, mask) → (scores if mask is None else scores * mask).softmax(dim=-1)
You multiply the values by the scores themselves. Turn scores into weights first:
`masked_softmax(scores, mask)`.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, 0))
The division by √d_key is missing.
    / keys.shape[-1] ** 0.5 →
You divide by √d_query. The projected query q M has d_key dimensions, so a score is a
sum of d_key products: divide by √d_key.
    / keys.shape[-1] → / queries.shape[-1]
You divide by the root of the NUMBER of keys. d_key is the dimension of a key.
    / keys.shape[-1] → / keys.shape[1]
You divide by d_key instead of its square root.
    keys.shape[-1] ** 0.5 → keys.shape[-1]
Your softmax runs over the queries. Each query distributes its weight over the keys: the
last axis.
    masked_softmax(scores, mask) → scores.softmax(dim=-2)
Your result is the same with and without a mask: hand the mask to `masked_softmax`.
    masked_softmax(scores, mask) → masked_softmax(scores)
Your mask is inverted: True means that the query may attend to the key.
    masked_softmax(scores, mask) → masked_softmax(scores, None if mask is None else ~mask)
You hide keys after the softmax, so the remaining weights no longer sum to 1. Mask the
scores: `masked_softmax(scores, mask)`.
    masked_softmax(scores, mask) → (scores.softmax(dim=-1) * (1 if mask is None else mask))
right:
    keys.transpose(-2, -1) → keys.mT
    / keys.shape[-1] → / M.shape[1]
    queries @ M @ keys.transpose(-2, -1) → torch.einsum("bqi,ij,bkj->bqk", queries, M, keys)
    masked_softmax(scores, mask) @ values → scaled_dot_product_attention(queries @ M, keys, values, mask)[0]
"""


@Exercise("3.4", "Additive scores in little memory", axes="batch query key")
def frugal_additive_scores(queries, keys, W_Q, W_K, v):
    """Score by tanh(q W_Q + k W_K) v, one query at a time."""
    Q, K = queries @ W_Q, keys @ W_K  # (batch, query, d_hidden), (batch, key, d_hidden)
    rows = [torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1])]
    return torch.stack(rows, dim=1)  # (batch, query, key)


@frugal_additive_scores.oracle
def _(queries, keys, W_Q, W_K, v):
    scores = queries.new_zeros(*queries.shape[:2], keys.shape[1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        hidden = torch.tanh(queries[b, i] @ W_Q + keys[b, j] @ W_K)
        scores[b, i, j] = (v * hidden).sum()
    return scores


def network(query=6, d_hidden=8):
    """Return queries, keys, W_Q, W_K and v of sizes that all differ."""
    sizes = [(2, query, 3), (2, 5, 4), (3, d_hidden), (4, d_hidden), (d_hidden,)]
    return [torch.randn(size) for size in sizes]


@frugal_additive_scores.cases
def _():
    yield "scores are right", *network()


@frugal_additive_scores.demand("never holds (batch, query, key, d_hidden) entries")
def _(answer):
    with Watch() as seen:
        answer(*network(query=12, d_hidden=32))
    everything, limit = 2 * 12 * 5 * 32, 2 * 12 * 32
    largest = max(seen.sizes.values())
    if largest > limit:
        return (
            f"The scores are right, but one tensor has {largest} entries. Here "
            f"batch · query · key · d_hidden is {everything}; stay within {limit}, "
            "the size of the projected queries. Loop over the queries or over the "
            "keys; a loop over the batch is not enough."
        )
    if seen.held >= everything:
        return (
            f"No tensor is too large, but together they hold {seen.held} entries at "
            "one time. Keep scores only: multiply by v inside the loop."
        )


frugal_additive_scores.hints = """
- Project first, once: `queries @ W_Q` and `keys @ W_K`.
- Loop over the queries. Each projected query, (batch, 1, d_hidden), broadcasts over the
  projected keys.
- Collect one (batch, key) tensor per query; `torch.stack(rows, dim=1)`.
"""

frugal_additive_scores.mistakes = """
This is the dot product of the projected query and key. Add them, take tanh, then
multiply by v and sum.
    torch.stack(rows, dim=1) → Q @ K.transpose(1, 2)
The tanh is missing, so that the score is a sum of one term for the query and one for
the key.
    torch.tanh(Q[:, i, None] + K) → (Q[:, i, None] + K)
You take the tanh of query and key separately. Add them first: only the tanh of the sum
lets query and key interact.
    torch.tanh(Q[:, i, None] + K) → (Q[:, i, None].tanh() + K.tanh())
You multiply by v before the tanh. Each hidden unit goes through tanh; v is the weight
of its output.
    torch.tanh(Q[:, i, None] + K) @ v → torch.tanh((Q[:, i, None] + K) @ v)
These are weights, which sum to 1. The exercise asks for scores: no softmax.
    torch.stack(rows, dim=1) → torch.stack(rows, dim=1).softmax(dim=-1)
You multiply the projected query and key. The additive score adds them.
    Q[:, i, None] + K → Q[:, i, None] * K
right:
    torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1]) → torch.tanh(Q + K[:, j, None]) @ v for j in range(K.shape[1])
    and torch.stack(rows, dim=1) → torch.stack(rows, dim=2)
    rows = [torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1])] → total = torch.zeros(Q.shape[0], Q.shape[1], K.shape[1])
        for h in range(len(v)):
            total = total + v[h] * (Q[:, :, None, h] + K[:, None, :, h]).tanh()
        return total
    Q, K = queries @ W_Q, keys @ W_K → torch.set_grad_enabled(False)
        …
    torch.stack(rows, dim=1) → torch.stack(rows, dim=1).detach()
    torch.stack(rows, dim=1) → torch.vmap(lambda q: (q[:, None] + K).tanh() @ v, 1, 1, chunk_size=1)(Q)
"""


@Exercise("3.5", "A test that finds the bug")
def finds_bug(attention):
    """Tell whether attention(queries, keys, values, mask) is wrong in any way."""
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1], [0, 1, 1, 1, 1]]).bool()
    mask = mask.expand(2, -1, -1)  # (batch, query, key)
    for size in (1, 1000):
        queries = size * torch.randn(2, 3, 4)
        keys, values = torch.randn(2, 5, 4), torch.randn(2, 5, 6)
        given = queries.clone()
        outputs = attention(given, keys, values, mask)
        expected, _ = scaled_dot_product_attention(queries, keys, values, mask)
        if not torch.allclose(outputs, expected, atol=1e-4):
            return True
        if not given.equal(queries):
            return True
    return False


def explicit(queries, keys, values, mask):
    """Compute scaled dot-product attention, step by step."""
    return masked_softmax(scaled(queries, keys), mask) @ values


def fused(queries, keys, values, mask):
    """Compute it by torch's own function, which rounds a little differently."""
    outputs = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return outputs.where(mask.any(dim=-1, keepdim=True), 0)


def scaled(queries, keys):
    """Return the scaled scores (batch, query, key)."""
    return queries @ keys.mT / queries.shape[-1] ** 0.5


# Broken ones: the docstring says which inputs bring the bug to light.


def no_scale(queries, keys, values, mask):
    """Scores that are all equal, or so large that one key gets all the weight, hide it;
    so does d_k = 1."""
    return masked_softmax(queries @ keys.mT, mask) @ values


def wrong_axis(queries, keys, values, mask):
    """Equal queries and equal keys do not show it: use random ones."""
    scores = scaled(queries, keys)
    return masked_softmax(scores.mT, mask.expand(scores.shape).mT).mT @ values


def mask_ignored(queries, keys, values, mask):
    """Pass a mask with some False in it, and values that differ from each other."""
    return masked_softmax(scaled(queries, keys)) @ values


def mask_inverted(queries, keys, values, mask):
    """Pass a mask with more True than False, or the other way round."""
    return masked_softmax(scaled(queries, keys), ~mask) @ values


def mask_after(queries, keys, values, mask):
    """Weights that no longer sum to 1 shrink the output: compare its entries."""
    return (scaled(queries, keys).softmax(dim=-1) * mask) @ values


def scale_by_keys(queries, keys, values, mask):
    """As many keys as dimensions d_k hide it, and so do scores so large that one key gets
    all the weight: standard normal inputs, and two sizes that differ, show it."""
    return masked_softmax(queries @ keys.mT / keys.shape[-2] ** 0.5, mask) @ values


def overflow(queries, keys, values, mask):
    """Multiply the queries by 1000: exp(100) is already too large for float32."""
    powers = scaled(queries, keys).exp() * mask
    total = powers.sum(dim=-1, keepdim=True)
    return powers / total.where(mask.any(dim=-1, keepdim=True), 1) @ values


def in_place(queries, keys, values, mask):
    """Its output is right: compare the queries after the call with a clone."""
    queries /= queries.shape[-1] ** 0.5
    return masked_softmax(queries @ keys.mT, mask) @ values


RIGHT = {"step by step": explicit, "by torch": fused}
BROKEN = {
    "1/√d_k left out": no_scale,
    "softmax over the queries": wrong_axis,
    "mask ignored": mask_ignored,
    "mask inverted": mask_inverted,
    "mask applied after the softmax": mask_after,
    "scaled by √(number of keys)": scale_by_keys,
    "overflow at large scores": overflow,
    "queries changed in place": in_place,
}


@finds_bug.oracle
def _(attention):
    return attention not in RIGHT.values()


@finds_bug.demand("answers True or False")
def _(answer):
    for attention in [*RIGHT.values(), *BROKEN.values()]:
        try:
            found = answer(attention)
        except Wrong:
            if "AssertionError" in str(answer.error):
                return (
                    "An `assert` in your test fails, which ends it. Return the verdict "
                    "instead: True where something is wrong, else False."
                )
            raise
        if found not in (True, False):
            return "Return True or False."


@finds_bug.demand("accepts right attentions")
def _(answer):
    found = [answer(broken) for broken in BROKEN.values()]
    for name, attention in RIGHT.items():
        is_broken = answer(attention)
        if is_broken and sum(found) < len(found) / 2:
            return (
                "You answer True for a right attention and False for most of the "
                "broken ones: the other way round. True must mean that a bug was found."
            )
        if is_broken:
            return (
                f"Your test calls a right attention broken (the one written {name}). "
                "The usual causes: what you compare with lacks 1/√d_k; your mask "
                "leaves a query without any key, and your own softmax makes NaN of it; "
                "you unpack a pair, but attention returns the outputs alone; or you "
                "compare exactly, and two right ones may differ in the sixth digit "
                "(`torch.allclose`)."
            )


for bug, broken in BROKEN.items():

    @finds_bug.demand(f"finds the bug: {bug}")
    def _(answer, broken=broken):
        if not answer(broken):
            advice = " ".join(broken.__doc__.split())
            return f"This bug passes your test unseen. {advice}"


finds_bug.hints = """
- Random queries, keys and values, with a random mask that has both True and False in
  every row; then compare with an attention you trust.
- Make d_k, the number of queries and the number of keys all different.
- Call it twice, the second time with queries 1000 times as large; keep a
  `queries.clone()` and compare it afterwards.
"""

finds_bug.mistakes = """
This bug passes your test unseen. Multiply the queries by 1000: exp(100) is already too
large for float32.
    (1, 1000) → (1,)
This bug passes your test unseen. Its output is right: compare the queries after the
call with a clone.
    not given.equal(queries) → False
right:
    not torch.allclose(outputs, expected, atol=1e-4) → not (outputs - expected).abs().max() < 1e-4
"""
