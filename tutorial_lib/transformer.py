"""The Transformer: blocks of attention and feed-forward networks, and the translator.

`Block` has the norm before each sub-layer (pre-norm), as models have it today. Below it
is the Transformer of Vaswani et al. (2017), with the norm after each (post-norm).
"""

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.sizes import refuse_odd_sizes


class FeedForward(nn.Module):
    """Pass every token through the same two linear layers, with ReLU between them.

    Vaswani et al. (2017), equation 2. Later models have another ``activation``.
    """

    def __init__(self, d_model, d_ff, *, activation=torch.relu):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.activation = activation
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        """Compute on each token of ``x`` (batch, token, d_model) by itself."""
        hidden = self.activation(self.W_1(x))  # (batch, token, d_ff)
        return self.W_2(hidden)


class Block(nn.Module):
    """Let tokens attend to each other, then compute on each: Xiong et al. (2020)."""

    def __init__(self, d_model, num_heads, d_ff, *, activation=torch.relu):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)

    def forward(self, x, mask=None):
        """Update ``x`` (batch, token, d_model); ``mask`` as in MultiHeadAttention."""
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, mask)
        x = x + self.feed_forward(self.norm2(x))
        return x


class EncoderLayer(nn.Module):
    """Let tokens attend to each other, then compute on each.

    Vaswani et al. (2017), figure 1, left: the norm follows each sum.
    """

    def __init__(self, d_model, num_heads, d_ff, *, activation=torch.relu):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        """Update ``x`` (batch, token, d_model); ``mask`` as in MultiHeadAttention."""
        x = self.norm1(x + self.attention(x, x, x, mask))
        x = self.norm2(x + self.feed_forward(x))
        return x


class DecoderLayer(nn.Module):
    """Let tokens attend to those before them, then to the source; compute on each.

    Vaswani et al. (2017), figure 1, right.
    """

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, mask, encoder_outputs, source_mask=None):
        """Update ``x`` (batch, token, d_model); each mask is that of one attention."""
        x = self.norm1(x + self.attention(x, x, x, mask))
        attended = self.cross_attention(
            x, encoder_outputs, encoder_outputs, source_mask
        )  # (batch, token, d_model)
        x = self.norm2(x + attended)
        x = self.norm3(x + self.feed_forward(x))
        return x


class TransformerEncoder(nn.Module):
    """Turn a sentence into one vector per token, each informed by all the others."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, *, d_ff, max_tokens):
        super().__init__()
        self.scale = d_model**0.5
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.token_embedding.weight, std=d_model**-0.5)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        layers = [EncoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)

    def forward(self, source, lengths):
        """Encode ``source`` (batch, token) without its padding, beyond ``lengths``."""
        mask = padding_mask(lengths, source.shape[1])  # (batch, 1, key)
        x = self.token_embedding(source) * self.scale  # (batch, token, d_model)
        x = self.position_encoding(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class TransformerDecoder(nn.Module):
    """Predict the next token from those before it and from the source."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, *, d_ff, max_tokens):
        super().__init__()
        self.scale = d_model**0.5
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.token_embedding.weight, std=d_model**-0.5)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        layers = [DecoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)

    def forward(self, tokens, encoder_outputs, source_mask=None):
        """Return the logits (batch, token, vocab) of what follows each token."""
        mask = causal_mask(tokens.shape[1], tokens.device)  # (query, key)
        x = self.token_embedding(tokens) * self.scale  # (batch, token, d_model)
        x = self.position_encoding(x)
        for layer in self.layers:
            x = layer(x, mask, encoder_outputs, source_mask)
        return x @ self.token_embedding.weight.T  # input and output embeddings are tied


class Transformer(nn.Module):
    """An encoder and a decoder: Vaswani et al. (2017), figure 1."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, source, lengths, tokens):
        """Predict what follows each token of the target (teacher forcing)."""
        _, encoder_outputs, source_mask = self.encode(source, lengths)
        return self.decoder(tokens, encoder_outputs, source_mask)

    def encode(self, source, lengths):
        """Return the state before the first token: no tokens, and the source."""
        no_tokens = source[:, :0]  # (batch, 0)
        source_mask = padding_mask(lengths, source.shape[1])  # (batch, 1, key)
        return no_tokens, self.encoder(source, lengths), source_mask

    def decode_step(self, tokens, state):
        """Return the logits (batch, vocab) after the new tokens, and the new state."""
        previous_tokens, encoder_outputs, source_mask = state
        tokens = torch.cat([previous_tokens, tokens], dim=1)
        logits = self.decoder(tokens, encoder_outputs, source_mask)
        return logits[:, -1], (tokens, encoder_outputs, source_mask)


refuse_odd_sizes(Block, TransformerEncoder, TransformerDecoder)
