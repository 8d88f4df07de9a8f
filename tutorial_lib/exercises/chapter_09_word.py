"""Checks for the fifth exercise of chapter 9: word by word.

This module does not know how a sentence is read in one call.
"""

import torch

from tutorial_lib.position import PositionedAttention, SinusoidalEncoding

from .chapter_09_word_mistakes import STEPS
from .exercise import Exercise

word = Exercise(
    "9.5",
    "Word by word",
    name="read_word_by_word",
    returns="batch token d_model",
    fallback="tutorial_lib.exercises.solutions.chapter_09:read_word_by_word",
    hints=[
        "What does `encoding(word)` take the position of a single word to be? Its "
        "second argument is `start`.",
        "Go through `enumerate(x.split(1, dim=1))`, which gives (t, word). Keep the "
        "encoded words in a list; joined by `torch.cat(…, dim=1)` they are the keys "
        "and the values.",
        "The query is the encoded word alone. Nothing needs to be masked: "
        "later words are not there yet.",
    ],
)


@word.spec
def read_word_by_word(x, encoding, attention):
    """Begin anew for every word, with all words so far."""
    outputs = torch.zeros_like(x)
    for t in range(x.shape[1]):
        y = encoding(x[:, : t + 1])
        outputs[:, t] = attention(y, y, y)[:, -1]
    return outputs


for code, message, answer in STEPS:
    word.misconception(code, message)(answer)


def _expect_token_axis(x):
    if x.ndim != 3:
        raise ValueError(
            f"one word of every sentence is (batch, 1, d_model), got {tuple(x.shape)}: "
            "keep the token axis with x[:, t : t + 1] (x[:, t] drops it, and "
            "`for word in x` goes through the sentences)"
        )


class _CountingEncoding(SinusoidalEncoding):
    """An encoding that remembers the most words that it was given at once."""

    most = 0

    def forward(self, x, start=0):
        _expect_token_axis(x)
        self.most = max(self.most, x.shape[-2])
        return super().forward(x, start=start)


class _CountingAttention(PositionedAttention):
    """An attention layer that remembers how many words looked at once.

    ``ahead`` is how many words had been encoded at once when it was first called.
    """

    most = ahead = 0

    def forward(self, queries, keys, values, mask=None, *, causal=False):
        _expect_token_axis(queries)
        self.most = max(self.most, queries.shape[1])
        self.ahead = self.ahead or self.encoding.most
        return super().forward(queries, keys, values, mask, causal=causal)


@torch.no_grad()
def _layers():
    encoding, attention = _CountingEncoding(8, 16), _CountingAttention(8, 2)
    for weight in attention.parameters():
        weight.mul_(3)  # so that it matters where a word looks
    attention.encoding = encoding
    return encoding, attention


@word.step("one output for each word")
def _(probe):
    probe.shape(probe(torch.randn(2, 5, 8), *_layers()), batch=2, token=5, d_model=8)


@word.step("word by word gives what all at once gives")
def _(probe):
    probe(torch.randn(2, 6, 8), *_layers())
    probe.same()


@word.step("one word looks at a time")
def _(probe):
    encoding, attention = _layers()
    probe(torch.randn(1, 6, 8), encoding, attention)
    again = attention.ahead <= 1
    message = (
        f"The outputs are right, but {attention.most} words looked at once: you "
        "recompute the looks of earlier words. Only the new word asks: one query a "
        "call."
    )
    probe.require(not again or attention.most == 1, "recomputed", message)
    message = (
        f"The outputs are right, but {attention.most} words looked at once. While a "
        "sentence is being written the later ones do not exist: one query a call."
    )
    probe.require(attention.most == 1, "at-once", message)
    message = (
        f"The outputs are right, but {attention.ahead} words were encoded before the "
        "first one was read. While a sentence is being written the later ones do not "
        "exist: encode each word when its turn comes."
    )
    probe.require(attention.ahead <= 1, "encoded-ahead", message)


@word.step("a single word is a sentence")
def _(probe):
    probe(torch.randn(3, 1, 8), *_layers())
    probe.same()
