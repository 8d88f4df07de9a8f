"""Solutions of chapter 10, and edits of them that must be caught or must pass."""

import torch


def normalize_layer(x, gamma, beta, epsilon=1e-5):
    """Return what nn.LayerNorm makes of tokens."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta


def leak(layer, x):
    """Return how much a sentence's output depends on its neighbors, at most."""
    alone = torch.cat([layer(x[i : i + 1]) for i in range(len(x))])
    return (layer(x) - alone).abs().max()


def run_block(x, attention, feed_forward, norms, *, norm_first):
    """Run an encoder block: pre-norm with norm_first, else post-norm."""
    first, second = norms
    if norm_first:
        y = first(x)
        x = x + attention(y, y, y)
        return x + feed_forward(second(x))
    x = first(x + attention(x, x, x))
    return second(x + feed_forward(x))


def block_parameters(d_model, d_ff):
    """Return how many numbers an encoder block learns."""
    attention = 4 * d_model**2 + 4 * d_model
    network = 2 * d_model * d_ff + d_ff + d_model
    norms = 4 * d_model
    return attention + network + norms


def _averaged(*four):
    numbers, means, batch_numbers, batch_means = four
    return {
        "layer norm": {"numbers in a mean": numbers, "means": means},
        "batch norm": {"numbers in a mean": batch_numbers, "means": batch_means},
    }


ANSWERS = {
    # Layer norm has a mean of 64 numbers for each of 32 · 18 tokens, batch norm
    # one of 32 · 18 numbers for each of 64 columns.
    "10.1": {
        "layer norm": {"numbers in a mean": 64, "means": 576},
        "batch norm": {"numbers in a mean": 576, "means": 64},
    },
}
WRONG_ANSWERS = [
    ("10.1", _averaged(576, 64, 64, 576), "exchanged"),
    ("10.1", _averaged(1152, 32, 576, 64), "whole-sentence"),
    ("10.1", _averaged(64, 576, 32, 1152), "one-place"),
    ("10.1", _averaged(64, 576, 32 * 18 * 64, 1), "one-for-all"),
    ("10.1", _averaged(64, 576, 18, 2048), "one-sentence"),
    ("10.1", _averaged(64, 576, 2048, 18), "columns-too"),
    ("10.1", _averaged(64, 576, 64, 576), "token"),
    ("10.1", _averaged(576, 64, 576, 64), "batch-columns"),
    ("10.1", _averaged(18, 2048, 576, 64), "words-only"),
    ("10.1", _averaged(64, 1, 576, 1), "product"),
    ("10.1", _averaged(64, 576, 576, 63), "product"),
    ("10.1", _averaged(128, 288, 576, 64), "value"),
    ("10.1", _averaged("many", 576, 576, 64), "type"),
]

_ROOT = "(variance + epsilon).sqrt()"
_ALONE = "torch.cat([layer(x[i : i + 1]) for i in range(len(x))])"
_MEAN_AND_VARIANCE = """\
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
"""


def _along(axis, code):
    """Return a mutant that averages along another axis."""
    mutant = _MEAN_AND_VARIANCE.replace("-1", axis)
    return "normalize_layer", _MEAN_AND_VARIANCE, mutant, code


_PRE = """\
        x = x + attention(y, y, y)
        return x + feed_forward(second(x))
"""


def _pre(change, result, code):
    """Return a mutant whose pre-norm is these two lines."""
    lines = f"        x = {change}\n        return {result}\n"
    return "run_block", _PRE, lines, code


_COUNT = "return attention + network + norms"
_POST = "first(x + attention(x, x, x))\n    return second(x + feed_forward(x))"
MUTANTS = [
    ("normalize_layer", "correction=0, ", "", "unbiased"),
    ("normalize_layer", _ROOT, "(variance.sqrt() + epsilon)", "epsilon-outside"),
    ("normalize_layer", _ROOT, "variance.sqrt()", "no-epsilon"),
    ("normalize_layer", ".sqrt()", "", "variance"),
    _along("-2", "token-axis"),
    _along("(-2, -1)", "whole-sentence"),
    _along("(0, 1)", "batch-norm"),
    (
        "normalize_layer",
        "(x - mean) / (variance + epsilon)",
        "x / (x.square().mean(dim=-1, keepdim=True) + epsilon)",
        "not-centered",
    ),
    (
        "normalize_layer",
        "x.var(dim=-1, correction=0,",
        "x.square().mean(dim=-1,",
        "raw-squares",
    ),
    ("normalize_layer", " * gamma", "", "no-gamma"),
    ("normalize_layer", " + beta", "", "no-beta"),
    (
        "normalize_layer",
        f"(x - mean) / {_ROOT} * gamma + beta",
        f"((x - mean) / {_ROOT} + beta) * gamma",
        "gamma-last",
    ),
    ("normalize_layer", "* gamma", "* gamma.detach()", "no-gradient"),
    ("normalize_layer", "(x - mean)", "(x - mean.detach())", "cut-gradient"),
    ("normalize_layer", "(x - mean)", "x", "not-centered"),
    ("normalize_layer", " + epsilon", " + 1e-5", "fixed-epsilon"),
    ("normalize_layer", " * gamma + beta", "", "no-gamma-and-beta"),
    ("normalize_layer", "mean(dim=-1, keepdim=True)", "mean(dim=-1)", "no-keepdim"),
    (
        "normalize_layer",
        _MEAN_AND_VARIANCE,
        "    mean, variance = x.mean(), x.var(correction=0)\n",
        "everything",
    ),
    _along("0", "sentence-axis"),
    _along("2", "fixed-axis"),
    (
        "normalize_layer",
        f"return (x - mean) / {_ROOT} * gamma + beta",
        "return torch.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)",
        "ready-made",
    ),
    ("leak", ".abs()", "", "signed"),
    ("leak", "(layer(x) - alone).abs()", "(alone - layer(x))", "signed"),
    ("leak", ".max()", ".mean()", "mean"),
    ("leak", "(layer(x) - alone)", "(layer(x) - alone)[0]", "first-only"),
    ("leak", "(layer(x) - alone)", "(layer(x) - alone)[-1]", "last-only"),
    ("leak", "x[i : i + 1]", "x[: i + 1]", "error"),
    (
        "leak",
        _ALONE,
        "torch.stack([layer(x[: i + 1])[i] for i in range(len(x))])",
        "those-before",
    ),
    (
        "leak",
        _ALONE,
        "torch.stack([layer(x[i]) for i in range(len(x))])",
        "no-batch-axis",
    ),
    ("leak", ".abs().max()", ".abs().sum()", "sum"),
    ("leak", ".abs().max()", ".norm()", "norm"),
    ("leak", ".abs()", ".square()", "squared"),
    (
        "leak",
        _ALONE,
        "torch.cat([layer(x[:, t : t + 1]) for t in range(x.shape[1])], dim=1)",
        "tokens-alone",
    ),
    ("leak", _ALONE, "x", "in-and-out"),
    ("leak", _ALONE, "layer(x)[:1]", "between-sentences"),
    ("leak", ".max()", "", "type"),
    ("leak", ".abs().max()", ".abs().max() > 0", "yes-or-no"),
    (
        "leak",
        "(layer(x) - alone)",
        "max((layer(x) - part).abs().max() for part in alone.split(1))",
        "every-pair",
    ),
    (
        "leak",
        "(layer(x) - alone)",
        "(layer(x) - layer(torch.cat((x[:1], x[1:] + 1))))[0]",
        "not-found",
    ),
    ("run_block", "if norm_first", "if not norm_first", "inverted"),
    ("run_block", "if norm_first", "if True", "inverted"),
    ("run_block", "if norm_first", "if False", "inverted"),
    _pre("attention(y, y, y)", "feed_forward(second(x))", "replaced"),
    _pre(
        "y + attention(y, y, y)",
        "second(x) + feed_forward(second(x))",
        "normalized-stream",
    ),
    (
        "run_block",
        _POST,
        "x + first(attention(x, x, x))\n    return x + second(feed_forward(x))",
        "change-normalized",
    ),
    ("run_block", "attention(y, y, y)", "attention(y, x, x)", "queries-only"),
    ("run_block", "first, second = norms", "first = second = norms[0]", "one-norm"),
    ("run_block", "first, second = norms", "second, first = norms", "norms-exchanged"),
    _pre("x + attention(x, x, x)", "x + feed_forward(x)", "no-norm-before"),
    _pre(
        "x + attention(y, y, y)", "second(x + feed_forward(second(x)))", "norm-too-many"
    ),
    (
        "run_block",
        _POST,
        "x + attention(x, x, x)\n    return x + feed_forward(x)",
        "no-norm-after",
    ),
    (
        "run_block",
        "return second(x + feed_forward(x))",
        "return x + feed_forward(x)",
        "last-norm-forgotten",
    ),
    (
        "run_block",
        "    if norm_first:\n",
        "    if norm_first:\n"
        "        x = x + feed_forward(second(x))\n"
        "        y = first(x)\n"
        "        return x + attention(y, y, y)\n"
        "    if norm_first:\n",
        "network-first",
    ),
    _pre("x + attention(y, y, y) + feed_forward(second(x))", "x", "side-by-side"),
    _pre("x + feed_forward(second(x + attention(y, y, y)))", "x", "old-stream"),
    (
        "block_parameters",
        _COUNT,
        "return 4 * d_model**2 + 2 * d_model * d_ff",
        "weights-only",
    ),
    (
        "block_parameters",
        _COUNT,
        "return 4 * d_model**2 + 2 * d_model * d_ff + norms",
        "no-biases",
    ),
    ("block_parameters", " + norms", "", "no-norms"),
    ("block_parameters", "norms = 4", "norms = 2", "half-of-the-norms"),
    (
        "block_parameters",
        "4 * d_model**2 + 4 * d_model",
        "3 * d_model**2 + 3 * d_model",
        "no-W_O",
    ),
    ("block_parameters", "2 * d_model * d_ff", "d_model * d_ff", "one-matrix"),
    ("block_parameters", "4 * d_model**2 + 4 * d_model", "4 * d_model**2", "no-norms"),
    (
        "block_parameters",
        "2 * d_model * d_ff + d_ff + d_model",
        "d_model * d_ff + d_ff",
        "one-matrix",
    ),
    ("block_parameters", "+ d_ff + d_model", "", "no-network-biases"),
    ("block_parameters", "+ d_ff + d_model", "+ 2 * d_ff", "two-inner-biases"),
    ("block_parameters", "+ 4 * d_model", "+ d_model", "one-bias-for-attention"),
    ("block_parameters", " + d_ff", "", "no-inner-bias"),
    ("block_parameters", "+ d_ff + d_model", "+ d_ff", "no-outer-bias"),
    ("block_parameters", _COUNT, "return 12 * d_model**2", "twelve-squares"),
    (
        "block_parameters",
        _COUNT,
        "layer = torch.nn.TransformerEncoderLayer(d_model, 1, d_ff)\n"
        "    return sum(weight.numel() for weight in layer.parameters())",
        "built",
    ),
]

ACCEPT = [
    ("normalize_layer", "correction=0", "unbiased=False"),
    (
        "normalize_layer",
        "x.var(dim=-1, correction=0, keepdim=True)",
        "(x - mean).square().mean(dim=-1, keepdim=True)",
    ),
    ("normalize_layer", _ROOT, "(variance + epsilon) ** 0.5"),
    ("leak", ".max()", ".max().item()"),
    ("leak", "x[i : i + 1]", "x[i].unsqueeze(0)"),
    ("leak", "(layer(x) - alone)", "(alone - layer(x))"),
    ("run_block", "y = first(x)", "y = norms[0](x)"),
    ("block_parameters", "norms = 4 * d_model", "norms = 2 * (d_model + d_model)"),
]
