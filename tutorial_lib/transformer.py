"""The Transformer: blocks of attention and small networks, and the translator of them.

Vaswani et al. (2017), with the norm before or after each layer. Each block adds to a
stream of tokens (batch, token, d_model) what its tokens read and compute: the encoder's
look at each other, the decoder's at those before them and at the encoder's.

Writing word by word and reading the whole target at once are the same code: the decoder
works from a state that holds the keys and values of all earlier tokens, so that each is
projected once, and the number of tokens in it is where the next one stands.

This module knows no words, no losses, nor how the next word is chosen.
"""

from typing import NamedTuple

import torch
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask, length_mask
from tutorial_lib.position import SinusoidalEncoding


class PositionwiseFeedForward(nn.Module):
    """Give every token the same small network: Vaswani et al. (2017), equation 2.

    ``d_ff`` neurons between two linear maps, ReLU or another ``activation`` between
    them, for tokens (..., token, d_model). No token sees another.
    """

    def __init__(self, d_model, d_ff, *, activation=torch.relu, dropout=0.0):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x):
        """Compute on each token of ``x`` (..., token, d_model) by itself."""
        return self.W_2(self.dropout(self.activation(self.W_1(x))))


class Residual(nn.Module):
    """Add what a layer computes to the stream, and normalize: before it or after.

    With ``norm_first`` the layer reads normalized tokens, x + layer(norm(x)), as in
    Xiong et al. (2020); without it the sum is normalized, norm(x + layer(x)), as in
    Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, d_model, *, norm_first, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.norm_first = norm_first
        self.dropout = nn.Dropout(dropout)

    def before(self, x):
        """Return what the layer reads of the stream ``x``."""
        return self.norm(x) if self.norm_first else x

    def after(self, x, change):
        """Return the stream ``x`` with the layer's ``change`` added."""
        x = x + self.dropout(change)
        return x if self.norm_first else self.norm(x)


class EncoderBlock(nn.Module):
    """Let tokens look at each other, then compute on each: one block of the encoder.

    Vaswani et al. (2017), figure 1, left. Sizes and errors as in MultiHeadAttention;
    ``activation`` is that of the network.
    """

    def __init__(
        self, d_model, heads, d_ff, *, norm_first, activation=torch.relu, dropout=0.0
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = PositionwiseFeedForward(
            d_model, d_ff, activation=activation, dropout=dropout
        )
        self.residuals = nn.ModuleList(Residual(d_model, **options) for _ in range(2))

    def forward(self, x, mask=None, *, causal=False):
        """Update ``x`` (batch, token, d_model); ``mask`` as in MultiHeadAttention."""
        look, think = self.residuals
        y = look.before(x)
        x = look.after(x, self.attention(y, y, y, mask, causal=causal))
        return think.after(x, self.feed_forward(think.before(x)))


class DecoderBlock(nn.Module):
    """Let tokens look back, then at the source, then compute on each.

    Vaswani et al. (2017), figure 1, right. Sizes as in EncoderBlock.
    """

    def __init__(self, d_model, heads, d_ff, *, norm_first, dropout=0.0):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.cross_attention = MultiHeadAttention(d_model, heads, dropout=dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout=dropout)
        self.residuals = nn.ModuleList(Residual(d_model, **options) for _ in range(3))

    def forward(self, x, prefix, source, mask=None):
        """Update the tokens ``x`` (batch, token, d_model) that follow a prefix.

        ``prefix`` and ``source`` are keys and values (batch, head, key, d_k) of the
        tokens before ``x`` and of the encoder's; ``mask`` is for the latter. Returns
        ``x`` and the prefix with the new tokens in it.
        """
        look_back, look_across, think = self.residuals
        y = look_back.before(x)
        prefix, earlier = extend(prefix, self.attention.project(y, y))
        x = look_back.after(x, self.attention.read(y, *prefix, **earlier))
        y = look_across.before(x)
        x = look_across.after(x, self.cross_attention.read(y, *source, mask))
        return think.after(x, self.feed_forward(think.before(x))), prefix


def extend(prefix, new):
    """Append keys and values, and say which of them each new token may look at.

    Returns the joined keys and values, and the mask as keywords for
    ``MultiHeadAttention.read``.
    """
    before, added = prefix[0].shape[-2], new[0].shape[-2]
    if before == 0:
        return new, {"causal": True}
    joined = tuple(torch.cat(both, dim=-2) for both in zip(prefix, new, strict=True))
    return joined, {"mask": causal_mask(before + added, device=new[0].device)[before:]}


class Embedding(nn.Module):
    """Turn words into tokens that know their position.

    The vectors of ``vocab`` words are multiplied by √d_model and added to sinusoids:
    Vaswani et al. (2017), sections 3.4 and 3.5.
    """

    def __init__(self, vocab, d_model, *, max_tokens, dropout=0.0):
        super().__init__()
        self.words = nn.Embedding(vocab, d_model)
        self.position = SinusoidalEncoding(d_model, max_tokens)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words, start=0):
        """Embed ``words`` (batch, token), the first one at position ``start``."""
        x = self.words(words) * self.words.embedding_dim**0.5
        return self.dropout(self.position(x, start))


class Encoder(nn.Module):
    """Turn a sentence into one vector per word, each informed by all the others.

    ``vocab`` words, sentences of up to ``max_tokens``; the other sizes are those of the
    ``blocks``, of which there are so many.
    """

    def __init__(
        self,
        vocab,
        d_model,
        heads,
        d_ff,
        blocks,
        *,
        max_tokens,
        norm_first,
        dropout=0.0,
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.embedding = Embedding(
            vocab, d_model, max_tokens=max_tokens, dropout=dropout
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, heads, d_ff, **options) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, source, lengths):
        """Encode ``source`` (batch, token), of which ``lengths`` (batch,) are words.

        Returns the memory (batch, token, d_model). Raises ValueError for a sentence of
        more than max_tokens words.
        """
        mask = length_mask(lengths, source.shape[1])
        x = self.embedding(source)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


class DecoderState(NamedTuple):
    """What `Decoder` keeps between words; every first axis is the batch."""

    prefixes: tuple  # for each block, K and V (batch, head, key, d_k) of the tokens
    sources: tuple  # for each block, K and V of the encoder's memory
    mask: torch.Tensor  # (batch, 1, key), True where the source has a word


class Decoder(nn.Module):
    """Write a sentence, looking back at its own words and across at the source.

    Sizes as in `Encoder`.
    """

    def __init__(
        self,
        vocab,
        d_model,
        heads,
        d_ff,
        blocks,
        *,
        max_tokens,
        norm_first,
        dropout=0.0,
    ):
        super().__init__()
        options = {"norm_first": norm_first, "dropout": dropout}
        self.embedding = Embedding(
            vocab, d_model, max_tokens=max_tokens, dropout=dropout
        )
        self.blocks = nn.ModuleList(
            DecoderBlock(d_model, heads, d_ff, **options) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.vocab = nn.Linear(d_model, vocab)

    def start(self, memory, lengths):
        """Make the state before the first word: the memory projected once for all."""
        sources, prefixes = [], []
        for block in self.blocks:
            sources.append(block.cross_attention.project(memory, memory))
            prefixes.append(tuple(part[:, :, :0] for part in sources[-1]))
        mask = length_mask(lengths, memory.shape[1])
        return DecoderState(tuple(prefixes), tuple(sources), mask)

    def forward(self, tokens, state):
        """Continue with ``tokens`` (batch, token), the words already written.

        Returns the logits (batch, token, vocab) of the word after each of them, and
        the state after the last. Raises ValueError beyond max_tokens.
        """
        written = state.prefixes[0][0].shape[-2]
        x, prefixes = self.embedding(tokens, start=written), []
        for block, prefix, source in zip(self.blocks, *state[:2], strict=True):
            x, prefix = block(x, prefix, source, state.mask)
            prefixes.append(prefix)
        return self.vocab(self.norm(x)), state._replace(prefixes=tuple(prefixes))


class Transformer(nn.Module):
    """An encoder and a decoder: Vaswani et al. (2017), figure 1.

    ``encoder`` and ``decoder`` are those of this module. With ``tied`` the decoder
    reads and writes words by one table: Press and Wolf (2017).
    """

    def __init__(self, encoder, decoder, *, tied=False):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        if tied:
            decoder.vocab.weight = decoder.embedding.words.weight
        initialize(self)

    def forward(self, source, lengths, target):
        """Predict each next word of ``target`` from its true predecessors.

        ``source`` (batch, token) and its ``lengths`` (batch,), ``target``
        (batch, token) beginning with ``<bos>``: teacher forcing. Returns logits
        (batch, token, vocab), those at t being for target word t + 1.
        """
        logits, _ = self.decoder(target, self.start(source, lengths))
        return logits

    def start(self, source, lengths):
        """Read the source once; returns the state from which `step` begins."""
        return self.decoder.start(self.encoder(source, lengths), lengths)

    def step(self, tokens, state):
        """Write one word after ``tokens`` (batch,): logits (batch, vocab) and state."""
        logits, state = self.decoder(tokens.unsqueeze(1), state)
        return logits[:, -1], state


def initialize(module):
    """Give every weight its start: Xavier, embeddings of deviation 1/√d_model.

    Biases start at 0 and norms as they are.
    """
    for name, weight in module.named_parameters():
        if "norm" in name:
            continue
        if weight.ndim < 2:
            nn.init.zeros_(weight)
        elif "words" in name:
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        else:
            nn.init.xavier_uniform_(weight)
