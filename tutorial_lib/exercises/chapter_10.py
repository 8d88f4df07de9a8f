"""Checks for chapter 10: the Transformer block.

The definitions here are slow loops; this module does not know the vectorised ones.
"""

import torch
from torch import nn

from .chapter_10_mistakes import AVERAGED, BLOCK, COUNT, LEAK, NORM
from .exercise import Exercise

__all__ = ["averages", "block", "counting", "leaking", "norm"]

averages = Exercise(
    "10.1",
    "How many are averaged?",
    hints=[
        "Look at the figure with the two grids: the dark cells of a panel go into one "
        "mean. How many such groups are there?",
        "Layer norm: one mean for every token, of its d_model numbers.",
        "Batch norm: one mean for every one of the d_model columns, of the 32 · 18 "
        "tokens in it.",
    ],
)


@averages.spec
def averaged():
    """Average once, and count."""
    x = torch.ones(32, 18, 64)
    found = {}
    for name, dims in (("layer norm", (2,)), ("batch norm", (0, 1))):
        means = x.mean(dim=dims).numel()
        found[name] = {"numbers in a mean": x.numel() // means, "means": means}
    return found


for code, message, answer in AVERAGED:
    averages.misconception(code, message)(lambda answer=answer: answer)


norm = Exercise(
    "10.2",
    "Layer norm",
    name="normalize_layer",
    returns="batch token d_model",
    hints=[
        "Mean and variance of each token: average over the last axis, and keep it "
        "with `keepdim=True`, so that the shapes fit.",
        "`x.var(dim=-1, correction=0, keepdim=True)` divides by d_model.",
        "`(x - mean) / (variance + epsilon).sqrt() * gamma + beta`",
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


for code, message, answer in NORM:
    norm.misconception(code, message)(answer)


@norm.step("each token by itself, with mean 0 and variance 1")
def _(probe):
    normalized = probe(3 * torch.randn(2, 5, 4) + 1, torch.ones(4), torch.zeros(4))
    probe.shape(normalized, batch=2, token=5, d_model=4)
    probe.same()


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


@norm.step("also for axes other than (batch, token, d_model)")
def _(probe):
    probe(torch.randn(2, 2, 3, 4), torch.ones(4), torch.zeros(4))
    probe.same()


@norm.step("gradients reach tokens, gamma and beta")
def _(probe):
    x = torch.randn(2, 3, 4, requires_grad=True)
    gamma, beta = (torch.randn(4, requires_grad=True) for _ in range(2))
    probe(x, gamma, beta)
    probe.gradients(x, gamma, beta)


leaking = Exercise(
    "10.3",
    "Find the leak",
    name="leak",
    hints=[
        "`layer(x)[i]` is sentence i read in the batch. How do you get it read alone?",
        "Alone it is still a batch, of one: `layer(x[i : i + 1])`.",
        "Join the outputs with `torch.cat([...])` over all sentences, and take "
        "`(together - alone).abs().max()`.",
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


for code, message, answer in LEAK:
    leaking.misconception(code, message)(answer)


def _finds(layer):
    """Return a step that compares what is found in a layer with the oracle's."""

    def step(probe):
        found = probe(layer, torch.randn(4, 3, 5))
        if isinstance(found, (float, int)):
            found = torch.tensor(float(found))
        probe.same(torch.as_tensor(probe.oracle()).detach(), output=found)

    return step


def _among_tokens(x):
    """Mix the tokens of a sentence, as attention does: no leak."""
    return 2 * x + x.mean(dim=1, keepdim=True)


def _less_the_batch(x):
    return x - x.mean(dim=(0, 1))


def _into_the_last(x):
    """Let the first sentence leak into the last one, and nowhere else."""
    return x + torch.cat([torch.zeros_like(x[1:]), x[:1] * (len(x) > 1)])


for _label, _layer in [
    ("no leak in a layer that mixes the tokens of a sentence", _among_tokens),
    ("a leak through the mean of the batch", _less_the_batch),
    ("a leak into the last sentence alone", _into_the_last),
    ("a leak that makes all numbers smaller", lambda x: 3 * x - (len(x) - 1)),
    ("a leak that makes all numbers larger", lambda x: 3 * x + (len(x) - 1)),
]:
    leaking.step(_label)(_finds(_layer))


block = Exercise(
    "10.4",
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


for code, message, answer in BLOCK:
    block.misconception(code, message)(answer)


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
    "10.5",
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


for code, message, answer in COUNT:
    counting.misconception(code, message)(answer)


for _label, *_sizes in [
    ("a block with d_model = 6 and d_ff = 32", 6, 32),
    ("a block with d_model = 5 and d_ff = 3", 5, 3),
    ("the block of Vaswani et al. (2017)", 512, 2048),
]:

    @counting.step(_label)
    def _(probe, sizes=tuple(_sizes)):
        probe(*sizes)
        probe.same()
