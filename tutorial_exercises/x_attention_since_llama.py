"""Exercises of the excursion on attention since Llama: what a layer keeps."""

import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise
from tutorial_exercises.watch import Watch


@Exercise("S.1", "Absorb a matrix", axes="batch head query token")
def absorbed_scores(Q, latent, W_K):
    """Return the scores (batch, head, query, token) before scaling."""
    absorbed = Q @ W_K  # (batch, head, query, d_latent)
    return absorbed @ latent.mT.unsqueeze(1)


@absorbed_scores.oracle
def _(Q, latent, W_K):
    scores = torch.zeros(*Q.shape[:3], latent.shape[1])
    for b, h, i, t in (scores == 0).nonzero().tolist():
        key = W_K[h] @ latent[b, t]  # (d_k,)
        scores[b, h, i, t] = Q[b, h, i] @ key
    return scores


def latent_attention(batch=2, head=3, query=4, token=5, d_k=6, d_latent=7):
    """Return queries, latent vectors and W_K, of sizes that differ."""
    Q = torch.randn(batch, head, query, d_k)
    return Q, torch.randn(batch, token, d_latent), torch.randn(head, d_k, d_latent)


@absorbed_scores.cases
def _():
    yield "three heads", *latent_attention()
    yield "one query, as when a model writes", *latent_attention(query=1, token=9)
    yield "as many texts as heads", *latent_attention(batch=3)


@absorbed_scores.demand("computes no key")
def _(answer):
    sizes = {"batch": 2, "head": 3, "query": 1, "token": 50, "d_k": 32, "d_latent": 4}
    with Watch() as seen:
        answer(*latent_attention(**sizes))
    if max(seen.sizes.values()) >= 50 * 32:  # keys of one head, of one text
        return (
            "The scores are right, but you compute the keys of all tokens. Multiply the "
            "queries by W_K first: (q W_K) · c = q · (W_K c)."
        )


absorbed_scores.hints = """
- A score is q · (W_K c). Which two of the three can be multiplied first?
- `Q @ W_K` is (batch, head, query, d_latent): each head has a matrix of its own.
- `latent` has no axis of heads: `latent.unsqueeze(1)` gives it one.
"""

absorbed_scores.mistakes = """
Queries are multiplied by W_K itself here, not by its transpose: q · (W_K c) = (q W_K) · c.
    Q @ W_K → Q @ W_K.mT
The exercise asks for scores before scaling: do not divide by √d_k.
    absorbed @ latent.mT.unsqueeze(1) → absorbed @ latent.mT.unsqueeze(1) / Q.shape[-1] ** 0.5
These are weights, which sum to 1. The exercise asks for scores: no softmax.
    absorbed @ latent.mT.unsqueeze(1) → (absorbed @ latent.mT.unsqueeze(1)).softmax(dim=-1)
All heads use the first head's matrix. Each has its own.
    Q @ W_K → Q @ W_K[0]
The batch is taken for the heads: `latent` needs an axis for them, `latent.unsqueeze(1)`.
    latent.mT.unsqueeze(1) → latent.mT
You add the heads up. Keep them apart: (batch, head, query, token).
    absorbed @ latent.mT.unsqueeze(1) → (absorbed @ latent.mT.unsqueeze(1)).sum(dim=1)
The axes of query and token are exchanged: a row for each query.
    absorbed @ latent.mT.unsqueeze(1) → latent.unsqueeze(1) @ absorbed.mT
right:
    absorbed @ latent.mT.unsqueeze(1) → torch.einsum("bhqc,btc->bhqt", absorbed, latent)
"""


@Exercise("S.2", "The delta rule, token by token", axes="token d_v")
def delta_rule(Q, K, V, beta):
    """Return the outputs (token, d_v) of one head."""
    S = torch.zeros(K.shape[1], V.shape[1])
    outputs = []
    for t in range(len(K)):
        stored = S.T @ K[t]
        S = S + beta[t] * torch.outer(K[t], V[t] - stored)
        outputs.append(S.T @ Q[t])
    return torch.stack(outputs)


@delta_rule.oracle
def _(Q, K, V, beta):
    """Solve for what each token writes, then attend to it."""
    overlap = (beta[:, None] * (K @ K.T)).tril(-1)
    written = torch.linalg.inv(torch.eye(len(K)) + overlap) @ (beta[:, None] * V)
    return (Q @ K.T).tril() @ written


def one_head(tokens=6, d_k=3, d_v=4):
    """Return queries, keys of length 1, values and learning rates."""
    Q, K = torch.randn(2, tokens, d_k)
    return Q, F.normalize(K, dim=-1), torch.randn(tokens, d_v), torch.rand(tokens)


@delta_rule.cases
def _():
    yield "six tokens", *one_head()
    yield "one token", *one_head(tokens=1)
    yield "more tokens than dimensions, d_k = d_v", *one_head(tokens=9, d_v=3)


@delta_rule.demand("the second value of a key replaces the first")
def _(answer):
    K = torch.tensor([[1.0, 0], [0, 1], [1, 0]])
    V = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    outputs = answer(K, K, V, torch.ones(3))
    if not torch.allclose(outputs[2].float(), V[2], atol=1e-4):
        return "With beta = 1 the last token should read the value that it has written."


delta_rule.hints = """
- Begin with a state of zeros, (d_k, d_v), and loop over the tokens.
- `stored = S.T @ K[t]` is what the state holds under the new key.
- The outer product of a key and a value is `torch.outer(K[t], …)`: (d_k, d_v).
- Read with `S.T @ Q[t]`, after the state has changed; `torch.stack` collects the rows.
"""

delta_rule.mistakes = """
This is linear attention: it adds the whole value. Add the difference to what is stored.
    V[t] - stored → V[t]
What is stored must be subtracted from the value, not the other way round.
    V[t] - stored → stored - V[t]
beta is missing: it says how much of the difference is written.
    beta[t] * torch.outer → torch.outer
You read before the token is written. Change the state first.
    (S.T @ Q[t]) → ((S - beta[t] * torch.outer(K[t], V[t] - stored)).T @ Q[t])
You look up what is stored with the query. What is to be replaced stands under the key.
    stored = S.T @ K[t] → stored = S.T @ Q[t]
You read with the key. The output is read with the query.
    outputs.append(S.T @ Q[t]) → outputs.append(S.T @ K[t])
The old state is lost: add to it.
    S = S + beta → S = beta
Here beta makes the state decay. It multiplies only what is written.
    S = S + beta[t] * torch.outer(K[t], V[t] - stored) → S = (1 - beta[t]) * S + beta[t] * torch.outer(K[t], V[t])
beta belongs to the whole difference, what is stored included.
    torch.outer(K[t], V[t] - stored) → torch.outer(K[t], V[t]) - torch.outer(K[t], stored)
You keep the last output only. Collect one for each token.
    torch.stack(outputs) → outputs[-1]
right:
    torch.outer(K[t], V[t] - stored) → K[t][:, None] * (V[t] - stored)[None]
"""


@Exercise("S.3", "The cache of a model with windows")
def cache_size(num_tokens, num_layers, global_every, window, num_kv_heads, d_k):
    """Return how many numbers keys and values have, for one text."""
    num_global = num_layers // global_every
    num_local = num_layers - num_global
    kept = num_global * num_tokens + num_local * min(num_tokens, window)
    return 2 * kept * num_kv_heads * d_k


@cache_size.oracle
def _(num_tokens, num_layers, global_every, window, num_kv_heads, d_k):
    numbers = 0
    for layer in range(1, num_layers + 1):
        tokens = num_tokens if layer % global_every == 0 else min(num_tokens, window)
        numbers += tokens * num_kv_heads * (d_k + d_k)
    return numbers


@cache_size.cases
def _():
    yield "Gemma 3 27B after 100,000 tokens", 100_000, 62, 6, 1024, 16, 128
    yield "a text shorter than the window", 300, 62, 6, 1024, 16, 128
    yield "every layer global", 5000, 4, 1, 128, 2, 64
    yield "a window and a global layer in turn", 5000, 36, 2, 128, 8, 64
    yield "Gemma 3 27B after 100,000 tokens", 100_000, 65, 6, 1024, 16, 128


cache_size.hints = """
- How many of the layers are global? `num_layers // global_every`.
- A layer with a window keeps `min(num_tokens, window)` tokens.
- A token has a key and a value in each head of keys, with d_k numbers each.
"""

cache_size.mistakes = """
A short text does not fill the window: a layer keeps min(num_tokens, window) tokens.
    min(num_tokens, window) → window
Keys *and* values are kept: there is a factor of 2.
    2 * kept → kept
These are bytes at two bytes a number. The exercise asks for numbers.
    2 * kept → 4 * kept
The global layers are missing: they keep all tokens.
    num_global * num_tokens + num_local → num_local
You count the layers with a window as global, and the global ones as local.
    num_layers // global_every → num_layers - num_layers // global_every
All layers are counted as local, and the global ones a second time.
    num_layers - num_global → num_layers
The number of global layers is a whole number: 62 layers have 10 at every sixth.
    num_layers // global_every → num_layers / global_every
d_k is missing: a key has d_k numbers.
    kept * num_kv_heads * d_k → kept * num_kv_heads
The heads are missing: each head of keys has its own.
    kept * num_kv_heads * d_k → kept * d_k
"""
