"""How long an epoch of translation takes, by the length of the sentences.

    python benchmarks/sentence_length.py

The recurrent translators of chapters 5 and 6 and the Transformer of chapter 11, with
the sizes of those chapters, are trained by teacher forcing. Attention in chapter 6
feeds the decoder's recurrence, so it takes one position after the other. Beside its
additive attention stands a cheaper one, with scaled dot products; both project the keys
of a batch once. A Transformer computes all positions at once. So does attention that is
not fed back, as in Luong et al. (2015) without input feeding: a GRU reads the target
first, and then all of its hidden states attend together. Its two GRUs have size 64, one
direction and no packing.

Sentences are random, and all of a batch have the same number of source and target
tokens: time depends neither on the words nor on what has been learned. After a warm-up
the models take turns, ROUNDS times, on one thread; the CPU seconds of a batch are those
of forward pass, backward pass and optimizer, and an epoch has BATCHES of them.

Rows go to sentence_length.csv. A row is written when it is finished, and what has its
row is not repeated.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from records import Clock, append, provenance, read_done
from torch import nn

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.masks import padding_mask
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq
from tutorial_lib.transformer import Transformer, TransformerDecoder, TransformerEncoder

ROWS = Path(__file__).with_suffix(".csv")
KEY = "model", "tokens", "round"
NAMES = (
    "no attention",
    "additive attention",
    "dot-product attention",
    "attention not fed back",
    "Transformer",
)
LENGTHS = 10, 20, 40, 80, 160
ROUNDS = 5
VOCAB_SIZE = 172
BATCH_SIZE = 64
BATCHES = 94  # of 6,000 pairs


class DotProductAttention(nn.Module):
    """Attend by scaled dot products where `AdditiveAttention` stands."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def attend(self, queries, projected_keys, values, mask):
        """Return the contexts (batch, query, d_v)."""
        queries = self.W_Q(queries)  # (batch, query, d_hidden)
        contexts, _ = scaled_dot_product_attention(
            queries, projected_keys, values, mask
        )
        return contexts


class ProjectsOnce(nn.Module):
    """Project the keys of a batch once, and not at every step of the decoder."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention
        self.keys = None

    def forward(self, queries, keys, values, mask):
        """Return the contexts (batch, query, d_v)."""
        if keys is not self.keys:
            self.keys = keys
            self.projected_keys = self.attention.W_K(keys)
        return self.attention.attend(queries, self.projected_keys, values, mask)


class NotFedBack(nn.Module):
    """A GRU for each language, and attention after both: Luong et al. (2015)."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.source_embedding = nn.Embedding(vocab_size, d_model)
        self.target_embedding = nn.Embedding(vocab_size, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.readout = nn.Linear(2 * d_model, d_model)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, source, lengths, tokens):
        """Predict what follows each token of the target (teacher forcing)."""
        encoder_outputs, last = self.encoder(self.source_embedding(source))
        hidden_states, _ = self.decoder(self.target_embedding(tokens), last)
        mask = padding_mask(lengths, source.shape[1])  # (batch, 1, key)
        keys = self.W_K(encoder_outputs)
        contexts, _ = scaled_dot_product_attention(  # of all target tokens at once
            hidden_states, keys, encoder_outputs, mask
        )
        features = torch.cat([hidden_states, contexts], dim=-1)
        return self.out(torch.tanh(self.readout(features)))


def build(name):
    torch.manual_seed(0)
    if name == "attention not fed back":
        return NotFedBack(VOCAB_SIZE, 64)
    if name == "Transformer":
        sizes = {"d_model": 64, "num_heads": 4, "num_layers": 1}
        sizes["d_ff"] = 128
        sizes["max_tokens"] = max(LENGTHS)
        encoder = TransformerEncoder(VOCAB_SIZE, **sizes)
        return Transformer(encoder, TransformerDecoder(VOCAB_SIZE, **sizes))
    encoder = Encoder(VOCAB_SIZE, 64, 64)
    if name == "no attention":
        return Seq2Seq(encoder, Decoder(VOCAB_SIZE, 64, 64, 128))
    decoder = AttentionDecoder(VOCAB_SIZE, 64, 64, 128, 64)
    if name == "dot-product attention":
        decoder.attention = DotProductAttention(64, 128, 64)
    decoder.attention = ProjectsOnce(decoder.attention)
    return Seq2Seq(encoder, decoder)


def seconds_of_batch(model, optimizer, length):
    """Return the CPU seconds of one step of training."""
    source = torch.randint(VOCAB_SIZE, (BATCH_SIZE, length))
    lengths = torch.full((BATCH_SIZE,), length)
    target = torch.randint(VOCAB_SIZE, (BATCH_SIZE, length + 1))
    clock = Clock()
    logits = model(source, lengths, target[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return clock.seconds()


def main():
    torch.set_num_threads(1)
    models = {name: build(name) for name in NAMES}
    optimizers = {}
    for name, model in models.items():
        optimizers[name] = torch.optim.AdamW(model.parameters(), lr=0.001, fused=True)
    for length in LENGTHS:
        for name, model in models.items():
            seconds_of_batch(model, optimizers[name], length)  # warm-up
        for number in range(ROUNDS):
            for name, model in models.items():
                key = name, str(length), str(number)
                if key in read_done(ROWS, KEY):
                    continue
                seconds = seconds_of_batch(model, optimizers[name], length)
                row = dict(zip(KEY, key, strict=True))
                row["batch_seconds"] = f"{seconds:.4f}"
                row["epoch_seconds"] = f"{BATCHES * seconds:.2f}"
                append(ROWS, row | provenance())


if __name__ == "__main__":
    main()
