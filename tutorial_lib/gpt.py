"""GPT: a Transformer's decoder without an encoder, which predicts the next token.

Radford et al. (2019): causal attention, the norm before each sub-layer, learned
position embeddings, and one table for input and output embeddings.
`tutorial_lib.pretrained.from_gpt2` loads the weights that were published.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import CausalSelfAttention
from tutorial_lib.sizes import refuse_odd_sizes
from tutorial_lib.transformer import FeedForward


class GPTBlock(nn.Module):
    """Let tokens attend to those up to them, then compute on each."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = CausalSelfAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        gelu = partial(F.gelu, approximate="tanh")  # as in GPT-2
        self.feed_forward = FeedForward(d_model, 4 * d_model, activation=gelu)

    def forward(self, x, kv_cache=None, layer=0):
        """Update ``x`` (batch, token, d_model), which follows what the cache holds."""
        x = x + self.attention(self.norm1(x), kv_cache, layer)
        x = x + self.feed_forward(self.norm2(x))
        return x


class GPT(nn.Module):
    """Predict each next token from the tokens before it: Radford et al. (2019)."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, *, max_tokens):
        super().__init__()
        self.max_tokens = max_tokens
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        layers = [GPTBlock(d_model, num_heads) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model)
        nn.init.normal_(self.token_embedding.weight, std=0.02)
        nn.init.normal_(self.position_embedding.weight, std=0.02)

    def forward(self, tokens, kv_cache=None):
        """Return the logits (batch, token, vocab) of what follows each token.

        With a ``kv_cache``, ``tokens`` (batch, token) follow those that it holds.
        """
        start = 0 if kv_cache is None else kv_cache.num_tokens()
        end = start + tokens.shape[1]
        if end > self.max_tokens:
            raise ValueError(f"{end} tokens are more than max_tokens={self.max_tokens}")
        positions = torch.arange(start, end, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for i, layer in enumerate(self.layers):
            x = layer(x, kv_cache, i)
        x = self.norm(x)  # (batch, token, d_model)
        return x @ self.token_embedding.weight.T

    def decode_step(self, tokens, kv_cache):
        """Return the logits (batch, vocab) after the new tokens, and the cache."""
        logits = self(tokens, kv_cache)
        return logits[:, -1], kv_cache


refuse_odd_sizes(GPT)
