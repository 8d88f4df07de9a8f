"""Exercises of chapter 12: writing, and what it takes."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_exercises import Exercise
from tutorial_lib.attention import scaled_dot_product_attention


@Exercise("12.1", "The next word's loss", axes="answer")
def next_token_losses(logits, tokens, lengths):
    """Return -ln p of every next word there is, text after text: (answer,)."""
    guesses, answers = logits[:, :-1], tokens[:, 1:]
    places = torch.arange(answers.shape[1])
    spoken = places < lengths[:, None] - 1  # (batch, token)
    return F.cross_entropy(guesses[spoken], answers[spoken], reduction="none")


@next_token_losses.oracle
def _(logits, tokens, lengths):
    losses = []
    for text, row, length in zip(tokens, logits, lengths, strict=True):
        for t in range(int(length) - 1):
            powers = (row[t] - row[t].max()).exp()
            losses.append(-(powers[text[t + 1]] / powers.sum()).log())
    return torch.stack(losses) if losses else logits.new_zeros(0)


def padded(*lengths):
    """Return logits, tokens and lengths; padding is 0, and 0 is also a word."""
    tokens = torch.randint(7, (len(lengths), 6))
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = 0
    tokens[0, 1] = 0  # a word that looks like padding
    logits = 2 * torch.randn(len(lengths), 6, 7)
    return logits.requires_grad_(), tokens, torch.tensor(lengths)


@next_token_losses.cases
def _():
    yield "one text without padding", *padded(6)
    yield "texts of different lengths", *padded(6, 3, 1, 4)


@next_token_losses.demand("gradients reach the logits")
def _(answer):
    logits, *others = padded(6, 3)
    answer(logits, *others)
    answer.gradients(logits)


next_token_losses.hints = """
- The logits at place t are for the word at place t + 1: drop the last logits and the
  first word, and both fit.
- A text of n words has n - 1 next words: make a boolean table (batch, token) of the
  places that have one.
- `F.cross_entropy(guesses[table], answers[table], reduction="none")`.
"""

next_token_losses.mistakes = """
You compare the logits at t with the word at t, which the model has read. They are for
the word at t + 1: drop the last logits and the first word.
    tokens[:, 1:] → tokens[:, :-1]
    logits[:, :-1], tokens[:, 1:] → logits, tokens
    and lengths[:, None] - 1 → lengths[:, None]
You shift twice: the logits at t are compared with the word at t + 2.
    logits[:, :-1], tokens[:, 1:] → logits[:, :-2], tokens[:, 2:]
    and lengths[:, None] - 1 → lengths[:, None] - 2
You shift the wrong way: the logits at t + 1 are compared with the word at t, which lies
in the past.
    logits[:, :-1], tokens[:, 1:] → logits[:, 1:], tokens[:, :-1]
Padding is predicted, too. A text of n words has n - 1 next words, and what comes after
them is nothing.
    guesses[spoken], answers[spoken] → guesses.flatten(0, 1), answers.flatten()
You predict one word too many of each text: the one after its last is padding. A text of
n words has n - 1 next words.
    lengths[:, None] - 1 → lengths[:, None]
You leave out the last next word of each text, which is its <eos>.
    lengths[:, None] - 1 → lengths[:, None] - 2
You take every 0 for padding. The lengths say what is text, and here 0 occurs in it.
    places < lengths[:, None] - 1 → answers != 0
    reduction="none" → reduction="none", ignore_index=0
Cross-entropy takes the softmax by itself: give it the logits, not probabilities.
    guesses[spoken] → guesses[spoken].softmax(-1)
The loss is -ln p: the sign is missing.
    return F → return -F
You return the mean. Return all losses: `reduction="none"`.
    , reduction="none" →
right:
    F.cross_entropy(guesses[spoken], answers[spoken], reduction="none") → -guesses[spoken].log_softmax(-1).gather(1, answers[spoken][:, None])[:, 0]
"""


@Exercise("12.2", "Top-p by hand", axes="batch vocab")
def nucleus(logits, p):
    """Keep the fewest words with a share p of the probability: (batch, vocab)."""
    shares, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = shares.cumsum(dim=-1) - shares  # what the likelier words have
    out = torch.zeros_like(logits, dtype=torch.bool)
    out = out.scatter(-1, order, before >= p)
    return logits.masked_fill(out, -torch.inf)


@nucleus.oracle
def _(logits, p):
    kept = torch.full_like(logits, -torch.inf)
    for row, out in zip(logits, kept, strict=True):
        shares, total = row.softmax(dim=0), 0.0
        for word in sorted(range(len(row)), key=lambda i: -float(row[i])):
            if total < p:
                out[word] = row[word]
            total += float(shares[word])
    return kept


@nucleus.cases
def _():
    rows = [
        [0.05, 0.15, 0.55, 0.25],
        [0.7, 0.05, 0.2, 0.05001],
        [0.24, 0.25, 0.26, 0.2501],
    ]
    for p in (0.6, 0.28, 0.72, 0.9):
        yield "each row has its own words", torch.tensor(rows).log() + 3, p
    for p in (0.2, 0.5, 0.9):
        yield "many words, and logits of any size", 4 * torch.randn(3, 30), p


nucleus.hints = """
- Sort the probabilities of each row from large to small, and add them up: `cumsum`.
- A word is out if the words likelier than it have p or more already. That is the sum up
  to it, less its own probability.
- `sort` also returns where each word stood. `out.scatter(-1, order, answers)` brings
  the answers back to these places.
"""

nucleus.mistakes = """
You leave out the word with which the sum reaches p. The words kept shall have p
together: compare p with the sum before each word.
    before >= p → before + shares > p
You add the probabilities up in the order of the vocabulary. Sort them first.
    .sort(dim=-1, descending=True) → .sort(dim=-1, descending=True)
        order = torch.arange(logits.shape[-1]).expand_as(logits)
        shares = logits.softmax(dim=-1)
You begin with the least likely word. Sort from large to small: `descending=True`.
    , descending=True →
The answers stand in the order of the sorted words. Bring each back to its place:
`out.scatter(-1, order, …)`.
    out.scatter(-1, order, before >= p) → before >= p
You use `gather` where `scatter` is needed: `order` says where each sorted word stood,
and its answer has to go there.
    out.scatter(-1, order, before >= p) → (before >= p).gather(-1, order)
Nothing is kept out: `masked_fill` and `scatter` return a new tensor, and yours is
thrown away.
    logits.masked_fill(out, -torch.inf) → logits
You keep the words with at least the probability p. Top-p asks for words that have p
together.
    out.scatter(-1, order, before >= p) → logits.softmax(dim=-1) < p
You keep the words with at least the probability 1 - p. Top-p asks for words that have p
together.
    out.scatter(-1, order, before >= p) → logits.softmax(dim=-1) < 1 - p
You keep the tail and throw away the nucleus: the mask is the wrong way round.
    masked_fill(out → masked_fill(~out
You return probabilities. Return logits: those that were given, and −∞ for the words
that are out.
    (out, -torch.inf) → (out, -torch.inf).softmax(dim=-1)
You put 0 in the place of the words that are out. A logit of 0 still has a share of the
softmax: only −∞ has none.
    -torch.inf → 0.0
You take the first row's words for all rows.
    out.scatter(-1, order, before >= p) → out.scatter(-1, order, before >= p)[:1].expand_as(logits)
right:
    out.scatter(-1, order, before >= p) → logits < logits.gather(-1, order).gather(-1, (before < p).sum(-1, keepdim=True) - 1)
    descending=True) → descending=False)
    and before >= p → shares.cumsum(dim=-1) <= 1 - p
"""


@Exercise("12.3", "Grouped-query attention", axes="batch head token d_k")
def grouped_query_attention(Q, K, V):
    """Let heads share keys and values; return (batch, head, token, d_k)."""
    share, tokens = Q.shape[1] // K.shape[1], Q.shape[2]
    K = K.repeat_interleave(share, dim=1)  # (batch, head, token, d_k)
    V = V.repeat_interleave(share, dim=1)
    mask = torch.ones(tokens, tokens).tril().bool()
    return scaled_dot_product_attention(Q, K, V, mask)[0]


@grouped_query_attention.oracle
def _(Q, K, V):
    outputs, share = torch.zeros_like(Q), Q.shape[1] // K.shape[1]
    for b in range(Q.shape[0]):
        for h in range(Q.shape[1]):
            for i in range(Q.shape[2]):
                keys, values = (x[b, h // share, : i + 1] for x in (K, V))
                scores = keys @ Q[b, h, i] / math.sqrt(Q.shape[3])
                outputs[b, h, i] = scores.softmax(dim=0) @ values
    return outputs


def heads(queries, groups):
    """Make Q, K and V with so many heads of queries, and of keys and values."""
    return [torch.randn(2, count, 4, 3) for count in (queries, groups, groups)]


@grouped_query_attention.cases
def _():
    yield "six heads in two groups", *heads(6, 2)
    yield "four groups of two, and one group of all", *heads(8, 4)
    yield "four groups of two, and one group of all", *heads(5, 1)
    yield "as many groups as heads", *heads(3, 3)


grouped_query_attention.hints = """
- With 6 heads and 2 groups, heads 0, 1 and 2 read with keys and values 0, and heads 3,
  4 and 5 with keys and values 1.
- `K.repeat_interleave(3, dim=1)` repeats each head three times, one after the other;
  `K.repeat(1, 3, 1, 1)` would repeat the row of heads.
- Then it is causal attention, with the mask of chapter 4: `torch.ones(n,
  n).tril().bool()`.
"""

grouped_query_attention.mistakes = """
The heads take the groups in turn. The first few heads share the first group:
`repeat_interleave`, not `repeat`.
    K.repeat_interleave(share, dim=1) → K.repeat(1, share, 1, 1)
    and V.repeat_interleave(share, dim=1) → V.repeat(1, share, 1, 1)
The keys are shared by neighboring heads, and the values in turn. A head needs both from
the same group.
    V.repeat_interleave(share, dim=1) → V.repeat(1, share, 1, 1)
All heads read with the first group.
    K.repeat_interleave(share, dim=1) → K[:, :1].expand_as(Q)
    and V.repeat_interleave(share, dim=1) → V[:, :1].expand_as(Q)
Your tokens look ahead. GPT writes: each token may look at itself and at those before
it.
    (Q, K, V, mask) → (Q, K, V)
A token may look at itself, too: the mask's diagonal is True.
    .tril() → .tril(-1)
Your mask is inverted: True means that a query may look.
    mask = torch.ones → mask = ~torch.ones
You return the weights, too. Return the outputs alone: `[0]`.
    (Q, K, V, mask)[0] → (Q, K, V, mask)
You average the queries of a group, so that its heads all read the same. Keys and values
are shared; every head keeps its own queries.
    (Q, K, V, mask) → (Q.unflatten(1, (-1, share)).mean(2).repeat_interleave(share, dim=1), K, V, mask)
right:
    scaled_dot_product_attention(Q, K, V, mask)[0] → F.scaled_dot_product_attention(Q, K, V, is_causal=True)
"""

NEXT_STEP = {"outputs": "batch query d_v", "K": "batch key d_k", "V": "batch key d_v"}


@Exercise("12.4", "A cache for GPT", axes=NEXT_STEP)
def next_step(x, K, V, W_Q, W_K, W_V):
    """Read with one new token; return (batch, 1, d_v) and the longer K and V."""
    K = torch.cat((K, x @ W_K), dim=1)
    V = torch.cat((V, x @ W_V), dim=1)
    scores = (x @ W_Q) @ K.mT / K.shape[-1] ** 0.5  # (batch, 1, key)
    return scores.softmax(dim=-1) @ V, K, V


@next_step.oracle
def _(x, K, V, W_Q, W_K, W_V):
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


def cached(before, d_model=6, d_k=3, d_v=5):
    """Make a new token, keys and values of those before it, and the matrices."""
    K, V = torch.randn(2, before, d_k), torch.randn(2, before, d_v)
    matrices = [torch.randn(d_model, size) for size in (d_k, d_k, d_v)]
    return torch.randn(2, 1, d_model), K, V, *matrices


@next_step.cases
def _():
    yield "four tokens before", *cached(4)
    yield "the first token of all", *cached(0)
    label = "all sizes alike, so that what is read can be told apart"
    yield label, *cached(3, d_model=4, d_k=4, d_v=4)


next_step.hints = """
- The new token makes its query, its key and its value; only the last two are appended:
  `torch.cat((K, x @ W_K), dim=1)`.
- It may look at all keys, its own included. No mask is needed: nothing in the cache
  comes later.
- The scores are divided by the root of d_k, the last size of K.
"""

next_step.mistakes = """
The new token does not look at itself: append its key and its value before you read.
    scores.softmax(dim=-1) @ V → scores[..., :-1].softmax(dim=-1) @ V[:, :-1]
The new key and value are not kept: return the longer tables.
    @ V, K, V → @ V, K[:, :-1], V[:, :-1]
You put the new key and value in front. They come after those before them.
    (K, x @ W_K) → (x @ W_K, K)
    and (V, x @ W_V) → (x @ W_V, V)
You append the query to the keys. Queries are not kept: nobody asks them again.
    x @ W_K → x @ W_Q
The scores are not divided by √d_k.
    K.mT / K.shape[-1] ** 0.5 → K.mT
The new token sees only the first key: `is_causal=True` takes a single query for the
first word of the text. Leave it off.
    scores.softmax(dim=-1) @ V → F.scaled_dot_product_attention(x @ W_Q, K, V, is_causal=True)
right:
    scores.softmax(dim=-1) @ V → F.scaled_dot_product_attention(x @ W_Q, K, V)
"""


@Exercise("12.5", "Train your own")
def perplexity_of(model, texts):
    """Return the perplexity of all next words of the texts, as a number."""
    losses = []
    for text in texts:
        tokens = torch.tensor([text])  # (1, token)
        with torch.no_grad():
            logits = model(tokens[:, :-1])[0]  # (token, vocab)
        losses.append(F.cross_entropy(logits, tokens[0, 1:], reduction="none"))
    return torch.cat(losses).mean().exp().item()


@perplexity_of.oracle
def _(model, texts):
    total, words = 0.0, 0
    with torch.no_grad():
        for text in texts:
            for t in range(len(text) - 1):
                row = model(torch.tensor([text[: t + 1]]))[0, t]
                total -= float(row.log_softmax(dim=0)[text[t + 1]])
                words += 1
    return math.exp(total / words)


class Reader(nn.Module):
    """Predict from this word and from the mean of all words so far; 0 is a word."""

    def __init__(self):
        super().__init__()
        self.now, self.before = nn.Embedding(6, 6), nn.Embedding(6, 6)

    def forward(self, tokens):
        """Return logits (batch, token, 6) for tokens (batch, token)."""
        positions = torch.arange(1, tokens.shape[1] + 1)[:, None]
        return self.now(tokens) + self.before(tokens).cumsum(1) / positions


def texts(*lengths):
    """Make texts of so many words."""
    return [[1, *torch.randint(6, (length - 1,)).tolist()] for length in lengths]


@perplexity_of.cases
def _():
    yield "one text", Reader(), texts(7)
    yield "texts of different lengths", Reader(), texts(9, 2, 4, 5)
    yield "two words are a text, too", Reader(), texts(2, 2)


perplexity_of.hints = """
- Read one text after the other: `torch.tensor([text])` is (1, token). The model reads
  all numbers but the last, and is asked for all but the first.
- Collect the losses of all next words, of all texts, before you take the mean: a long
  text has more of them than a short one.
- With `F.cross_entropy(…, reduction="none")` the losses are in nats, so the perplexity
  is the mean's `exp()`.
"""

perplexity_of.mistakes = """
You take the mean of each text, and then the mean of these. So a word of a short text
counts more than one of a long text: take one mean over all words.
    , reduction="none" →
    and torch.cat(losses) → torch.stack(losses)
You take a perplexity of each text, and then their mean. Take the mean of the losses
first, and put it into the exponential function once.
    , reduction="none") → ).exp()
    and torch.cat(losses).mean().exp() → torch.stack(losses).mean()
You put each loss into the exponential function, and then take the mean. The mean comes
first: it is a mean of logarithms.
    .mean().exp() → .exp().mean()
You return the mean loss. The perplexity is its exponential.
    .exp() →
These losses are in nats, so the perplexity is e to their mean, not 2.
    .exp() → .exp2()
You add the losses up. The perplexity is the exponential of their mean.
    .mean() → .sum()
You compare the logits at t with the word at t, which the model has read. They are for
the word at t + 1.
    tokens[0, 1:] → tokens[0, :-1]
You keep the losses of the last text alone.
    torch.cat(losses) → losses[-1]
right:
    F.cross_entropy(logits, tokens[0, 1:], reduction="none") → -logits.log_softmax(dim=-1).gather(1, tokens[0, 1:, None]).flatten()
"""
