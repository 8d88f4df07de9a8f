"""An attention-only Transformer: small enough to be taken apart.

It has no feed-forward networks and no layer normalization, so that each token's final
hidden state is a sum: its embedding and what each head has added. Elhage et al. (2021).
"""

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask
from tutorial_lib.sizes import refuse_odd_sizes


class AttentionOnly(nn.Module):
    """A language model of attention layers and residual connections alone."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, *, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.5)
        nn.init.normal_(self.position_embedding.weight, std=0.5)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(MultiHeadAttention(d_model, num_heads, bias=False))
        self.unembedding = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens):
        """Return the logits (batch, token, vocab) of what follows each token."""
        return self.run_layers(self.embed(tokens))

    def embed(self, tokens):
        """Return the embeddings (batch, token, d_model) of tokens and positions."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.token_embedding(tokens) + self.position_embedding(positions)

    def run_layers(self, x):
        """Return the logits of embeddings ``x`` (batch, token, d_model)."""
        mask = causal_mask(x.shape[1], x.device)  # (query, key)
        for attention in self.layers:
            x = x + attention(x, x, x, mask)  # the residual stream
        return self.unembedding(x)


refuse_odd_sizes(AttentionOnly)
