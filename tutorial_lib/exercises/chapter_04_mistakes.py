"""Known wrong answers of chapter 4, as (code, message, answer).

This module does not know the right answers.
"""

import torch
from torch.nn.utils.rnn import pad_sequence

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, length_mask


def _packed(*, same=True, order="past", hide_padding=True):
    """Return an answer that asks some of the three questions, or asks one wrongly."""

    def answer(sentence):
        mask = sentence[:, :, None] == sentence[:, None, :]
        if not same:
            mask = torch.ones_like(mask)
        past = causal_mask(sentence.shape[1])
        orders = {"past": past, "future": past.mT, "strict": past.tril(diagonal=-1)}
        if order in orders:
            mask = mask & orders[order]
        return mask & (sentence > 0)[:, None, :] if hide_padding else mask

    return answer


PACKED = [
    (
        "inverted",
        "Your mask is inverted: True means that a query may look.",
        lambda sentence: ~_packed()(sentence),
    ),
    (
        "padding-sees-padding",
        "Padding looks at padding: all of it has the number 0, so it counts as one "
        "sentence. Ask also for `sentence > 0`.",
        _packed(hide_padding=False),
    ),
    (
        "padding-itself",
        "Padding looks at itself. It must look at nothing: its rows are all False.",
        lambda sentence: _packed()(sentence) | torch.eye(sentence.shape[1]).bool(),
    ),
    (
        "not-causal",
        "The sentences are kept apart, but a token sees the rest of its sentence: the "
        "future is still to hide.",
        _packed(order=None),
    ),
    (
        "not-causal",
        "The sentences are kept apart, but a token sees the rest of its sentence: the "
        "future is still to hide (and padding must see nothing).",
        _packed(order=None, hide_padding=False),
    ),
    (
        "one-sentence",
        "A token sees the earlier sentences of its row. Compare the numbers of query "
        "and key.",
        _packed(same=False),
    ),
    (
        "one-sentence",
        "This is the causal mask alone: a token sees the earlier sentences of its row, "
        "and padding sees them too.",
        _packed(same=False, hide_padding=False),
    ),
    (
        "future",
        "Your queries look at later tokens: queries and keys are swapped.",
        _packed(order="future"),
    ),
    (
        "not-itself",
        "A token may look at itself, too: keep the diagonal.",
        _packed(order="strict"),
    ),
]


def _lowest(number):
    """Return an answer that fills the hidden cells with a number of its own."""

    def answer(mask, dtype):
        hidden = torch.tensor(number(dtype)).to(dtype)  # may become −∞ on the way
        return torch.where(mask, torch.zeros((), dtype=dtype), hidden)

    return answer


def _inverted(mask, dtype):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(
        mask, torch.finfo(dtype).min / 2
    )


ADDITIVE = [
    (
        "zero-times-infinity",
        "Where a query may look you multiply 0 by −∞, and that is NaN. Fill in the "
        "number instead: `masked_fill` or `torch.where`.",
        lambda mask, dtype: (~mask).to(dtype) * -torch.inf,
    ),
    (
        "inverted",
        "You lower the scores of the keys that a query MAY look at. True means that "
        "it may look: its number is 0.",
        _inverted,
    ),
    (
        "ones-and-zeros",
        "You return the mask itself as 1 and 0. Added to a score, 1 hides nothing.",
        lambda mask, dtype: mask.to(dtype),
    ),
    (
        "out-of-range",
        "Your number is out of reach for float16, whose lowest is −65,504: it becomes "
        "−∞ there, and a row that sees nothing becomes NaN. Ask `torch.finfo(dtype)`.",
        _lowest(lambda dtype: -1e9),
    ),
    (
        "minus-infinity",
        "−∞ hides well, but in a row that sees nothing all sums are −∞, and the "
        "softmax of that is NaN. Use a number that is low, yet a number.",
        _lowest(lambda dtype: -torch.inf),
    ),
    (
        "no-room",
        "You add the very lowest number of the type. A negative score takes the sum "
        "below it, to −∞, and a row that sees nothing becomes NaN. Leave room.",
        _lowest(lambda dtype: torch.finfo(dtype).min),
    ),
]


def _lengths(x, sentences):
    return length_mask([len(sentence) for sentence in sentences], x.shape[1])


def _batch(*, hide=_lengths, causal=False, cut=True, scale=lambda x: 1.0):
    """Return an answer that pads, with one thing changed."""

    def answer(sentences):
        x = pad_sequence(sentences, batch_first=True)
        mask = hide(x, sentences)
        outputs, _ = scaled_dot_product_attention(
            x * scale(x), x, x, mask, causal=causal
        )
        pairs = zip(outputs, sentences, strict=True)
        return [o[: len(sentence)] for o, sentence in pairs] if cut else list(outputs)

    return answer


def _in_one_row(sentences):
    x = torch.cat(sentences)
    outputs, _ = scaled_dot_product_attention(x, x, x)
    return list(outputs.split([len(x) for x in sentences]))


def _both_results(sentences):
    """Cut the pair that attention returns as if it were a list of outputs."""
    x = pad_sequence(sentences, batch_first=True)
    pair = scaled_dot_product_attention(x, x, x, _lengths(x, sentences))
    return [o[: len(x)] for o, x in zip(pair, sentences, strict=False)]


BATCH = [
    (
        "both",
        "`scaled_dot_product_attention` returns outputs AND weights, and you went "
        "through the two of them. Keep the first: `outputs, _ = …`.",
        _both_results,
    ),
    (
        "not-cut",
        "You return the outputs of the padding, too. Cut each output to the length of "
        "its sentence.",
        _batch(cut=False),
    ),
    (
        "padding-seen",
        "The words of the shorter sentences look at padding: hide its columns by a "
        "mask (batch, 1, key). A mask (batch, query, 1) would hide rows instead.",
        _batch(hide=lambda x, sentences: None),
    ),
    (
        "causal",
        "Your words look back only. Here every word may look at all words of its "
        "sentence.",
        _batch(causal=True),
    ),
    (
        "no-scale",
        "The scores are not divided by √d_model, which is d_k here.",
        _batch(scale=lambda x: x.shape[-1] ** 0.5),
    ),
    (
        "zeros-hidden",
        "You take every 0 for padding, and hide a word that has a 0 in it. Numbers do "
        "not tell a word from padding: lengths do.",
        _batch(hide=lambda x, sentences: (x != 0).all(dim=-1)[:, None]),
    ),
    (
        "zeros-hidden",
        "You take zeros for padding, and hide a word whose numbers are all 0. Numbers "
        "do not tell a word from padding: lengths do.",
        _batch(hide=lambda x, sentences: (x != 0).any(dim=-1)[:, None]),
    ),
    (
        "mask-inverted",
        "Your mask is inverted: the padding is visible and the words are hidden.",
        _batch(hide=lambda x, sentences: ~_lengths(x, sentences)),
    ),
    (
        "in-one-row",
        "You put all sentences into one row, where they look at one another. "
        "Give each a row of its own, or keep them apart by a mask.",
        _in_one_row,
    ),
]
