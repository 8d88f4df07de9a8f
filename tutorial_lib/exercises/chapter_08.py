"""Checks for chapter 8: many looks at once.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import torch
from torch import nn

from .chapter_08_layer import several
from .chapter_08_mistakes import HEADS, SPLIT, TERMS
from .chapter_08_prune_mistakes import PRUNE
from .exercise import Exercise

__all__ = ["layer", "pruning", "several", "splitting", "terms"]

splitting = Exercise(
    "8.1",
    "Split the heads",
    name="split_heads",
    returns="batch head token d_k",
    hints=[
        "First cut the last axis alone: (batch, token, head, d_k). Nothing moves.",
        "Then the token axis and the head axis change places.",
        "`x.view(batch, token, heads, d_k).transpose(1, 2)`, or with rearrange "
        '`"batch token (head d_k) -> batch head token d_k"`.',
    ],
)


@splitting.spec
def split_heads(x, heads):
    """Put every number where it belongs, one after the other."""
    d_k = x.shape[-1] // heads
    parts = x.new_zeros(x.shape[0], heads, x.shape[1], d_k)
    for head in range(heads):
        for i in range(d_k):
            parts[:, head, :, i] = x[:, :, head * d_k + i]
    return parts


for code, message, answer in SPLIT:
    splitting.misconception(code, message)(answer)


@splitting.step("every head gets its own columns of every token")
def _(probe):
    parts = probe(torch.randn(2, 5, 12), 3)
    probe.shape(parts, batch=2, head=3, token=5, d_k=4)
    probe.same()


@splitting.step("also for inputs that do not lie in one piece of memory")
def _(probe):
    probe(torch.randn(6, 2, 4).transpose(0, 1), 2)
    probe.same()


terms = Exercise(
    "8.3",
    "Who said what",
    name="head_terms",
    returns="batch head token d_model",
    hints=[
        "The joined heads times W_Oᵀ: which rows of W_Oᵀ does head 0 meet?",
        "The first d_k rows of `W_O.weight.T` belong to head 0, the next to head 1.",
        "`rows = W_O.weight.T.reshape(heads, d_k, d_model)`; `context @ rows`.",
    ],
)


@terms.spec
def head_terms(context, W_O):
    """Let all heads but one be silent, one after the other."""
    batch, heads, tokens, d_k = context.shape
    found = []
    for head in range(heads):
        joined = context.new_zeros(batch, tokens, heads * d_k)
        joined[..., head * d_k : (head + 1) * d_k] = context[:, head]
        found.append(W_O(joined) - (0 if W_O.bias is None else W_O.bias))
    return torch.stack(found, dim=1)


for code, message, answer in TERMS:
    terms.misconception(code, message)(answer)


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
    fallback="tutorial_lib.exercises.solutions.chapter_08:prune",
    hints=[
        "`kept = list(range(heads))`, and a loop that takes out one head at a time.",
        "Every candidate is `[head for head in kept if head != out]` for one `out` in "
        "`kept`; the best is `max(candidates, key=score)`.",
        "Stop when the best candidate's score is below `score(all) - loss`, with all "
        "heads in `all`, or when one head is left.",
    ],
)


@pruning.spec
def prune(score, heads, loss):
    """Score every candidate, and go on with the best while it is good enough."""
    kept = list(range(heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        scored = [(score([j for j in kept if j != i]), i) for i in kept]
        best, out = max(scored)
        if best < enough:
            break
        kept.remove(out)
    return kept


for code, message, answer in PRUNE:
    pruning.misconception(code, message)(answer)


def _table(worth, pairs=()):
    """Return a score: what heads, and pairs of which one will do, are worth."""

    def score(kept):
        total = sum(worth[i] for i in kept)
        return total + sum(value * (i in kept or j in kept) for i, j, value in pairs)

    return score


def _keeps(heads, loss, worth, pairs=()):
    """Return a step that compares the kept heads with the oracle's."""

    def step(probe):
        kept = probe(_table(worth, pairs), heads, loss)
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


for code, message, answer in HEADS:
    layer.misconception(code, message)(lambda answer=answer: answer)
