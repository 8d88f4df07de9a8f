"""Checks for chapter 3: scoring functions and scale.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise
from tutorial_exercises.memory import Watch

from .specimens import BROKEN, RIGHT

deviation = Exercise(
    "3.1",
    "Predict the spread of a score",
    tolerance=0.05,  # for who measures with torch.randn
    hints=[
        "A product of a query number and a key number has the variance 2² · 3² = 36.",
        "Variances of independent terms add up: how many terms does q · k have?",
        "The standard deviation of q · k is √(25 · 36) = 30. Now divide by √d_k.",
    ],
)


@deviation.spec
def score_deviation():
    """Add up the variances of the products, one by one, then divide by √d_k."""
    return math.sqrt(sum(2**2 * 3**2 for _ in range(25))) / math.sqrt(25)


@deviation.step("the standard deviation of the scaled score")
def _(probe):
    probe()
    probe.same()


def weighted_average(scores, values):
    """Average values (key, d_v) with the softmax of a list of numbers as weights."""
    powers = [math.exp(score - max(scores)) for score in scores]
    weighted = [p * value for p, value in zip(powers, values, strict=True)]
    return sum(weighted) / sum(powers)


distance = Exercise(
    "3.2",
    "Distance attention without distances",
    name="distance_attention",
    returns="query d_v",
    hints=[
        "Write ‖q - k‖² out. Which of its three terms is the same for every key?",
        "What is left of the score is (q · k - ‖k‖² / 2) / width².",
        "`keys.square().sum(dim=-1)` is (key,): it broadcasts over the rows of Q Kᵀ.",
    ],
)


@distance.spec
def distance_attention(queries, keys, values, width):
    """Measure every distance, one pair at a time."""
    rows = []
    for query in queries:
        apart = [(query - key).square().sum().item() for key in keys]
        rows.append(weighted_average([-d / (2 * width**2) for d in apart], values))
    return torch.stack(rows)


@distance.step("agrees with the distances, for every width")
def _(probe):
    for width in (0.7, 2.0):
        probe(torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2), width)
        probe.same()


@distance.step("moving all queries and keys together changes nothing")
def _(probe):
    queries, keys, values = torch.randn(4, 3), torch.randn(5, 3), torch.randn(5, 2)
    here = probe(queries, keys, values, 1.0)
    there = probe(queries + 1, keys + 1, values, 1.0)
    message = "Adding 1 to all queries and keys changes your result, but no distance."
    probe.require(probe.close(here, there, 1e-4), "moved", message)


@distance.step("uses products: no cdist, and no (query, key, d_k) numbers")
def _(probe):
    with Watch() as seen:
        probe(torch.randn(6, 16), torch.randn(7, 16), torch.randn(7, 2), 1.0)
    probe.require(
        "cdist" not in seen.sizes and seen.largest < 6 * 7 * 16,
        "distances",
        "The numbers are right, but you computed the distances. Use queries @ keys.T "
        "and the norms of the keys only.",
    )


bilinear = Exercise(
    "3.3",
    "Queries and keys of different sizes",
    name="bilinear_attention",
    returns="batch query d_v",
    hints=[
        "`queries @ M` is (…, query, d_key): now queries and keys have the same size.",
        "Scores: `queries @ M`, times the keys with their last two axes swapped.",
        "Divide by the root of `keys.shape[-1]`; let `masked_softmax` do the rest.",
    ],
)


@bilinear.spec
def bilinear_attention(queries, keys, values, M, mask=None):
    """Add up q_i M_ij k_j, one pair at a time; hidden keys are left out."""
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


def tensors(query=4, key=5):
    """Return queries, keys, values and M of sizes that all differ."""
    sizes = [(2, query, 3), (2, key, 6), (2, key, 7), (3, 6)]
    return [torch.randn(size) for size in sizes]


@bilinear.step("scores and weights are right without a mask")
def _(probe):
    probe(*tensors())
    probe.same()


@bilinear.step("one mask for each sentence, as for padding")
def _(probe):
    lengths = torch.tensor([4, 2])
    probe(*tensors(), (torch.arange(5) < lengths[:, None])[:, None])
    probe.same()


@bilinear.step("a query that may look at nothing reads 0")
def _(probe):
    mask = torch.ones(2, 4, 5, dtype=torch.bool)
    mask[1, 2] = False
    probe(*tensors(), mask)
    probe.same()


additive = Exercise(
    "3.4",
    "Additive scores in little memory",
    name="frugal_additive_scores",
    returns="batch query key",
    hints=[
        "Project first, once: `queries @ W_Q` and `keys @ W_K`.",
        "Loop over the queries. Each one's (batch, 1, d_hidden) numbers broadcast over "
        "the projected keys.",
        "Collect one (batch, key) tensor per query; `torch.stack(rows, dim=1)`.",
    ],
)


@additive.spec
def frugal_additive_scores(queries, keys, W_Q, W_K, v):
    """Run the small network for one query and one key at a time."""
    scores = queries.new_zeros(*queries.shape[:2], keys.shape[1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        hidden = torch.tanh(queries[b, i] @ W_Q + keys[b, j] @ W_K)
        scores[b, i, j] = (v * hidden).sum()
    return scores


def network(query=6, d_hidden=8):
    """Return queries, keys, W_Q, W_K and v of sizes that all differ."""
    sizes = [(2, query, 3), (2, 5, 4), (3, d_hidden), (4, d_hidden), (d_hidden,)]
    return [torch.randn(size) for size in sizes]


@additive.step("scores are right")
def _(probe):
    probe(*network())
    probe.same()


@additive.step("never holds (batch, query, key, d_hidden) numbers")
def _(probe):
    with Watch() as seen:
        probe(*network(query=12, d_hidden=32))
    everything, limit = 2 * 12 * 5 * 32, 2 * 12 * 32
    probe.require(
        seen.largest <= limit,
        "memory",
        f"The scores are right, but one tensor holds {seen.largest} numbers. Here "
        f"batch · query · key · d_hidden is {everything}; stay within {limit}, "
        "the size of the projected queries. Loop over the queries or over the keys; a "
        "loop over the batch is not enough.",
    )
    message = (
        f"No tensor is too large, but together they hold {seen.held} numbers at one "
        "time. Keep scores only: multiply by v inside the loop."
    )
    probe.require(seen.held < everything, "kept", message)


tests = Exercise(
    "3.5",
    "A test that finds the bug",
    name="finds_bug",
    hints=[
        "Random queries, keys and values, with a random mask that has both True and "
        "False in every row; then compare with an attention you trust.",
        "Make d_k, the number of queries and the number of keys all different.",
        "Call it twice, the second time with queries 1000 times as large; keep a "
        "`queries.clone()` and compare it afterwards.",
    ],
)


@tests.spec
def finds_bug(attention):
    """Ask whether it is one of the broken ones."""
    return attention in [broken for _, broken, _ in BROKEN.values()]


@tests.step("answers True or False, and lets right attentions pass")
def _(probe):
    for name, attention in RIGHT.items():
        if probe.verdict(attention):
            _explain_false_alarm(probe, name)


def _explain_false_alarm(probe, name):
    silent = [not probe(broken) for _, broken, _ in BROKEN.values()]
    probe.require(
        sum(silent) <= len(silent) / 2,
        "inverted",
        "You answer True for a right attention and False for most of the broken ones: "
        "the other way round. True must mean that a bug was found.",
    )
    probe.fail(
        "false-alarm",
        f"Your test calls a right attention broken (the one written {name}). The usual "
        "causes: what you compare with lacks 1/√d_k; your mask leaves a query without "
        "any key, and your own softmax makes NaN of it; you unpack a pair, but "
        "attention returns the outputs alone; or you compare exactly, and two right "
        "ones may differ in the sixth digit (`torch.allclose`).",
    )


def _finds(code, broken, advice):
    def step(probe):
        message = f"This bug passes your test unseen. {advice}"
        probe.require(probe.verdict(broken), f"misses-{code}", message)

    return step


for bug, about in BROKEN.items():
    tests.step(f"finds the bug: {bug}")(_finds(*about))
