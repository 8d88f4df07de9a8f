"""Exercises of the excursion on a real language model: scores, lens, knockout."""

import torch

from tutorial_exercises import Exercise


@Exercise("R.1", "The induction score", axes="")
def induction_score(weights, length):
    """Return the mean weight on the token after the earlier copy, as one number."""
    total = 0.0
    for query in range(length + 1, 2 * length):  # the last token is left out
        copy = query - length
        total += weights[query, copy + 1].item()
    return total / (length - 1)


@induction_score.oracle
def _(weights, length):
    """Read the score off the diagonal on which all these cells lie."""
    return weights.diagonal(offset=1 - length)[2:-1].mean().item()


def map_of_repeated(length):
    """Make an attention map over a first token and the same tokens twice."""
    weights = torch.rand(2 * length + 1, 2 * length + 1).tril()
    return weights / weights.sum(dim=1, keepdim=True), length


@induction_score.cases
def _():
    yield "five tokens, twice", *map_of_repeated(5)
    yield "eight tokens, twice", *map_of_repeated(8)


@induction_score.demand("a head that always attends there has 1, any other less")
def _(answer):
    weights = torch.zeros(13, 13)
    for query in range(7, 12):
        weights[query, query - 5] = 1.0
    if not abs(answer(weights, 6) - 1) < 1e-5:
        return "A head with all its weight on the token after the copy has the score 1."


induction_score.hints = """
- The first half is at positions 1 to `length`, the second at `length + 1` to
  `2 * length`. Where is the copy of the token at `query`, and where the token after it?
- The copy is at `query - length`, and the token after it one position later.
- Leave the last query out: what followed its copy is the second half's first token. So
  there are `length - 1` queries.
"""

induction_score.mistakes = """
This is the weight on the earlier copy itself. Take the token after it.
    weights[query, copy + 1] → weights[query, copy]
You are one token too far: the copy is `length` positions back.
    weights[query, copy + 1] → weights[query, copy + 2]
This is the weight on the previous token. The copy is `length` positions back.
    weights[query, copy + 1] → weights[query, query - 1]
Rows are queries, and columns are keys: `weights[query, key]`.
    weights[query, copy + 1] → weights[copy + 1, query]
The last token is among your queries. What followed its copy is the second half's first
token: leave it out.
    range(length + 1, 2 * length) → range(length + 1, 2 * length + 1)
    and total / (length - 1) → total / length
Queries of the first half are among yours: begin at `length + 1`.
    range(length + 1, 2 * length) → range(length - 1, 2 * length)
    and total / (length - 1) → total / (length + 1)
    range(length + 1, 2 * length) → range(length, 2 * length)
    and total / (length - 1) → total / length
You return the sum. Divide by the number of queries, `length - 1`.
    total / (length - 1) → total
You divide by another number than that of the queries, `length - 1`.
    total / (length - 1) → total / length
    total / (length - 1) → total / len(weights)
This is the largest weight. Take the mean.
    total += weights[query, copy + 1].item() → total = max(total, weights[query, copy + 1].item() * (length - 1))
right:
    total = 0.0 → return weights.diagonal(offset=1 - length)[2:-1].mean().item()
    return total / (length - 1) → return torch.tensor(total / (length - 1))
"""


@Exercise("R.2", "The logit lens", axes="layer")
def logit_lens(hidden_states, norm, unembedding, token):
    """Return the token's probability after each layer: (layer,)."""
    logits = norm(hidden_states) @ unembedding.T  # (layer, vocab)
    return logits.softmax(dim=-1)[:, token]


@logit_lens.oracle
def _(hidden_states, norm, unembedding, token):
    """Go through the layers, and through the vocabulary, one by one."""
    probs = []
    for x in hidden_states:
        scores = [float(norm(x) @ row) for row in unembedding]
        exponentials = torch.tensor(scores, dtype=torch.float64).exp()
        probs.append(exponentials[token] / exponentials.sum())
    return torch.stack(probs).float()


def states_by_layer(layers, d_model, vocab, token):
    """Make hidden states, a last norm with weights, output embeddings, and a token."""
    norm = torch.nn.RMSNorm(d_model)
    norm.weight = torch.nn.Parameter(torch.rand(d_model) + 0.5, requires_grad=False)
    hidden_states = 3 * torch.randn(layers, d_model)
    return hidden_states, norm, torch.randn(vocab, d_model), token


@logit_lens.cases
def _():
    yield "four layers", *states_by_layer(4, 6, 9, 2)
    yield "as many layers as tokens of the vocabulary", *states_by_layer(5, 3, 5, 4)
    yield "as many dimensions as layers", *states_by_layer(4, 4, 7, 0)


logit_lens.hints = """
- Each hidden state is read as if it were the last layer's: `norm(hidden_states)` first.
- Multiply by the transposed output embeddings: the logits (layer, vocab).
- Take the softmax over the vocabulary, `dim=-1`, and of it the column of `token`.
"""

logit_lens.mistakes = """
The norm is missing: the last layer's output is normalized before it is read.
    norm(hidden_states) @ unembedding.T → hidden_states @ unembedding.T
You normalize the logits. Normalize the hidden states, then multiply.
    norm(hidden_states) @ unembedding.T → torch.nn.functional.rms_norm(hidden_states @ unembedding.T, unembedding.shape[:1])
These are logits. The softmax makes probabilities of them.
    logits.softmax(dim=-1)[:, token] → logits[:, token]
These are logarithms of probabilities.
    logits.softmax(dim=-1)[:, token] → logits.log_softmax(dim=-1)[:, token]
Your softmax runs over the layers. The probabilities of one layer sum to 1: `dim=-1`.
    softmax(dim=-1) → softmax(dim=0)
You return the likeliest token's probability. Return that of `token`.
    softmax(dim=-1)[:, token] → softmax(dim=-1).amax(dim=-1)
You return all probabilities, or those of a layer. Return the column of `token`.
    softmax(dim=-1)[:, token] → softmax(dim=-1)
    softmax(dim=-1)[:, token] → softmax(dim=-1)[token]
You return ranks. Return probabilities.
    logits.softmax(dim=-1)[:, token] → (logits > logits[:, [token]]).sum(dim=-1) + 1
right:
    logits.softmax(dim=-1)[:, token] → (logits[:, token] - logits.logsumexp(dim=-1)).exp()
    norm(hidden_states) @ unembedding.T → torch.stack([unembedding @ norm(x) for x in hidden_states])
"""


@Exercise("R.3", "What a knockout does to the rest", axes="query d_k")
def without_first_key(weights, values):
    """Return the outputs (query, d_k) with the first key masked."""
    masked = weights.clone()
    masked[1:, 0] = 0
    masked = masked / masked.sum(dim=1, keepdim=True)
    return masked @ values


@without_first_key.oracle
def _(weights, values):
    """Mask the scores: logarithms of weights are scores, but for a constant each."""
    scores = weights.log()
    scores[1:, 0] = -torch.inf
    return scores.softmax(dim=1) @ values


def causal_head(tokens, d_k):
    """Make the weights of a causal head with a sink, and its values."""
    scores = 2 * torch.randn(tokens, tokens)
    scores[:, 0] += 3  # a sink
    later = torch.ones(tokens, tokens).triu(1).bool()
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=1)
    return weights, torch.randn(tokens, d_k)


@without_first_key.cases
def _():
    yield "five tokens", *causal_head(5, 3)
    yield "as many tokens as dimensions", *causal_head(4, 4)


without_first_key.hints = """
- A softmax over fewer keys keeps the ratios of their weights.
- Set the first column to 0, for all queries but the first, in a copy.
- Divide each row by its sum, then multiply by the values.
"""

without_first_key.mistakes = """
The first value is gone, but its weight went to no other key: divide each row by its sum.
    masked = masked / masked.sum(dim=1, keepdim=True) → pass
The first query has no other key to give its weight to: leave its row as it is.
    masked[1:, 0] = 0 → masked[:, 0] = 0
A second softmax changes the ratios of the weights. Divide each row by its sum.
    masked / masked.sum(dim=1, keepdim=True) → masked.softmax(dim=1)
Nothing is masked.
    masked[1:, 0] = 0 → pass
You mask the first query. The first key is the first column.
    masked[1:, 0] = 0 → masked[0] = 0
You divide columns by their sums. The weights of a query, a row, sum to 1.
    masked.sum(dim=1, keepdim=True) → masked.sum(dim=0, keepdim=True)
You share the weight out equally. Keys keep the ratios of their weights.
    masked = masked / masked.sum(dim=1, keepdim=True) → seen = masked > 0
        lost = 1 - masked.sum(dim=1, keepdim=True)
        masked = masked + seen * lost / seen.sum(dim=1, keepdim=True)
You set a value to 0 as well, and its weight is lost: that silences the key. A knockout
gives its weight to the others.
    masked[1:, 0] = 0 → values = values.clone()
        values[0] = 0
right:
    masked = weights.clone() → rest = 1 - weights[:, :1]
        rest[0] = 1
        masked = weights.clone()
    and masked / masked.sum(dim=1, keepdim=True) → masked / rest
"""
