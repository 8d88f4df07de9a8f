"""Checks for chapter 12: writing, and what it takes.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise

__all__ = ["cache", "grouped", "mass", "next_loss", "own"]


next_loss = Exercise(
    "12.1",
    "The next word's loss",
    name="next_token_losses",
    returns="answer",
    hints=[
        "The logits at place t are for the word at place t + 1: drop the last logits "
        "and the first word, and both fit.",
        "A text of n words has n - 1 next words: make a boolean table (batch, token) "
        "of the places that have one.",
        '`F.cross_entropy(guesses[table], answers[table], reduction="none")`.',
    ],
)


@next_loss.spec
def next_token_losses(logits, tokens, lengths):
    """Go through every text, word by word."""
    losses = []
    for text, row, length in zip(tokens, logits, lengths, strict=True):
        for t in range(int(length) - 1):
            powers = (row[t] - row[t].max()).exp()
            losses.append(-(powers[text[t + 1]] / powers.sum()).log())
    return torch.stack(losses) if losses else logits.new_zeros(0)


def _texts(lengths, tokens=6, vocab=7):
    """Return logits, tokens and lengths; padding is 0, and 0 is also a word."""
    words = torch.randint(vocab, (len(lengths), tokens))
    for row, length in zip(words, lengths, strict=True):
        row[length:] = 0
    words[0, 1] = 0  # a word that looks like padding
    logits = 2 * torch.randn(len(lengths), tokens, vocab)
    return logits.requires_grad_(), words, torch.tensor(lengths)


@next_loss.step("one text without padding")
def _(probe):
    losses = probe(*_texts([6]))
    probe.shape(losses, answer=5)
    probe.same()


@next_loss.step("texts of different lengths")
def _(probe):
    losses = probe(*_texts([6, 3, 1, 4]))
    probe.shape(losses, answer=10)
    probe.same()


@next_loss.step("gradients reach the logits")
def _(probe):
    arguments = _texts([6, 3])
    probe(*arguments)
    probe.gradients(arguments[0])


mass = Exercise(
    "12.2",
    "Top-p by hand",
    name="nucleus",
    returns="batch vocab",
    fallback="tutorial_lib.decoding:top_p",
    hints=[
        "Sort the probabilities of each row from large to small, and add them up: "
        "`cumsum`.",
        "A word is out if the words likelier than it have p or more already. That is "
        "the sum up to it, less its own probability.",
        "`sort` also returns where each word stood. `out.scatter(-1, order, answers)` "
        "brings the answers back to these places.",
    ],
)


@mass.spec
def nucleus(logits, p):
    """Take the likeliest words one by one until they have enough."""
    kept = torch.full_like(logits, -torch.inf)
    for row, out in zip(logits, kept, strict=True):
        shares, total = row.softmax(dim=0), 0.0
        for word in sorted(range(len(row)), key=lambda i: -float(row[i])):
            if total < p:
                out[word] = row[word]
            total += float(shares[word])
    return kept


def _logits(*rows):
    return torch.tensor(rows).log()


@mass.step("one row of five words")
def _(probe):
    for p in (0.28, 0.6, 0.9):
        kept = probe(_logits([0.05, 0.15, 0.45, 0.25, 0.1]), p)
        probe.shape(kept, batch=1, vocab=5)
        probe.same()


@mass.step("each row has its own words")
def _(probe):
    rows = (
        [0.05, 0.15, 0.55, 0.25],
        [0.7, 0.05, 0.2, 0.05001],
        [0.24, 0.25, 0.26, 0.2501],
    )
    for p in (0.6, 0.72, 0.9):
        probe(_logits(*rows) + 3, p)
        probe.same()


@mass.step("many words, and logits of any size")
def _(probe):
    for p in (0.2, 0.5, 0.9):
        probe(4 * torch.randn(3, 30), p)
        probe.same()


grouped = Exercise(
    "12.3",
    "Grouped-query attention",
    name="grouped_query_attention",
    returns="batch head token d_k",
    hints=[
        "With 6 heads and 2 groups, heads 0, 1 and 2 read with keys and values 0, and "
        "heads 3, 4 and 5 with keys and values 1.",
        "`K.repeat_interleave(3, dim=1)` repeats each head three times, one after the "
        "other; `K.repeat(1, 3, 1, 1)` would repeat the row of heads.",
        "Then it is causal attention, with the mask of chapter 4: "
        "`torch.ones(n, n).tril().bool()`.",
    ],
)


@grouped.spec
def grouped_query_attention(Q, K, V):
    """Let one query after the other read the keys of its group."""
    outputs, share = torch.zeros_like(Q), Q.shape[1] // K.shape[1]
    for b in range(Q.shape[0]):
        for h in range(Q.shape[1]):
            for i in range(Q.shape[2]):
                keys, values = (x[b, h // share, : i + 1] for x in (K, V))
                scores = keys @ Q[b, h, i] / math.sqrt(Q.shape[3])
                outputs[b, h, i] = scores.softmax(dim=0) @ values
    return outputs


def _heads(heads, groups, batch=2, tokens=4, d_k=3):
    keys = torch.randn(2, batch, groups, tokens, d_k)
    return torch.randn(batch, heads, tokens, d_k), *keys


@grouped.step("six heads in two groups")
def _(probe):
    outputs = probe(*_heads(6, 2))
    probe.shape(outputs, batch=2, head=6, token=4, d_k=3)
    probe.same()


@grouped.step("four groups of two, and one group of all")
def _(probe):
    for heads, groups in ((8, 4), (5, 1)):
        probe(*_heads(heads, groups))
        probe.same()


@grouped.step("as many groups as heads")
def _(probe):
    probe(*_heads(3, 3))
    probe.same()


cache = Exercise(
    "12.4",
    "A cache for GPT",
    name="next_step",
    hints=[
        "The new token makes its query, its key and its value; only the last two are "
        "appended: `torch.cat((K, x @ W_K), dim=1)`.",
        "It may look at all keys, its own included. No mask is needed: nothing in the "
        "cache comes later.",
        "The scores are divided by the root of d_k, the last size of K.",
    ],
)


@cache.spec
def next_step(x, K, V, W_Q, W_K, W_V):
    """Write into longer tables, and read them key by key."""
    batch, before, _ = K.shape
    longer = [torch.zeros(batch, before + 1, W.shape[1]) for W in (W_K, W_V)]
    outputs = torch.zeros(batch, 1, W_V.shape[1])
    for b in range(batch):
        for table, old, W in zip(longer, (K, V), (W_K, W_V), strict=True):
            table[b, :before], table[b, before] = old[b], x[b, 0] @ W
        query = x[b, 0] @ W_Q
        scores = [(query * key).sum() / math.sqrt(len(query)) for key in longer[0][b]]
        weights = torch.stack(scores).softmax(dim=0)
        outputs[b, 0] = (weights[:, None] * longer[1][b]).sum(dim=0)
    return outputs, *longer


def _written(before, batch=2, d_model=6, d_k=3, d_v=5):
    x = torch.randn(batch, 1, d_model)
    kept = torch.randn(batch, before, d_k), torch.randn(batch, before, d_v)
    matrices = [torch.randn(d_model, size) for size in (d_k, d_k, d_v)]
    return x, *kept, *matrices


@cache.step("four tokens before")
def _(probe):
    probe(*_written(4))
    probe.same()


@cache.step("the first token of all")
def _(probe):
    probe(*_written(0))
    probe.same()


@cache.step("all sizes alike, so that what is read can be told apart")
def _(probe):
    probe(*_written(3, d_model=4, d_k=4, d_v=4))
    probe.same()


own = Exercise(
    "12.5",
    "Train your own",
    name="perplexity_of",
    hints=[
        "Read one text after the other: `torch.tensor([text])` is (1, token). The "
        "model reads all numbers but the last, and is asked for all but the first.",
        "Collect the losses of all next words, of all texts, before you take the mean: "
        "a long text has more of them than a short one.",
        'With `F.cross_entropy(…, reduction="none")` the losses are in nats, so the '
        "perplexity is the mean's `exp()`.",
    ],
)


@own.spec
def perplexity_of(model, texts):
    """Add up the losses of all next words, one after the other."""
    total, words = 0.0, 0
    with torch.no_grad():
        for text in texts:
            for t in range(len(text) - 1):
                row = model(torch.tensor([text[: t + 1]]))[0, t]
                total -= float(row.log_softmax(dim=0)[text[t + 1]])
                words += 1
    return math.exp(total / words)


class _Reader(nn.Module):
    """Predict from this word and from the mean of all words so far; 0 is a word."""

    def __init__(self, vocab=6):
        super().__init__()
        self.now, self.before = nn.Embedding(vocab, vocab), nn.Embedding(vocab, vocab)

    def forward(self, tokens):
        places = torch.arange(1, tokens.shape[1] + 1)[:, None]
        return self.now(tokens) + self.before(tokens).cumsum(1) / places


def _written_texts(*lengths):
    return [[1, *torch.randint(6, (length - 1,)).tolist()] for length in lengths]


@own.step("one text")
def _(probe):
    probe(_Reader(), _written_texts(7))
    probe.same()


@own.step("texts of different lengths")
def _(probe):
    probe(_Reader(), _written_texts(9, 2, 4, 5))
    probe.same()


@own.step("two words are a text, too")
def _(probe):
    probe(_Reader(), _written_texts(2, 2))
    probe.same()
