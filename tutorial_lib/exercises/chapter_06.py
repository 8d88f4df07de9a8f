"""Checks for chapter 6: learning to align.

The definitions here are slow loops; this module does not know the vectorised ones.
Exercises 6.1, on looking and stepping, and 6.2, a question, stand in their own modules.
"""

import math

import torch
from torch import nn

from .chapter_06_error_mistakes import ERRORS
from .chapter_06_mistakes import COVERAGE, DOT
from .chapter_06_rows import rows
from .chapter_06_unroll import unrolling
from .exercise import Exercise

__all__ = ["covering", "dot", "errors", "rows", "unrolling"]

errors = Exercise(
    "6.3",
    "The alignment error rate",
    name="alignment_error",
    hints=[
        "First the links: of each row, the heaviest key, as a set of (row, key).",
        "A sure link is possible, too: `possible = possible | sure`.",
        "With sets, `links & sure` is the intersection and `len` counts it. All "
        "sentences share one numerator and one denominator.",
    ],
)


@errors.spec
def alignment_error(weights, sure, possible):
    """Count link by link: Och and Ney (2003), section 5."""
    hits = total = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        for i, row in enumerate(sentence.tolist()):
            link = (i, row.index(max(row)))
            hits += (link in certain) + (link in certain or link in allowed)
            total += 1
        total += len(certain)
    return 1 - hits / total


for code, message, answer in ERRORS:
    errors.misconception(code, message)(answer)

_LOOKS = torch.tensor(
    [[0.7, 0.2, 0.1], [0.3, 0.1, 0.6], [0.1, 0.5, 0.4], [0, 0.2, 0.8]]
)
_SURE = {(0, 0), (1, 1), (2, 1), (3, 2)}


def _rate(weights, sure, possible):
    """Return a step that compares the rate with the oracle's."""

    def step(probe):
        rate = probe(weights, sure, possible)
        is_number = isinstance(rate, (int, float)) or torch.is_tensor(rate)
        probe.require(is_number, "type", "Return one number.")
        probe.same(
            torch.tensor(float(probe.oracle())), output=torch.tensor(float(rate))
        )

    return step


for _label, *_case in [
    ("one sentence, sure links only", [_LOOKS], [_SURE], [_SURE]),
    ("possible links are no error", [_LOOKS], [_SURE], [{(1, 2), (1, 0), (0, 0)}]),
    (
        "several sentences are pooled, not averaged",
        [_LOOKS, _LOOKS[:1]],
        [_SURE, {(0, 1)}],
        [{(1, 2), (0, 0)}, set()],
    ),
]:
    errors.step(_label)(_rate(*_case))


dot = Exercise(
    "6.4",
    "A dot product instead",
    name="DotProductReader",
    returns="batch query d_v",
    hints=[
        "Queries through `self.W_Q`; the keys come projected already. Then both have "
        "d_hidden numbers.",
        "Scores: `Q @ projected_keys.transpose(-2, -1)`, divided by the root of "
        "d_hidden.",
        "`masked_softmax(scores, mask) @ values` does the rest.",
    ],
)


@dot.spec
class DotProductReader(nn.Module):
    """Read for one query at a time; hidden keys are left out."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Project the keys, then read."""
        return self.read(queries, self.W_K(keys), values, mask)

    def read(self, queries, projected_keys, values, mask=None):
        """Add up products, one pair at a time."""
        outputs = queries.new_zeros(*queries.shape[:2], values.shape[-1])
        everything = torch.ones(*queries.shape[:2], values.shape[1])
        seen = everything.bool() if mask is None else mask.expand(everything.shape)
        for b, i in torch.cartesian_prod(*map(torch.arange, queries.shape[:2])):
            query, keys = self.W_Q(queries[b, i]), projected_keys[b, seen[b, i]]
            scores = [(query * key).sum() / math.sqrt(len(query)) for key in keys]
            if scores:
                weights = torch.stack(scores).softmax(dim=0)
                outputs[b, i] = weights @ values[b, seen[b, i]]
        return outputs


for code, message, build in DOT:
    dot.misconception(code, message)(build(DotProductReader))


def _to_read():
    return [torch.randn(2, tokens, d) for tokens, d in ((4, 3), (5, 6), (5, 7))]


@dot.step("what is read is right, for queries and keys of different sizes")
def _(probe):
    probe.build(d_query=3, d_key=6, d_hidden=8)
    outputs = probe(*_to_read())
    probe.shape(outputs, batch=2, query=4, d_v=7)
    probe.same()


@dot.step("padding is not read")
def _(probe):
    probe.build(d_query=3, d_key=6, d_hidden=8)
    mask = (torch.arange(5) < torch.tensor([5, 2])[:, None])[:, None]
    probe(*_to_read(), mask)
    probe.same()


@dot.step("gradients reach both projections")
def _(probe):
    module = probe.build(d_query=3, d_key=6, d_hidden=8)
    probe(*_to_read())
    probe.gradients(*module.parameters())


covering = Exercise(
    "6.5",
    "What was read, and how much",
    name="coverage",
    returns="batch key",
    hints=[
        "A column belongs to a source word: add up over the rows.",
        "Rows beyond a target's length are padding, and their weights count for "
        "nothing: compare `torch.arange(weights.shape[1])` with the lengths.",
        "`is_word = torch.arange(weights.shape[1]) < lengths[:, None]` is "
        "(batch, query); multiply it into the weights with one more axis.",
    ],
)


@covering.spec
def coverage(weights, lengths):
    """Add up row after row, as long as there are words."""
    total = torch.zeros(weights.shape[0], weights.shape[2])
    for b, length in enumerate(lengths.tolist()):
        for i in range(length):
            total[b] += weights[b, i]
    return total


for code, message, answer in COVERAGE:
    covering.misconception(code, message)(answer)


@covering.step("one number for each source word")
def _(probe):
    weights = torch.randn(2, 4, 3).softmax(dim=-1)
    total = probe(weights, torch.tensor([4, 4]))
    probe.shape(total, batch=2, key=3)
    probe.same()


@covering.step("a sentence of so many words was given so much attention in all")
def _(probe):
    lengths = torch.tensor([5, 2, 3])
    probe(torch.randn(3, 5, 4).softmax(dim=-1), lengths)
    probe.same()
