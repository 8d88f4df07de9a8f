"""Known wrong decoders and counts of chapter 11, as (code, message, answer).

This module does not know the right answers.
"""

import torch

from tutorial_lib.masks import causal_mask


def _decoder(
    *,
    place=lambda written: written,
    rows="last",
    masked=lambda written: True,
    keep=True,
    return_all=True,
):
    """Return a function that makes a mistaken class of the right one."""

    def forward(self, words, before=None):
        written = 0 if before is None else before.shape[1]
        x = self.position(self.words(words), start=place(written))
        tokens = torch.cat((before, x), dim=1) if written else x
        keys = tokens if keep else x
        mask = causal_mask(keys.shape[1])
        mask = mask[: words.shape[1]] if rows == "first" else mask[-words.shape[1] :]
        mask = mask if masked(written) else None
        logits = self.vocab(x + self.attention(x, keys, keys, mask))
        return logits, tokens if return_all else x

    return _mistaken(forward)


def _encoding_all(*, bare):
    """Give positions to all tokens in every call: kept without them, or once more."""

    def forward(self, words, before=None):
        new = self.words(words)
        kept = new if before is None else torch.cat((before, new), dim=1)
        keys = self.position(kept)
        x, mask = keys[:, -words.shape[1] :], causal_mask(keys.shape[1])
        looked = self.attention(x, keys, keys, mask[-words.shape[1] :])
        return self.vocab(x + looked), kept if bare else keys

    return _mistaken(forward)


def _mistaken(forward):
    return lambda right: type("Mistaken", (right,), {"forward": forward})


DECODERS = [
    (
        "bare-tokens",
        "Your logits are right, but the tokens that you return lack their positions. "
        "Return them as HurriedDecoder does, with the positions added, so that none "
        "is encoded twice.",
        _encoding_all(bare=True),
    ),
    (
        "encoded-twice",
        "The tokens in `before` have their positions, and yours get them once more: "
        "encode the new words alone, and join them to `before` afterwards.",
        _encoding_all(bare=False),
    ),
    (
        "portion-unmasked",
        "Several new words came after those in `before`, and the first of them saw "
        "the next. A mask is needed there as well: the last rows of the causal mask "
        "of all tokens.",
        _decoder(masked=lambda written: not written),
    ),
    (
        "sees-future",
        "Your decoder sees the words to come. A causal mask must hide them in every "
        "mode: `self.training` has no say in it.",
        _decoder(masked=lambda written: False),
    ),
    (
        "position",
        "The new words are encoded as if they began at position 0. The first of them "
        "stands behind those in `before`: pass its place as `start=`.",
        _decoder(place=lambda written: 0),
    ),
    (
        "one-too-early",
        "Your new words stand one place too early. Positions count from 0, so after "
        "three words the next one stands at 3, which is `before.shape[1]`.",
        _decoder(place=lambda written: max(written - 1, 0)),
    ),
    (
        "one-too-late",
        "Your new words stand one place too late. Positions count from 0, so after "
        "three words the next one stands at 3, which is `before.shape[1]`.",
        _decoder(place=lambda written: written + bool(written)),
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
    (
        "new-only",
        "You return the new tokens alone. Return those in `before` as well, in front: "
        "the next call gets what this one returns.",
        _decoder(return_all=False),
    ),
]


def _count(
    *,
    attentions=(1, 2),
    maps=4,
    norms=(2, 3),
    norm=2,
    last_norms=0,
    attention_bias=1,
    network_bias=1,
    tables=(1, 1),
    output_bias=1,
    used=(1, 1),
    stacked=True,
):
    """Return a formula with something in it that is wrong."""

    def count(source_vocab, target_vocab, d_model, d_ff, blocks):
        attention = maps * (d_model**2 + attention_bias * d_model)
        network = 2 * d_model * d_ff + network_bias * (d_ff + d_model)
        total = (tables[0] * source_vocab + tables[1] * target_vocab) * d_model
        total += output_bias * target_vocab + last_norms * norm * d_model
        for looks, scales, times in zip(attentions, norms, used, strict=True):
            block = looks * attention + network + scales * norm * d_model
            total += times * block * (blocks if stacked else 1)
        return total

    return count


COUNTS = [
    (
        "one-attention",
        "A decoder block has two attentions: one looks back, one looks across.",
        _count(attentions=(1, 1)),
    ),
    (
        "like-the-encoder",
        "You count a decoder block like one of the encoder. It has a second attention, "
        "which looks across, and a third norm.",
        _count(attentions=(1, 1), norms=(2, 2)),
    ),
    (
        "weights-only",
        "You counted the matrices. Biases and norms learn, too.",
        _count(attention_bias=0, network_bias=0, norms=(0, 0), output_bias=0),
    ),
    (
        "no-output-map",
        "An attention has four linear maps: W_Q, W_K, W_V, and W_O for the joined "
        "heads.",
        _count(maps=3),
    ),
    (
        "not-tied",
        "The output layer shares its table with the decoder's words: count it once.",
        _count(tables=(1, 2)),
    ),
    (
        "one-table",
        "Tied are the decoder's words and its output. The encoder has a table of its "
        "own, source_vocab·d_model.",
        _count(tables=(0, 1)),
    ),
    (
        "no-output-bias",
        "Tying shares the table, not the bias: the output layer has target_vocab "
        "biases of its own.",
        _count(output_bias=0),
    ),
    (
        "no-attention-biases",
        "The four maps of an attention have biases as well: 4·d_model of them.",
        _count(attention_bias=0),
    ),
    (
        "no-network-biases",
        "The two layers of a feed-forward network have biases: d_ff, and d_model.",
        _count(network_bias=0),
    ),
    (
        "no-biases",
        "The linear layers in the blocks have biases: 4·d_model in an attention, "
        "d_ff + d_model in a feed-forward network.",
        _count(attention_bias=0, network_bias=0),
    ),
    (
        "no-norms",
        "Every norm has a scale and a shift, 2·d_model numbers: two norms in an "
        "encoder block, three in a decoder block.",
        _count(norms=(0, 0)),
    ),
    (
        "half-norms",
        "A norm has a scale AND a shift for each of the d_model numbers: 2·d_model.",
        _count(norm=1),
    ),
    (
        "two-norms",
        "A decoder block adds to the stream three times and has three norms.",
        _count(norms=(2, 2)),
    ),
    (
        "last-norms",
        "With post-norm every block ends in a norm, and no other comes after the last "
        "block: that one belongs to pre-norm.",
        _count(last_norms=2),
    ),
    (
        "no-decoder",
        "You count the blocks of the encoder only.",
        _count(used=(1, 0)),
    ),
    (
        "one-block",
        "You count one block of each kind. There are `blocks` of each.",
        _count(stacked=False),
    ),
]
