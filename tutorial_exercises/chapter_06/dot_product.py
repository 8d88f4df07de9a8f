"""The check of chapter 6's attention by dot products.

The definition here reads for one query at a time.
"""

import math

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise
from tutorial_exercises.probe import call_advising
from tutorial_lib.masks import padding_mask

dot = Exercise(
    "6.4",
    "A dot product instead",
    name="DotProductAttention",
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
class DotProductAttention(nn.Module):
    """Read for one query at a time; hidden keys are left out."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Project the keys, then attend."""
        return self.attend(queries, self.W_K(keys), values, mask)

    def attend(self, queries, projected_keys, values, mask=None):
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


def _to_read():
    return [torch.randn(2, tokens, d) for tokens, d in ((4, 3), (5, 6), (5, 7))]


# What torch says when shapes do not fit, for the sizes below; what has happened then.
_SHAPES = [
    (
        "[2, 3] but got: [2, 8]",
        "query-not-projected",
        "The queries have d_query numbers each, the keys d_hidden: put the queries "
        "through `self.W_Q` first.",
    ),
    (
        "[2, 8] but got: [2, 5]",
        "not-transposed",
        "The keys are (batch, key, d_hidden). Turn their last two axes, "
        "`projected_keys.transpose(-2, -1)`, so that each query meets each key.",
    ),
    (
        "[2, 8] but got: [2, 6]",
        "keys-not-projected",
        "`attend` takes keys that are projected already: `forward` gives it "
        "`self.W_K(keys)`.",
    ),
    (
        "(10x8 and 6x8)",
        "projects-again",
        "`attend` gets keys that are projected already: do not put them through "
        "`self.W_K` again.",
    ),
    (
        "(10x8 and 3x8)",
        "keys-through-W_Q",
        "`self.W_Q` is for the queries: the keys come projected already.",
    ),
    (
        "(8x3 and 6x8)",
        "queries-through-W_K",
        "`self.W_K` is for the keys: put the queries through `self.W_Q`.",
    ),
    (
        "[2, 4] but got: [2, 5]",
        "keys-first",
        "Weights have a row for each query and a column for each key, (batch, query, "
        "key): multiply Q by the turned keys, and the weights by the values.",
    ),
    (
        "(8) at non-singleton dimension 0",
        "all-axes-turned",
        "`.T` turns all axes, the batch too. Turn the last two only: "
        "`projected_keys.transpose(-2, -1)`.",
    ),
    (
        "tensor a (4) must match the size of tensor b (5)",
        "no-pairs",
        "`*` pairs the first query with the first key, the second with the second. "
        "Each query meets each key in a product of matrices, `@`.",
    ),
    (
        "[2, 5] but got: [2, 7]",
        "values-turned",
        "The weights are (batch, query, key) and the values (batch, key, d_v): their "
        "product is `weights @ values`, and nothing is turned.",
    ),
    (
        "d_hidden'",
        "no-size",
        "`attend` knows no d_hidden by that name: it is the size of a projected query, "
        "`Q.shape[-1]`.",
    ),
]


@dot.step("what is read is right, for queries and keys of different sizes")
def _(probe):
    probe.build(d_query=3, d_key=6, d_hidden=8)
    outputs = call_advising(probe, _to_read(), _SHAPES)
    probe.shape(outputs, batch=2, query=4, d_v=7)
    probe.same()


@dot.step("what is hidden is not read, and where all is, nothing is NaN")
def _(probe):
    probe.build(d_query=3, d_key=6, d_hidden=8)
    own = torch.rand(2, 4, 5) < 0.6
    own[1, 2] = False
    for mask in (padding_mask([5, 2], keys=5), own):
        read = probe(*_to_read(), mask)
        message = (
            "A query that may look at nothing reads NaN: its scores are all −∞. "
            "`masked_softmax` takes care of that case (chapter 4)."
        )
        probe.require(not read.isnan().any(), "nan", message)
        probe.same(output=read.where(mask.any(dim=-1, keepdim=True), 0))


@dot.step("gradients reach both projections")
def _(probe):
    module = probe.build(d_query=3, d_key=6, d_hidden=8)
    probe(*_to_read())
    probe.gradients(*module.parameters())
