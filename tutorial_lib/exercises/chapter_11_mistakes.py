"""Known wrong answers of chapter 11, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.masks import causal_mask


def _causal(words):
    return causal_mask(words.shape[1]).expand(len(words), -1, -1)


def _spoken(words, padding):
    """Return (batch, 1, key): where the sentences have a word."""
    return (words != padding)[:, None, :]


MASKS = [
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
        "no-causal",
        "The padding is hidden, but the future is not: a word may look at itself and "
        "at those before it.",
        lambda words, padding: _spoken(words, padding).expand(_causal(words).shape),
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
        "You hide the rows of the padding as well, and they see nothing at all then, "
        "which makes many a softmax return NaN. Nobody scores these rows: hide keys "
        "alone.",
        lambda words, padding: (
            _causal(words) & _spoken(words, padding) & _spoken(words, padding).mT
        ),
    ),
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


def _among_others(logits, targets, smoothing):
    log_p = logits.log_softmax(dim=-1)
    true = _loss(log_p, targets)
    spread = (-log_p.sum(dim=-1) - true) / (logits.shape[-1] - 1)
    return (1 - smoothing) * true + smoothing * spread


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
        "sign",
        "Log-probabilities are negative, and a loss is their NEGATIVE.",
        lambda *given: -_weighed(lambda s, _: 1 - s, lambda s, _: s)(*given),
    ),
    (
        "logits",
        "You use the logits as log-probabilities: take their log_softmax first.",
        lambda logits, targets, smoothing: (
            (1 - smoothing) * _loss(logits, targets) - smoothing * logits.mean(dim=-1)
        ),
    ),
    (
        "averaged",
        "You return the mean over the words. Return one loss for each, and leave the "
        "mean to the caller.",
        lambda *given: _weighed(lambda s, _: 1 - s, lambda s, _: s)(*given).mean(),
    ),
]


def _decoder(*, start=True, rows="last", masked=True, keep=True):
    """Return a function that makes a mistaken class of the right one."""

    def forward(self, words, before=None):
        written = 0 if before is None else before.shape[1]
        x = self.position(self.words(words), start=written if start else 0)
        tokens = torch.cat((before, x), dim=1) if written else x
        keys = tokens if keep else x
        mask = causal_mask(keys.shape[1])
        mask = mask[: words.shape[1]] if rows == "first" else mask[-words.shape[1] :]
        mask = mask if masked else None
        return self.vocab(x + self.attention(x, keys, keys, mask)), tokens

    return lambda right: type("Mistaken", (right,), {"forward": forward})


DECODERS = [
    (
        "sees-future",
        "Your decoder sees the words to come. A causal mask must hide them in "
        "evaluation as in training: it belongs to the model, not to `self.training`.",
        _decoder(masked=False),
    ),
    (
        "position",
        "Words that come one by one are all encoded at position 0. The first new word "
        "stands behind those in `before`: pass its place as `start=`.",
        _decoder(start=False),
    ),
    (
        "first-rows",
        "The mask has the rows of the first words of the sentence; the new words stand "
        "at its end, and theirs are the last rows.",
        _decoder(rows="first"),
    ),
    (
        "forgets",
        "Your new words see only each other: their keys and values are those in "
        "`before` and their own.",
        _decoder(keep=False),
    ),
]


def _count(
    *,
    attentions=(1, 2),
    norms=(2, 3),
    bias=1,
    output_table=0,
    output_bias=1,
    decoder_blocks=1,
    positions=0,
):
    """Return a formula with something in it that is wrong."""

    def count(source_vocab, target_vocab, d_model, d_ff, blocks):
        attention = 4 * d_model**2 + bias * 4 * d_model
        network = 2 * d_model * d_ff + bias * (d_ff + d_model)
        total = (source_vocab + (1 + output_table) * target_vocab) * d_model
        total += output_bias * target_vocab + positions * d_model
        both = zip(attentions, norms, (1, decoder_blocks), strict=True)
        for looks, scales, used in both:
            block = looks * attention + network + scales * 2 * d_model
            total += used * blocks * block
        return total

    return count


COUNTS = [
    (
        "one-attention",
        "A decoder block has two attentions: one looks back, one looks across.",
        _count(attentions=(1, 1)),
    ),
    (
        "not-tied",
        "The output layer shares its table with the decoder's words: count it once.",
        _count(output_table=1),
    ),
    (
        "no-output-bias",
        "Tying shares the table, not the bias: the output layer has target_vocab "
        "biases of its own.",
        _count(output_bias=0),
    ),
    (
        "no-biases",
        "The linear layers in the blocks have biases: 4·d_model in an attention, "
        "d_ff + d_model in a feed-forward network.",
        _count(bias=0),
    ),
    (
        "no-norms",
        "Every norm has a scale and a shift, 2·d_model numbers: two norms in an "
        "encoder block, three in a decoder block.",
        _count(norms=(0, 0)),
    ),
    (
        "two-norms",
        "A decoder block adds to the stream three times and has three norms.",
        _count(norms=(2, 2)),
    ),
    (
        "no-decoder",
        "You count the blocks of the encoder only.",
        _count(decoder_blocks=0),
    ),
]
