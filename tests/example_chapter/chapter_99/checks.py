"""Checks of a chapter that exists only here: one exercise of every kind.

The tests add this folder to the package's path, so it is found as a chapter is.
"""

import math

import torch
from torch import nn

from tutorial_exercises import Exercise

spread = Exercise(
    "99.1",
    "How large do scores get?",
    tolerance=0.1,
    hints=["Variances of independent terms add up.", "64 terms of variance 1 each."],
)


@spread.spec
def standard_deviation():
    return math.sqrt(sum(1 for _ in range(64)))


softmax = Exercise(
    "99.2",
    "Masked softmax",
    name="example_softmax",
    returns="batch query key",
    fallback="tutorial_lib.attention:masked_softmax",
    hints=[
        "A score of −∞ becomes a weight of exactly 0.",
        "`scores.masked_fill(~mask, -torch.inf)` hides where the mask is False.",
        "Which axis holds the keys? That is the axis to normalise over.",
    ],
)


@softmax.spec
def example_softmax(scores, mask=None):
    weights = torch.zeros_like(scores)
    rows = torch.cartesian_prod(*map(torch.arange, scores.shape[:2])).tolist()
    for b, i in rows:
        row = scores[b, i].tolist()
        looks = [True] * len(row) if mask is None else mask.expand_as(scores)[b, i]
        seen = [j for j in range(len(row)) if looks[j]]
        largest = max(row[j] for j in seen)
        total = sum(math.exp(row[j] - largest) for j in seen)
        for j in seen:
            weights[b, i, j] = math.exp(row[j] - largest) / total
    return weights


def past(tokens):
    """Return the (query, key) mask that lets nobody look ahead."""
    return torch.ones(tokens, tokens, dtype=torch.bool).tril()


@softmax.step("one weight for each query and key")
def _(probe):
    probe.shape(probe(torch.randn(2, 3, 4)), batch=2, query=3, key=4)


@softmax.step("every row sums to 1")
def _(probe):
    probe.sums_to_one(probe(torch.randn(2, 4, 4)))


@softmax.step("weights are right without a mask")
def _(probe):
    probe(torch.randn(2, 3, 4))
    probe.same()


@softmax.step("masked keys get weight 0")
def _(probe):
    probe(torch.randn(2, 4, 4), past(4))
    probe.same()


@softmax.step("each sentence may have its own mask")
def _(probe):
    lengths = torch.tensor([4, 2])
    probe(torch.randn(2, 3, 4), (torch.arange(4) < lengths[:, None])[:, None])
    probe.same()


@softmax.step("large scores do not overflow")
def _(probe):
    probe.sums_to_one(probe(torch.tensor([[[1000.0, 999.0, -1000.0]]])))
    probe.same()


attention = Exercise(
    "99.3",
    "Scaled dot-product attention",
    name="example_attention",
    returns={"outputs": "batch query d_v", "weights": "batch query key"},
    needs=["example_softmax"],
    fallback="tutorial_lib.attention:scaled_dot_product_attention",
    hints=["Three steps: scores, weights, and the weighted sum of the values."],
)


@attention.spec
def example_attention(queries, keys, values, mask=None):
    scores = torch.zeros(*queries.shape[:2], keys.shape[1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        scores[b, i, j] = (queries[b, i] * keys[b, j]).sum() / keys.shape[-1] ** 0.5
    weights = example_softmax(scores, mask)
    outputs = torch.zeros(*queries.shape[:2], values.shape[-1])
    for b, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        outputs[b, i] += weights[b, i, j] * values[b, j]
    return outputs, weights


def query_key_value(queries=3, keys=5, d_k=4, d_v=7):
    """Return random queries, keys and values for two sentences."""
    sizes = [(queries, d_k), (keys, d_k), (keys, d_v)]
    return [torch.randn(2, *size, requires_grad=True) for size in sizes]


@attention.step("one output for each query, as wide as a value")
def _(probe):
    outputs, weights = probe(*query_key_value())
    probe.shape(outputs, batch=2, query=3, d_v=7)
    probe.shape(weights, batch=2, query=3, key=5)


@attention.step("outputs and weights are right")
def _(probe):
    probe(*query_key_value())
    probe.same()


@attention.step("the future cannot leak into the past")
def _(probe):
    queries, keys, values = query_key_value(4, 4)
    before, _ = probe(queries, keys, values, past(4))
    louder = values + torch.tensor([0.0, 0.0, 0.0, 9.0])[:, None]
    after, _ = probe(queries, keys, louder, past(4))
    probe.require(
        probe.close(before[:, :-1], after[:, :-1]),
        "leak",
        "Changing the last value changed the output of earlier queries.",
    )


@attention.step("gradients reach queries, keys and values")
def _(probe):
    inputs = query_key_value()
    outputs, _ = probe(*inputs)
    probe.gradients(*inputs, output=outputs)


additive = Exercise(
    "99.4",
    "Additive scores",
    name="ExampleScores",
    returns="query key",
    hints=["Both projections first, then their sum for every pair."],
)


@additive.spec
class ExampleScores(nn.Module):
    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_hidden, bias=False)
        self.W_key = nn.Linear(d_key, d_hidden, bias=False)
        self.w_score = nn.Linear(d_hidden, 1, bias=False)

    def activation(self, hidden):
        return torch.tanh(hidden)

    def forward(self, queries, keys):
        scores = torch.zeros(len(queries), len(keys))
        for i, query in enumerate(queries):
            for j, key in enumerate(keys):
                hidden = self.activation(self.W_query(query) + self.W_key(key))
                scores[i, j] = self.w_score(hidden)
        return scores


@additive.step("one score for each query and key")
def _(probe):
    probe.build(d_query=3, d_key=5, d_hidden=4)
    scores = probe(torch.randn(2, 3), torch.randn(6, 5))
    probe.shape(scores, query=2, key=6)


@additive.step("scores are right")
def _(probe):
    probe.build(d_query=3, d_key=5, d_hidden=4)
    probe(torch.randn(2, 3), torch.randn(6, 5))
    probe.same()


@additive.step("gradients reach every weight")
def _(probe):
    module = probe.build(d_query=3, d_key=5, d_hidden=4)
    probe(torch.randn(2, 3), torch.randn(6, 5))
    probe.gradients(*module.parameters())
