"""Sequence to sequence: a recurrent encoder and two decoders.

The encoder reads the source sentence in both directions. `Decoder` gets one context
vector of it, the same at every step; `AttentionDecoder` attends to all of the encoder's
outputs anew for every token.

A decoder works from a state: `init_state` makes it, and each call returns the logits
and the state after the tokens it was given. So one call with the whole target (teacher
forcing) and one call per token (decoding) are the same code.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tutorial_lib.attention import AdditiveAttention
from tutorial_lib.masks import padding_mask


class Encoder(nn.Module):
    """Read a sentence with a GRU: Bahdanau et al. (2015), section 3.2."""

    def __init__(self, vocab_size, d_embedding, d_hidden, *, bidirectional=True):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.gru = nn.GRU(
            d_embedding, d_hidden, batch_first=True, bidirectional=bidirectional
        )

    def forward(self, source, lengths):
        """Return the hidden states of all tokens, and the last of each direction.

        ``source`` is (batch, token), of which ``lengths`` (batch,) are no padding.
        """
        embedded = self.embedding(source)  # (batch, token, d_embedding)
        packed = pack_padded_sequence(  # so that no GRU reads padding
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.gru(packed)  # last: (direction, batch, d_hidden)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        context = torch.cat(list(last), dim=-1)  # (batch, d_encoder)
        return outputs, context  # outputs: (batch, token, d_encoder)


class Decoder(nn.Module):
    """Generate a sentence from one context vector: Cho et al. (2014b), figure 1."""

    def __init__(self, vocab_size, d_embedding, d_hidden, d_encoder):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.init_hidden = nn.Linear(d_encoder, d_hidden)
        self.gru = nn.GRU(d_embedding + d_encoder, d_hidden, batch_first=True)
        self.readout = nn.Linear(d_hidden + d_encoder + d_embedding, d_embedding)
        self.out = nn.Linear(d_embedding, vocab_size)

    def init_state(self, encoder_outputs, context, lengths):
        """Return the state before the first token; only the context is used."""
        hidden = torch.tanh(self.init_hidden(context))  # (batch, d_hidden)
        return hidden, context

    def forward(self, tokens, state):
        """Return the logits of what follows each token, and the state after the last.

        ``tokens`` (batch, token) are those that are new since the state.
        """
        hidden, context = state
        embedded = self.embedding(tokens)  # (batch, token, d_embedding)
        contexts = context.unsqueeze(1).expand(-1, tokens.shape[1], -1)
        gru_input = torch.cat([embedded, contexts], dim=-1)
        hidden_states, last = self.gru(gru_input, hidden.unsqueeze(0))
        features = torch.cat([hidden_states, contexts, embedded], dim=-1)
        features = torch.tanh(self.readout(features))  # (batch, token, d_embedding)
        return self.out(features), (last.squeeze(0), context)


class AttentionDecoder(nn.Module):
    """Generate a sentence, attending to the source anew for every token.

    The query is the hidden state before the token. Bahdanau et al. (2015), section 3.1.
    """

    def __init__(self, vocab_size, d_embedding, d_hidden, d_encoder, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embedding)
        self.init_hidden = nn.Linear(d_encoder, d_hidden)
        self.attention = AdditiveAttention(d_hidden, d_encoder, d_attention)
        self.gru = nn.GRU(d_embedding + d_encoder, d_hidden, batch_first=True)
        self.readout = nn.Linear(d_hidden + d_encoder + d_embedding, d_embedding)
        self.out = nn.Linear(d_embedding, vocab_size)

    def init_state(self, encoder_outputs, context, lengths):
        """Return the state before the first token, with all encoder outputs in it."""
        hidden = torch.tanh(self.init_hidden(context))  # (batch, d_hidden)
        mask = padding_mask(lengths, encoder_outputs.shape[1])  # (batch, 1, key)
        return hidden, encoder_outputs, mask

    def forward(self, tokens, state):
        """Return logits and state as `Decoder` does, with a context for each token."""
        hidden, encoder_outputs, mask = state
        embedded = self.embedding(tokens)  # (batch, token, d_embedding)
        steps = []
        for token in embedded.split(1, dim=1):  # (batch, 1, d_embedding)
            query = hidden.unsqueeze(1)  # (batch, 1, d_hidden)
            context = self.attention(query, encoder_outputs, encoder_outputs, mask)
            gru_input = torch.cat([token, context], dim=-1)
            output, last = self.gru(gru_input, hidden.unsqueeze(0))
            hidden = last.squeeze(0)
            steps.append(torch.cat([output, context, token], dim=-1))
        features = torch.tanh(self.readout(torch.cat(steps, dim=1)))
        return self.out(features), (hidden, encoder_outputs, mask)


class Seq2Seq(nn.Module):
    """An encoder and a decoder: Sutskever et al. (2014), Cho et al. (2014b)."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, source, lengths, tokens):
        """Predict what follows each token of the target (teacher forcing)."""
        state = self.encode(source, lengths)
        logits, _ = self.decoder(tokens, state)
        return logits  # (batch, token, vocab)

    def encode(self, source, lengths):
        """Return the state before the first token."""
        encoder_outputs, context = self.encoder(source, lengths)
        return self.decoder.init_state(encoder_outputs, context, lengths)

    def decode_step(self, tokens, state):
        """Return the logits (batch, vocab) after the new tokens, and the new state."""
        logits, state = self.decoder(tokens, state)
        return logits[:, -1], state


def initialize(module):
    """Give a module its first weights, for ``model.apply``.

    Embeddings are normal with standard deviation 0.3, linear layers Xavier with biases
    0. A GRU's maps from hidden state to hidden state are orthogonal, gate by gate, as
    in Bahdanau et al. (2015), appendix B.1.
    """
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.3)
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.GRU):
        for name, weight in module.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(weight)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(weight)
            else:
                for gate in weight.chunk(3):
                    nn.init.orthogonal_(gate)
