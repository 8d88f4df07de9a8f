"""Solutions of chapter 7, and edits of them that must be caught or must pass."""

import torch

from tutorial_lib.attention import masked_softmax


def self_attention(x, W_Q, W_K, W_V, mask=None):
    """Let every token read from all tokens; return (batch, token, d_v)."""
    Q, K, V = x @ W_Q, x @ W_K, x @ W_V
    scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5  # (batch, query, key)
    return masked_softmax(scores, mask) @ V


def blind_attention(x, W_V, mask=None):
    """Return what self-attention computes when all its scores are 0."""
    if mask is None:
        return (x @ W_V).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)
    count = mask.sum(dim=-1, keepdim=True).clamp(min=1)  # (query, 1)
    return (mask / count) @ (x @ W_V)


def heard_of(reads, layers):
    """Tell which output depends on which input: boolean (output, input)."""
    one_layer = (reads | torch.eye(len(reads), dtype=torch.bool)).float()
    known = torch.eye(len(reads))
    for _ in range(layers):
        known = (one_layer @ known > 0).float()
    return known.bool()


def flops_of(n, d, k, r):
    """Return the FLOPs of three layers, as a dictionary of whole numbers."""
    return {
        "self-attention": 4 * n**2 * d,  # n² scores of d products, and n · d outputs
        "convolution": 2 * k * n * d**2,  # of k places, a d × d matrix each
        "restricted attention": 4 * n * (2 * r + 1) * d,
    }


ANSWERS = {}
WRONG_ANSWERS = []

MUTANTS = [
    ("self_attention", " / K.shape[-1] ** 0.5", "", "unscaled"),
    ("self_attention", "K.shape[-1] ** 0.5", "x.shape[-1] ** 0.5", "scaled-by-model"),
    ("self_attention", "K.shape[-1] ** 0.5", "K.shape[-1]", "scaled-by-size"),
    ("self_attention", "mask) @ V", "mask) @ x", "reads-tokens"),
    ("self_attention", "mask) @ V", "mask) @ K", "reads-keys"),
    ("self_attention", "Q @ K.", "K @ Q.", "swapped"),
    ("self_attention", "x @ W_Q, x @ W_K", "x @ W_K, x @ W_K", "symmetric"),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "scores.softmax(dim=-1)",
        "unmasked",
    ),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "masked_softmax(scores, None if mask is None else ~mask)",
        "mask-inverted",
    ),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "(scores.softmax(-1) * (1 if mask is None else mask))",
        "mask-after",
    ),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "scores.softmax(dim=-2)",
        "wrong-axis",
    ),
    ("self_attention", "x @ W_Q, x", "x @ W_Q.detach(), x", "no-gradient"),
    ("self_attention", "x @ W_Q, x", "x @ W_Q.T, x", "matrix-side"),
    ("self_attention", "K.transpose(-2, -1)", "K.T", "transpose"),
    ("self_attention", "K.transpose(-2, -1)", "K", "transpose"),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "(scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1)",
        "reads-all",
    ),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "(scores if mask is None else scores.masked_fill(~mask, -torch.inf))"
        ".softmax(-1)",
        "nan",
    ),
    ("blind_attention", "mean(dim=1, keepdim=True)", "sum(1, keepdim=True)", "sum"),
    ("blind_attention", "mask / count", "mask.float()", "sum"),
    (
        "blind_attention",
        "(x @ W_V).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)",
        "x @ W_V",
        "token-wise",
    ),
    (
        "blind_attention",
        "(x @ W_V).mean(dim=1, keepdim=True)",
        "(x @ W_V).mean(dim=2, keepdim=True)",
        "shape",
    ),
    (
        "blind_attention",
        "(x @ W_V).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)",
        "(x @ W_V).mean(dim=1)",
        "shape",
    ),
    (
        "blind_attention",
        "mean(dim=1, keepdim=True)",
        "mul(0).mean(1, True)",
        "zero-weights",
    ),
    ("blind_attention", "mask / count", "mask / len(mask)", "divided-by-all"),
    ("blind_attention", "mask is None", "True", "unmasked"),
    ("blind_attention", "dim=-1, keepdim=True", "dim=-2", "columns"),
    (
        "blind_attention",
        "dim=-1, keepdim=True).clamp(min=1)",
        "dim=-1, keepdim=True)",
        "nan",
    ),
    ("blind_attention", "mean(dim=1", "mean(dim=0", "shape"),
    ("blind_attention", "(mask / count) @", "mask @", "boolean-product"),
    (
        "heard_of",
        "(reads | torch.eye(len(reads), dtype=torch.bool))",
        "reads",
        "forgets",
    ),
    ("heard_of", "one_layer @ known", "one_layer.T @ known", "transposed"),
    ("heard_of", "range(layers)", "range(layers - 1)", "one-less"),
    ("heard_of", "range(layers)", "range(layers + 1)", "one-more"),
    (
        "heard_of",
        "range(layers)",
        "range(len(reads))",
        "all-layers",
    ),
    (
        "heard_of",
        "return known.bool()",
        "return torch.linalg.matrix_power(one_layer, layers)",
        "counts",
    ),
    ("heard_of", "range(layers)", "range(1)", "one-layer"),
    (
        "heard_of",
        "        known = (one_layer @ known > 0).float()",
        "        for i in range(len(reads)):\n"
        "            known[i] = (one_layer[i] @ known > 0).float()",
        "all-layers",
    ),
    (
        "heard_of",
        "(layers):\n        known = (one_layer @ known > 0)",
        "(layers - 1):\n        one_layer = known = (one_layer @ one_layer > 0)",
        "doubled",
    ),
    (
        "heard_of",
        "(one_layer @ known > 0).float()",
        "one_layer.bool() @ known.bool()",
        "boolean-product",
    ),
    ("flops_of", "4 * n**2 * d", "2 * n**2 * d", "one-product"),
    ("flops_of", "4 * n**2 * d", "4 * n * d**2", "n-and-d"),
    ("flops_of", "4 * n**2 * d", "4 * n**2", "without-d"),
    ("flops_of", "4 * n**2 * d", "4 * n**2 * d + 6 * n * d**2", "projections"),
    ("flops_of", "(2 * r + 1)", "min(n, 2 * r + 1)", "edges"),
    (
        "flops_of",
        "4 * n * (2 * r + 1)",
        "4 * sum(min(n, i + r + 1) - max(0, i - r) for i in range(n))",
        "edges",
    ),
    ("flops_of", "2 * k * n", "k * n", "multiplications"),
    (
        "flops_of",
        '    return {\n        "self-attention": 4 *',
        '    k = k / 2\n    return {\n        "self-attention": 2 *',
        "one-product",
    ),
    ("flops_of", "2 * k * n * d**2", "2 * k * n * d", "channel-by-channel"),
    ("flops_of", "(2 * r + 1)", "r", "one-side"),
    ("flops_of", "(2 * r + 1)", "2 * r", "without-itself"),
    ("flops_of", "(2 * r + 1)", "(r + 1)", "one-side"),
    (
        "flops_of",
        '"self-attention": 4 * n**2 * d,',
        '"attention": 4 * n**2 * d,',
        "parts",
    ),
    ("flops_of", "4 * n * (2 * r + 1)", "5 * n * (2 * r + 1)", "restricted attention"),
    ("flops_of", "4 * n**2 * d", "4 * n**2 * d + 1", "self-attention"),
    ("flops_of", "2 * k * n * d**2", "3 * k * n * d**2", "convolution"),
]

ACCEPT = [
    ("self_attention", "K.transpose(-2, -1)", "K.mT"),
    ("self_attention", "K.shape[-1] ** 0.5", "W_K.shape[1] ** 0.5"),
    (
        "self_attention",
        "masked_softmax(scores, mask)",
        "masked_softmax(scores, mask).nan_to_num()",
    ),
    ("blind_attention", ".expand(-1, x.shape[1], -1)", ".repeat(1, x.shape[1], 1)"),
    ("blind_attention", "mask / count", "mask.float() / count"),
    ("heard_of", "one_layer @ known > 0", "known @ one_layer > 0"),
    (
        "heard_of",
        "return known.bool()",
        "return torch.linalg.matrix_power(one_layer, layers) > 0",
    ),
    ("flops_of", "4 * n**2 * d", "2 * n * n * d + 2 * n * d * n"),
]
