"""Known wrong masks and losses of chapter 11, as (code, message, answer).

This module does not know the right answers.
"""

import math

import torch

from tutorial_lib.masks import causal_mask


def _causal(words):
    return causal_mask(words.shape[1]).expand(len(words), -1, -1)


def _spoken(words, padding):
    """Return (batch, 1, key): where the sentences have a word."""
    return (words != padding)[:, None, :]


def _padding_last(words, padding):
    lengths = (words != padding).sum(dim=1)
    spoken = torch.arange(words.shape[1]) < lengths[:, None]  # (batch, key)
    return _causal(words) & spoken[:, None, :]


MASKS = [
    (
        "padding-last",
        "Your mask supposes that padding stands at the end of a sentence. In one of "
        "these it stands in front: do not count words, compare each with `padding`.",
        _padding_last,
    ),
    (
        "always-zero",
        "You compare the words with 0. The number that stands for no word is the "
        "argument `padding`, and here it is another.",
        lambda words, padding: _causal(words) & _spoken(words, 0),
    ),
    (
        "inverted",
        "Your mask is inverted: True means that a query may look.",
        lambda words, padding: ~(_causal(words) & _spoken(words, padding)),
    ),
    (
        "no-padding",
        "The future is hidden, but the padding is not: look at `padding`.",
        lambda words, padding: _causal(words).clone(),
    ),
    (
        "no-padding",
        "The future is hidden, but the padding is not: look at `padding`. It differs "
        "from sentence to sentence, so that each needs a mask: (batch, query, key).",
        lambda words, padding: causal_mask(words.shape[1]),
    ),
    (
        "no-causal",
        "The padding is hidden, but the future is not: a word may look at itself and "
        "at those before it.",
        lambda words, padding: _spoken(words, padding).expand(_causal(words).shape),
    ),
    (
        "no-causal",
        "The padding is hidden, but the future is not. It differs from query to "
        "query, so that each needs a row: (batch, query, key).",
        lambda words, padding: _spoken(words, padding),
    ),
    (
        "or",
        "A key may be looked at only if it is not in the future AND no padding: you "
        "combine the two with or.",
        lambda words, padding: _causal(words) | _spoken(words, padding),
    ),
    (
        "itself-hidden",
        "A word cannot look at itself in your mask, so the first one sees nothing: "
        "keep the diagonal.",
        lambda words, padding: _causal(words).tril(-1) & _spoken(words, padding),
    ),
    (
        "padding-sees-itself",
        "A word of padding may look at itself in your mask. It is a key like others: "
        "nobody may look at it. Rows that see nothing do no harm here.",
        lambda words, padding: (
            (_causal(words) & _spoken(words, padding))
            | torch.eye(words.shape[1], dtype=torch.bool)
        ),
    ),
    (
        "future-only",
        "Your mask shows the future and hides the past: rows are queries, columns are "
        "keys, so what may be seen lies on and below the diagonal.",
        lambda words, padding: _causal(words).mT & _spoken(words, padding),
    ),
    (
        "queries-hidden",
        "You hide padding from the axis of the queries. It is the KEYS that nobody may "
        "look at: `(words != padding)[:, None, :]`.",
        lambda words, padding: _causal(words) & _spoken(words, padding).mT,
    ),
    (
        "rows-too",
        "You hide the rows of the padding as well. Hide keys alone: nobody reads what "
        "these rows find.",
        lambda words, padding: (
            _causal(words) & _spoken(words, padding) & _spoken(words, padding).mT
        ),
    ),
]

MASK_ERRORS = [  # part of what Python says, code, message
    (
        "must match the size of tensor",
        "no-query-axis",
        "`words != padding` is (batch, key) and the causal mask (query, key): without "
        "an axis for the queries the first meets them with its sentences.",
    )
]


def _loss(log_p, targets):
    return -log_p.gather(1, targets[:, None]).squeeze(1)


def _weighed(truth, others, *, mean=True):
    """Return a loss: two weights, functions of smoothing and vocab, on two terms."""

    def losses(logits, targets, smoothing):
        log_p, vocab = logits.log_softmax(dim=-1), logits.shape[-1]
        spread = -(log_p.mean(dim=-1) if mean else log_p.sum(dim=-1))
        true = _loss(log_p, targets)
        return truth(smoothing, vocab) * true + others(smoothing, vocab) * spread

    return losses


def _smoothed(logits, targets, smoothing, *, log_softmax=None):
    """Return the right losses, but for the log-probabilities that they are made of."""
    log_p = log_softmax(logits) if log_softmax else logits.log_softmax(dim=-1)
    return (1 - smoothing) * _loss(log_p, targets) - smoothing * log_p.mean(dim=-1)


def _log_of_quotient(logits):
    return (logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()


def _among_others(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    true = _loss(log_p, targets)
    spread = (-log_p.sum(dim=-1) - true) / (logits.shape[-1] - 1)
    return (1 - smoothing) * true + smoothing * spread


def _truth_left_out(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    true = _loss(log_p, targets)
    others = -log_p.sum(dim=-1) - true
    return (1 - smoothing) * true + smoothing / logits.shape[-1] * others


def _smoothed_prediction(logits, targets, smoothing):
    true = logits.softmax(dim=-1).gather(1, targets[:, None]).squeeze(1)
    return -((1 - smoothing) * true + smoothing / logits.shape[-1]).log()


LOSSES = [
    (
        "not-smoothed",
        "That is the plain cross-entropy: `smoothing` is not used.",
        lambda logits, targets, smoothing: _loss(logits.log_softmax(dim=-1), targets),
    ),
    (
        "among-others",
        "You share the smoothing out among the words other than the truth. Here it "
        "goes to ALL words, the true one included: smoothing / vocab each.",
        _among_others,
    ),
    (
        "truth-left-out",
        "Your shares sum to less than 1: of what is spread, ε / vocab belongs to the "
        "true word, too.",
        _truth_left_out,
    ),
    (
        "one-term",
        "That is the term of the true word. The other words have their shares, too, "
        "and each costs the negative of its log-probability.",
        _weighed(lambda s, vocab: 1 - s, lambda s, vocab: 0),
    ),
    (
        "smoothed-prediction",
        "You smooth what the model predicts, and take the logarithm afterwards. It is "
        "the target that is smoothed: a weighted sum of log-probabilities.",
        _smoothed_prediction,
    ),
    (
        "truth-keeps-all",
        "Your shares sum to more than 1: the truth still has 1. It must give away "
        "`smoothing` of it.",
        _weighed(lambda s, vocab: 1, lambda s, vocab: s),
    ),
    (
        "sum-for-mean",
        "Every word gets `smoothing` in yours; all words together get it: take the "
        "MEAN of the log-probabilities.",
        _weighed(lambda s, vocab: 1 - s, lambda s, vocab: s, mean=False),
    ),
    (
        "swapped",
        "The truth gets `smoothing` in yours, and all words share 1 − smoothing: the "
        "other way round.",
        _weighed(lambda s, vocab: s, lambda s, vocab: 1 - s),
    ),
    (
        "truth-twice",
        "The truth gets its part of what is spread twice: once in 1 − ε + ε / vocab, "
        "and again in the term of all words.",
        _weighed(lambda s, vocab: 1 - s + s / vocab, lambda s, vocab: s),
    ),
    (
        "vocab-twice",
        "You divide by vocab twice: the mean over the words has done it already.",
        _weighed(lambda s, vocab: 1 - s, lambda s, vocab: s / vocab),
    ),
    (
        "sign",
        "Log-probabilities are negative, and a loss is their NEGATIVE.",
        lambda *given: -_smoothed(*given),
    ),
    (
        "one-sign",
        "One of your two terms has the wrong sign: both are shares times a NEGATIVE "
        "log-probability.",
        _weighed(lambda s, vocab: 1 - s, lambda s, vocab: -s),
    ),
    (
        "constant",
        "You add a share, ε / vocab, to the loss. A share belongs to a word: multiply "
        "it by that word's negative log-probability, and sum over the words.",
        lambda logits, targets, smoothing: (
            (1 - smoothing) * _loss(logits.log_softmax(dim=-1), targets)
            + smoothing / logits.shape[-1]
        ),
    ),
    (
        "fixed",
        "You always smooth by 0.1. Here the argument `smoothing` is another number.",
        lambda logits, targets, smoothing: _smoothed(logits, targets, 0.1),
    ),
    (
        "wrong-axis",
        "Your softmax runs over the words of the sentence. It should run over the "
        "vocabulary: `dim=-1`.",
        lambda *given: _smoothed(*given, log_softmax=lambda x: x.log_softmax(dim=0)),
    ),
    (
        "log-base",
        "You count in bits: log2. The loss is in nats, by the natural logarithm.",
        lambda *given: _smoothed(*given) / math.log(2),
    ),
    (
        "overflow",
        "A probability so small that it is rounded to 0 has the logarithm −∞. Take "
        "`log_softmax`, which never makes the probability, instead of the log of a "
        "softmax.",
        lambda *given: _smoothed(*given, log_softmax=lambda x: x.softmax(dim=-1).log()),
    ),
    (
        "overflow",
        "The exponential of a large logit is infinite. Take `log_softmax`, which "
        "subtracts the largest logit first.",
        lambda *given: _smoothed(*given, log_softmax=_log_of_quotient),
    ),
    (
        "logits",
        "You use the logits as log-probabilities: take their log_softmax first.",
        lambda *given: _smoothed(*given, log_softmax=lambda x: x),
    ),
    (
        "averaged",
        "You return the mean over the words. Return one loss for each, and leave the "
        "mean to the caller.",
        lambda *given: _smoothed(*given).mean(),
    ),
]
