"""Checks for chapter 7: self-attention, on sets and on graphs.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch
from torch.utils.flop_counter import FlopCounterMode

from tutorial_exercises.counting import Count
from tutorial_exercises.exercise import Exercise
from tutorial_exercises.probe import call_advising

__all__ = ["bill", "blind", "heard", "layer"]


_TURN = (
    "For the scores turn the last two axes of K around, and of nothing else: `K.mT`. "
    "`K.T` turns the batch around, too."
)
_ADDED = (
    "Two sizes do not fit. Is x added in the end? The layer's output alone is asked "
    "for. Or is K turned around by `K.T`? Take `K.mT`, which leaves the batch alone."
)

SELF_ERRORS = [  # (part of the error, code, message)
    (
        "cannot be multiplied",
        "matrix-side",
        "The matrices multiply from the right, as they are: `x @ W_Q`. Only PyTorch's "
        "`nn.Linear` keeps its matrix transposed.",
    ),
    ("batch2 tensor", "transpose", _TURN),
    ("must match the size", "transpose", _ADDED),
]

BOOLEANS = [  # what Python says, code, message
    (
        "'Bool'",
        "boolean-product",
        "Booleans have no matrix product. Turn the table into numbers first: "
        "`.float()`. If the result shall be boolean, ask which entries are `> 0`.",
    )
]


layer = Exercise(
    "7.1",
    "Self-attention from three matrices",
    name="self_attention",
    returns="batch token d_v",
    hints=[
        "Queries, keys and values are three products: x times each of the matrices.",
        "The scores are `Q @ K.transpose(-2, -1)`, divided by the root of d_k, the "
        "last size of K.",
        "`masked_softmax(scores, mask) @ V` does the rest.",
    ],
)


@layer.spec
def self_attention(x, W_Q, W_K, W_V, mask=None):
    """Score one pair of tokens at a time; what may not be seen is left out."""
    outputs = []
    for tokens in x:
        rows = [
            _read(token @ W_Q, tokens, W_K, W_V, None if mask is None else mask[i])
            for i, token in enumerate(tokens)
        ]
        outputs.append(torch.stack(rows))
    return torch.stack(outputs)


def _read(query, tokens, W_K, W_V, seen):
    visible = [token for j, token in enumerate(tokens) if seen is None or seen[j]]
    if not visible:
        return torch.zeros(W_V.shape[1])
    scores = [
        (query * (token @ W_K)).sum() / math.sqrt(len(query)) for token in visible
    ]
    powers = [torch.exp(score - max(scores)) for score in scores]
    values = [token @ W_V for token in visible]
    return sum(p * v for p, v in zip(powers, values, strict=True)) / sum(powers)


def _tokens(d_k=3, d_v=5):
    """Return x and three matrices, whose sizes all differ unless asked otherwise."""
    shapes = (2, 4, 6), (6, d_k), (6, d_k), (6, d_v)
    return [torch.randn(shape).requires_grad_() for shape in shapes]


@layer.step("the outputs are right")
def _(probe):
    outputs = call_advising(probe, _tokens(), SELF_ERRORS)
    probe.shape(outputs, batch=2, token=4, d_v=5)
    probe.same()


@layer.step("all sizes alike, so that what is read can be told apart")
def _(probe):
    probe(*_tokens(d_k=6, d_v=6))
    probe.same()


@layer.step("hidden tokens are not read")
def _(probe):
    mask = torch.tensor(
        [[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]], dtype=torch.bool
    )
    probe(*_tokens(), mask)
    probe.same()


@layer.step("a token that may look at nothing reads 0")
def _(probe):
    mask = torch.ones(4, 4).tril(-1).bool()  # token 0 may look at nothing
    read = probe(*_tokens(), mask)
    message = (
        "Where all scores are −∞, softmax divides 0 by 0. `masked_softmax` gives such "
        "a token weights of 0 (chapter 4)."
    )
    probe.require(not (torch.is_tensor(read) and read.isnan().any()), "nan", message)
    probe.same()


@layer.step("gradients reach the tokens and all three matrices")
def _(probe):
    arguments = _tokens()
    probe(*arguments)
    probe.gradients(*arguments)


blind = Exercise(
    "7.2",
    "Attention that does not look",
    name="blind_attention",
    returns="batch token d_v",
    fallback="tutorial_exercises.chapter_07.solutions:blind_attention",
    hints=[
        "If all scores are alike, what are the weights?",
        "Without a mask, every token reads the mean of all values; it is the same for "
        "every token.",
        "With a mask, divide each row of the mask by how many `True` it has, and "
        "multiply it with the values. A row without any must not divide by 0.",
    ],
)


@blind.spec
def blind_attention(x, W_V, mask=None):
    """Add up visible values, one by one, and divide by their number."""
    outputs = torch.zeros(*x.shape[:2], W_V.shape[1])
    for b, tokens in enumerate(x):
        for i in range(len(tokens)):
            visible = [j for j in range(len(tokens)) if mask is None or mask[i, j]]
            for j in visible:
                outputs[b, i] += (tokens[j] @ W_V) / len(visible)
    return outputs


@blind.step("without a mask")
def _(probe):
    read = probe(torch.randn(2, 4, 6), torch.randn(6, 5))
    probe.shape(read, batch=2, token=4, d_v=5)
    probe.same()


@blind.step("with a mask that is not symmetric")
def _(probe):
    mask = torch.tensor(
        [[1, 0, 0, 0], [1, 1, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=torch.bool
    )
    call_advising(probe, (torch.randn(2, 4, 6), torch.randn(6, 5), mask), BOOLEANS)
    probe.same()


@blind.step("a token that may look at nothing reads 0")
def _(probe):
    mask = torch.tensor([[1, 1, 0], [0, 0, 0], [0, 1, 1]], dtype=torch.bool)
    read = probe(torch.randn(2, 3, 6), torch.randn(6, 5), mask)
    message = (
        "A token that may look at nothing divides 0 by 0. Let it divide by 1 instead: "
        "`.clamp(min=1)`."
    )
    probe.require(not (torch.is_tensor(read) and read.isnan().any()), "nan", message)
    probe.same()


heard = Exercise(
    "7.3",
    "Who heard of whom",
    name="heard_of",
    returns="output input",
    hints=[
        "Before the first layer every node knows itself alone: the identity.",
        "One layer: a node knows what it knew and what those knew that it reads from. "
        "So give `reads` a diagonal first.",
        "With numbers instead of booleans this is a matrix product: "
        "`(table @ known > 0).float()`, once for each layer.",
    ],
)


@heard.spec
def heard_of(reads, layers):
    """Keep a set for each node and pass the sets on."""
    nodes = range(len(reads))
    known = [{i} for i in nodes]
    for _ in range(layers):
        known = [
            known[i].union(*(known[j] for j in nodes if reads[i, j])) for i in nodes
        ]
    return torch.tensor([[j in known[i] for j in nodes] for i in nodes])


def _chain(nodes):
    """Let each node read from the one before it, and the first from none."""
    return torch.ones(nodes, nodes).tril(-1).triu(-1).bool()


@heard.step("four layers, two and one on a directed chain")
def _(probe):
    for layers in (4, 2, 1):
        table = call_advising(probe, (_chain(10), layers), BOOLEANS)
        probe.shape(table, output=10, input=10)
        is_boolean = table.dtype == torch.bool
        message = (
            "Return booleans: the product counts the ways from node to node, and the "
            "question is whether there is one. Compare with 0."
        )
        probe.require(is_boolean, "counts", message)
        probe.same()


@heard.step("no layer at all: everyone knows themselves")
def _(probe):
    probe(_chain(4), 0)
    probe.same()


@heard.step("any graph")
def _(probe):
    for reads in (torch.rand(7, 7) < 0.2, (torch.rand(7, 7) < 0.5).triu()):
        probe(reads, 2)  # in the second, some nodes read from themselves
        probe.same()


bill = Exercise(
    "7.4",
    "The bill",
    name="flops_of",
    fallback="tutorial_exercises.chapter_07.solutions:flops_of",
    hints=[
        "A product of an (a, b) and a (b, c) matrix takes 2 · a · b · c FLOPs.",
        "Attention is two products: scores, (n, d) times (d, n), and outputs, (n, n) "
        "times (n, d).",
        "Restricted attention has 2r + 1 keys for each of n queries. A convolution "
        "multiplies each token with k matrices of d × d.",
    ],
)


@bill.spec
def flops_of(n, d, k, r):
    """Run the products of the layers and count."""
    x, matrix = torch.randn(n, d), torch.randn(d, d)
    keys = torch.randn(n, d, 2 * r + 1)
    runs = {
        "self-attention": lambda: (x @ x.T) @ x,
        "convolution": lambda: [x @ matrix for _ in range(k)],
        "restricted attention": lambda: (x[:, None] @ keys) @ keys.mT,
    }
    counted = {}
    for name, run in runs.items():
        with FlopCounterMode(display=False) as counter:
            run()
        counted[name] = counter.get_total_flops()
    return counted


COUNT = Count(("n", "d", "k", "r"))

_WHY = {
    "self-attention": "n² scores, each a sum of d products, and n · d outputs, each a "
    "sum of n products.",
    "convolution": "for each of n tokens, k matrices of d × d.",
    "restricted attention": "as self-attention, but each of n queries has 2r + 1 keys.",
}


def _price(name):
    """Return a step that looks at one entry."""

    def step(probe):
        for sizes in ((7, 5, 3, 2), (4, 6, 5, 1), (2, 4, 3, 3)):
            prices = probe(*sizes)
            named = isinstance(prices, dict) and set(prices) == set(_WHY)
            message = f"Return a dictionary with three entries: {', '.join(_WHY)}."
            probe.require(named, "parts", message)
            if prices[name] != probe.oracle()[name]:
                _, terms = COUNT.difference(probe, *sizes, of=name)
                why = f"{_WHY[name]} A multiplication and an addition are two."
                probe.fail(name, f"{name}: {why} {terms}".rstrip())

    return step


for name in _WHY:
    bill.step(name)(_price(name))
