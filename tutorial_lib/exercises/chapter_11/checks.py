"""Checks for chapter 11: the Transformer.

The definitions here are slow loops, or build the model and count.
"""

from unittest import mock

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.exercises.counting import Count
from tutorial_lib.exercises.exercise import Exercise, Wrong
from tutorial_lib.exercises.probe import call_advising
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.transformer import Decoder, Encoder, Transformer

__all__ = ["counting", "masking", "mending", "smoothing"]

DRAWN = "kaiming_uniform_", "normal_", "uniform_", "xavier_uniform_"

MASK_ERRORS = [  # part of what Python says, code, message
    (
        "must match the size of tensor",
        "no-query-axis",
        "`words != padding` is (batch, key) and the causal mask (query, key): without "
        "an axis for the queries the first meets them with its sentences.",
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


smoothing = Exercise(
    "11.2",
    "The smoothed loss",
    name="smoothed_losses",
    returns="token",
    hints=[
        "`logits.log_softmax(dim=-1)` are the log-probabilities (token, vocab). The "
        "smoothed loss weighs all of them, not only that of the truth.",
        "Put the smoothed target into −Σ y log p and pull the sum apart: one term has "
        "the true word alone, the other has all words with the same share.",
        "`log_p.gather(1, targets[:, None]).squeeze(1)` are those of the true words.",
    ],
)


@smoothing.spec
def smoothed_losses(logits, targets, smoothing):
    """Write out the target distribution of each word, and sum over the vocabulary."""
    losses = []
    for row, truth in zip(logits, targets.tolist(), strict=True):
        log_p, total = row - row.logsumexp(dim=0), 0.0
        for word in range(len(row)):
            share = smoothing / len(row) + (1 - smoothing) * (word == truth)
            total = total - share * log_p[word]
        losses.append(total)
    return torch.stack(losses)


@smoothing.step("every word has its loss")
def _(probe):
    losses = probe(2 * torch.randn(4, 6), torch.tensor([1, 0, 5, 1]), 0.1)
    message = (
        "Your losses are (token, token), every word with every target: `log_p[:, "
        "targets]` makes such pairs, and so does (token, 1) with (token,). Take from "
        "each row the number of its own target, as (token,)."
    )
    probe.require(getattr(losses, "shape", None) != (4, 4), "pairs", message)
    probe.shape(losses, token=4)
    probe.same()


@smoothing.step("without smoothing it is the cross-entropy")
def _(probe):
    probe(torch.randn(3, 5), torch.tensor([4, 4, 0]), 0.0)
    probe.same()


@smoothing.step("large logits do no harm, and gradients flow")
def _(probe):
    logits = (300 * torch.randn(2, 4)).requires_grad_()
    probe(logits, torch.tensor([3, 1]), 0.2)
    probe.same()
    probe.gradients(logits)


mending = Exercise(
    "11.3",
    "Two bugs that training does not see",
    name="MendedDecoder",
    returns={"logits": "batch token vocab", "tokens": "batch token d_model"},
    hints=[
        "Call the hurried decoder in evaluation mode with a whole sentence, and change "
        "its last word. Which logits move?",
        "Then feed it word by word. At which position does each word think it stands? "
        "`before` tells how many words there were.",
        "`self.position` takes the place of the first new word as `start=`: 0, or the "
        "number of tokens in `before`.",
        "Write down the causal mask of five tokens. If the last two are new, which of "
        "its rows are theirs?",
    ],
)


@mending.spec
class MendedDecoder(nn.Module):
    """Go through the new words one by one; each sees what stands up to it."""

    def __init__(self, vocab, d_model, max_tokens):
        super().__init__()
        self.words = nn.Embedding(vocab, d_model)
        self.position = SinusoidalEncoding(d_model, max_tokens)
        self.attention = MultiHeadAttention(d_model, 2)
        self.vocab = nn.Linear(d_model, vocab)

    def forward(self, words, before=None):
        """Add each word at its place, and let it look at all that there is."""
        seen = [] if before is None else list(before.split(1, dim=1))
        logits = []
        for word in words.split(1, dim=1):
            x = self.words(word) + self.position.table[len(seen)]
            seen.append(x)
            keys = torch.cat(seen, dim=1)
            logits.append(self.vocab(x + self.attention(x, keys, keys)))
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


@mending.step("the same words after the same three, a second time")
def _(probe):
    probe.build(9, 8, 16)
    words = _sentence(5)
    _, seen = probe(words[:, :3])
    first = probe(words[:, 3:], seen)
    try:
        same = probe.close(first, probe(words[:, 3:], seen))
    except Wrong:
        same = False
    message = (
        "The second time something else comes out: your module remembers what it was "
        "given. What stands in front of the new words, `before` alone says."
    )
    probe.require(same, "remembers", message)


counting = Exercise(
    "11.4",
    "How many parameters?",
    name="count_parameters",
    hints=[
        "A linear layer from a to b numbers has a·b + b parameters, attention has four "
        "from d_model to d_model, a norm has 2·d_model. Sinusoids have none, and after "
        "the last block comes no other norm.",
        "An encoder block has one attention, one feed-forward network and two norms; a "
        "decoder block has two attentions, one network and three norms.",
        "The tables have source_vocab·d_model and target_vocab·d_model. Tied, the "
        "output layer adds only its target_vocab biases.",
    ],
)


@counting.spec
def count_parameters(source_vocab, target_vocab, d_model, d_ff, blocks):
    """Build the model, without drawing its numbers, and count."""
    sizes = d_model, 1, d_ff, blocks
    with mock.patch.multiple(nn.init, **dict.fromkeys(DRAWN, lambda x, *_, **__: x)):
        options = {"max_tokens": 8, "norm_first": False}
        encoder = Encoder(source_vocab, *sizes, **options)
        decoder = Decoder(target_vocab, *sizes, **options)
        model = Transformer(encoder, decoder, tied=True)
    return sum(weight.numel() for weight in model.parameters())


COUNT = Count(
    ("source_vocab", "target_vocab", "d_model", "d_ff", "blocks"),
    degree=3,
    about={
        "source_vocab·d_model": "the table of the encoder's words",
        "target_vocab·d_model": "the table that the decoder's words and the output "
        "layer share",
        "target_vocab": "the biases of the output layer, which are not shared",
        "d_model²·blocks": "W_Q, W_K, W_V and W_O of every attention: one in an "
        "encoder block, two in a decoder block, of which one looks back and one across",
        "d_model·d_ff·blocks": "the two matrices of every network, one in each block",
        "d_ff·blocks": "the biases of the networks' inner layers",
        "d_model·blocks": "the biases of attentions, four in each, and of the "
        "networks' outer layers, and scale and shift of the norms: two norms in an "
        "encoder block, three in a decoder block",
        "d_model": "what stands outside the blocks: with post-norm, no norm does",
    },
)


@counting.step("one block of each kind")
def _(probe):
    COUNT.expect(probe, 7, 11, 8, 21, 1)


@counting.step("several blocks")
def _(probe):
    COUNT.expect(probe, 103, 172, 64, 128, 2)


@counting.step("the sizes of the paper")
def _(probe):
    COUNT.expect(probe, 37_000, 37_000, 512, 2048, 6)
