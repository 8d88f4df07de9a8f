"""Sequence to sequence: a recurrent encoder and two decoders.

The encoder reads the source sentence in both directions. `Decoder` gets one context
vector of it, the same at every step; `AttentionDecoder` attends to all of the encoder's
outputs anew for every token.

A decoder works from a state: `init_state` makes it, and each call returns the logits
and the state after the tokens it was given. So one call with the whole target (teacher
forcing) and one call per token (decoding) are the same code.

Nothing here knows words, losses or how the next token is chosen.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tutorial_lib.attention import AdditiveAttention
from tutorial_lib.masks import padding_mask


class Encoder(nn.Module):
    """Read a sentence in both directions: Bahdanau et al. (2015), section 3.2.

    Embeddings of ``vocab_size`` tokens in ``d_embedding`` dimensions go through a GRU
    with ``d_hidden`` hidden units in each direction. Padding is never read, so that a
    sentence gives the same in any batch.
    """

    def __init__(self, vocab_size, d_embedding, d_hidden, *, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.gru = nn.GRU(d_embedding, d_hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.apply(initialize)

    def forward(self, source, lengths):
        """Encode ``source`` (batch, token), of which ``lengths`` (batch,) are tokens.

        Returns the outputs (batch, token, 2 · d_hidden), the hidden states at every
        token and 0 on padding, and the context vector (batch, 2 · d_hidden): the last
        hidden state of each direction. Raises RuntimeError for a length of 0.
        """
        embedded = self.dropout(self.embedding(source))
        packed = pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.gru(packed)
        outputs, _ = pad_packed_sequence(
            outputs, batch_first=True, total_length=source.shape[1]
        )
        return self.dropout(outputs), torch.cat(last.unbind(0), dim=-1)


class ContextState(NamedTuple):
    """What `Decoder` keeps between tokens; every first axis is the batch."""

    hidden: torch.Tensor  # (batch, d_hidden)
    context: torch.Tensor  # (batch, d_encoder)


class Decoder(nn.Module):
    """Generate a sentence from one context vector: Cho et al. (2014), figure 1.

    ``vocab_size`` tokens in ``d_embedding`` dimensions, a GRU of ``d_hidden``;
    ``d_encoder`` is the size of the encoder's outputs, twice its d_hidden.
    """

    def __init__(self, vocab_size, d_embedding, d_hidden, d_encoder, *, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.init_hidden = nn.Linear(d_encoder, d_hidden)
        self.gru = nn.GRU(d_embedding + d_encoder, d_hidden, batch_first=True)
        self.readout = nn.Linear(d_hidden + d_encoder + d_embedding, d_embedding)
        self.out = nn.Linear(d_embedding, vocab_size)
        self.dropout = nn.Dropout(dropout)
        self.apply(initialize)

    def init_state(self, encoder_outputs, context, lengths):
        """Make the state before the first token: the context stays the same."""
        return ContextState(torch.tanh(self.init_hidden(context)), context)

    def forward(self, tokens, state):
        """Go on with ``tokens`` (batch, token), which are new since the ``state``.

        Returns the logits (batch, token, vocab) of what follows each of them, and the
        state after the last.
        """
        embedded = self.dropout(self.embedding(tokens))
        contexts = state.context.unsqueeze(1).expand(-1, tokens.shape[1], -1)
        steps, last = self.gru(torch.cat((embedded, contexts), -1), state.hidden[None])
        logits = self.predict(embedded, steps, contexts)
        return logits, state._replace(hidden=last[0])

    def predict(self, embedded, steps, contexts):
        """Turn last token, hidden state and context into logits (batch, token, vocab).

        Bahdanau et al. (2015), appendix A.2.2, with tanh in place of maxout.
        """
        hidden = torch.tanh(self.readout(torch.cat((steps, contexts, embedded), -1)))
        return self.out(self.dropout(hidden))


class AttentionState(NamedTuple):
    """What `AttentionDecoder` keeps between tokens; every first axis is the batch."""

    hidden: torch.Tensor  # (batch, d_hidden)
    encoder_outputs: torch.Tensor  # (batch, key, d_encoder)
    projected_keys: torch.Tensor  # (batch, key, d_attention)
    mask: torch.Tensor  # (batch, 1, key)


class AttentionDecoder(Decoder):
    """Generate a sentence, attending to the source anew for every token.

    The context of each token comes from the encoder's outputs by additive attention
    with ``d_attention`` hidden units; the query is the decoder's hidden state before
    that token. Bahdanau et al. (2015), section 3.1.
    """

    def __init__(
        self, vocab_size, d_embedding, d_hidden, d_encoder, d_attention, *, dropout=0.0
    ):
        super().__init__(vocab_size, d_embedding, d_hidden, d_encoder, dropout=dropout)
        self.attention = AdditiveAttention(d_hidden, d_encoder, d_attention)
        self.attention.apply(initialize)

    def init_state(self, encoder_outputs, context, lengths):
        """Make the state before the first token, the keys projected once for all."""
        hidden = torch.tanh(self.init_hidden(context))
        mask = padding_mask(lengths, encoder_outputs.shape[1])
        projected_keys = self.attention.W_K(encoder_outputs)
        return AttentionState(hidden, encoder_outputs, projected_keys, mask)

    def forward(self, tokens, state):
        """Go on as `Decoder` does, with a context for each token."""
        embedded = self.dropout(self.embedding(tokens))
        hidden, contexts, steps = state.hidden, [], []
        for token in embedded.split(1, dim=1):  # (batch, 1, d_embedding)
            context = self.attend(hidden, state)
            step, last = self.gru(torch.cat((token, context), -1), hidden[None])
            hidden = last[0]
            contexts.append(context)
            steps.append(step)
        logits = self.predict(embedded, torch.cat(steps, 1), torch.cat(contexts, 1))
        return logits, state._replace(hidden=hidden)

    def attend(self, hidden, state):
        """Return the context (batch, 1, d_encoder) for the hidden state as a query."""
        _, outputs, projected_keys, mask = state
        return self.attention.attend(hidden.unsqueeze(1), projected_keys, outputs, mask)


class Seq2Seq(nn.Module):
    """An encoder and a decoder: Sutskever et al. (2014), Cho et al. (2014)."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, source, lengths, target):
        """Predict each next token of ``target`` from its true predecessors.

        ``source`` (batch, token) and its ``lengths`` (batch,), ``target``
        (batch, token) beginning with ``<bos>``: teacher forcing. Returns logits
        (batch, token, vocab), those at t being for target token t + 1.
        """
        logits, _ = self.decoder(target, self.encode(source, lengths))
        return logits

    def encode(self, source, lengths):
        """Encode the source once; return the state from which `decode_step` begins."""
        outputs, context = self.encoder(source, lengths)
        return self.decoder.init_state(outputs, context, lengths)

    def decode_step(self, tokens, state):
        """Go on after ``tokens`` (batch, token), which are new since the state.

        Returns the logits (batch, vocab) of the next token, and the new state.
        """
        logits, state = self.decoder(tokens, state)
        return logits[:, -1], state


def initialize(module):
    """Give a module its first weights, for ``model.apply``.

    Embeddings are normal with deviation 0.3, linear maps Xavier with biases 0, and a
    GRU's maps from hidden state to hidden state orthogonal, gate by gate: Bahdanau et
    al. (2015), appendix B.1, in spirit, at sizes for small models.
    """
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.3)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.GRU):
        for from_input, from_hidden, *biases in module.all_weights:
            nn.init.xavier_uniform_(from_input)
            for gate in from_hidden.chunk(3):
                nn.init.orthogonal_(gate)
            for bias in biases:
                nn.init.zeros_(bias)
