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
    smallest = f"the smallest weight on the previous word is {before.min():.3f}."
    if (before < largest[1:] - 1e-6).any():
        return f"Some word attends most to another than the previous one; {smallest}"
    if (before <= 0.99).any():
        return (
            f"Words attend to the previous one, but not enough: {smallest} Above 0.99 is "
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


@Exercise("13.3", "Activation patching", axes="batch token d_model")
def patched_run(layers, clean, corrupted, layer, position):
    """Return the last hidden states of the corrupted run with one of them patched."""
    for i, run_layer in enumerate(layers):
        if i == layer:
            corrupted = corrupted.clone()
            corrupted[:, position] = clean[:, position]
        clean = run_layer(clean)
        corrupted = run_layer(corrupted)
    return corrupted


@patched_run.oracle
def _(layers, clean, corrupted, layer, position):
    """Run both up to the layer, choose between them by position, and run on."""
    for i in range(layer):
        clean, corrupted = layers[i](clean), layers[i](corrupted)
    is_patched = torch.arange(clean.shape[1]) == position
    x = torch.where(is_patched[:, None], clean, corrupted)
    for run_layer in layers[layer:]:
        x = run_layer(x)
    return x


def residual_layer(tokens, d_model):
    """Return a function of (batch, token, d_model) that mixes the tokens."""
    weights = torch.rand(tokens, tokens).tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    W = torch.randn(d_model, d_model)
    return lambda x: x + torch.tanh(weights @ x @ W)


def two_runs(num_layers, batch, tokens, d_model):
    """Make layers, and the embeddings of two texts that differ at all positions."""
    layers = [residual_layer(tokens, d_model) for _ in range(num_layers)]
    return layers, *torch.randn(2, batch, tokens, d_model)


@patched_run.cases
def _():
    yield "before the first of two layers", *two_runs(2, 4, 4, 3), 0, 2
    yield "before the second of two layers", *two_runs(2, 4, 4, 4), 1, 2
    yield "before the second of three layers", *two_runs(3, 3, 5, 2), 1, 0
    yield "before the last of three layers", *two_runs(3, 3, 5, 2), 2, 4


patched_run.hints = """
- Run both texts, layer by layer: `for i, run_layer in enumerate(layers)`.
- Before layer number `layer` runs, put the clean state of this one position into a copy
  of the corrupted states.
- After the patch both runs go on as before. Return the corrupted run.
"""

patched_run.mistakes = """
You patch after the layer. Patch what enters `layers[layer]`, before it runs.
    if i == layer → if i == layer + 1
You patch in the clean embedding. Patch in the hidden state of the clean run, which goes
through the same layers.
    clean = run_layer(clean) → pass
You patch in every layer from this one on. Patch once, and let the run go on from there.
    if i == layer → if i >= layer
You patch at the embeddings, whatever `layer` is.
    if i == layer → if i == 0
You patch all positions from this one on. Patch one.
    corrupted[:, position] = clean[:, position] → corrupted[:, position:] = clean[:, position:]
You return the clean run. Patch one position of the corrupted run, and return that.
    return corrupted → return clean
    corrupted[:, position] = clean[:, position] → corrupted = clean
Everywhere but at this position your states are those of the clean run. Patch the clean
state into the corrupted run.
    corrupted = corrupted.clone() → corrupted, clean = clean.clone(), corrupted
You patch one text at all its positions: the first axis is the batch.
    corrupted[:, position] = clean[:, position] → corrupted[position] = clean[position]
Nothing is patched: you return the corrupted run as it was.
    corrupted[:, position] = clean[:, position] → pass
right:
    corrupted = corrupted.clone() → is_patched = torch.arange(clean.shape[1]) == position
    and corrupted[:, position] = clean[:, position] → corrupted = torch.where(is_patched[:, None], clean, corrupted)
"""


@Exercise("13.4", "Does an explanation survive?", axes="batch")
def comprehensiveness(metric, inputs, attributions, k, blank):
    """Occlude the k tokens with the largest attributions; return the drops."""
    largest = attributions.topk(k, dim=-1).indices  # (batch, k)
    occluded = inputs.scatter(1, largest, blank)
    return metric(inputs) - metric(occluded)


@comprehensiveness.oracle
def _(metric, inputs, attributions, k, blank):
    """Occlude the tokens with the largest attributions one by one, then ask."""
    occluded = inputs.clone()
    for row, scores in zip(occluded, attributions, strict=True):
        order = sorted(range(len(scores)), key=lambda i: -float(scores[i]))
        for i in order[:k]:
            row[i] = blank
    return metric(inputs) - metric(occluded)


def product(words):
    """Return a number for each text, in which the words interact."""
    x = words.float()
    return x.sqrt().sum(dim=1) + (x[:, 1:] * x[:, :-1]).sum(dim=1)


def texts(batch, tokens):
    """Return a metric, texts, and attributions: no two of a text are equal in size."""
    words = torch.randint(1, 9, (batch, tokens))
    sizes = torch.rand(batch, tokens).argsort(dim=-1) + 1.0
    signs = torch.randint(2, (batch, tokens)) * 2 - 1
    return product, words, sizes * signs


@comprehensiveness.cases
def _():
    yield "one token of each text", *texts(4, 6), 1, 9
    for k, blank in ((2, 0), (3, 7), (5, 1)):
        yield "several tokens at once", *texts(5, 5), k, blank
    yield "nothing is occluded, and the metric does not drop", *texts(3, 4), 0, 0


comprehensiveness.hints = """
- `attributions.topk(k, dim=-1).indices` are the positions to occlude, k in each text.
- `inputs.scatter(1, positions, blank)` returns a copy with blanks there; the inputs
  stay as they are.
- The drop of the metric is `metric(inputs) - metric(occluded)`, with all k tokens
  occluded at once.
"""

comprehensiveness.mistakes = """
You occlude the tokens with the smallest attributions.
    topk(k, dim=-1) → topk(k, dim=-1, largest=False)
You go by the absolute value of the attributions. One below 0 speaks against the
prediction: occlude the tokens with the largest.
    attributions.topk(k, dim=-1) → attributions.abs().topk(k, dim=-1)
You subtract the wrong way round: return `metric(inputs) - metric(occluded)`.
    metric(inputs) - metric(occluded) → metric(occluded) - metric(inputs)
You return the metric with the tokens occluded. Return how much it drops.
    metric(inputs) - metric(occluded) → metric(occluded)
You keep the tokens with the largest attributions and occlude all the others.
    occluded = inputs.scatter(1, largest, blank) → kept = inputs.gather(1, largest)
        occluded = torch.full_like(inputs, blank).scatter(1, largest, kept)
You occlude with 0. Occlude with `blank`.
    scatter(1, largest, blank) → scatter(1, largest, 0)
You occlude one token, whatever k is.
    topk(k, dim=-1) → topk(min(k, 1), dim=-1)
You occlude the same positions in every text. Each text has attributions of its own.
    attributions.topk(k, dim=-1) → attributions[:1].expand_as(attributions).topk(k, dim=-1)
You occlude one token at a time and add up the drops. Occlude all k at once: where words
interact, the drop is not that sum.
    return metric(inputs) - metric(occluded) → drop = torch.zeros(len(inputs))
        for position in largest.split(1, dim=1):
            drop += metric(inputs) - metric(inputs.scatter(1, position, blank))
        return drop
You return one number. Return one for each text.
    metric(inputs) - metric(occluded) → (…).mean()
right:
    occluded = inputs.scatter(1, largest, blank) → occluded = inputs.clone()
        occluded[torch.arange(len(inputs))[:, None], largest] = blank
"""
