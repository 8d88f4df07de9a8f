"""Known wrong answers of chapter 3, as (code, message, answer).

This module does not know the right answers.
"""

import torch


def _distance(score, axis=-1):
    """Return an answer whose scores are `score(products, norms, width)`."""

    def answer(queries, keys, values, width):
        scores = score(queries @ keys.T, keys.square().sum(dim=-1), width)
        return scores.softmax(dim=axis) @ values

    return answer


DISTANCE = [
    (
        "product-only",
        "This is the plain product: -‖k‖² / 2 is missing from the scores, and so is "
        "the division by width².",
        _distance(lambda products, norms, width: products),
    ),
    (
        "no-key-norm",
        "This is plain dot-product attention: -‖k‖² / 2 is missing from the scores. "
        "(What is the same for all keys, as ‖q‖² or a sum over them, cancels.)",
        _distance(lambda products, norms, width: products / width**2),
    ),
    (
        "no-half",
        "You subtract ‖k‖² whole. Half of it belongs to q · k, because ‖q - k‖² holds "
        "2 q · k.",
        _distance(lambda products, norms, width: (products - norms) / width**2),
    ),
    (
        "lost-two",
        "‖q - k‖² holds the product twice: 2 q · k. Yours has it once.",
        _distance(lambda products, norms, width: (products - norms) / 2 / width**2),
    ),
    (
        "sign",
        "The sign is turned around: the farther a key, the lower its score.",
        _distance(lambda products, norms, width: (norms / 2 - products) / width**2),
    ),
    (
        "plus-norm",
        "You add ‖k‖² / 2. A long key is far away, so its norm must lower the score.",
        _distance(lambda products, norms, width: (products + norms / 2) / width**2),
    ),
    (
        "halved-twice",
        "You halve twice: with ‖k‖² / 2 the 2 of 2 width² is used up. Divide the whole "
        "by width².",
        _distance(lambda products, norms, width: (products - norms / 2) / 2 / width**2),
    ),
    (
        "width-under-norm-only",
        "You divide only ‖k‖² / 2 by width². The product must be divided as well: put "
        "both in brackets.",
        _distance(lambda products, norms, width: products - norms / 2 / width**2),
    ),
    (
        "width-under-product-only",
        "You divide only the product by width². ‖k‖² / 2 must be divided as well: put "
        "both in brackets.",
        _distance(lambda products, norms, width: products / width**2 - norms / 2),
    ),
    (
        "norm-not-squared",
        "You subtract ‖k‖ / 2. The norm must be squared: leave the square root out.",
        _distance(
            lambda products, norms, width: (products - norms**0.5 / 2) / width**2
        ),
    ),
    (
        "no-width",
        "Your weights do not depend on the width: divide the scores by width².",
        _distance(lambda products, norms, width: products - norms / 2),
    ),
    (
        "width-not-squared",
        "You divide by the width itself. The exponent holds the square of distance "
        "over width: divide by width².",
        _distance(lambda products, norms, width: (products - norms / 2) / width),
    ),
    (
        "wrong-axis",
        "Your softmax runs over the queries. Each query shares its weight out over the "
        "keys: they are the last axis.",
        _distance(lambda products, norms, width: (products - norms / 2) / width**2, 0),
    ),
]


def _bilinear(scale, axis=-1, hide=lambda mask: ~mask, lowest=-1e38):
    """Return an answer that divides the scores by `scale(d_query, d_key)`."""

    def answer(queries, keys, values, M, mask=None):
        scores = queries @ M @ keys.transpose(-2, -1) / scale(*M.shape)
        if mask is not None:
            scores = scores.masked_fill(hide(mask), lowest)
        return scores.softmax(dim=axis) @ values

    return answer


def _by_key_count(queries, keys, values, M, mask=None):
    return _bilinear(lambda *_: keys.shape[1] ** 0.5)(queries, keys, values, M, mask)


def _no_softmax(queries, keys, values, M, mask=None):
    scores = queries @ M @ keys.transpose(-2, -1) / M.shape[1] ** 0.5
    return (scores if mask is None else scores.masked_fill(~mask, 0)) @ values


def _mask_after(queries, keys, values, M, mask=None):
    scores = queries @ M @ keys.transpose(-2, -1) / M.shape[1] ** 0.5
    weights = scores.softmax(dim=-1)
    return (weights if mask is None else weights * mask) @ values


BILINEAR = [
    (
        "nothing-visible",
        "A query that may look at nothing should read 0, and yours reads an average. "
        "`masked_softmax` takes care of that case.",
        _bilinear(lambda d_query, d_key: d_key**0.5),
    ),
    (
        "nothing-visible-nan",
        "The row of a query that may look at nothing is NaN: its scores are all −∞, "
        "and the softmax divides 0 by 0. `masked_softmax` takes care of that case.",
        _bilinear(lambda d_query, d_key: d_key**0.5, lowest=-torch.inf),
    ),
    (
        "no-softmax",
        "You multiply the values by the scores themselves. Turn scores into weights "
        "first: `masked_softmax(scores, mask)`.",
        _no_softmax,
    ),
    (
        "no-scale",
        "The division by √d_key is missing.",
        _bilinear(lambda d_query, d_key: 1),
    ),
    (
        "scale-query",
        "You divide by √d_query. The projected query q M has d_key numbers, so a score "
        "is a sum of d_key products: divide by √d_key.",
        _bilinear(lambda d_query, d_key: d_query**0.5),
    ),
    (
        "scale-keys",
        "You divide by the root of the NUMBER of keys. d_key is how many numbers each "
        "key has.",
        _by_key_count,
    ),
    (
        "scale-not-rooted",
        "You divide by d_key instead of its square root.",
        _bilinear(lambda d_query, d_key: d_key),
    ),
    (
        "wrong-axis",
        "Your softmax runs over the queries. Each query shares its weight out over the "
        "keys: they are the last axis.",
        _bilinear(lambda d_query, d_key: d_key**0.5, axis=-2),
    ),
    (
        "mask-ignored",
        "Your result is the same with and without a mask: hand the mask to "
        "`masked_softmax`.",
        _bilinear(lambda d_query, d_key: d_key**0.5, hide=torch.zeros_like),
    ),
    (
        "mask-inverted",
        "Your mask is inverted: True means that the query may look.",
        _bilinear(lambda d_query, d_key: d_key**0.5, hide=lambda mask: mask),
    ),
    (
        "mask-after",
        "You hide keys after the softmax, so the remaining weights no longer sum to 1. "
        "Mask the scores: `masked_softmax(scores, mask)`.",
        _mask_after,
    ),
]


def _additive(hidden=torch.tanh, combine=torch.add):
    """Return an answer that holds everything at once, with one thing changed."""

    def answer(queries, keys, W_Q, W_K, v):
        Q, K = (queries @ W_Q)[:, :, None], (keys @ W_K)[:, None]
        return hidden(combine(Q, K)) @ v

    return answer


def _v_first(queries, keys, W_Q, W_K, v):
    total = _additive(hidden=lambda total: total)(queries, keys, W_Q, W_K, v)
    return total.tanh()


def _shared_out(queries, keys, W_Q, W_K, v):
    return _additive()(queries, keys, W_Q, W_K, v).softmax(dim=-1)


def _dot_product(queries, keys, W_Q, W_K, v):
    return (queries @ W_Q) @ (keys @ W_K).transpose(-2, -1)


ADDITIVE = [
    (
        "dot-product",
        "This is the dot product of the projected query and key. Add them, take tanh, "
        "then multiply by v and sum.",
        _dot_product,
    ),
    (
        "no-tanh",
        "The tanh is missing, so that the score is a sum of one number for the query "
        "and one for the key.",
        _additive(hidden=lambda total: total),
    ),
    (
        "tanh-first",
        "You take tanh of the query's and of the key's numbers apart. Add them first: "
        "tanh of the sum is what lets query and key act on each other.",
        _additive(hidden=lambda total: total, combine=lambda Q, K: Q.tanh() + K.tanh()),
    ),
    (
        "v-first",
        "You multiply by v before the tanh. Each hidden number goes through tanh; v "
        "adds up what comes out.",
        _v_first,
    ),
    (
        "weights",
        "These are weights, which sum to 1. The scores were asked for: no softmax.",
        _shared_out,
    ),
    (
        "product",
        "You multiply the projected query and key. The additive score adds them.",
        _additive(combine=torch.mul),
    ),
]
