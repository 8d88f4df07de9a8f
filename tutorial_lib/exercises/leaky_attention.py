"""Self-attentions that look back only, and some that secretly look ahead.

Each is called as ``attend(x, training)`` with x (..., token, d_model), used as queries,
keys and values, and returns outputs of the same shape. Nothing here knows an exercise.
"""

import torch
import torch.nn.functional as F

from tutorial_lib.attention import attention_weights, scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, window_mask


def explicit(x, training):
    """Attend to the past, step by step."""
    return scaled_dot_product_attention(x, x, x, causal=True)[0]


def fused(x, training):
    """Attend to the past by torch's own function."""
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


def windowed(x, training):
    """Attend to the last three tokens only, which is no leak."""
    return _attend(x, _causal(x) & window_mask(x.shape[-2], 2))


def centered(x, training):
    """Subtract from each token the mean of the tokens so far, then attend."""
    count = torch.arange(1, x.shape[-2] + 1)[:, None]
    x = x - x.cumsum(dim=-2) / count
    return scaled_dot_product_attention(x, x, x, causal=True)[0]


def _causal(x):
    return causal_mask(x.shape[-2])


def _attend(x, mask):
    return scaled_dot_product_attention(x, x, x, mask)[0]


def _one_too_far(x, training):
    return _attend(x, torch.ones(x.shape[-2], x.shape[-2]).tril(diagonal=1).bool())


def _only_in_training(x, training):
    return scaled_dot_product_attention(x, x, x, causal=training)[0]


def _only_in_use(x, training):
    return scaled_dot_product_attention(x, x, x, causal=not training)[0]


def _mask_after(x, training):
    return attention_weights(x, x) * _causal(x) @ x


def _mean_of_all(x, training):
    scores = x - x.mean(dim=-2, keepdim=True)
    return scaled_dot_product_attention(scores, scores, x, causal=True)[0]


def _prefix(x, training):
    return _attend(x, _causal(x) | (torch.arange(x.shape[-2]) < 2))


def _outgrown(x, training):
    mask = _causal(x)
    mask[4:] = True
    return _attend(x, mask)


def _first_of_batch(x, training):
    mask = _causal(x).expand(*x.shape[:-1], -1).clone()
    mask[1:] = True
    return _attend(x, mask)


def _small_penalty(x, training):
    scores = x @ x.mT / x.shape[-1] ** 0.5
    return (scores - 20.0 * ~_causal(x)).softmax(dim=-1) @ x


RIGHT = {
    "step by step": explicit,
    "by torch's own function": fused,
    "over a window of three words": windowed,
    "over words less the mean of the words so far": centered,
}

# what is wrong: (code, the leaking function, which inputs bring it to light)
LEAKY = {
    "the mask reaches one place too far": (
        "one-too-far",
        _one_too_far,
        "Only the word right after a query leaks into it: change every word but the "
        "first, and compare all outputs before it.",
    ),
    "the mask is there only in training": (
        "only-in-training",
        _only_in_training,
        "It keeps its promise while training is True. Try False as well.",
    ),
    "the mask is there only in use": (
        "only-in-use",
        _only_in_use,
        "It keeps its promise while training is False. Try True as well.",
    ),
    "the mask comes after the softmax": (
        "mask-after",
        _mask_after,
        "Its weights on the future are 0, but the sum it divided by counted the "
        "future: compare the outputs themselves.",
    ),
    "the mean of all words is subtracted first": (
        "mean-of-all",
        _mean_of_all,
        "Its mask is right; the future comes in before. Compare all outputs before the "
        "change: the first one alone, which reads only itself, does not show it.",
    ),
    "the first two words see each other": (
        "prefix",
        _prefix,
        "Word 0 sees word 1, and no other word sees ahead. Change the words from every "
        "place on, one place after the other.",
    ),
    "the mask ends after four words": (
        "outgrown",
        _outgrown,
        "Its mask was made for sentences of four words; behind them everything is "
        "visible. Use longer sentences, and change the last words as well.",
    ),
    "only the first sentence of a batch is masked": (
        "first-of-batch",
        _first_of_batch,
        "Use a batch of at least two sentences, change both and compare both.",
    ),
    "hidden scores are lowered, but not enough": (
        "small-penalty",
        _small_penalty,
        "It lowers hidden scores by 20, which a large score makes up for. Make the "
        "new words large, say 100 times, or ask the gradients for exact zeros.",
    ),
}
