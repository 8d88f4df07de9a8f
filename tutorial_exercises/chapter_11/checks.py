"""Checks for chapter 11: the Transformer.

The definitions here are slow loops, or go through the model's parts one by one.
"""

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise, Wrong
from tutorial_exercises.probe import call_advising
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.transformer import Decoder, Encoder, Transformer

__all__ = ["exchanging", "masking", "mending"]

MASK_ERRORS = [  # part of what Python says, code, message
    (
        "must match the size of tensor",
        "no-query-axis",
        "`words != padding` is (batch, key) and the causal mask (query, key): without "
        "an axis for the queries the first meets them with its sentences.",
    )
]

ROW_ERRORS = [
    (
        "out of bounds for dimension 0",
        "wrong-axis",
        "`memory[row]` is the memory of a whole sentence of the batch. The rows of its "
        "words lie along the second axis: `memory[:, row]`.",
    )
]

masking = Exercise(
    "11.1",
    "What a target word may look at",
    name="word_mask",
    returns="batch query key",
    hints=[
        "Two conditions, one for each pair of places and one for each key of each "
        "sentence: both must hold.",
        "`causal_mask(tokens)` is (query, key); `words != padding` is (batch, key). "
        "Which axis does the second one lack?",
        "`[:, None, :]` makes it (batch, 1, key), which every query shares. Then join "
        "the two: does `&` or `|` ask for both?",
    ],
)


@masking.spec
def word_mask(words, padding):
    """Ask for each pair of places whether the one may look at the other."""
    batch, tokens = words.shape
    mask = torch.zeros(batch, tokens, tokens, dtype=torch.bool)
    for b in range(batch):
        for i in range(tokens):
            for j in range(i + 1):
                mask[b, i, j] = words[b, j].item() != padding
    return mask


def _expect_mask(probe, words, padding):
    mask = call_advising(probe, (words, padding), MASK_ERRORS)
    if torch.is_tensor(mask) and mask.dtype != torch.bool:
        kind = str(mask.dtype).removeprefix("torch.")
        sentence = f"A mask is boolean, True = may look; yours is {kind}."
        probe.fail("type", sentence)
    probe.same()


@masking.step("three sentences of different lengths")
def _(probe):
    _expect_mask(probe, torch.tensor([[2, 5, 6, 7], [2, 5, 0, 0], [0, 0, 2, 5]]), 0)


@masking.step("another number for the padding")
def _(probe):
    _expect_mask(probe, torch.tensor([[0, 4, 3], [0, 9, 9]]), 9)


mending = Exercise(
    "11.2",
    "Two bugs that training does not see",
    name="MendedDecoder",
    returns={"logits": "batch token vocab", "tokens": "batch token d_model"},
    hints=[
        "Call the hurried decoder in evaluation mode with a whole sentence, and change "
        "its last word. Which logits move?",
        "Then feed it word by word. At which place does each word think it stands? "
        "`before` tells how many words there were.",
        "`self.position_encoding` takes the place of the first new word as `start=`: "
        "0, or the number of tokens in `before`.",
        "Write down the causal mask of five tokens. If the last two are new, which of "
        "its rows are theirs?",
    ],
)


@mending.spec
class MendedDecoder(nn.Module):
    """Go through the new words one by one; each sees what stands up to it."""

    def __init__(self, vocab_size, d_model, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        self.attention = MultiHeadAttention(d_model, 2)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, words, before=None):
        """Add each word at its place, and let it look at all that there is."""
        seen = [] if before is None else list(before.split(1, dim=1))
        logits = []
        for word in words.split(1, dim=1):
            x = self.token_embedding(word) + self.position_encoding.table[len(seen)]
            seen.append(x)
            keys = torch.cat(seen, dim=1)
            logits.append(self.lm_head(x + self.attention(x, keys, keys)))
        return torch.cat(logits, dim=1), torch.cat(seen, dim=1)


def _sentence(tokens=6):
    return torch.randint(0, 9, (2, tokens))


@mending.step("in evaluation, a whole sentence at once")
def _(probe):
    probe.build(9, 8, 16)
    probe(_sentence())
    probe.same()


@mending.step("in training as well")
def _(probe):
    probe.build(9, 8, 16).train()
    probe(_sentence())
    probe.same()


@mending.step("word by word")
def _(probe):
    probe.build(9, 8, 16)
    words, seen = _sentence(5), None
    for portion in words.split([2, 1, 1, 1], dim=1):  # two, to tell 0 from one less
        _, seen = probe(portion, seen)
        probe.same()


@mending.step("two words after three")
def _(probe):
    probe.build(9, 8, 16)
    words = _sentence(5)
    _, seen = probe(words[:, :3])
    try:
        probe(words[:, 3:], seen)
    except Wrong as wrong:
        if wrong.code == "error" and "mask" in str(wrong):
            message = (
                "Two words came after three others, and your mask does not fit. It "
                "needs a row for each new word, and a column for each of all five: "
                "the last rows of causal_mask(5)."
            )
            raise Wrong("mask-corner", message) from None
        raise
    probe.same()


@mending.step("another sentence in between")
def _(probe):
    probe.build(9, 8, 16)
    words, others = _sentence(5), _sentence(7)
    _, seen = probe(words[:, :3])
    first = probe(words[:, 3:], seen)
    try:
        _, theirs = probe(others[:, :1])
        probe(others[:, 1:], theirs)
        same = probe.close(first, probe(words[:, 3:], seen))
    except Wrong:
        same = False
    message = (
        "After another sentence something else comes out for this one: your module "
        "remembers what it was given. What stands in front of the new words, `before` "
        "alone says."
    )
    probe.require(same, "remembers", message)


exchanging = Exercise(
    "11.3",
    "Another row in the memory",
    name="with_row_of",
    returns="batch token vocab",
    hints=[
        "`model.encoder(source, lengths)` is the memory (batch, token, d_model), and "
        "the decoder reads nothing else of the source.",
        "Encode both sentences whole, copy the first memory with `clone`, and write "
        "the one row of the second into it.",
        "`model.decoder(target, memory)` gives the logits: where nothing is padding, "
        "the source needs no mask.",
    ],
)


@exchanging.spec
def with_row_of(model, source, other, row, target):
    """Put the memory together from its rows, and let the decoder read it."""
    batch, words = source.shape
    lengths = torch.full((batch,), words)
    rows = model.encoder(source, lengths).unbind(dim=1)
    theirs = model.encoder(other, lengths).unbind(dim=1)
    memory = torch.stack([*rows[:row], theirs[row], *rows[row + 1 :]], dim=1)
    return model.decoder(target, memory)


def _exchange(row, batch=1):
    sizes, options = (8, 2, 12, 2), {"max_tokens": 16, "norm_first": False}
    model = Transformer(Encoder(20, *sizes, **options), Decoder(20, *sizes, **options))
    source, target = torch.randint(4, 20, (batch, 5)), torch.randint(4, 20, (batch, 6))
    other = 4 + (source - 4 + torch.randint(1, 16, source.shape)) % 16  # all different
    return model.eval(), source, other, row, target


@exchanging.step("a row in the middle")
def _(probe):
    call_advising(probe, _exchange(2), ROW_ERRORS)
    probe.same()


@exchanging.step("the first row, and two sentences at once")
def _(probe):
    probe(*_exchange(0, batch=2))
    probe.same()


@exchanging.step("both sentences are the same")
def _(probe):
    model, source, _, row, target = _exchange(3)
    probe(model, source, source, row, target)
    probe.same()
