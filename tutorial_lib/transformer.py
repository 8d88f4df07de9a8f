"""The Transformer: layers of attention and feed-forward networks, and the translator.

Vaswani et al. (2017), with the norm before or after each sub-layer. Every layer adds
what it computes to a residual stream of tokens (batch, token, d_model): the encoder's
tokens attend to each other, the decoder's to those before them and to the encoder's.

Training on a whole target and decoding it token by token are the same code: with a
`KVCache` the decoder is given the newest tokens only.

This module knows no words, no losses, nor how the next token is chosen.
"""

from typing import NamedTuple

import torch
from torch import nn

from tutorial_lib.attention import KVCache, MultiHeadAttention
from tutorial_lib.masks import padding_mask
from tutorial_lib.position import SinusoidalEncoding


class FeedForward(nn.Module):
    """Give every token the same small network: Vaswani et al. (2017), equation 2.

    ``d_ff`` hidden units between two linear maps, ReLU or another ``activation``
    between them, for tokens (..., token, d_model). No token sees another.
    """

    def __init__(self, d_model, d_ff, *, activation=torch.relu, dropout=0.0):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x):
        """Compute on each token of ``x`` (..., token, d_model) by itself."""
        return self.W_2(self.dropout(self.activation(self.W_1(x))))


class EncoderLayer(nn.Module):
    """Let tokens attend to each other, then compute on each.

    Vaswani et al. (2017), figure 1, left. With ``norm_first`` each sub-layer reads
    normalized tokens (pre-norm: Xiong et al., 2020); without it the sum is normalized
    (post-norm, as in the paper). Sizes and errors as in MultiHeadAttention;
    ``activation`` is that of the feed-forward network.
    """

    def __init__(
        self,
        d_model,
        num_heads,
        d_ff,
        *,
        norm_first,
        activation=torch.relu,
        dropout=0.0,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout
        )
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None, *, causal=False):
        """Update ``x`` (batch, token, d_model); ``mask`` as in MultiHeadAttention."""
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout(self.attention(y, y, y, mask, causal=causal))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, x, x, mask, causal=causal)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """Let tokens attend to those before them, then to the source; compute on each.

    Vaswani et al. (2017), figure 1, right. Sizes and ``norm_first`` as in EncoderLayer.
    """

    def __init__(self, d_model, num_heads, d_ff, *, norm_first, dropout=0.0):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, memory, memory_mask=None, *, kv_cache=None):
        """Update the newest tokens ``x`` (batch, token, d_model).

        ``memory`` (batch, key, d_model) are the encoder's outputs, ``memory_mask`` is
        True where the source has a token; ``kv_cache`` holds the tokens before ``x``.
        """
        if kv_cache is not None and self.cross_attention in kv_cache:
            memory = None  # its keys and values are in the cache already
        to_source = {"mask": memory_mask, "kv_cache": kv_cache}
        before = {"causal": True, "kv_cache": kv_cache}
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout(self.attention(y, y, y, **before))
            y = self.norm2(x)
            x = x + self.dropout(self.cross_attention(y, memory, memory, **to_source))
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.attention(x, x, x, **before)))
        y = self.cross_attention(x, memory, memory, **to_source)
        x = self.norm2(x + self.dropout(y))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class Embeddings(nn.Module):
    """Turn token ids into vectors that know their position.

    Embeddings of ``vocab_size`` tokens are multiplied by √d_model and added to
    sinusoids: Vaswani et al. (2017), sections 3.4 and 3.5.
    """

    def __init__(self, vocab_size, d_model, *, max_tokens, dropout=0.0):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens, start=0):
        """Embed ``tokens`` (batch, token), the first one at position ``start``."""
        x = self.token_embedding(tokens) * self.token_embedding.embedding_dim**0.5
        return self.dropout(self.position_encoding(x, start))


class Encoder(nn.Module):
    """Turn a sentence into one vector per token, each informed by all the others.

    ``vocab_size`` tokens, sentences of up to ``max_tokens``; the other sizes are those
    of an EncoderLayer, of which there are ``num_layers``.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        d_ff,
        num_layers,
        *,
        max_tokens,
        norm_first,
        dropout=0.0,
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.embeddings = Embeddings(
            vocab_size, d_model, max_tokens=max_tokens, dropout=dropout
        )
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, source, lengths):
        """Encode ``source`` (batch, token), of which ``lengths`` (batch,) are tokens.

        Returns the memory (batch, token, d_model). Raises ValueError for a sentence of
        more than max_tokens.
        """
        mask = padding_mask(lengths, source.shape[1])
        x = self.embeddings(source)
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """Predict the next token from those before it and from the source.

    Sizes as in `Encoder`.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        d_ff,
        num_layers,
        *,
        max_tokens,
        norm_first,
        dropout=0.0,
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.embeddings = Embeddings(
            vocab_size, d_model, max_tokens=max_tokens, dropout=dropout
        )
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, tokens, memory, memory_mask=None, *, kv_cache=None):
        """Return the logits (batch, token, vocab) of what follows each token.

        ``tokens`` (batch, token) are the target so far, or with a ``kv_cache`` those
        after the ones it holds; it is then extended. ``memory`` and ``memory_mask`` are
        as in DecoderLayer. Raises ValueError beyond max_tokens.
        """
        x = self.embeddings(tokens, start=kv_cache.length if kv_cache else 0)
        for layer in self.layers:
            x = layer(x, memory, memory_mask, kv_cache=kv_cache)
        return self.lm_head(self.norm(x))


class DecoderState(NamedTuple):
    """What a `Transformer` keeps between tokens; every first axis is the batch."""

    memory: torch.Tensor  # (batch, key, d_model), the encoder's outputs
    memory_mask: torch.Tensor  # (batch, 1, key), True where the source has a token
    kv_cache: KVCache


class Transformer(nn.Module):
    """An encoder and a decoder: Vaswani et al. (2017), figure 1.

    ``encoder`` and ``decoder`` are those of this module. With ``tied`` the decoder's
    input embeddings are its output embeddings, too: Press and Wolf (2017).
    """

    def __init__(self, encoder, decoder, *, tied=False):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.apply(initialize)
        if tied:
            decoder.lm_head.weight = decoder.embeddings.token_embedding.weight

    def forward(self, source, lengths, target):
        """Predict each next token of ``target`` from its true predecessors.

        ``source`` (batch, token) and its ``lengths`` (batch,), ``target``
        (batch, token) beginning with ``<bos>``: teacher forcing. Returns logits
        (batch, token, vocab), those at t being for target token t + 1.
        """
        memory = self.encoder(source, lengths)
        return self.decoder(target, memory, padding_mask(lengths, source.shape[1]))

    def encode(self, source, lengths):
        """Encode the source once; return the state from which `decode_step` begins."""
        mask = padding_mask(lengths, source.shape[1])
        return DecoderState(self.encoder(source, lengths), mask, KVCache())

    def decode_step(self, tokens, state):
        """Go on after ``tokens`` (batch, token), which are new since the state.

        Returns the logits (batch, vocab) of the next token, and the new state.
        """
        memory, mask, kv_cache = state
        return self.decoder(tokens, memory, mask, kv_cache=kv_cache)[:, -1], state


def initialize(module):
    """Give a module of a Transformer its first weights, for ``model.apply``.

    Xavier for linear maps, with biases 0; embeddings have deviation 1/√d_model.
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
