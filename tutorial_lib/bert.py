"""BERT: a Transformer's encoder alone, whose hidden states are used for other tasks.

`tutorial_lib.pretrained.minilm` loads one that was published.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.masks import padding_mask
from tutorial_lib.sizes import refuse_odd_sizes
from tutorial_lib.transformer import EncoderLayer


class Bert(nn.Module):
    """Turn a text into one vector per token: Devlin et al. (2019).

    Learned position embeddings, GELU, and the norm after each sub-layer. A text may
    consist of two segments in BERT; here all tokens belong to the first.
    """

    def __init__(self, vocab_size, d_model, num_heads, num_layers, *, d_ff, max_tokens):
        super().__init__()
        self.max_tokens = max_tokens
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        self.segment_embedding = nn.Embedding(2, d_model)
        self.norm = nn.LayerNorm(d_model)
        layers = [
            EncoderLayer(d_model, num_heads, d_ff, activation=F.gelu)
            for _ in range(num_layers)
        ]
        self.layers = nn.ModuleList(layers)

    def forward(self, tokens, lengths):
        """Return the last layer's hidden states: (batch, token, d_model).

        ``tokens`` (batch, token) are padded beyond their ``lengths`` (batch).
        """
        mask = padding_mask(lengths, tokens.shape[1])  # (batch, 1, key)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def embed(self, tokens):
        """Return what enters the first layer: (batch, token, d_model)."""
        num_tokens = tokens.shape[1]
        if num_tokens > self.max_tokens:
            raise ValueError(
                f"{num_tokens} tokens are more than max_tokens={self.max_tokens}"
            )
        positions = torch.arange(num_tokens, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        x = x + self.segment_embedding.weight[0]
        return self.norm(x)


refuse_odd_sizes(Bert)
