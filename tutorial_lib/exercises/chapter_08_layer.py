"""Checks for the second exercise of chapter 8: a layer with seven bugs.

The definition here goes query by query; this module does not know the fast layer.
"""

import torch
from torch import nn

from .chapter_08_layer_mistakes import LAYER
from .exercise import Exercise, Wrong

several = Exercise(
    "8.2",
    "Seven bugs",
    name="SeveralHeads",
    returns="batch query d_model",
    hints=[
        "`d_k = d_model // heads` in `__init__`, but each of the four layers is "
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

    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, queries, keys, values, mask=None):
        """Go through sentences, heads and queries."""
        Q, K, V = self.W_Q(queries), self.W_K(keys), self.W_V(values)
        d_k, joined = Q.shape[-1] // self.heads, torch.zeros_like(Q)
        for b in range(len(Q)):
            for start in range(0, Q.shape[-1], d_k):
                own = slice(start, start + d_k)
                for i, query in enumerate(Q[b, :, own]):
                    seen = slice(None) if mask is None else mask[b, i]
                    scores = (K[b, seen, own] * query).sum(dim=1) / d_k**0.5
                    shares = scores.softmax(dim=0)[:, None]
                    joined[b, i, own] = (shares * V[b, seen, own]).sum(dim=0)
        return self.W_O(joined)


for code, message, answer in LAYER:
    several.misconception(code, message)(answer(SeveralHeads))


def _triple(queries=4, keys=5):
    return [torch.randn(2, count, 12) for count in (queries, keys, keys)]


def _build(probe, heads):
    """Build a layer; where its parameters differ, say first what they should be."""
    try:
        return probe.build(12, heads)
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
