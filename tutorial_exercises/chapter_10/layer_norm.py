"""Checks for chapter 10: layer norm.

The definition here is a slow loop; this module does not know the vectorized one.
"""

import contextlib
from unittest import mock

import torch

from tutorial_exercises.exercise import Exercise, Wrong


@contextlib.contextmanager
def watched(owner, name):
    """Note the calls of a function in a list, which stays empty if there are none."""
    calls, original = [], getattr(owner, name)

    def noted(*args, **kwargs):
        calls.append(name)
        return original(*args, **kwargs)

    with mock.patch.object(owner, name, noted):
        yield calls


norm = Exercise(
    "10.1",
    "Layer norm",
    name="normalize_layer",
    returns="batch token d_model",
    hints=[
        "Mean and variance of each token: average over the last axis, and keep it "
        "with `keepdim=True`, so that the shapes fit.",
        "`x.var(dim=-1, correction=0, keepdim=True)` divides by d_model.",
        "Divide `x - mean` by the root of `variance + epsilon`; gamma and beta come "
        "last, in the order of the equation.",
    ],
)


@norm.spec
def normalize_layer(x, gamma, beta, epsilon=1e-5):
    """Normalize one token after the other."""
    tokens = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = sum(token) / len(token)
        variance = sum((number - mean) ** 2 for number in token) / len(token)
        tokens.append((token - mean) / (variance + epsilon) ** 0.5 * gamma + beta)
    return torch.stack(tokens).reshape(x.shape)


@norm.step("each token by itself, with mean 0 and variance 1")
def _(probe):
    x = 3 * torch.randn(2, 5, 4) + 1
    with watched(torch, "layer_norm") as calls:
        normalized = _with_advice(probe, x, torch.ones(4), torch.zeros(4))
    probe.shape(normalized, batch=2, token=5, d_model=4)
    probe.same()
    probe.require(
        not calls,
        "ready-made",
        "You call torch's own layer norm. The right numbers come out, but write the "
        "equation itself: mean, variance, root.",
    )


def _with_advice(probe, *arguments):
    """Call the answer; where shapes do not fit, ask for the most usual reason."""
    try:
        return probe(*arguments)
    except Wrong as wrong:
        if wrong.code != "error" or "size of tensor" not in wrong.message:
            raise
        advice = "\nDo mean and variance keep the last axis, with `keepdim=True`?"
        raise Wrong("no-keepdim", wrong.message + advice) from None


@norm.step("gamma and beta do their work")
def _(probe):
    probe(torch.randn(2, 3, 6), torch.rand(6) + 0.5, torch.randn(6))
    probe.same()


@norm.step("epsilon counts where a token's numbers are nearly equal")
def _(probe):
    probe(0.1 * torch.randn(2, 3, 4), torch.ones(4), torch.zeros(4), 0.04)
    probe.same()


@norm.step("a token of equal numbers becomes beta")
def _(probe):
    x, beta = torch.full((1, 2, 4), 5.0), torch.randn(4)
    probe(x, torch.ones(4), beta)
    probe.same()


@norm.step("without another it is 1e-5")
def _(probe):
    probe(0.01 * torch.randn(2, 3, 4), torch.ones(4), torch.zeros(4))
    probe.same()


@norm.step("also for axes other than (batch, token, d_model)")
def _(probe):
    probe(torch.randn(2, 2, 3, 4), torch.ones(4), torch.zeros(4))
    try:
        probe.same()
    except Wrong:
        raise Wrong(
            "fixed-axis",
            "With three axes it is right, with four it is not: you count the axis from "
            "the front. Count it from the end: `dim=-1`.",
        ) from None


@norm.step("gradients reach tokens, gamma and beta")
def _(probe):
    x = torch.randn(2, 3, 4, requires_grad=True)
    gamma, beta = (torch.randn(4, requires_grad=True) for _ in range(2))
    probe(x, gamma, beta)
    found, *_ = probe.gradients(x, gamma, beta)
    (right,) = torch.autograd.grad(normalize_layer(x, gamma, beta).sum(), x)
    probe.require(
        probe.close(found, right, 1e-4),
        "cut-gradient",
        "The output is right, but its gradient is not: mean and variance depend on the "
        "tokens, too, and a `.detach()` or `torch.no_grad()` hides that.",
    )
