"""Checks for chapter 8: many looks at once.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise, Wrong

splitting = Exercise(
    "8.1",
    "Split the heads",
    name="split_heads",
    returns="batch head token d_k",
    hints=[
        "First cut the last axis alone: (batch, token, head, d_k). Nothing moves.",
        "Then the token axis and the head axis change places.",
        "`x.view(batch, token, num_heads, d_k).transpose(1, 2)`, or with rearrange "
        '`"batch token (head d_k) -> batch head token d_k"`.',
    ],
)


@splitting.spec
def split_heads(x, num_heads):
    """Put every number where it belongs, one after the other."""
    d_k = x.shape[-1] // num_heads
    parts = x.new_zeros(x.shape[0], num_heads, x.shape[1], d_k)
    for head in range(num_heads):
        for i in range(d_k):
            parts[:, head, :, i] = x[:, :, head * d_k + i]
    return parts


@splitting.step("every head gets its own columns of every token")
def _(probe):
    parts = probe(torch.randn(2, 5, 12), 3)
    probe.shape(parts, batch=2, head=3, token=5, d_k=4)
    probe.same()


@splitting.step("also for inputs that do not lie in one piece of memory")
def _(probe):
    probe(torch.randn(6, 2, 4).transpose(0, 1), 2)
    probe.same()


several = Exercise(
    "8.2",
    "Seven bugs",
    name="SeveralHeads",
    returns="batch query d_model",
    hints=[
        "`d_k = d_model // num_heads` in `__init__`, but each of the four layers is "
        "`nn.Linear(d_model, d_model)`: it serves all heads at once.",
        "After the projections split Q, K and V into (batch, head, token, d_k). Then "
        "the scores have a head axis, and `mask.unsqueeze(1)` is right.",
        "`masked_fill` fills where its mask is True: give it `~mask`. Each query "
        "shares its weight among the keys: softmax over the last axis.",
        "Join the heads before W_O: `rearrange(context, "
        '"batch head token d_k -> batch token (head d_k)")`.',
    ],
)


@several.spec
class SeveralHeads(nn.Module):
    """Compute one head, one query at a time; hidden keys are left out."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, queries, keys, values, mask=None):
        """Go through sentences, heads and queries."""
        Q, K, V = self.W_Q(queries), self.W_K(keys), self.W_V(values)
        d_k, joined = Q.shape[-1] // self.num_heads, torch.zeros_like(Q)
        for b in range(len(Q)):
            for start in range(0, Q.shape[-1], d_k):
                own = slice(start, start + d_k)
                for i, query in enumerate(Q[b, :, own]):
                    seen = slice(None) if mask is None else mask[b, i]
                    scores = (K[b, seen, own] * query).sum(dim=1) / d_k**0.5
                    shares = scores.softmax(dim=0)[:, None]
                    joined[b, i, own] = (shares * V[b, seen, own]).sum(dim=0)
        return self.W_O(joined)


def _triple(queries=4, keys=5):
    return [torch.randn(2, count, 12) for count in (queries, keys, keys)]


def _build(probe, num_heads):
    """Build a layer; where its parameters differ, say first what they should be."""
    try:
        return probe.build(12, num_heads)
    except Wrong as wrong:
        if wrong.code != "parameters":
            raise
        message = "Each of the four layers is `nn.Linear(d_model, d_model)`, and there "
        message += f"is nothing else to learn. {wrong.message}"
        raise Wrong("parameters", message) from None


def _masked(probe, mask):
    """Read with a mask; where that fails for want of a head axis, say so."""
    try:
        probe(*_triple(), mask)
    except Wrong as wrong:
        if wrong.code == "error" and "size of tensor" in str(wrong):
            message = (
                "The mask is (batch, query, key), but the scores have a head axis: "
                "give it one, too, `mask.unsqueeze(1)`."
            )
            raise Wrong("mask-axis", message) from None
        raise
    probe.same()


@several.step("three heads read what they should")
def _(probe):
    _build(probe, 3)
    outputs = probe(*_triple(keys=4))
    probe.shape(outputs, batch=2, query=4, d_model=12)
    probe.same()


@several.step("there may be more keys than queries")
def _(probe):
    _build(probe, 3)
    probe(*_triple())
    probe.same()


@several.step("a mask holds for every head")
def _(probe):
    _build(probe, 3)
    mask = torch.rand(2, 4, 5) < 0.6
    mask[..., 0] = True  # every query may look at something
    _masked(probe, mask)


@several.step("as many sentences as heads, each with its own mask")
def _(probe):
    _build(probe, 2)
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None, None]
    _masked(probe, mask.expand(2, 4, 5))


@several.step("the layer does the same while it is trained")
def _(probe):
    _build(probe, 3).train()
    alike = probe.close(probe(*_triple()), probe.oracle())
    probe.require(
        alike,
        "dropout",
        "In training mode your layer returns something else. Is there still a dropout? "
        "This layer has none.",
    )


@several.step("gradients reach all four layers")
def _(probe):
    module = _build(probe, 3)
    probe(*_triple())
    probe.gradients(*(p for name, p in module.named_parameters() if name != "W_K.bias"))


terms = Exercise(
    "8.3",
    "Who said what",
    name="head_terms",
    returns="batch head token d_model",
    hints=[
        "The joined heads times W_Oᵀ: which rows of W_Oᵀ does head 0 meet?",
        "The first d_k rows of `W_O.weight.T` belong to head 0, the next to head 1.",
        "`rows = W_O.weight.T.reshape(num_heads, d_k, d_model)`; `context @ rows`.",
    ],
)


@terms.spec
def head_terms(context, W_O):
    """Let all heads but one be silent, one after the other."""
    batch, num_heads, tokens, d_k = context.shape
    found = []
    for head in range(num_heads):
        joined = context.new_zeros(batch, tokens, num_heads * d_k)
        joined[..., head * d_k : (head + 1) * d_k] = context[:, head]
        found.append(W_O(joined) - (0 if W_O.bias is None else W_O.bias))
    return torch.stack(found, dim=1)


@terms.step("each head adds what W_O makes of its numbers")
def _(probe):
    found = probe(torch.randn(2, 3, 5, 4), nn.Linear(12, 12))
    probe.shape(found, batch=2, head=3, token=5, d_model=12)
    probe.same()


@terms.step("the terms and the bias make up the output")
def _(probe):
    context, W_O = torch.randn(1, 2, 3, 4), nn.Linear(8, 8)
    found = probe(context, W_O)
    output = W_O(context.transpose(1, 2).flatten(2))
    probe.same(output, output=found.sum(dim=1) + W_O.bias)


pruning = Exercise(
    "8.4",
    "Prune",
    name="prune",
    fallback="tutorial_exercises.chapter_08.solutions:prune",
    hints=[
        "`kept = list(range(num_heads))`, and a loop that takes out one head at a "
        "time.",
        "Every candidate is `[head for head in kept if head != out]` for one `out` in "
        "`kept`; the best is `max(candidates, key=score)`.",
        "Stop when the best candidate's score is below `score(all) - loss`, with all "
        "heads in `all`, or when one head is left.",
    ],
)


@pruning.spec
def prune(score, num_heads, loss):
    """Score every candidate, and go on with the best while it is good enough."""
    kept = list(range(num_heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        scored = [(score([j for j in kept if j != i]), i) for i in kept]
        best, out = max(scored)
        if best < enough:
            break
        kept.remove(out)
    return kept


def _table(worth, pairs=()):
    """Return a score: what heads, and pairs of which one will do, are worth."""

    def score(kept):
        total = sum(worth[i] for i in kept)
        return total + sum(value * (i in kept or j in kept) for i, j, value in pairs)

    return score


def _keeps(num_heads, loss, worth, pairs=()):
    """Return a step that compares the kept heads with the oracle's."""

    def step(probe):
        kept = probe(_table(worth, pairs), num_heads, loss)
        is_list = isinstance(kept, (list, tuple, set))
        probe.require(is_list, "type", "Return the list of the heads that are kept.")
        probe.require(kept, "empty", "Keep at least one head.")
        probe.same(sorted(probe.oracle()), output=sorted(kept))

    return step


for _label, *_case in [
    ("a head that is worth nothing goes", 3, 0.02, [0.5, 0.001, 0.4]),
    (
        "of two heads of which one will do, one stays",
        3,
        0.05,
        [0.4, 0.01, 0.02],
        [(1, 2, 0.5)],
    ),
    (
        "the losses together stay within the limit",
        6,
        0.05,
        [0.04, 0.5, 0.03, 0.01, 0.012, 0.005],
        [(3, 4, 0.5)],
    ),
    # All sums of these are exact, so that two scores can be equal.
    ("a head may cost exactly as much as may be lost", 3, 0.0, [0.5, 0.0, 0.25]),
    ("the limit is a difference, not a ratio", 3, 0.05, [0.9, 0.06, 1.0]),
    (
        "one head after the other goes, whatever other sets would do",
        3,
        0.1,
        [0.0, 0.02, 0.03],
        [(0, 1, 0.4), (0, 2, 0.4)],
    ),
    ("several heads may go", 5, 0.05, [0.01, 0.5, 0.02, 0.004, 0.4]),
    ("one head is kept, whatever it is worth", 3, 2.0, [0.1, 0.3, 0.2]),
]:
    pruning.step(_label)(_keeps(*_case))


layer = Exercise(
    "8.5",
    "How much can one head say?",
    hints=[
        "The scores of a head are Q Kᵀ. How many columns has its Q?",
        "A product of a (100, d_k) and a (d_k, 100) matrix has rank d_k at most, for "
        "each of its rows is a sum of multiples of d_k rows.",
        "Four layers from 64 to 64 numbers, each with a bias of 64 numbers.",
    ],
)


@layer.spec
def one_layer():
    """Count the columns of a head, and the weights of four square layers."""
    one_head = torch.randn(100, 64 // 8) @ torch.randn(64 // 8, 100)
    rank = torch.linalg.matrix_rank(one_head).item()
    four = [nn.Linear(64, 64) for _ in range(4)]
    return {
        "rank": rank,
        "parameters": sum(p.numel() for one in four for p in one.parameters()),
    }
