"""Solutions to the exercises of chapter 1, and the mistakes the checks must name."""

import torch


def top_k_weights(scores, k):
    """Softmax over the k largest scores of each query; all others get 0."""
    best = scores.topk(k, dim=-1)
    hidden = torch.full_like(scores, -torch.inf)
    return hidden.scatter(-1, best.indices, best.values).softmax(dim=-1)


def slope_of_lookup(query, keys, values):
    """Return the slope of the output by the query, from the formula above."""
    weights = (keys @ query).softmax(dim=0)  # (key,)
    centered_values = values - weights @ values
    centered_keys = keys - weights @ keys
    # With all weight on one key both differences are 0 there, and so is the slope.
    return (weights[:, None] * centered_values).T @ centered_keys  # (d_v, d_k)


ANSWERS = {
    # 0.9 / 0.1 = 9 is e to the difference of the scores, so the difference is ln 9.
    "1.1": 2.1972,
    # Any lead between about 104 and 745 will do.
    "1.4": [200.0, 0.0, 0.0],
}

WRONG_ANSWERS = [
    ("1.1", 9, "ratio"),
    ("1.1", 0.8, "weights"),
    ("1.1", 0.954, "base"),
    ("1.1", -2.2, "sign"),
    ("1.1", 2.0, "value"),
    ("1.1", 2.3, "one-weight"),
    ("1.1", -0.105, "one-weight"),
    ("1.4", [20.0, 0.0, 0.0], "still-there"),
    ("1.4", [1000.0, 0.0, 0.0], "gone-twice"),
    ("1.4", [200.0, 0.0], "count"),
    ("1.4", "200, 0, 0", "count"),
    ("1.4", [float("inf"), 0.0, 0.0], "infinite"),
    ("1.4", [500.0, 500.0, 0.0], "still-there"),
]

RESULT = "hidden.scatter(-1, best.indices, best.values).softmax(dim=-1)"

# (exercise, replace this, by this, the diagnosis the student must get)
MUTANTS = [
    (
        "top_k_weights",
        RESULT,
        "hidden.scatter(-1, best.indices, scores.softmax(-1).gather(-1, best.indices))"
        ".clamp(min=0)",
        "not-shared",
    ),
    ("top_k_weights", "scores.topk(k, dim=-1)", "(-scores).topk(k)", "value"),
    ("top_k_weights", "(k, dim=-1)", "(k, dim=-1, largest=False)", "smallest"),
    ("top_k_weights", "-torch.inf", "0", "zero-scores"),
    (
        "top_k_weights",
        RESULT,
        "hidden.scatter(-1, best.indices, 1.0).clamp(0) / k",
        "equal-shares",
    ),
    (
        "top_k_weights",
        RESULT,
        "scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf)"
        ".softmax(-1).nan_to_num()",
        "whole-matrix",
    ),
    (
        "top_k_weights",
        RESULT,
        "scores.masked_fill(scores < scores.flatten().topk(k).values.min(), -torch.inf)"
        ".softmax(-1)",
        "whole-matrix",
    ),
    ("top_k_weights", RESULT, "best.values.softmax(dim=-1)", "only-kept"),
    ("top_k_weights", "topk(k, dim=-1)", "topk(k - 1, dim=-1)", "count"),
    ("top_k_weights", ".softmax(dim=-1)", ".softmax(dim=0)", "wrong-axis"),
    (
        "top_k_weights",
        "best.indices, best.values",
        "best.indices, best.values[0]",
        "error",
    ),
    (
        "slope_of_lookup",
        "centered_values).T @ centered_keys",
        "values).T @ keys",
        "not-centered",
    ),
    (
        "slope_of_lookup",
        "centered_values).T @ centered_keys",
        "(values - values.mean(0))).T @ (keys - keys.mean(0))",
        "plain-mean",
    ),
    (
        "slope_of_lookup",
        "weights[:, None] * centered_values",
        "centered_values / len(keys)",
        "unweighted",
    ),
    (
        "slope_of_lookup",
        "(weights[:, None] * centered_values).T @ centered_keys",
        "centered_keys.T @ (weights[:, None] * centered_values)",
        "transposed",
    ),
    ("slope_of_lookup", "(keys @ query)", "(keys @ query / 2)", "value"),
    ("slope_of_lookup", "(keys @ query)", "(keys @ query / 0.2)", "temperature"),
    ("slope_of_lookup", "@ query)", "@ query / len(query) ** 0.5)", "scaled"),
    (
        "slope_of_lookup",
        "(keys @ query).softmax(dim=0)",
        "(keys @ query).exp() / (keys @ query).exp().sum()",
        "overflow",
    ),
    (
        "slope_of_lookup",
        ".T @ centered_keys",
        ".T @ centered_keys / len(keys)",
        "divided",
    ),
    (
        "slope_of_lookup",
        "weights[:, None] * centered_values",
        "centered_values",
        "no-weights",
    ),
    (
        "top_k_weights",
        RESULT,
        "scores.masked_fill(scores < best.values[:, -1:], -torch.inf).softmax(dim=-1)",
        "ties",
    ),
    ("slope_of_lookup", "return (weights", "(weights", "no-return"),
]

# Other right answers: the checks must not insist on our way of writing it.
ACCEPT = [
    (
        "slope_of_lookup",
        "(weights[:, None] * centered_values).T @ centered_keys",
        "torch.einsum('i,iv,ik->vk', weights, centered_values, centered_keys)",
    ),
    (
        "slope_of_lookup",
        "    weights =",
        "    return torch.autograd.functional.jacobian(\n"
        "        lambda q: (keys @ q).softmax(0) @ values, query\n"
        "    )\n"
        "    weights =",
    ),
    ("slope_of_lookup", "values - weights @ values", "values"),
    ("slope_of_lookup", "keys - weights @ keys", "keys"),
]
