"""Exercises of chapter 12: decoding and GPT."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_exercises import Exercise
from tutorial_lib.attention import scaled_dot_product_attention


@Exercise("12.1", "The next-token loss", axes="target")
def next_token_losses(logits, tokens, lengths):
    """Return -ln p of every next token, text after text: (target,)."""
    predictions, targets = logits[:, :-1], tokens[:, 1:]
    positions = torch.arange(targets.shape[1])
    mask = positions < lengths[:, None] - 1  # (batch, token)
    return F.cross_entropy(predictions[mask], targets[mask], reduction="none")


@next_token_losses.oracle
def _(logits, tokens, lengths):
    losses = []
    for text, row, length in zip(tokens, logits, lengths, strict=True):
        for t in range(int(length) - 1):
            below = row[t] - row[t].max()
            losses.append(below.exp().sum().log() - below[text[t + 1]])
    return torch.stack(losses) if losses else logits.new_zeros(0)


def padded(*lengths):
    """Make logits, tokens and lengths; padding is 0, and 0 is also a token."""
    tokens = torch.randint(7, (len(lengths), 6))
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = 0
    tokens[0, 1] = 0  # a token that looks like padding
    logits = 2 * torch.randn(len(lengths), 6, 7)
    return logits.requires_grad_(), tokens, torch.tensor(lengths)


@next_token_losses.cases
def _():
    yield "the losses of one text without padding", *padded(6)
    yield "the losses of texts of different lengths", *padded(6, 3, 1, 4)
    logits, *others = padded(6, 3, 1, 4)
    logits = (60 * logits).detach().requires_grad_()  # some p are 0 in float32
    yield "the losses of texts of different lengths", logits, *others


@next_token_losses.demand("gradients reach the logits")
def _(answer):
    logits, *others = padded(6, 3)
    answer(logits, *others)
    answer.gradients(logits)


next_token_losses.hints = """
- The logits at position t predict the token at position t + 1: drop the last logits and
  the first token, and predictions and targets are aligned.
- A text of n tokens has n - 1 targets: make a boolean mask (batch, token) of the
  positions that have one.
- `F.cross_entropy(predictions[mask], targets[mask], reduction="none")`.
"""

next_token_losses.mistakes = """
You compare the logits at t with the token at t, which the model has already seen. They
predict the token at t + 1: drop the last logits and the first token.
    tokens[:, 1:] → tokens[:, :-1]
    logits[:, :-1], tokens[:, 1:] → logits, tokens
    and lengths[:, None] - 1 → lengths[:, None]
You shift twice: the logits at t are compared with the token at t + 2.
    logits[:, :-1], tokens[:, 1:] → logits[:, :-2], tokens[:, 2:]
    and lengths[:, None] - 1 → lengths[:, None] - 2
You shift the wrong way: the logits at t + 1 are compared with the token at t.
    logits[:, :-1], tokens[:, 1:] → logits[:, 1:], tokens[:, :-1]
You count losses for padding, too. A text of n tokens has n - 1 targets.
    predictions[mask], targets[mask] → predictions.flatten(0, 1), targets.flatten()
You count one loss too many in each text. A text of n tokens has n - 1 targets.
    lengths[:, None] - 1 → lengths[:, None]
You leave out the last target of each text, its <eos>.
    lengths[:, None] - 1 → lengths[:, None] - 2
You take every 0 for padding. Only `lengths` says where padding begins: 0 is a token,
too.
    positions < lengths[:, None] - 1 → targets != 0
    reduction="none" → reduction="none", ignore_index=0
`F.cross_entropy` takes the softmax by itself: give it logits, not probabilities.
    predictions[mask] → predictions[mask].softmax(-1)
The sign is wrong: the loss is -ln p.
    return F → return -F
You return the mean. Return the loss of every target: `reduction="none"`.
    , reduction="none" →
You return a row for each text, with its padding. Keep the targets that each text has, on
one axis: a boolean mask (batch, token) does both.
    predictions[mask], targets[mask] → predictions.mT, targets
right:
    F.cross_entropy(predictions[mask], targets[mask], reduction="none") → -predictions[mask].log_softmax(-1).gather(1, targets[mask][:, None])[:, 0]
"""


@Exercise("12.2", "Min-p sampling", axes="batch vocab")
def keep_min_p(logits, p):
    """Keep tokens at least p times as probable as the likeliest: (batch, vocab)."""
    probs = logits.softmax(dim=-1)
    threshold = p * probs.max(dim=-1, keepdim=True).values  # (batch, 1)
    return logits.masked_fill(probs < threshold, -torch.inf)


@keep_min_p.oracle
def _(logits, p):
    kept = torch.full_like(logits, -torch.inf)
    for row, out in zip(logits, kept, strict=True):
        for token in range(len(row)):
            if float(row[token] - row.max()) >= math.log(p):
                out[token] = row[token]
    return kept


@keep_min_p.cases
def _():
    rows = [
        [0.05, 0.15, 0.55, 0.25],
        [0.7, 0.05, 0.2, 0.05001],
        [0.24, 0.25, 0.26, 0.2501],
    ]
    for p in (0.35, 0.2, 0.08, 0.95):
        yield "each row keeps its own tokens", torch.tensor(rows).log() + 3, p
    for p in (0.02, 0.3, 0.7):
        yield "large vocabularies, and logits of any size", 4 * torch.randn(3, 30), p
        yield "large vocabularies, and logits of any size", torch.randn(3, 30) + 90, p


keep_min_p.hints = """
- The threshold belongs to the row: p times its largest probability.
- `probs.max(dim=-1, keepdim=True).values` is (batch, 1), so that it can be compared
  with probs (batch, vocab).
- `logits.masked_fill(probs < threshold, -torch.inf)`, without changing the logits that
  you were given.
"""

keep_min_p.mistakes = """
You keep the tokens whose probability is at least p. Min-p compares with p times the
largest probability of the row.
    p * probs.max(dim=-1, keepdim=True).values → p
You use the largest probability of the whole batch. Each row has its own.
    probs.max(dim=-1, keepdim=True).values → probs.max()
You take the maximum over the batch. The vocabulary is the last axis: `dim=-1`.
    max(dim=-1, keepdim=True) → max(dim=0, keepdim=True)
You compare logits with p times the largest logit. Take the softmax first: min-p compares
probabilities.
    logits.softmax(dim=-1) → logits
You divide by p. The threshold is p times the largest probability.
    p * probs.max(dim=-1, keepdim=True).values → probs.max(dim=-1, keepdim=True).values / p
Your softmax runs over the batch. The vocabulary is the last axis: `dim=-1`.
    logits.softmax(dim=-1) → logits.softmax(dim=0)
You keep the tail and remove the probable tokens: the comparison is inverted.
    probs < threshold → probs >= threshold
That is top-p, or close to it. Min-p has no cumulative sum: it compares each token with
the most probable one.
    probs < threshold → (probs[..., None, :] * (probs[..., None, :] > probs[..., None])).sum(-1) >= p
No token is removed. `masked_fill` returns a new tensor: do you use it?
    logits.masked_fill(probs < threshold, -torch.inf) → logits
You return probabilities. Return logits: those given, and −∞ for the tokens removed.
    probs < threshold, -torch.inf) → probs < threshold, -torch.inf).softmax(dim=-1)
You set the removed logits to 0, which still gets a probability: only −∞ gets none.
    -torch.inf → 0.0
right:
    probs < threshold → logits < logits.amax(dim=-1, keepdim=True) + math.log(p)
"""


@Exercise("12.3", "Grouped-query attention", axes="batch head token d_k")
def grouped_query_attention(Q, K, V):
    """Let query heads share keys and values; return (batch, head, token, d_k)."""
    group_size = Q.shape[1] // K.shape[1]
    tokens = Q.shape[2]
    K = K.repeat_interleave(group_size, dim=1)  # (batch, head, token, d_k)
    V = V.repeat_interleave(group_size, dim=1)
    mask = torch.ones(tokens, tokens).tril().bool()
    return scaled_dot_product_attention(Q, K, V, mask)[0]


@grouped_query_attention.oracle
def _(Q, K, V):
    outputs = torch.zeros_like(Q)
    group_size = Q.shape[1] // K.shape[1]
    for b in range(Q.shape[0]):
        for h in range(Q.shape[1]):
            for i in range(Q.shape[2]):
                keys, values = (x[b, h // group_size, : i + 1] for x in (K, V))
                scores = keys @ Q[b, h, i] / math.sqrt(Q.shape[3])
                outputs[b, h, i] = scores.softmax(dim=0) @ values
    return outputs


def heads(queries, groups):
    """Make Q, K and V with so many heads of queries, and of keys and values."""
    return [torch.randn(2, count, 4, 3) for count in (queries, groups, groups)]


@grouped_query_attention.cases
def _():
    yield "six query heads in two groups", *heads(6, 2)
    yield "four groups of two heads, and one group of all", *heads(8, 4)
    yield "four groups of two heads, and one group of all", *heads(5, 1)
    yield "as many groups as heads", *heads(3, 3)


@grouped_query_attention.demand("gradients reach Q, K and V")
def _(answer):
    inputs = [x.requires_grad_() for x in heads(4, 2)]
    answer(*inputs)
    answer.gradients(*inputs)


grouped_query_attention.hints = """
- With 6 query heads and 2 groups, heads 0, 1 and 2 use keys and values 0, and heads 3,
  4 and 5 use keys and values 1.
- `K.repeat_interleave(3, dim=1)` repeats each head three times, one after the other;
  `K.repeat(1, 3, 1, 1)` would repeat all heads in turn.
- Then it is causal attention, with the causal mask of chapter 4: `torch.ones(n,
  n).tril().bool()`.
"""

grouped_query_attention.mistakes = """
Your query heads take the groups in turn. Neighboring heads share a group:
`repeat_interleave`, not `repeat`.
    K.repeat_interleave(group_size, dim=1) → K.repeat(1, group_size, 1, 1)
    and V.repeat_interleave(group_size, dim=1) → V.repeat(1, group_size, 1, 1)
Your query heads take the values in turn. A head needs keys and values of one group.
    V.repeat_interleave(group_size, dim=1) → V.repeat(1, group_size, 1, 1)
All query heads use the keys and values of the first group.
    K.repeat_interleave(group_size, dim=1) → K[:, :1].expand_as(Q)
    and V.repeat_interleave(group_size, dim=1) → V[:, :1].expand_as(Q)
The causal mask is missing: your tokens attend to later ones. Each token may attend to
itself and to those before it.
    (Q, K, V, mask) → (Q, K, V)
A token may attend to itself, too: the diagonal of the mask is True.
    .tril() → .tril(-1)
Your mask is inverted: True means that a query may attend to a key.
    mask = torch.ones → mask = ~torch.ones
You return the attention weights, too. Return the output alone: `[0]`.
    (Q, K, V, mask)[0] → (Q, K, V, mask)
You average the queries of a group. Heads share keys and values, but no queries.
    (Q, K, V, mask) → (Q.unflatten(1, (-1, group_size)).mean(2).repeat_interleave(group_size, dim=1), K, V, mask)
right:
    scaled_dot_product_attention(Q, K, V, mask)[0] → F.scaled_dot_product_attention(Q, K, V, is_causal=True)
"""


@Exercise("12.4", "Train your own")
def perplexity_of(model, texts):
    """Return the perplexity of all next tokens of the texts, as a number."""
    losses = []
    for text in texts:
        tokens = torch.tensor([text])  # (1, token)
        with torch.no_grad():
            logits = model(tokens[:, :-1])[0]  # (token, vocab)
        losses.append(F.cross_entropy(logits, tokens[0, 1:], reduction="none"))
    return torch.cat(losses).mean().exp().item()


@perplexity_of.oracle
def _(model, texts):
    total = 0.0
    targets = 0
    with torch.no_grad():
        for text in texts:
            for t in range(len(text) - 1):
                row = model(torch.tensor([text[: t + 1]]))[0, t]
                total -= float(row.log_softmax(dim=0)[text[t + 1]])
                targets += 1
    return math.exp(total / targets)


class Model(nn.Module):
    """Predict from this token and from the mean of all so far; 0 is a token."""

    def __init__(self):
        super().__init__()
        self.now, self.before = nn.Embedding(6, 6), nn.Embedding(6, 6)

    def forward(self, tokens):
        """Return logits (batch, token, 6) for tokens (batch, token)."""
        positions = torch.arange(1, tokens.shape[1] + 1)[:, None]
        return self.now(tokens) + self.before(tokens).cumsum(1) / positions


def texts(*lengths):
    """Make texts of so many tokens."""
    return [[1, *torch.randint(6, (length - 1,)).tolist()] for length in lengths]


@perplexity_of.cases
def _():
    yield "the perplexity of one text", Model(), texts(7)
    yield "the perplexity of texts of different lengths", Model(), texts(9, 2, 4, 5)
    yield "two tokens are a text, too", Model(), texts(2, 2)
    # The probability of a long text is less than the smallest number of float32.
    yield "the perplexity of texts of different lengths", Model(), texts(150, 4)


perplexity_of.hints = """
- Take one text after the other: `torch.tensor([text])` is (1, token). The input is all
  token ids but the last, and the targets are all but the first.
- Collect the losses of all targets of all texts before you take the mean: a long text
  has more of them than a short one.
- With `F.cross_entropy(…, reduction="none")` the losses are in nats, so the perplexity
  is `exp()` of their mean.
"""

perplexity_of.mistakes = """
You take the mean loss of each text, and then the mean of these, so that a token of a
short text counts more than one of a long text. Take one mean over all tokens.
    , reduction="none" →
    and torch.cat(losses) → torch.stack(losses)
You take the mean of the texts' perplexities. Take the mean of all losses first.
    , reduction="none") → ).exp()
    and torch.cat(losses).mean().exp() → torch.stack(losses).mean()
You take the exponential of each loss, and then the mean. The mean comes first:
perplexity is the exponential of the mean loss.
    .mean().exp() → .exp().mean()
You return the mean loss. The perplexity is its exponential.
    .exp() →
These losses are in nats, so the base is e: take `exp`, not a power of 2.
    .exp() → .exp2()
You take the exponential of the sum of the losses. Take that of their mean.
    .mean() → .sum()
You compare the logits at t with the token at t. They predict the token at t + 1.
    tokens[0, 1:] → tokens[0, :-1]
You use only the losses of the last text. Collect those of all texts.
    torch.cat(losses) → losses[-1]
You divide by the number of all tokens. The first token of a text is no target: nothing
predicts it.
    torch.cat(losses).mean() → (torch.cat(losses).sum() / sum(map(len, texts)))
right:
    F.cross_entropy(logits, tokens[0, 1:], reduction="none") → -logits.log_softmax(dim=-1).gather(1, tokens[0, 1:, None]).flatten()
"""
