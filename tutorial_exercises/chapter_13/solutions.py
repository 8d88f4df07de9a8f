"""Solutions of chapter 13."""

import torch


def attention_rollout(maps):
    """Follow the weights through all layers: (batch, token, token)."""
    tokens = maps[0].shape[-1]
    total = torch.eye(tokens)
    for weights in maps:
        mean = weights.mean(dim=1)  # (batch, token, token)
        half = (mean + torch.eye(tokens)) / 2
        total = half @ total
    return total


def look_back(tokens):
    """Return W_Q and W_K (token, token) of a head that looks one word back."""
    strong = 10 * tokens**0.5
    W_Q = strong * torch.eye(tokens)
    W_K = torch.diag(torch.ones(tokens - 1), 1)  # the word at j answers to j + 1
    return W_Q, W_K


def attention_slopes(Q, K, V, d_outputs):
    """Return the slopes of the loss for Q, K and V, in their shapes."""
    scale = K.shape[-1] ** -0.5
    weights = (Q @ K.mT * scale).softmax(dim=-1)  # (query, key)
    d_V = weights.mT @ d_outputs
    d_weights = d_outputs @ V.mT  # (query, key)
    means = (weights * d_weights).sum(dim=-1, keepdim=True)
    d_scores = weights * (d_weights - means) * scale
    return d_scores @ K, d_scores.mT @ Q, d_V


def covered_fall(answer, inputs, shares, k, blank):
    """Cover the k tokens with the largest shares; return how far answers fall."""
    best = shares.topk(k, dim=-1).indices  # (batch, k)
    covered = inputs.scatter(1, best, blank)
    return answer(inputs) - answer(covered)
