"""Exercises of the excursion on attribution: which inputs a prediction depends on."""

import torch

from tutorial_exercises import Exercise


@Exercise("A.1", "Rollout", axes="batch query key")
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


@Exercise("A.2", "Integrated gradients", axes="batch token", tolerance=1e-4)
def integrated_gradients(gradient_at, x, baseline, num_steps):
    """Return the attributions (batch, token) of gradients on the way to x."""
    total = torch.zeros_like(x)  # (batch, token, d_model)
    for step in range(num_steps):
        share = (step + 0.5) / num_steps  # the middle of each step
        total += gradient_at(baseline + share * (x - baseline))
    mean = total / num_steps
    return (mean * (x - baseline)).sum(dim=-1)


@integrated_gradients.oracle
def _(gradient_at, x, baseline, num_steps):
    """Add up what each step on the way changes, to first order."""
    step = (x - baseline) / num_steps
    attributions = torch.zeros(x.shape[:2])
    here = baseline + step / 2
    for _ in range(num_steps):
        attributions += (gradient_at(here) * step).sum(dim=-1)
        here = here + step
    return attributions


def bent_answer(d_model):
    """Return the gradient of an answer that bends, as a function of embeddings."""
    W = torch.randn(d_model)

    def gradient_at(x):
        x = x.detach().requires_grad_()
        mixed = torch.tanh(x @ W).cumsum(dim=1)  # (batch, token)
        answer = (mixed**2).sum() + (x**3).sum()
        return torch.autograd.grad(answer, x)[0]

    return gradient_at


def on_the_way(batch, tokens, d_model, num_steps):
    """Make a gradient, embeddings, a baseline other than 0, and a number of steps."""
    x, baseline = torch.randn(2, batch, tokens, d_model)
    return bent_answer(d_model), x, baseline, num_steps


@integrated_gradients.cases
def _():
    yield "two steps", *on_the_way(2, 3, 4, 2)
    yield "ten steps", *on_the_way(3, 5, 3, 10)


integrated_gradients.hints = """
- Between the baseline and x lie the points `baseline + share * (x - baseline)`, with
  shares from 0 to 1. Take the middle of each of `num_steps` steps: 0.5, 1.5, …, divided
  by `num_steps`.
- Average `gradient_at(point)` over these points, with a loop.
- Multiply the mean by `x - baseline`, and sum over d_model.
"""

integrated_gradients.mistakes = """
You take points from the origin to x. The way begins at the baseline.
    baseline + share * (x - baseline) → share * x
You multiply by x. Multiply by the difference, x minus the baseline.
    (mean * (x - baseline)).sum(dim=-1) → (mean * x).sum(dim=-1)
You go the wrong way: from x to the baseline.
    (mean * (x - baseline)).sum(dim=-1) → (mean * (baseline - x)).sum(dim=-1)
You take the end of each step. Its middle is half a step earlier: `(step + 0.5) / num_steps`.
    (step + 0.5) / num_steps → (step + 1) / num_steps
You take the beginning of each step. Its middle is half a step later: `(step + 0.5) / num_steps`.
    (step + 0.5) / num_steps → step / num_steps
You add the gradients up. Take their mean.
    mean = total / num_steps → mean = total
This is gradient × input: all gradients are those at x. Take them on the way to it.
    gradient_at(baseline + share * (x - baseline)) → gradient_at(x)
All your gradients are those at the baseline. Take them on the way to x.
    gradient_at(baseline + share * (x - baseline)) → gradient_at(baseline)
Only the last gradient is left: add them up, `total += …`.
    total += gradient_at → total = gradient_at
You return the mean gradient. Multiply it by x minus the baseline.
    (mean * (x - baseline)).sum(dim=-1) → mean.sum(dim=-1)
You take magnitudes. An attribution may be negative.
    (mean * (x - baseline)).sum(dim=-1) → (mean * (x - baseline)).sum(dim=-1).abs()
You sum over tokens. Sum over d_model, the last axis.
    (mean * (x - baseline)).sum(dim=-1) → (mean * (x - baseline)).sum(dim=1)
right:
    total / num_steps → total.div(num_steps)
"""


@Exercise("A.3", "Does an explanation survive?", axes="batch")
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


def product(inputs):
    """Return a number for each text, in which the words interact."""
    x = inputs.float()
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
