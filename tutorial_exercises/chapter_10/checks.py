"""Checks for chapter 10: the Transformer block.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import torch
from torch import nn

from tutorial_exercises.counting import Count
from tutorial_exercises.exercise import Exercise
from tutorial_exercises.probe import call_advising

from .layer_norm import norm, watched

__all__ = ["block", "counting", "leaking", "norm"]

leaking = Exercise(
    "10.4",
    "Find the leak",
    name="leak",
    hints=[
        "`layer(x)[i]` is sentence i read in the batch. How do you get it read alone?",
        "Alone it is still a batch, of one: `layer(x[i : i + 1])`.",
        "Join what comes out for all sentences with `torch.cat([...])`. A difference "
        "may be negative; what counts is how far it is from 0.",
    ],
)


@leaking.spec
def leak(layer, x):
    """Compare every number, one after the other."""
    together, largest = layer(x), torch.zeros(())
    for i in range(len(x)):
        alone = layer(x[i : i + 1])
        for number, other in zip(
            together[i].flatten(), alone[0].flatten(), strict=True
        ):
            largest = torch.maximum(largest, (number - other).abs())
    return largest


MODE = (
    "object has no attribute",
    "mode",
    "`layer` may be any function. Call it as it is: in evaluation mode batch norm "
    "looks at no neighbor, and its leak would stay unseen.",
)


def _finds(layer):
    """Return a step that compares what is found in a layer with the oracle's."""

    def step(probe):
        found = call_advising(probe, (layer, torch.randn(4, 3, 5)), [MODE])
        right = torch.as_tensor(probe.oracle()).detach()
        message = (
            "Return how large the largest difference is, not whether there is one."
        )
        probe.require(not _is_truth(found), "yes-or-no", message)
        message = (
            "You find nothing, though what this layer does to a sentence depends on "
            "the others. Compare with what it does to it alone: `x[i : i + 1]`."
        )
        missed = probe.close(found, 0.0) and not probe.close(right, 0.0)
        probe.require(not missed, "not-found", message)
        if isinstance(found, (float, int)):
            found = torch.tensor(float(found))
        probe.same(right, output=found)

    return step


def _is_truth(found):
    return isinstance(found, bool) or getattr(found, "dtype", None) == torch.bool


def _among_tokens(x):
    """Mix the tokens of a sentence, as attention does: no leak."""
    return 2 * x + x.mean(dim=1, keepdim=True)


def _less_the_batch(x):
    return x - x.mean(dim=(0, 1))


def _pushed(sign):
    """Return a layer that pushes each sentence the more, the more others there are.

    The first push, the last, the largest and the largest downward all differ.
    """
    pushes = sign * torch.tensor([2.0, -7.0, 6.0, 4.0])

    def layer(x):
        others, columns = len(x) - 1, torch.arange(1.0, x.shape[-1] + 1)
        return _among_tokens(x) + others * pushes[: len(x), None, None] * columns

    return layer


for _label, _layer in [
    ("no leak in a layer that mixes the tokens of a sentence", _among_tokens),
    ("a leak into all sentences, most into the second", _pushed(1)),
    ("the same leak with the other sign", _pushed(-1)),
    ("a leak through the mean of the batch", _less_the_batch),
]:
    leaking.step(_label)(_finds(_layer))


block = Exercise(
    "10.2",
    "Both orders",
    name="run_block",
    returns="batch token d_model",
    hints=[
        "Two halves of the same form: the first with attention and the first norm, "
        "the second with the network and the second norm.",
        "Pre-norm: `y = first(x)`, then `x = x + attention(y, y, y)`. Post-norm: "
        "`x = first(x + attention(x, x, x))`.",
        "The second half begins with the `x` that the first one made.",
    ],
)


@block.spec
def run_block(x, attention, feed_forward, norms, *, norm_first):
    """Compute the change of each half, then add and normalize in the order asked."""
    first, second = norms
    read = first(x) if norm_first else x
    x = x + attention(read, read, read)
    if not norm_first:
        x = first(x)
    x = x + feed_forward(second(x) if norm_first else x)
    return x if norm_first else second(x)


def _parts():
    """Make an attention, a network and two norms, all different from 1 and 0."""
    mix, W_1, W_2 = torch.randn(4, 6), torch.randn(6, 6), torch.randn(6, 6)

    def attention(queries, keys, values):
        weights = (queries @ keys.mT / 6**0.5).softmax(dim=-1)
        return weights @ values + queries * mix[0]

    norms = [nn.LayerNorm(6), nn.LayerNorm(6)]
    for layer in norms:
        nn.init.normal_(layer.weight, 1, 0.5)
        nn.init.normal_(layer.bias)
    return attention, lambda x: torch.relu(x @ W_1) @ W_2, norms


for _label, _first in [("pre-norm", True), ("post-norm", False)]:

    @block.step(_label)
    def _(probe, norm_first=_first):
        outputs = probe(2 * torch.randn(2, 3, 6), *_parts(), norm_first=norm_first)
        probe.shape(outputs, batch=2, token=3, d_model=6)
        probe.same()


@block.step("gradients reach the tokens")
def _(probe):
    x = torch.randn(2, 3, 6, requires_grad=True)
    probe(x, *_parts(), norm_first=True)
    probe.gradients(x)


counting = Exercise(
    "10.3",
    "Count before you build",
    name="block_parameters",
    hints=[
        "Attention has W_Q, W_K, W_V and W_O, each d_model × d_model with a bias.",
        "The network goes from d_model to d_ff and back, with a bias each time.",
        "Two norms with gamma and beta: 4 · d_model.",
    ],
)


@counting.spec
def block_parameters(d_model, d_ff):
    """Add up the linear layers, as (columns in, columns out), and the norms."""
    total = 2 * (d_model + d_model)
    for inputs, outputs in [(d_model, d_model)] * 4 + [
        (d_model, d_ff),
        (d_ff, d_model),
    ]:
        total += (inputs + 1) * outputs
    return total


COUNT = Count(
    ("d_model", "d_ff"),
    about={
        "d_model²": "the matrices of attention",
        "d_model·d_ff": "the matrices of the network",
        "d_ff": "biases of the network",
        "d_model": "the biases of every layer that ends in d_model numbers, and what "
        "the norms learn",
    },
)


@counting.step("a block with d_model = 6 and d_ff = 32, without building it")
def _(probe):
    with watched(nn.Module, "__init__") as calls:
        probe(6, 32)
    probe.require(
        not calls,
        "built",
        "You build layers and count. Count before you build: a formula of d_model and "
        "d_ff needs none.",
    )
    COUNT.expect(probe, 6, 32)


for _label, *_sizes in [
    ("a block with d_model = 5 and d_ff = 3", 5, 3),
    ("the block of Vaswani et al. (2017)", 512, 2048),
]:

    @counting.step(_label)
    def _(probe, sizes=tuple(_sizes)):
        COUNT.expect(probe, *sizes)
