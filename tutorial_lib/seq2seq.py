"""Translating with recurrent networks: one encoder and two decoders.

The encoder reads the source sentence in both directions. `Decoder` gets one vector of
it, the same at every step; `AttentionDecoder` looks at all of it anew for every word.

A decoder works from a state: `start` makes it, and each call returns the logits and
the state after the words it was given. So one call with the whole target (teacher
forcing) and one call per word (decoding) are the same code.

Nothing here knows words, losses or how the next word is chosen.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tutorial_lib.attention import AdditiveAttention
from tutorial_lib.masks import length_mask


class Encoder(nn.Module):
    """Read a sentence in both directions: Bahdanau et al. (2015), section 3.2.

    ``vocab`` words of ``d_embedding`` numbers go through a GRU with ``d_hidden``
    numbers in each direction. Padding is never read, so that a sentence gives the same
    in any batch.
    """

    def __init__(self, vocab, d_embedding, d_hidden, *, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embedding)
        self.gru = nn.GRU(d_embedding, d_hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        initialize(self)

    def forward(self, source, lengths):
        """Encode ``source`` (batch, token), of which ``lengths`` (batch,) are words.

        Returns the memory (batch, token, 2 · d_hidden), one vector per word and 0 on
        padding, and the summary (batch, 2 · d_hidden): the last state of each
        direction. Raises RuntimeError for a length of 0.
        """
        words = self.dropout(self.embedding(source))
        packed = pack_padded_sequence(
            words, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        memory, last = self.gru(packed)
        memory, _ = pad_packed_sequence(
            memory, batch_first=True, total_length=source.shape[1]
        )
        return self.dropout(memory), torch.cat(last.unbind(0), dim=-1)


class FixedState(NamedTuple):
    """What `Decoder` keeps between words; every first axis is the batch."""

    hidden: torch.Tensor  # (batch, d_hidden)
    context: torch.Tensor  # (batch, d_memory)


class Decoder(nn.Module):
    """Write a sentence from one vector, the context c: Cho et al. (2014), figure 1.

    ``vocab`` words of ``d_embedding`` numbers, a GRU of ``d_hidden``; ``d_memory`` is
    the size of what the encoder returns, twice its d_hidden.
    """

    def __init__(self, vocab, d_embedding, d_hidden, d_memory, *, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_embedding)
        self.first = nn.Linear(d_memory, d_hidden)
        self.gru = nn.GRU(d_embedding + d_memory, d_hidden, batch_first=True)
        self.readout = nn.Linear(d_hidden + d_memory + d_embedding, d_embedding)
        self.vocab = nn.Linear(d_embedding, vocab)
        self.dropout = nn.Dropout(dropout)
        initialize(self)

    def start(self, memory, summary, lengths):
        """Make the state before the first word: the context is the summary."""
        return FixedState(torch.tanh(self.first(summary)), summary)

    def forward(self, tokens, state):
        """Continue with ``tokens`` (batch, token), the words already written.

        Returns the logits (batch, token, vocab) of the word after each of them, and
        the state after the last.
        """
        words = self.dropout(self.embedding(tokens))
        context = state.context.unsqueeze(1).expand(-1, tokens.shape[1], -1)
        steps, last = self.gru(torch.cat((words, context), -1), state.hidden[None])
        return self.predict(words, steps, context), state._replace(hidden=last[0])

    def predict(self, words, steps, context):
        """Turn last word, decoder state and context into logits (batch, token, vocab).

        Bahdanau et al. (2015), appendix A.2.2, with tanh in place of maxout.
        """
        hidden = torch.tanh(self.readout(torch.cat((steps, context, words), -1)))
        return self.vocab(self.dropout(hidden))


class AttentionState(NamedTuple):
    """What `AttentionDecoder` keeps between words; every first axis is the batch."""

    hidden: torch.Tensor  # (batch, d_hidden)
    memory: torch.Tensor  # (batch, key, d_memory)
    projected_keys: torch.Tensor  # (batch, key, d_attention)
    mask: torch.Tensor  # (batch, 1, key)


class AttentionDecoder(Decoder):
    """Write a sentence, looking at the source anew for every word.

    The context of each word is read from the memory by additive attention with
    ``d_attention`` neurons; the query is the decoder's state before that word.
    Bahdanau et al. (2015), section 3.1.
    """

    def __init__(
        self, vocab, d_embedding, d_hidden, d_memory, d_attention, *, dropout=0.0
    ):
        super().__init__(vocab, d_embedding, d_hidden, d_memory, dropout=dropout)
        self.attention = AdditiveAttention(d_hidden, d_memory, d_attention)
        initialize(self.attention)

    def start(self, memory, summary, lengths):
        """Make the state before the first word, the keys projected once for all."""
        hidden = torch.tanh(self.first(summary))
        mask = length_mask(lengths, memory.shape[1])
        return AttentionState(hidden, memory, self.attention.W_K(memory), mask)

    def forward(self, tokens, state):
        """Continue as `Decoder` does; the contexts are read word by word."""
        words = self.dropout(self.embedding(tokens))
        hidden, contexts, steps = state.hidden, [], []
        for word in words.split(1, dim=1):  # (batch, 1, d_embedding)
            context = self.look(hidden, state)
            step, last = self.gru(torch.cat((word, context), -1), hidden[None])
            hidden = last[0]
            contexts.append(context)
            steps.append(step)
        logits = self.predict(words, torch.cat(steps, 1), torch.cat(contexts, 1))
        return logits, state._replace(hidden=hidden)

    def look(self, hidden, state):
        """Read the context (batch, 1, d_memory) that the state ``hidden`` asks for."""
        _, memory, projected_keys, mask = state
        return self.attention.read(hidden.unsqueeze(1), projected_keys, memory, mask)


class Seq2Seq(nn.Module):
    """An encoder and a decoder: Sutskever et al. (2014), Cho et al. (2014)."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

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
        memory, summary = self.encoder(source, lengths)
        return self.decoder.start(memory, summary, lengths)

    def step(self, tokens, state):
        """Write one word after ``tokens`` (batch,): logits (batch, vocab) and state."""
        logits, state = self.decoder(tokens.unsqueeze(1), state)
        return logits[:, -1], state


def initialize(module):
    """Give every weight its start: orthogonal from state to state, else Xavier.

    Embeddings are normal with deviation 0.3 and biases 0: Bahdanau et al. (2015),
    appendix B.1, in spirit, at sizes for small models.
    """
    for name, weight in module.named_parameters():
        if weight.ndim < 2:
            nn.init.zeros_(weight)
        elif "embedding" in name:
            nn.init.normal_(weight, std=0.3)
        elif "weight_hh" in name:
            for gate in weight.chunk(3):
                nn.init.orthogonal_(gate)
        else:
            nn.init.xavier_uniform_(weight)
