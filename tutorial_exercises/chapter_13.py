"""Exercises of chapter 13: reading attention maps."""

import math

import torch

from tutorial_exercises import Exercise


@Exercise(
    "13.1", "A previous-token head", axes={"W_Q": "token d_k", "W_K": "token d_k"}
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
    if torch.allclose(largest.float(), 1 / torch.arange(1, 7)):
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
    W_Q = strength * torch.eye(tokens) → W_Q = strength * torch.diag(torch.ones(tokens - 1), 1)
    and W_K = torch.diag(torch.ones(tokens - 1), 1) → W_K = torch.eye(tokens)
right:
    torch.eye(tokens) → torch.diag(torch.ones(tokens - 1), -1)
    and torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens)
    10 * tokens**0.5 → 1000.0
    torch.diag(torch.ones(tokens - 1), 1) → torch.eye(tokens).roll(1, dims=1)
"""


@Exercise("13.2", "Activation patching", axes="batch token d_model")
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


@Exercise("13.3", "Direct logit attribution", axes="batch head")
def head_contributions(context, W_O, direction):
    """Return what each head adds to the logit difference: (batch, head)."""
    _, num_heads, d_k = context.shape
    contributions = []
    for head in range(num_heads):
        columns = W_O[:, head * d_k : (head + 1) * d_k]  # (d_model, d_k)
        output = context[:, head] @ columns.T  # (batch, d_model)
        contributions.append((output * direction).sum(dim=-1))
    return torch.stack(contributions, dim=1)


@head_contributions.oracle
def _(context, W_O, direction):
    """Multiply all out, number by number."""
    batch, num_heads, d_k = context.shape
    contributions = torch.zeros(batch, num_heads)
    for b in range(batch):
        for head in range(num_heads):
            for i in range(d_k):
                column = W_O[:, head * d_k + i]
                read = context[b, head, i]
                contributions[b, head] += read * column.dot(direction[b])
    return contributions


def written_by_heads(batch, heads, d_k, d_model):
    """Make what heads have read, the matrix that writes it, and directions."""
    context = torch.randn(batch, heads, d_k)
    W_O = torch.randn(d_model, heads * d_k)
    return context, W_O, torch.randn(batch, d_model)


@head_contributions.cases
def _():
    yield "two heads", *written_by_heads(3, 2, 4, 8)
    yield "three heads, and W_O is not square", *written_by_heads(2, 3, 2, 5)
    yield "as many texts as heads", *written_by_heads(3, 3, 3, 9)


head_contributions.hints = """
- Of W_O, head number `head` has the columns from `head * d_k` to `(head + 1) * d_k`.
- What it adds to the residual stream is `context[:, head] @ columns.T`, a vector
  (batch, d_model).
- Its contribution to the logit difference is the dot product with `direction`: multiply
  the two vectors and sum over d_model.
"""

head_contributions.mistakes = """
You take rows of W_O. A head's block are d_k of its columns.
    columns = W_O[:, head * d_k : (head + 1) * d_k]  # (d_model, d_k) → columns = W_O[head * d_k : (head + 1) * d_k].T
You take every so many columns. The columns of a head are side by side.
    W_O[:, head * d_k : (head + 1) * d_k] → W_O[:, head::num_heads]
You take the columns of the first head for all of them.
    W_O[:, head * d_k : (head + 1) * d_k] → W_O[:, :d_k]
You take what the first head has read for all of them.
    context[:, head] @ columns.T → context[:, 0] @ columns.T
You take the length of what a head adds. Its contribution is the dot product with
`direction`, which may be negative.
    (output * direction).sum(dim=-1) → output.norm(dim=-1)
    (output * direction).sum(dim=-1) → (output * direction).sum(dim=-1).abs()
You divide by lengths, as for a cosine. A contribution is the dot product itself.
    (output * direction).sum(dim=-1) → torch.cosine_similarity(output, direction)
    (output * direction).sum(dim=-1) → (output * direction).sum(dim=-1) / direction.norm(dim=-1)
You take the mean over d_model. A dot product is a sum.
    (output * direction).sum(dim=-1) → (output * direction).mean(dim=-1)
You add the heads up. Return the contribution of each.
    torch.stack(contributions, dim=1) → sum(contributions)
You return (head, batch): stack along axis 1.
    torch.stack(contributions, dim=1) → torch.stack(contributions)
You return shares that sum to 1. Return the contributions as they are.
    return torch.stack(contributions, dim=1) → contributions = torch.stack(contributions, dim=1)
        return contributions / contributions.sum(dim=1, keepdim=True)
right:
    contributions = [] → return torch.einsum("bhk,dhk,bd->bh", context, W_O.view(-1, num_heads, d_k), direction)
    output = context[:, head] @ columns.T  # (batch, d_model) → towards = direction @ columns  # (batch, d_k)
    and (output * direction).sum(dim=-1) → (context[:, head] * towards).sum(dim=-1)
"""
