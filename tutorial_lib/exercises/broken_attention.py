"""Attention functions, right and broken, on which a student's own test is tried.

Each takes (queries, keys, values, mask) and returns the outputs; shapes are
(batch, query, d_k), (batch, key, d_k), (batch, key, d_v) and (batch, query, key), and
the mask is boolean, True where a query may look. Nothing here knows an exercise.
"""

import torch.nn.functional as F

from tutorial_lib.attention import masked_softmax


def explicit(queries, keys, values, mask):
    """Compute scaled dot-product attention, step by step."""
    return masked_softmax(_scores(queries, keys), mask) @ values


def fused(queries, keys, values, mask):
    """Compute it by torch's own function, which rounds a little differently."""
    outputs = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return outputs.where(mask.any(dim=-1, keepdim=True), 0)


def _scores(queries, keys):
    return queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5


def _no_scale(queries, keys, values, mask):
    return masked_softmax(queries @ keys.transpose(-2, -1), mask) @ values


def _scale_by_keys(queries, keys, values, mask):
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-2] ** 0.5
    return masked_softmax(scores, mask) @ values


def _wrong_axis(queries, keys, values, mask):
    scores, flipped = _scores(queries, keys), mask.expand(_shape(queries, keys)).mT
    return masked_softmax(scores.mT, flipped).mT @ values


def _shape(queries, keys):
    return *queries.shape[:-1], keys.shape[-2]


def _mask_ignored(queries, keys, values, mask):
    return masked_softmax(_scores(queries, keys)) @ values


def _mask_inverted(queries, keys, values, mask):
    return masked_softmax(_scores(queries, keys), ~mask) @ values


def _mask_after(queries, keys, values, mask):
    return (_scores(queries, keys).softmax(dim=-1) * mask) @ values


def _overflow(queries, keys, values, mask):
    powers = _scores(queries, keys).exp() * mask
    total = powers.sum(dim=-1, keepdim=True)
    return powers / total.where(mask.any(dim=-1, keepdim=True), 1) @ values


def _in_place(queries, keys, values, mask):
    queries /= queries.shape[-1] ** 0.5
    return masked_softmax(queries @ keys.transpose(-2, -1), mask) @ values


RIGHT = {"step by step": explicit, "by torch": fused}

# what is wrong: (code, the broken function, which inputs bring it to light)
BROKEN = {
    "1/√d_k left out": (
        "no-scale",
        _no_scale,
        "Scores that are all equal, or d_k = 1, do not show it.",
    ),
    "softmax over the queries": (
        "wrong-axis",
        _wrong_axis,
        "Equal queries and equal keys do not show it: use random ones.",
    ),
    "mask ignored": (
        "mask-ignored",
        _mask_ignored,
        "Pass a mask with some False in it, and values that differ.",
    ),
    "mask inverted": (
        "mask-inverted",
        _mask_inverted,
        "Pass a mask with more True than False, or the other way round.",
    ),
    "mask applied after the softmax": (
        "mask-after",
        _mask_after,
        "Weights that no longer sum to 1 shrink the output: compare its numbers.",
    ),
    "scaled by √(number of keys)": (
        "scale-keys",
        _scale_by_keys,
        "As many keys as d_k hide it: make the two sizes different.",
    ),
    "overflow at large scores": (
        "overflow",
        _overflow,
        "Multiply the queries by 1000: exp(100) is already too large for float32.",
    ),
    "queries changed in place": (
        "in-place",
        _in_place,
        "Its output is right: compare the queries after the call with a clone.",
    ),
}
