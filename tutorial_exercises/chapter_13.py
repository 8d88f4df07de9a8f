"""Exercises of chapter 13: reading attention maps."""

import math

import torch

from tutorial_exercises import Exercise


@Exercise("13.1", "Rollout", axes="batch query key")
def attention_rollout(maps):
    """Follow the weights through all layers: (batch, token, token)."""
    tokens = maps[0].shape[-1]
    total = torch.eye(tokens)
    for weights in maps:
        mean = weights.mean(dim=1)  # (batch, token, token)
        half = (mean + torch.eye(tokens)) / 2
        total = half @ total
    return total


@attention_rollout.oracle
def _(maps):
    """Let every token collect what its sources have collected."""
    batch, heads, tokens, _ = maps[0].shape
    total = torch.eye(tokens).repeat(batch, 1, 1)
    for weights in maps:
        after = total / 2
        for b in range(batch):
            for i in range(tokens):
                for j in range(tokens):
                    share = sum(weights[b, h, i, j] for h in range(heads)) / heads
                    after[b, i] += share * total[b, j] / 2
        total = after
    return total


def attention_maps(layers, batch=2, heads=3, tokens=4):
    """Make a list of weights (batch, head, token, token), one for each layer."""
    scores = 2 * torch.randn(layers, batch, heads, tokens, tokens)
    return [*scores.softmax(dim=-1)]


@attention_rollout.cases
def _():
    yield "one layer", attention_maps(1)
    label = "two layers and three, one after the other"
    yield label, attention_maps(2)
    yield label, attention_maps(3)
    yield "as many heads as words", attention_maps(2, batch=3, heads=3, tokens=3)


attention_rollout.hints = """
- Begin with the identity: before the first layer every token is itself.
- In a layer a token is half what it reads and half itself: the mean over the heads plus
  the identity, divided by 2.
- The second layer reads what the first has made: multiply it from the left, `half @
  total`.
"""

attention_rollout.mistakes = """
A token keeps half of what it was: add the identity to the mean over the heads, and
divide by 2.
    (mean + torch.eye(tokens)) / 2 → mean
Your rows sum to more than 1: the mean over the heads plus the identity has to be
divided by 2.
    (mean + torch.eye(tokens)) / 2 → mean + torch.eye(tokens)
You multiply the layers in the wrong order. The later layer reads what the earlier ones
have made: `half @ total`.
    half @ total → total @ half
You multiply number by number. A layer reads from all tokens and adds up: that is a
product of matrices, `@`.
    half @ total → half * total
You add the layers up. The second reads what the first has made: multiply them.
    half @ total → (total + half) / 2
Only the last layer is left. Multiply it with what was there before.
    half @ total → half
You take the first head only. Take the mean over all heads.
    weights.mean(dim=1) → weights[:, 0]
You take the largest of the heads. That is a variant; here the mean over the heads is
asked for.
    weights.mean(dim=1) → weights.amax(dim=1)
You add the heads up, so that rows sum to more than 1. Take their mean.
    weights.mean(dim=1) → weights.sum(dim=1)
Rows are queries and columns are keys: do not turn the maps.
    weights.mean(dim=1) → weights.mean(dim=1).mT
You average over the batch. Heads are the second axis: `mean(dim=1)`.
    weights.mean(dim=1) → weights.mean(dim=0)
right:
    half = (mean + torch.eye(tokens)) / 2 → total = (mean @ total + total) / 2
    and total = half @ total →
"""


@Exercise("13.2", "A head by hand", axes={"W_Q": "place d_k", "W_K": "place d_k"})
def look_back(tokens):
    """Return W_Q and W_K (token, token) of a head that looks one word back."""
    strength = 10 * tokens**0.5
    W_Q = strength * torch.eye(tokens)
    W_K = torch.diag(torch.ones(tokens - 1), 1)  # the word at j answers to j + 1
    return W_Q, W_K


@look_back.oracle
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


@look_back.demand("two matrices (token, token)")
def _(answer):
    for name, matrix in zip("QK", answer(6), strict=True):
        shape = tuple(matrix.shape)
        if shape != (6, 6):
            return f"W_{name} has to be (6, 6) for six words, yours is {shape}."


@look_back.demand("every word but the first looks one back")
def _(answer):
    weights = causal_weights(*answer(6))
    if not weights.isfinite().all():
        return "Your weights are not finite."
    if (weights.diagonal()[1:] > 0.9).all():
        return "Every word looks at itself: shift one of the two matrices by one."
    if (weights.diagonal(-2)[1:] > 0.9).all():
        return "Your words look two back: you have shifted both matrices."
    largest = weights.amax(dim=-1)
    if torch.allclose(largest, 1 / torch.arange(1, 7)):
        return (
            "No word that may be seen gets more than another. Either all scores are "
            "the same, or they are high for the word after, which is hidden."
        )
    before = weights.diagonal(-1)
    told = f"the word before gets {before.min():.2f} where it gets least."
    if (before < largest[1:] - 1e-6).any():
        return f"Some word looks hardest at another than the one before it; {told}"
    if (before <= 0.99).any():
        return (
            f"It looks back, but weakly: {told} Above 0.99 is asked for. Make the "
            "scores larger."
        )


@look_back.demand("in texts of other lengths")
def _(answer):
    for tokens in (2, 3, 24):
        weights = causal_weights(*answer(tokens))
        if not (weights.diagonal(-1) > 0.99).all():
            return (
                f"With {tokens} words some get less than 0.99 on the word before. The "
                "scores are divided by the root of `tokens`."
            )


look_back.hints = """
- Word i is row i of the identity, so its query is row i of W_Q and its key row i of
  W_K: you write all queries and keys down directly.
- Query i shall meet key i - 1 and no other. Let query i be the vector i of the
  identity: then key i - 1 has to be that vector, too.
- A score of 1 decides little. Make one matrix large: ten times the root of `tokens`,
  since the scores are divided by it.
"""

look_back.mistakes = """
All scores are the same: one of your matrices is zero.
    strength * torch.eye(tokens) → torch.zeros(tokens, tokens)
    torch.diag(torch.ones(tokens - 1), 1) → torch.zeros(tokens, tokens)
Your scores are high for the word after, which is hidden: shift the other way.
    torch.diag(torch.ones(tokens - 1), 1) → torch.diag(torch.ones(tokens - 1), -1)
right:
    torch.eye(tokens) → torch.diag(torch.ones(tokens - 1), -1)
    and torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens)
    10 * tokens**0.5 → 1000.0
    torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens).roll(1, dims=1)
"""


@Exercise(
    "13.3",
    "The slopes of attention",
    axes={"d_Q": "query d_k", "d_K": "key d_k", "d_V": "key d_v"},
)
def attention_slopes(Q, K, V, d_outputs):
    """Return the slopes of the loss for Q, K and V, in their shapes."""
    scale = K.shape[-1] ** -0.5
    weights = (Q @ K.mT * scale).softmax(dim=-1)  # (query, key)
    d_V = weights.mT @ d_outputs
    d_weights = d_outputs @ V.mT  # (query, key)
    means = (weights * d_weights).sum(dim=-1, keepdim=True)
    d_scores = weights * (d_weights - means) * scale
    return d_scores @ K, d_scores.mT @ Q, d_V


@attention_slopes.oracle
def _(Q, K, V, d_outputs):
    """Let autograd do it."""
    inputs = [x.clone().requires_grad_() for x in (Q, K, V)]
    scores = inputs[0] @ inputs[1].mT / math.sqrt(K.shape[-1])
    powers = scores.exp()
    outputs = powers / powers.sum(dim=-1, keepdim=True) @ inputs[2]
    return torch.autograd.grad((outputs * d_outputs).sum(), inputs)


def head_inputs(queries, keys, d_k, d_v):
    """Make Q, K, V and the slopes of the outputs."""
    sizes = (queries, d_k), (keys, d_k), (keys, d_v), (queries, d_v)
    return [torch.randn(size) for size in sizes]


@attention_slopes.cases
def _():
    yield "all sizes alike, so that a transpose can be told", *head_inputs(4, 4, 4, 4)
    yield "three queries, four keys", *head_inputs(3, 4, 5, 2)
    yield "one query, and one key", *head_inputs(1, 5, 2, 3)
    yield "one query, and one key", *head_inputs(3, 1, 4, 2)


attention_slopes.hints = """
- Backwards through `outputs = weights @ V`: the slope of V is `weights.mT @ d_outputs`,
  that of the weights `d_outputs @ V.mT`.
- Through the softmax, row by row: `weights * (d_weights - means)`, where `means` is the
  mean of d_weights, weighted by the weights.
- Through `Q @ K.mT * scale`: the slope of Q is `d_scores @ K`, that of K `d_scores.mT @
  Q`, and both are scaled.
"""

attention_slopes.mistakes = """
The scores are divided by √d_k, and so are their slopes: where is the scale?
    (d_weights - means) * scale → (d_weights - means)
The scores are divided by √d_k before the softmax.
    Q @ K.mT * scale → Q @ K.mT
You go through the softmax as if it were the identity: its slope is `weights *
(d_weights - means)`.
    weights * (d_weights - means) → d_weights
You forget that the weights of a row sum to 1: where one grows, the others shrink.
Subtract the weighted mean of d_weights from each.
    weights * (d_weights - means) → weights * d_weights
That is the slope of a sigmoid, w (1 − w). In a softmax every weight depends on every
score.
    weights * (d_weights - means) → weights * (1 - weights) * d_weights
The mean of d_weights is weighted by the weights.
    (weights * d_weights).sum → d_weights.mean
The softmax runs over the keys, and so does the mean in its slope.
    sum(dim=-1, keepdim=True) → sum(dim=-2, keepdim=True)
You have exchanged the slopes of Q and K.
    d_scores @ K, d_scores.mT @ Q → d_scores.mT @ Q, d_scores @ K
The slope of V has a row for each key: `weights.mT @ d_outputs`.
    weights.mT @ d_outputs → weights @ d_outputs
The slope of K has a row for each key: `d_scores.mT @ Q`.
    d_scores.mT @ Q → d_scores @ Q
right:
    d_scores = weights * (d_weights - means) * scale → slopes = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
        d_scores = (slopes @ d_weights[:, :, None])[:, :, 0] * scale
"""


@Exercise("13.4", "Does an explanation survive?", axes="batch")
def covered_fall(answer, inputs, shares, k, blank):
    """Cover the k tokens with the largest shares; return how far answers fall."""
    best = shares.topk(k, dim=-1).indices  # (batch, k)
    covered = inputs.scatter(1, best, blank)
    return answer(inputs) - answer(covered)


@covered_fall.oracle
def _(answer, inputs, shares, k, blank):
    """Cover the largest shares one by one, then ask."""
    covered = inputs.clone()
    for row, share in zip(covered, shares, strict=True):
        order = sorted(range(len(share)), key=lambda place: -float(share[place]))
        for place in order[:k]:
            row[place] = blank
    return answer(inputs) - answer(covered)


def product(words):
    """Answer with something in which words depend on each other."""
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
    yield "nothing is covered, nothing falls", *texts(3, 4), 0, 0


covered_fall.hints = """
- `shares.topk(k, dim=-1).indices` are the places to cover, k in each text.
- `inputs.scatter(1, places, blank)` returns a copy with blanks there; the inputs stay
  as they are.
- How far the answer falls: `answer(inputs) - answer(covered)`. Ask with all k tokens
  covered at once.
"""

covered_fall.mistakes = """
You cover the tokens with the smallest shares.
    topk(k, dim=-1) → topk(k, dim=-1, largest=False)
You go by the size of the shares without their sign. A share below 0 speaks against the
answer: cover those with the largest shares.
    shares.topk(k, dim=-1) → shares.abs().topk(k, dim=-1)
You return how far the answer rises. It falls from what it was to what it is:
`answer(inputs) - answer(covered)`.
    answer(inputs) - answer(covered) → answer(covered) - answer(inputs)
You return the answer with the tokens covered. Say how far it falls.
    answer(inputs) - answer(covered) → answer(covered)
You keep the tokens with the largest shares and cover all the others.
    inputs.scatter(1, best, blank) → torch.full_like(inputs, blank).scatter(1, best, inputs.gather(1, best))
You cover with 0. Cover with `blank`.
    scatter(1, best, blank) → scatter(1, best, 0)
You cover one token, whatever k is.
    topk(k, dim=-1) → topk(min(k, 1), dim=-1)
You cover the same places in every text. Each has its own shares.
    shares.topk(k, dim=-1) → shares[:1].expand_as(shares).topk(k, dim=-1)
You cover one token at a time and add up how far the answer falls. Cover all k at once:
what two tokens say together is not the sum.
    return answer(inputs) - answer(covered) → fall = torch.zeros(len(inputs))
        for places in best.T:
            fall += answer(inputs) - answer(inputs.scatter(1, places[:, None], blank))
        return fall
You return one number. Return one for each text.
    answer(inputs) - answer(covered) → (…).mean()
right:
    covered = inputs.scatter(1, best, blank) → covered = inputs.clone()
        covered[torch.arange(len(inputs))[:, None], best] = blank
"""
