"""Solutions of chapter 3, and edits of them that must be caught or must pass."""

import torch

from tutorial_lib.attention import masked_softmax, scaled_dot_product_attention


def distance_attention(queries, keys, values, width):
    """Average the values, weighted by softmax(-‖q - k‖² / (2 width²))."""
    norms = keys.square().sum(dim=-1)  # (key,)
    scores = (queries @ keys.T - norms / 2) / width**2  # (query, key)
    return scores.softmax(dim=-1) @ values


def bilinear_attention(queries, keys, values, M, mask=None):
    """Average the values, weighted by softmax(q M kᵀ / √d_key)."""
    scores = queries @ M @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return masked_softmax(scores, mask) @ values


def frugal_additive_scores(queries, keys, W_Q, W_K, v):
    """Score by tanh(q W_Q + k W_K) v, one query at a time."""
    Q, K = queries @ W_Q, keys @ W_K  # (batch, query, d_hidden), (batch, key, d_hidden)
    rows = [torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1])]
    return torch.stack(rows, dim=1)  # (batch, query, key)


def finds_bug(attention):
    """Tell whether attention(queries, keys, values, mask) is wrong in any way."""
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 0, 0, 0, 1], [0, 1, 1, 1, 1]]).bool()
    for size in (1, 1000):
        queries, keys, values = (
            torch.randn(2, n, d) for n, d in ((3, 4), (5, 4), (5, 6))
        )
        queries *= size
        given = queries.clone()
        outputs = attention(given, keys, values, mask.expand(2, -1, -1))
        expected, _ = scaled_dot_product_attention(queries, keys, values, mask)
        wrong = not torch.allclose(outputs, expected, atol=1e-4)
        if wrong or not given.equal(queries):
            return True
    return False


ANSWERS = {
    # A product of two numbers has the variance 2² · 3² = 36. 25 of them add up to 900,
    # whose root is 30, and √d_k = 5 makes it 6. The division removes what the length
    # of the vectors adds; the size of their numbers stays.
    "3.1": 6,
}
WRONG_ANSWERS = [
    ("3.1", 30, "unscaled"),
    ("3.1", 900, "unscaled-variance"),
    ("3.1", 180, "half-rooted"),
    ("3.1", 36, "variance"),
    ("3.1", 5.9, "value"),
    ("3.1", 1, "unit"),
    ("3.1", 5, "added"),
    ("3.1", 1.2, "not-rooted"),
]

MUTANTS = [
    (
        "distance_attention",
        "(queries @ keys.T - norms / 2) / width**2",
        "queries @ keys.T",
        "product-only",
    ),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "(scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1)",
        "nothing-visible",
    ),
    (
        "frugal_additive_scores",
        "torch.stack(rows, dim=1)",
        "Q @ K.transpose(1, 2)",
        "dot-product",
    ),
    ("distance_attention", " - norms / 2", "", "no-key-norm"),
    ("distance_attention", "norms / 2", "norms", "no-half"),
    (
        "distance_attention",
        "norms / 2) / width**2",
        "norms) / (2 * width**2)",
        "lost-two",
    ),
    ("distance_attention", "/ width**2", "/ -(width**2)", "sign"),
    (
        "distance_attention",
        "(queries @ keys.T - norms / 2) / width**2",
        "queries @ keys.T / width**2 - norms / 2",
        "width-under-product-only",
    ),
    ("distance_attention", "- norms / 2", "+ norms / 2", "plus-norm"),
    ("distance_attention", "norms / 2", "norms**0.5 / 2", "norm-not-squared"),
    ("distance_attention", "/ width**2", "/ (2 * width**2)", "halved-twice"),
    (
        "distance_attention",
        "(queries @ keys.T - norms / 2) /",
        "queries @ keys.T - norms / 2 /",
        "width-under-norm-only",
    ),
    ("distance_attention", " / width**2", "", "no-width"),
    ("distance_attention", "width**2  #", "width  #", "width-not-squared"),
    ("distance_attention", "softmax(dim=-1)", "softmax(dim=0)", "wrong-axis"),
    ("distance_attention", "keys.square()", "keys", "value"),
    ("distance_attention", "sum(dim=-1)", "sum()", "no-key-norm"),
    ("distance_attention", "keys.T", "keys", "error"),
    ("distance_attention", " @ values", "", "shape"),
    ("distance_attention", "return ", "", "no-return"),
    (
        "distance_attention",
        "(queries @ keys.T - norms / 2)",
        "-((queries[:, None] - keys) ** 2).sum(-1) / 2",
        "distances",
    ),
    (
        "distance_attention",
        "(queries @ keys.T - norms / 2)",
        "-torch.cdist(queries, keys) ** 2 / 2",
        "distances",
    ),
    ("bilinear_attention", " / keys.shape[-1] ** 0.5", "", "no-scale"),
    ("bilinear_attention", "keys.shape[-1] **", "queries.shape[-1] **", "scale-query"),
    ("bilinear_attention", "keys.shape[-1]", "keys.shape[1]", "scale-keys"),
    ("bilinear_attention", " ** 0.5", "", "scale-not-rooted"),
    ("bilinear_attention", "scores, mask", "scores", "mask-ignored"),
    ("bilinear_attention", "scores, mask", "scores, ~mask", "error"),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "masked_softmax(scores, None if mask is None else ~mask)",
        "mask-inverted",
    ),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "(scores.softmax(-1) * (1 if mask is None else mask))",
        "mask-after",
    ),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "scores.softmax(dim=-2)",
        "wrong-axis",
    ),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "scores.masked_fill(~mask if mask is not None else "
        "torch.zeros_like(scores).bool(), -torch.inf).softmax(-1)",
        "nothing-visible-nan",
    ),
    (
        "bilinear_attention",
        "masked_softmax(scores, mask)",
        "(scores if mask is None else scores.masked_fill(~mask, 0))",
        "no-softmax",
    ),
    ("bilinear_attention", "@ M @", "@ M.T @", "error"),
    ("bilinear_attention", "queries @ M @", "queries @", "error"),
    (
        "frugal_additive_scores",
        "torch.tanh(Q[:, i, None] + K)",
        "(Q[:, i, None] + K)",
        "no-tanh",
    ),
    (
        "frugal_additive_scores",
        "torch.tanh(Q[:, i, None] + K)",
        "(torch.tanh(Q[:, i, None]) + torch.tanh(K))",
        "tanh-first",
    ),
    ("frugal_additive_scores", "[:, i, None] +", "[:, i, None] *", "product"),
    (
        "frugal_additive_scores",
        "torch.tanh(Q[:, i, None] + K) @ v",
        "torch.tanh((Q[:, i, None] + K) @ v)",
        "v-first",
    ),
    ("frugal_additive_scores", "dim=1)", "dim=1).softmax(dim=-1)", "weights"),
    (
        "frugal_additive_scores",
        "torch.stack(rows, dim=1)",
        "torch.stack([h @ v for h in [(q + K).tanh() for q in Q.split(1, 1)]], dim=1)",
        "kept",
    ),
    ("frugal_additive_scores", "dim=1", "dim=2", "shape"),
    ("frugal_additive_scores", " @ v for", ".sum(-1) for", "value"),
    (
        "frugal_additive_scores",
        "torch.stack(rows, dim=1)",
        "torch.tanh(Q[:, :, None] + K[:, None]) @ v",
        "memory",
    ),
    (
        "frugal_additive_scores",
        "torch.stack(rows, dim=1)",
        "torch.stack([(q[:, None] + k).tanh() @ v for q, k in zip(Q, K, strict=True)])",
        "memory",
    ),
    ("finds_bug", "wrong or not given.equal(queries)", "wrong", "misses-in-place"),
    ("finds_bug", "(1, 1000)", "(1,)", "misses-overflow"),
    ("finds_bug", "atol=1e-4", "rtol=0, atol=0", "false-alarm"),
    ("finds_bug", "return True", "return False", "misses-no-scale"),
    ("finds_bug", "            return True", "            assert False", "asserts"),
    ("finds_bug", "return False", "return True", "false-alarm"),
    ("finds_bug", "True\n    return False", "False\n    return True", "inverted"),
    (
        "finds_bug",
        "scaled_dot_product_attention(queries,",
        "scaled_dot_product_attention(2 * queries,",
        "false-alarm",
    ),
    ("finds_bug", "outputs = attention", "outputs, _ = attention", "false-alarm"),
    (
        "finds_bug",
        "wrong or not",
        "outputs.shape != expected.shape or not",
        "misses-no-scale",
    ),
]

ACCEPT = [
    ("distance_attention", "keys.square().sum(dim=-1)", "(keys * keys).sum(-1)"),
    (
        "distance_attention",
        "keys.square().sum(dim=-1)",
        "torch.linalg.vector_norm(keys, dim=-1) ** 2",
    ),
    (
        "distance_attention",
        "queries @ keys.T",
        'torch.einsum("qd,kd->qk", queries, keys)',
    ),
    (
        "distance_attention",
        "norms / 2)",
        "norms / 2 - queries.square().sum(-1, keepdim=True) / 2)",
    ),
    ("bilinear_attention", "keys.transpose(-2, -1)", "keys.mT"),
    ("bilinear_attention", "keys.shape[-1]", "M.shape[1]"),
    (
        "bilinear_attention",
        "queries @ M @ keys.transpose(-2, -1)",
        'torch.einsum("bqi,ij,bkj->bqk", queries, M, keys)',
    ),
    (
        "bilinear_attention",
        "return masked_softmax(scores, mask) @ values",
        "return scaled_dot_product_attention(queries @ M, keys, values, mask)[0]",
    ),
    (
        "frugal_additive_scores",
        "    rows = [torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1])]\n"
        "    return torch.stack(rows, dim=1)",
        "    columns = [torch.tanh(Q + K[:, j, None]) @ v for j in range(K.shape[1])]\n"
        "    return torch.stack(columns, dim=2)",
    ),
    (
        "frugal_additive_scores",
        "    rows = [torch.tanh(Q[:, i, None] + K) @ v for i in range(Q.shape[1])]\n"
        "    return torch.stack(rows, dim=1)",
        "    total = torch.zeros(Q.shape[0], Q.shape[1], K.shape[1])\n"
        "    for h in range(len(v)):\n"
        "        total = total + v[h] * (Q[:, :, None, h] + K[:, None, :, h]).tanh()\n"
        "    return total",
    ),
    (
        "frugal_additive_scores",
        "    Q, K = ",
        "    torch.set_grad_enabled(False)\n    Q, K = ",
    ),
    ("frugal_additive_scores", "dim=1)", "dim=1).detach()"),
    (
        "frugal_additive_scores",
        "torch.stack(rows, dim=1)",
        "torch.vmap(lambda q: (q[:, None] + K).tanh() @ v, 1, 1, chunk_size=1)(Q)",
    ),
    (
        "finds_bug",
        "torch.allclose(outputs, expected, atol=1e-4)",
        "(outputs - expected).abs().max() < 1e-4",
    ),
]
