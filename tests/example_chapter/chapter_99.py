"""A chapter that exists only here, one exercise of every kind.

The tests add this folder to the package's path, so it is found as a chapter is.
"""

import math

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_lib.attention import masked_softmax


@Exercise("99.1", "How large do scores get?", tolerance=0.1)
def standard_deviation():
    """The variances of 64 independent products add up to 64, whose root is 8."""
    return 8.0


@standard_deviation.oracle
def _():
    return math.sqrt(sum(1 for _ in range(64)))


standard_deviation.hints = """
- Variances of independent terms add up.
- 64 terms of variance 1 each.
"""

standard_deviation.mistakes = """
64 is the variance of q·k: take its root.
    return 8.0 → return 64
The root of 64 is 8, not of 100.
    return 8.0 → return 10
"""


@Exercise("99.2", "Masked softmax", axes="batch query key")
def example_softmax(scores, mask=None):
    """Return the softmax over the keys, with weight 0 where mask is False."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


@example_softmax.oracle
def _(scores, mask=None):
    mask = torch.ones_like(scores) if mask is None else mask.expand_as(scores)
    powers = scores.double().sub(scores.amax()).exp() * mask
    return (powers / powers.sum(dim=-1, keepdim=True)).float()


@example_softmax.cases
def _():
    yield "weights are right without a mask", torch.randn(2, 3, 4)
    past = torch.ones(4, 4, dtype=torch.bool).tril()
    yield "masked keys get weight 0", torch.randn(2, 4, 4), past
    mask = torch.arange(4) < torch.tensor([4, 2])[:, None]
    yield "each sentence may have its own mask", torch.randn(2, 3, 4), mask[:, None]


@example_softmax.demand("large scores do not overflow")
def _(answer):
    answer(torch.tensor([[[1000.0, 999.0]]]))
    return answer.same()


example_softmax.hints = """
- A score of −∞ becomes a weight of exactly 0.
- `scores.masked_fill(~mask, -torch.inf)` hides where the mask is False.
- Which axis holds the keys? That is the axis to normalize over.
"""

example_softmax.mistakes = """
Your mask is inverted: True means may attend, and you hide those positions.
    ~mask → mask
You zero the masked weights after the softmax, so the rest of the row no longer sums to
1. Mask the scores before the softmax.
    scores = scores.masked_fill(~mask, -torch.inf) → return scores.softmax(-1) * mask
Your result is the same with and without a mask.
    mask is not None → False
The mask is (query, key), and you need an axis for the batch: nothing broadcasts here.
    ~mask → ~mask.T[:3]
right:
    -torch.inf → -1e9
    return torch.softmax(scores, dim=-1) → powers = (scores - scores.amax(-1, True)).exp()
        return powers / powers.sum(-1, True)
"""


@Exercise(
    "99.3",
    "Scaled dot-product attention",
    axes={"outputs": "batch query d_v", "weights": "batch query key"},
)
def example_attention(queries, keys, values, mask=None):
    """Return softmax(QKᵀ / √d_k) V and the weights."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


@example_attention.oracle
def _(queries, keys, values, mask=None):
    scores = torch.einsum("bqd,bkd->bqk", queries, keys) / math.sqrt(keys.shape[-1])
    weights = example_softmax.definition(scores, mask)
    return torch.einsum("bqk,bkd->bqd", weights, values), weights


def made(queries=3, keys=5, d_k=4, d_v=7):
    """Make queries, keys and values of two sentences."""
    sizes = [(queries, d_k), (keys, d_k), (keys, d_v)]
    return [torch.randn(2, *size, requires_grad=True) for size in sizes]


@example_attention.cases
def _():
    yield "outputs and weights are right", *made()
    past = torch.ones(4, 4, dtype=torch.bool).tril()
    yield "the future cannot leak into the past", *made(4, 4), past


@example_attention.demand("gradients reach queries, keys and values")
def _(answer):
    inputs = made()
    answer.output, _ = answer(*inputs)
    answer.gradients(*inputs)


example_attention.hints = """
- Three steps: scores, weights, and the weighted sum of the values.
"""

example_attention.mistakes = """
You did not divide the scores by √d_k.
    (-2, -1) / keys.shape[-1] ** 0.5 → (-2, -1)
Divide by √d_k, not by d_k.
    keys.shape[-1] ** 0.5 → keys.shape[-1]
Divide by √d_k, not by √d_v.
    keys.shape[-1] → values.shape[-1]
"""


@Exercise("99.4", "Additive scores", axes="query key")
class ExampleScores(nn.Module):
    """Additive scores: wᵀ tanh(W_query q + W_key k) for every query and key."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_hidden, bias=False)
        self.W_key = nn.Linear(d_key, d_hidden, bias=False)
        self.w_score = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys):
        hidden = self.W_query(queries)[:, None] + self.W_key(keys)
        return self.w_score(torch.tanh(hidden)).squeeze(-1)


@ExampleScores.oracle
class _(nn.Module):
    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_hidden, bias=False)
        self.W_key = nn.Linear(d_key, d_hidden, bias=False)
        self.w_score = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys):
        scores = torch.zeros(len(queries), len(keys))
        for i, query in enumerate(self.W_query(queries)):
            for j, key in enumerate(self.W_key(keys)):
                scores[i, j] = self.w_score(torch.tanh(query + key)).squeeze()
        return scores


@ExampleScores.cases
def _():
    yield "scores are right", (3, 5, 4), torch.randn(2, 3), torch.randn(6, 5)


@ExampleScores.demand("gradients reach every weight")
def _(answer):
    module = answer.build(3, 5, 4)
    answer(torch.randn(2, 3), torch.randn(6, 5))
    answer.gradients(*module.parameters())


ExampleScores.hints = """
- Both projections first, then their sum for every pair.
"""

ExampleScores.mistakes = """
Without tanh the score is linear in query and key.
    torch.tanh(hidden) → hidden
The keys' projection has no bias.
    nn.Linear(d_key, d_hidden, bias=False) → nn.Linear(d_key, d_hidden)
right:
    self.w_score(torch.tanh(hidden)).squeeze(-1) → torch.tanh(hidden) @ self.w_score.weight[0]
"""
