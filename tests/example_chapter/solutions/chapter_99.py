"""Solutions of the example chapter, and the mistakes its checks must recognise."""

import torch
from torch import nn


def example_softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1)


def example_attention(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    weights = example_softmax(scores, mask)
    return weights @ values, weights


class ExampleScores(nn.Module):
    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_query = nn.Linear(d_query, d_hidden, bias=False)
        self.W_key = nn.Linear(d_key, d_hidden, bias=False)
        self.w_score = nn.Linear(d_hidden, 1, bias=False)

    def forward(self, queries, keys):
        hidden = self.W_query(queries)[:, None] + self.W_key(keys)
        return self.w_score(torch.tanh(hidden)).squeeze(-1)


ANSWERS = {
    # The variances of 64 independent products add up to 64, whose root is 8.
    "99.1": 8.0,
}

WRONG_ANSWERS = [
    ("99.1", 64, "variance"),
    ("99.1", 9, "value"),
    ("99.1", "eight", "type"),
]

FILL = "scores.masked_fill(~mask, -torch.inf)"
SOFTMAX = "torch.softmax(scores, dim=-1)"

MUTANTS = [
    ("example_softmax", "dim=-1", "dim=-2", "wrong-axis"),
    ("example_softmax", "dim=-1", "dim=0", "row-sum"),
    ("example_softmax", "~mask", "mask", "inverted-mask"),
    ("example_softmax", f"scores = {FILL}", "pass", "mask-ignored"),
    ("example_softmax", FILL, "scores * mask", "mask-times-score"),
    ("example_softmax", "masked_fill(", "masked_fill_(", "in-place"),
    ("example_softmax", SOFTMAX, "scores.exp() / scores.exp().sum(-1, True)", "nan"),
    ("example_softmax", SOFTMAX, "scores.exp() / scores.exp().sum(-1)", "error"),
    ("example_softmax", SOFTMAX, "scores.softmax(-1).sum(-1)", "shape"),
    ("example_softmax", f"return {SOFTMAX}", SOFTMAX, "no-return"),
    (
        "example_softmax",
        f"""    if mask is not None:
        scores = {FILL}
    return {SOFTMAX}""",
        f"""    weights = {SOFTMAX}
    return weights if mask is None else weights * mask""",
        "mask-after",
    ),
    ("example_attention", " / keys.shape[-1] ** 0.5", "", "no-scale"),
    ("example_attention", " ** 0.5", "", "scale-d"),
    ("example_attention", "keys.shape[-1]", "keys.shape[-2]", "scale-tokens"),
    ("example_attention", "keys.shape[-1]", "values.shape[-1]", "scale-d-v"),
    ("example_attention", "(scores, mask)", "(scores)", "leak"),
    ("example_attention", "keys.transpose(-2, -1)", "keys", "error"),
    ("example_attention", "return weights @ values, weights", "return scores", "parts"),
    ("example_attention", "@ values, weights", "@ values", "one-part"),
    ("example_attention", "@ values, weights", "@ values, scores", "value"),
    ("example_attention", "@ values, weights", "@ values.data, weights", "no-gradient"),
    ("example_attention", "weights @ values,", "(weights @ values).mT,", "shape"),
    ("ExampleScores", "torch.tanh(hidden)", "hidden", "no-tanh"),
    ("ExampleScores", ".squeeze(-1)", "", "shape"),
    ("ExampleScores", "d_key, d_hidden, bias=False", "d_key, d_hidden", "parameters"),
    ("ExampleScores", "[:, None]", "", "error"),
    ("ExampleScores", "self.w_score(", "self.w_scores(", "error"),
    ("ExampleScores", "torch.tanh(hidden)", "hidden.detach().tanh()", "no-gradient"),
]

ACCEPT = [
    ("example_softmax", "-torch.inf", "-1e9"),
    ("example_softmax", FILL, "torch.where(mask, scores, -torch.inf)"),
    (
        "example_softmax",
        f"return {SOFTMAX}",
        "powers = (scores - scores.amax(-1, True)).exp()\n"
        "    return powers / powers.sum(-1, True)",
    ),
    (
        "example_attention",
        "queries @ keys.transpose(-2, -1)",
        'torch.einsum("bqd,bkd->bqk", queries, keys)',
    ),
    (
        "example_attention",
        "weights @ values,",
        "nn.functional.scaled_dot_product_attention(queries, keys, values, mask),",
    ),
    (
        "ExampleScores",
        "self.w_score(torch.tanh(hidden)).squeeze(-1)",
        "torch.tanh(hidden) @ self.w_score.weight[0]",
    ),
]
