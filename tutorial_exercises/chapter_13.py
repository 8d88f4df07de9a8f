"""Exercises of chapter 13: reading attention maps."""

import math

import torch

from tutorial_exercises import Exercise


@Exercise("13.1", "Rollout", axes="batch query key")
def attention_rollout(maps):
    """Combine the attention weights of all layers: (batch, token, token)."""
    tokens = maps[0].shape[-1]
    total = torch.eye(tokens)
    for weights in maps:
        mean = weights.mean(dim=1)  # (batch, token, token)
        half = (mean + torch.eye(tokens)) / 2
        total = half @ total
    return total


@attention_rollout.oracle
def _(maps):
    """Let every token add up what the tokens that it attends to have."""
    batch, heads, tokens, _ = maps[0].shape
    total = torch.eye(tokens).repeat(batch, 1, 1)
    for weights in maps:
        after = total / 2
        for b in range(batch):
            for i in range(tokens):
                for j in range(tokens):
                    weight = sum(weights[b, h, i, j] for h in range(heads)) / heads
                    after[b, i] += weight * total[b, j] / 2
        total = after
    return total


def attention_maps(layers, batch=2, heads=3, tokens=4):
    """Make a list of weights (batch, head, token, token), one for each layer."""
    scores = 2 * torch.randn(layers, batch, heads, tokens, tokens)
    return [*scores.softmax(dim=-1)]


@attention_rollout.cases
def _():
    yield "one layer", attention_maps(1)
    label = "two layers, and three"
    yield label, attention_maps(2)
    yield label, attention_maps(3)
    yield "as many heads as tokens", attention_maps(2, batch=3, heads=3, tokens=3)


attention_rollout.hints = """
- Begin with the identity: before the first layer every token is itself.
- After a layer a token is half what it attends to and half itself, by the residual
  connection: the mean over the heads plus the identity, divided by 2.
- The second layer attends to the outputs of the first: multiply from the left, `half @
  total`.
"""

attention_rollout.mistakes = """
The residual connection is missing: add the identity to the mean, and divide by 2.
    (mean + torch.eye(tokens)) / 2 → mean
Your rows sum to more than 1: divide the mean plus the identity by 2.
    (mean + torch.eye(tokens)) / 2 → mean + torch.eye(tokens)
You multiply the layers in the wrong order. A later layer attends to the outputs of the
earlier ones: `half @ total`.
    half @ total → total @ half
You multiply element by element. Weighted sums over tokens are a matrix product, `@`.
    half @ total → half * total
You add the layers up. The second attends to the outputs of the first: multiply them.
    half @ total → (total + half) / 2
Only the last layer is left. Multiply it by the product of those before it.
    half @ total → half
You take the first head only. Take the mean over all heads.
    weights.mean(dim=1) → weights[:, 0]
You take the maximum over the heads. That is a variant: here, take the mean.
    weights.mean(dim=1) → weights.amax(dim=1)
You take the sum over the heads, so the rows sum to more than 1. Take the mean.
    weights.mean(dim=1) → weights.sum(dim=1)
You transpose the weights. Rows are queries and columns are keys: leave them so.
    weights.mean(dim=1) → weights.mean(dim=1).mT
You take the mean over the batch. Heads are the second axis: `mean(dim=1)`.
    weights.mean(dim=1) → weights.mean(dim=0)
right:
    half = (mean + torch.eye(tokens)) / 2 → total = (mean @ total + total) / 2
    and total = half @ total →
"""


@Exercise(
    "13.2", "A previous-token head", axes={"W_Q": "token d_k", "W_K": "token d_k"}
)
def previous_token_head(tokens):
    """Return W_Q and W_K (token, token) of a previous-token head."""
    strength = 10 * tokens**0.5
    W_Q = strength * torch.eye(tokens)
    W_K = torch.diag(torch.ones(tokens - 1), 1)  # key j matches query j + 1
    return W_Q, W_K


@previous_token_head.oracle
def _(tokens):
    """Write one pair of matrices of the many that do it."""
    W_Q, W_K = torch.zeros(2, tokens, tokens)
    for i in range(tokens):
        W_Q[i, i] = 10 * math.sqrt(tokens)
        if i > 0:
            W_K[i - 1, i] = 1
    return W_Q, W_K


def causal_weights(W_Q, W_K):
    """Return the weights (query, key) of a causal head whose words are the identity."""
    scores = W_Q @ W_K.mT / math.sqrt(len(W_Q))
    later = torch.ones_like(scores).triu(1).bool()
    return scores.masked_fill(later, -torch.inf).softmax(dim=-1)


@previous_token_head.demand("two matrices (token, token)")
def _(answer):
    for name, matrix in zip("QK", answer(6), strict=True):
        shape = tuple(matrix.shape)
        if shape != (6, 6):
            return f"W_{name} has to be (6, 6) for six words, yours is {shape}."


@previous_token_head.demand("every word but the first attends to the previous one")
def _(answer):
    weights = causal_weights(*answer(6))
    if not weights.isfinite().all():
        return "Some of your attention weights are not finite numbers."
    if (weights.diagonal()[1:] > 0.9).all():
        return "Every word attends to itself: shift one of the two matrices by one."
    if (weights.diagonal(-2)[1:] > 0.9).all():
        return (
            "Words attend two positions back, not one: shift one of the two matrices "
            "by one, and leave the other."
        )
    largest = weights.amax(dim=-1)
    if torch.allclose(largest, 1 / torch.arange(1, 7)):
        return (
            "All words that are not hidden get the same weight. Either their scores "
            "are equal, or only those of hidden words are higher."
        )
    before = weights.diagonal(-1)
    told = f"the smallest weight on the previous word is {before.min():.3f}."
    if (before < largest[1:] - 1e-6).any():
        return f"Some word attends most to another than the previous one; {told}"
    if (before <= 0.99).any():
        return (
            f"Words attend to the previous one, but not enough: {told} Above 0.99 is "
            "asked for. Make the scores larger."
        )


@previous_token_head.demand("in texts of other lengths")
def _(answer):
    for tokens in (2, 3, 24):
        weights = causal_weights(*answer(tokens))
        if not (weights.diagonal(-1) > 0.99).all():
            return (
                f"With {tokens} words some weight on the previous word is not above "
                "0.99. The scores are divided by the root of `tokens`."
            )


previous_token_head.hints = """
- Word i is row i of the identity, so its query is row i of W_Q and its key row i of
  W_K: you write all queries and keys down directly.
- Query i should match key i - 1 and no other. Let query i be row i of the identity:
  then key i - 1 has to be that vector, too.
- A score of 1 is not enough. Make one matrix large: ten times the root of `tokens`,
  since the scores are divided by it.
"""

previous_token_head.mistakes = """
All scores are the same: one of your matrices is zero.
    strength * torch.eye(tokens) → torch.zeros(tokens, tokens)
    torch.diag(torch.ones(tokens - 1), 1) → torch.zeros(tokens, tokens)
Your scores are high for the next word, which is hidden: shift the other way.
    torch.diag(torch.ones(tokens - 1), 1) → torch.diag(torch.ones(tokens - 1), -1)
right:
    torch.eye(tokens) → torch.diag(torch.ones(tokens - 1), -1)
    and torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens)
    10 * tokens**0.5 → 1000.0
    torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens).roll(1, dims=1)
"""


@Exercise(
    "13.3",
    "The gradients of attention",
    axes={"d_Q": "query d_k", "d_K": "key d_k", "d_V": "key d_v"},
)
def attention_gradients(Q, K, V, d_outputs):
    """Return the gradients of the loss for Q, K and V, in their shapes."""
    scale = K.shape[-1] ** -0.5
    weights = (Q @ K.mT * scale).softmax(dim=-1)  # (query, key)
    d_V = weights.mT @ d_outputs
    d_weights = d_outputs @ V.mT  # (query, key)
    means = (weights * d_weights).sum(dim=-1, keepdim=True)
    d_scores = weights * (d_weights - means) * scale
    return d_scores @ K, d_scores.mT @ Q, d_V


@attention_gradients.oracle
def _(Q, K, V, d_outputs):
    """Let autograd do it."""
    inputs = [x.clone().requires_grad_() for x in (Q, K, V)]
    scores = inputs[0] @ inputs[1].mT / math.sqrt(K.shape[-1])
    powers = scores.exp()
    outputs = powers / powers.sum(dim=-1, keepdim=True) @ inputs[2]
    return torch.autograd.grad((outputs * d_outputs).sum(), inputs)


def head_inputs(queries, keys, d_k, d_v):
    """Make Q, K, V and the gradient of the outputs."""
    sizes = (queries, d_k), (keys, d_k), (keys, d_v), (queries, d_v)
    return [torch.randn(size) for size in sizes]


@attention_gradients.cases
def _():
    yield "all sizes equal: no shape shows a transpose", *head_inputs(4, 4, 4, 4)
    yield "three queries, four keys", *head_inputs(3, 4, 5, 2)
    yield "only one query", *head_inputs(1, 5, 2, 3)
    yield "only one key", *head_inputs(3, 1, 4, 2)


attention_gradients.hints = """
- Backward through `outputs = weights @ V`: the gradient for V is `weights.mT @
  d_outputs`, that for the weights `d_outputs @ V.mT`.
- Through the softmax, row by row: `weights * (d_weights - means)`, where `means` is the
  mean of d_weights, weighted by the weights.
- Through `Q @ K.mT * scale`: the gradient for Q is `d_scores @ K`, that for K
  `d_scores.mT @ Q`, and both are scaled.
"""

attention_gradients.mistakes = """
The scores are divided by √d_k, and so are the gradients for Q and K: where is the
scale?
    (d_weights - means) * scale → (d_weights - means)
The scores are divided by √d_k before the softmax.
    Q @ K.mT * scale → Q @ K.mT
You go through the softmax as if it were the identity: the gradient for its scores is
`weights * (d_weights - means)`.
    weights * (d_weights - means) → d_weights
The weights of a row sum to 1: where one grows, the others shrink. Subtract the weighted
mean of d_weights from each of its entries.
    weights * (d_weights - means) → weights * d_weights
That is the derivative of a sigmoid, w (1 − w). In a softmax every weight depends on
every score.
    weights * (d_weights - means) → weights * (1 - weights) * d_weights
The mean of d_weights has to be weighted by the attention weights.
    (weights * d_weights).sum → d_weights.mean
The softmax runs over the keys, and so does the mean in its gradient.
    sum(dim=-1, keepdim=True) → sum(dim=-2, keepdim=True)
You have exchanged the gradients for Q and K.
    d_scores @ K, d_scores.mT @ Q → d_scores.mT @ Q, d_scores @ K
The gradient for V has a row for each key: `weights.mT @ d_outputs`.
    weights.mT @ d_outputs → weights @ d_outputs
The gradient for K has a row for each key: `d_scores.mT @ Q`.
    d_scores.mT @ Q → d_scores @ Q
right:
    d_scores = weights * (d_weights - means) * scale → jacobian = torch.diag_embed(weights)
        jacobian = jacobian - weights[:, :, None] * weights[:, None]
        d_scores = (jacobian @ d_weights[:, :, None])[:, :, 0] * scale
"""


@Exercise("13.4", "Does an explanation survive?", axes="batch")
def covered_fall(answer, inputs, shares, k, blank):
    """Cover the k tokens with the largest attributions; return the drops."""
    best = shares.topk(k, dim=-1).indices  # (batch, k)
    covered = inputs.scatter(1, best, blank)
    return answer(inputs) - answer(covered)


@covered_fall.oracle
def _(answer, inputs, shares, k, blank):
    """Cover the tokens with the largest shares one by one, then ask."""
    covered = inputs.clone()
    for row, share in zip(covered, shares, strict=True):
        order = sorted(range(len(share)), key=lambda i: -float(share[i]))
        for i in order[:k]:
            row[i] = blank
    return answer(inputs) - answer(covered)


def product(words):
    """Answer with a number in which the words interact."""
    x = words.float()
    return x.sqrt().sum(dim=1) + (x[:, 1:] * x[:, :-1]).sum(dim=1)


def texts(batch, tokens):
    """Return an answer, texts, and shares: no two of a text are equal in size."""
    words = torch.randint(1, 9, (batch, tokens))
    sizes = torch.rand(batch, tokens).argsort(dim=-1) + 1.0
    signs = torch.randint(2, (batch, tokens)) * 2 - 1
    return product, words, sizes * signs


@covered_fall.cases
def _():
    yield "one token of each text", *texts(4, 6), 1, 9
    for k, blank in ((2, 0), (3, 7), (5, 1)):
        yield "several tokens at once", *texts(5, 5), k, blank
    yield "nothing is covered, and the answers do not drop", *texts(3, 4), 0, 0


covered_fall.hints = """
- `shares.topk(k, dim=-1).indices` are the positions to cover, k in each text.
- `inputs.scatter(1, positions, blank)` returns a copy with blanks there; the inputs
  stay as they are.
- The drop of the answer is `answer(inputs) - answer(covered)`, with all k tokens
  covered at once.
"""

covered_fall.mistakes = """
You cover the tokens with the smallest shares.
    topk(k, dim=-1) → topk(k, dim=-1, largest=False)
You go by the absolute value of the shares. A share below 0 speaks against the answer:
cover those with the largest shares.
    shares.topk(k, dim=-1) → shares.abs().topk(k, dim=-1)
You subtract the wrong way round: return `answer(inputs) - answer(covered)`.
    answer(inputs) - answer(covered) → answer(covered) - answer(inputs)
You return the answer with the tokens covered. Return how much it drops.
    answer(inputs) - answer(covered) → answer(covered)
You keep the tokens with the largest shares and cover all the others.
    covered = inputs.scatter(1, best, blank) → kept = inputs.gather(1, best)
        covered = torch.full_like(inputs, blank).scatter(1, best, kept)
You cover with 0. Cover with `blank`.
    scatter(1, best, blank) → scatter(1, best, 0)
You cover one token, whatever k is.
    topk(k, dim=-1) → topk(min(k, 1), dim=-1)
You cover the same positions in every text. Each text has shares of its own.
    shares.topk(k, dim=-1) → shares[:1].expand_as(shares).topk(k, dim=-1)
You cover one token at a time and add up the drops. Cover all k at once: where words
interact, the drop is not that sum.
    return answer(inputs) - answer(covered) → fall = torch.zeros(len(inputs))
        for position in best.split(1, dim=1):
            fall += answer(inputs) - answer(inputs.scatter(1, position, blank))
        return fall
You return one number. Return one for each text.
    answer(inputs) - answer(covered) → (…).mean()
right:
    covered = inputs.scatter(1, best, blank) → covered = inputs.clone()
        covered[torch.arange(len(inputs))[:, None], best] = blank
"""
