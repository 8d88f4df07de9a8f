"""Solutions of chapter 12."""

import torch
import torch.nn.functional as F

from tutorial_lib.attention import scaled_dot_product_attention


def next_token_losses(logits, tokens, lengths):
    """Return -ln p of every next word there is, text after text: (answer,)."""
    guesses, answers = logits[:, :-1], tokens[:, 1:]
    places = torch.arange(answers.shape[1])
    spoken = places < lengths[:, None] - 1  # (batch, token)
    return F.cross_entropy(guesses[spoken], answers[spoken], reduction="none")


def nucleus(logits, p):
    """Keep the fewest words with a share p of the probability: (batch, vocab)."""
    shares, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = shares.cumsum(dim=-1) - shares  # what the likelier words have
    out = torch.zeros_like(logits, dtype=torch.bool)
    out = out.scatter(-1, order, before >= p)
    return logits.masked_fill(out, -torch.inf)


def grouped_query_attention(Q, K, V):
    """Let heads share keys and values; return (batch, head, token, d_k)."""
    share, tokens = Q.shape[1] // K.shape[1], Q.shape[2]
    K = K.repeat_interleave(share, dim=1)  # (batch, head, token, d_k)
    V = V.repeat_interleave(share, dim=1)
    mask = torch.ones(tokens, tokens).tril().bool()
    return scaled_dot_product_attention(Q, K, V, mask)[0]


def next_step(x, K, V, W_Q, W_K, W_V):
    """Read with one new token; return (batch, 1, d_v) and the longer K and V."""
    K = torch.cat((K, x @ W_K), dim=1)
    V = torch.cat((V, x @ W_V), dim=1)
    scores = (x @ W_Q) @ K.mT / K.shape[-1] ** 0.5  # (batch, 1, key)
    return scores.softmax(dim=-1) @ V, K, V


def perplexity_of(model, texts):
    """Return the perplexity of all next words of the texts, as a number."""
    losses = []
    for text in texts:
        tokens = torch.tensor([text])  # (1, token)
        with torch.no_grad():
            logits = model(tokens[:, :-1])[0]  # (token, vocab)
        losses.append(F.cross_entropy(logits, tokens[0, 1:], reduction="none"))
    return torch.cat(losses).mean().exp().item()
