"""Known wrong answers of chapter 10, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _averaged(*four):
    numbers, means, batch_numbers, batch_means = four
    return {
        "layer norm": {"numbers in a mean": numbers, "means": means},
        "batch norm": {"numbers in a mean": batch_numbers, "means": batch_means},
    }


AVERAGED = [
    (
        "exchanged",
        "Those are the right numbers at the wrong norm: layer norm stays within one "
        "token, batch norm within one of the d_model columns.",
        _averaged(576, 64, 64, 576),
    ),
    (
        "whole-sentence",
        "Your layer norm averages over a whole sentence. It averages over the numbers "
        "of one token, for each token by itself.",
        _averaged(18 * 64, 32, 576, 64),
    ),
    (
        "one-place",
        "Your batch norm has a mean of its own for each place in the sentence. It "
        "averages over all tokens of all sentences: 32 · 18.",
        _averaged(64, 576, 32, 18 * 64),
    ),
]


def _layer_norm(
    *,
    dims=(-1,),
    center=True,
    divide=lambda variance, epsilon: (variance + epsilon).sqrt(),
    correction=0,
    finish=lambda x, gamma, beta: x * gamma + beta,
):
    def normalize(x, gamma, beta, epsilon=1e-5):
        mean = x.mean(dim=dims, keepdim=True)
        if center:
            variance = x.var(dim=dims, correction=correction, keepdim=True)
            x = x - mean
        else:
            variance = x.square().mean(dim=dims, keepdim=True)
        return finish(x / divide(variance, epsilon), gamma, beta)

    return normalize


NORM = [
    (
        "unbiased",
        "You divide the squares by d_model - 1, as `var` and `std` do by themselves. "
        "Layer norm divides by d_model: `var(dim=-1, correction=0)`.",
        _layer_norm(correction=1),
    ),
    (
        "epsilon-outside",
        "Your epsilon is added to the standard deviation. It belongs inside the root, "
        "beside the variance.",
        _layer_norm(divide=lambda variance, epsilon: variance.sqrt() + epsilon),
    ),
    (
        "no-epsilon",
        "You do not use epsilon: a token of equal numbers is divided by 0.",
        _layer_norm(divide=lambda variance, epsilon: variance.sqrt()),
    ),
    (
        "variance",
        "You divide by the variance. Take its root.",
        _layer_norm(divide=lambda variance, epsilon: variance + epsilon),
    ),
    (
        "token-axis",
        "You average over the tokens of a sentence. Layer norm averages over the "
        "numbers of one token: the last axis.",
        _layer_norm(dims=(-2,)),
    ),
    (
        "whole-sentence",
        "You average over all numbers of a sentence. Each token is normalized by "
        "itself: the last axis alone.",
        _layer_norm(dims=(-2, -1)),
    ),
    (
        "batch-norm",
        "That is batch norm: you average over batch and tokens. Average over the "
        "last axis.",
        _layer_norm(dims=(0, 1)),
    ),
    (
        "not-centered",
        "You do not subtract the mean of the token.",
        _layer_norm(center=False),
    ),
    (
        "no-gamma",
        "You do not multiply by gamma.",
        _layer_norm(finish=lambda x, gamma, beta: x + beta),
    ),
    (
        "no-beta",
        "You do not add beta.",
        _layer_norm(finish=lambda x, gamma, beta: x * gamma),
    ),
    (
        "gamma-last",
        "You multiply the sum with beta by gamma. Multiply first, then add beta.",
        _layer_norm(finish=lambda x, gamma, beta: (x + beta) * gamma),
    ),
]


def _alone(layer, x, dim=0):
    """Read the parts of x along one axis by themselves, and join the outputs."""
    return torch.cat([layer(part) for part in x.split(1, dim=dim)], dim=dim)


LEAK = [
    (
        "signed",
        "A difference may be negative: take `.abs()` before the largest.",
        lambda layer, x: (layer(x) - _alone(layer, x)).max(),
    ),
    (
        "signed",
        "A difference may be negative: take `.abs()` before the largest.",
        lambda layer, x: (_alone(layer, x) - layer(x)).max(),
    ),
    (
        "mean",
        "You return the mean difference, in which a leak into one sentence of many "
        "hides. Return the largest.",
        lambda layer, x: (layer(x) - _alone(layer, x)).abs().mean(),
    ),
    (
        "first-only",
        "You look at the first sentence alone. A leak may lead into any of them.",
        lambda layer, x: (layer(x)[:1] - layer(x[:1])).abs().max(),
    ),
    (
        "tokens-alone",
        "You read each token alone, so that attention looks like a leak. Read each "
        "sentence alone: cut the batch axis, `x[i : i + 1]`.",
        lambda layer, x: (layer(x) - _alone(layer, x, dim=1)).abs().max(),
    ),
    (
        "in-and-out",
        "You compare the output with the input: that is what the layer does. Compare "
        "its output in the batch with its output for the sentence alone.",
        lambda layer, x: (layer(x) - x).abs().max(),
    ),
    (
        "between-sentences",
        "You compare the outputs of different sentences. Compare the same sentence, "
        "read in the batch and read alone.",
        lambda layer, x: (layer(x) - layer(x)[:1]).abs().max(),
    ),
]


def _block(pre, post):
    """Return a wrong block of what each order does with (x, layer, norm)."""

    def run(x, attention, feed_forward, norms, *, norm_first):
        around = pre if norm_first else post
        x = around(x, lambda y: attention(y, y, y), norms[0])
        return around(x, feed_forward, norms[1])

    return run


def _pre(x, layer, norm):
    return x + layer(norm(x))


def _post(x, layer, norm):
    return norm(x + layer(x))


def _one_norm(x, attention, feed_forward, norms, **order):
    return _block(_pre, _post)(x, attention, feed_forward, [norms[0]] * 2, **order)


def _network_first(x, attention, feed_forward, norms, *, norm_first):
    around = _pre if norm_first else _post
    x = around(x, feed_forward, norms[1])
    return around(x, lambda y: attention(y, y, y), norms[0])


def _queries_only(x, attention, feed_forward, norms, *, norm_first):
    if not norm_first:
        return _block(_pre, _post)(
            x, attention, feed_forward, norms, norm_first=norm_first
        )
    x = x + attention(norms[0](x), x, x)
    return _pre(x, feed_forward, norms[1])


def _side_by_side(x, attention, feed_forward, norms, *, norm_first):
    if norm_first:
        y, z = norms[0](x), norms[1](x)
        return x + attention(y, y, y) + feed_forward(z)
    y = norms[0](x + attention(x, x, x))
    return norms[1](x + feed_forward(y))


BLOCK = [
    (
        "inverted",
        "That is the other order: with norm_first the layer reads norm(x) and the sum "
        "stays as it is; without it the layer reads x and the sum is normalized.",
        _block(_post, _pre),
    ),
    (
        "replaced",
        "Your layers replace the stream. Add what they compute to it.",
        _block(lambda x, layer, norm: layer(norm(x)), lambda x, f, norm: norm(f(x))),
    ),
    (
        "normalized-stream",
        "With norm_first you add to the normalized tokens. The norm is for what the "
        "layer reads; the sum takes x itself.",
        _block(lambda x, layer, norm: norm(x) + layer(norm(x)), _post),
    ),
    (
        "change-normalized",
        "In post-norm you normalize the change before it is added. Normalize the sum: "
        "norm(x + layer(x)).",
        _block(_pre, lambda x, layer, norm: x + norm(layer(x))),
    ),
    (
        "queries-only",
        "Your keys and values are not normalized. Attention reads the normalized "
        "tokens in all three places.",
        _queries_only,
    ),
    (
        "one-norm",
        "You use the first norm twice. The network has the second one.",
        _one_norm,
    ),
    (
        "network-first",
        "Attention comes first, then the network.",
        _network_first,
    ),
    (
        "side-by-side",
        "Your network does not take up the stream that attention has added to: the "
        "second half begins where the first one ended.",
        _side_by_side,
    ),
]

COUNT = [
    (
        "weights-only",
        "You counted the matrices. Biases and norms learn, too.",
        lambda d, f: 4 * d * d + 2 * d * f,
    ),
    (
        "no-biases",
        "You left out the biases: attention has four of d_model numbers, the network "
        "one of d_ff and one of d_model.",
        lambda d, f: 4 * d * d + 2 * d * f + 4 * d,
    ),
    (
        "no-norms",
        "4 · d_model numbers are missing: those of the two norms, each with a gamma "
        "and a beta, or the biases of the four layers of attention.",
        lambda d, f: 4 * d * d + 2 * d * f + 5 * d + f,
    ),
    (
        "half-of-the-norms",
        "There are two norms, and each has a gamma and a beta: 4 · d_model in all.",
        lambda d, f: 4 * d * d + 2 * d * f + 7 * d + f,
    ),
    (
        "no-W_O",
        "Attention has a fourth matrix, W_O, with its bias.",
        lambda d, f: 3 * d * d + 2 * d * f + 8 * d + f,
    ),
    (
        "one-matrix",
        "The network has two matrices, one up to d_ff and one back.",
        lambda d, f: 4 * d * d + d * f + 9 * d + f,
    ),
]
