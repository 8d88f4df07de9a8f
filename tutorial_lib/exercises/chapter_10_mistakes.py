"""Known wrong answers of chapter 10, as (code, message, answer).

This module does not know the right answers.
"""

import torch


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
        "last-only",
        "You return the last sentence's difference: an index -1, or a loop that "
        "overwrites what it found? A leak may lead into any sentence.",
        lambda layer, x: (layer(x)[-1:] - layer(x[-1:])).abs().max(),
    ),
    (
        "those-before",
        "You read a sentence together with those before it: `x[: i + 1]` has i + 1 "
        "sentences. Alone it is `x[i : i + 1]`.",
        lambda layer, x: max(
            (layer(x)[i] - layer(x[: i + 1])[i]).abs().max() for i in range(len(x))
        ),
    ),
    (
        "every-pair",
        "You compare a sentence read alone with all sentences of the batch: "
        "broadcasting does that. Its own row of the output is `[i : i + 1]`.",
        lambda layer, x: max(
            (layer(x) - layer(x[i : i + 1])).abs().max() for i in range(len(x))
        ),
    ),
    (
        "no-batch-axis",
        "`x[i]` is (token, d_model), and the layer takes its tokens for sentences. "
        "Alone a sentence is a batch of one: `x[i : i + 1]`.",
        lambda layer, x: max(
            (layer(x)[i] - layer(x[i])).abs().max() for i in range(len(x))
        ),
    ),
    (
        "sum",
        "You add the differences up. Return the largest.",
        lambda layer, x: (layer(x) - _alone(layer, x)).abs().sum(),
    ),
    (
        "norm",
        "You return the norm of all differences. Return the largest.",
        lambda layer, x: (layer(x) - _alone(layer, x)).norm(),
    ),
    (
        "squared",
        "You return the square of the largest difference. Take `.abs()` for the sign.",
        lambda layer, x: (layer(x) - _alone(layer, x)).square().max(),
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


def _sum(x, layer, norm):
    return x + layer(x)


def _norms_exchanged(x, attention, feed_forward, norms, **order):
    return _block(_pre, _post)(x, attention, feed_forward, norms[::-1], **order)


def _norm_too_many(x, attention, feed_forward, norms, *, norm_first):
    x = _block(_pre, _post)(x, attention, feed_forward, norms, norm_first=norm_first)
    return norms[1](x) if norm_first else x


def _last_norm_forgotten(x, attention, feed_forward, norms, *, norm_first):
    if norm_first:
        return _block(_pre, _post)(x, attention, feed_forward, norms, norm_first=True)
    x = norms[0](x + attention(x, x, x))
    return x + feed_forward(x)


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


def _old_stream(x, attention, feed_forward, norms, *, norm_first):
    if norm_first:
        y = norms[0](x)
        return x + feed_forward(norms[1](x + attention(y, y, y)))
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
        "norms-exchanged",
        "You use the second norm for attention and the first for the network: they "
        "belong the other way round.",
        _norms_exchanged,
    ),
    (
        "no-norm-before",
        "With norm_first your layers read the stream as it is. Normalize what each "
        "layer reads.",
        _block(_sum, _post),
    ),
    (
        "no-norm-after",
        "Without norm_first you add, but do not normalize the sum: "
        "norm(x + layer(x)), after each of the two.",
        _block(_pre, _sum),
    ),
    (
        "norm-too-many",
        "With norm_first you normalize once more at the end. In pre-norm the sum "
        "stays as it is.",
        _norm_too_many,
    ),
    (
        "last-norm-forgotten",
        "Without norm_first the second sum is normalized, too.",
        _last_norm_forgotten,
    ),
    (
        "network-first",
        "Attention comes first, then the network.",
        _network_first,
    ),
    (
        "old-stream",
        "Your second sum starts from the tokens that came in, so that what attention "
        "added is lost. It starts from the sum that attention made.",
        _old_stream,
    ),
    (
        "side-by-side",
        "Your network does not take up the stream that attention has added to: the "
        "second half begins where the first one ended.",
        _side_by_side,
    ),
]
