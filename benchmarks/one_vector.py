"""Learning curves over the training pairs: fixed-length context against attention.

    python benchmarks/one_vector.py [--only "fixed context"] [--pairs 6000] [--seed 1]
                                    [--learning_rate 0.01]

The models are those of chapters 5 and 6, with the same batches and the same number of
steps. One decodes from the fixed-length context vector alone, of 128 dimensions, the
other with additive attention. Two more help the first with little data: dropout, and
hidden states twice as large, so that the context vector has 256 dimensions. They are
trained on the first so many pairs of the small grammar and evaluated on the same 1,000
sentences, half of them with two clauses, that no training part has. Every run is a row
of one_vector.csv; a run that has its row is not repeated.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from records import Clock, append, provenance, read_done

from tutorial_lib.data import Batches, load_translation
from tutorial_lib.decoding import translate
from tutorial_lib.metrics import exact_match
from tutorial_lib.seq2seq import (
    AttentionDecoder,
    Decoder,
    Encoder,
    Seq2Seq,
    initialize,
)
from tutorial_lib.training import fit, token_losses, warmup_cosine

SIZE = 64  # pairs in a batch
SHORT, LONG = 658, 2632  # steps: 7 and 28 epochs of 6,000 pairs
RUNS = [  # training pairs and steps
    (6000, SHORT),
    (6000, LONG),
    (24000, LONG),
    (1500, LONG),
    (12000, LONG),
    (3000, LONG),
]
NAMES = (
    "fixed context",
    "attention",
    "fixed context, dropout",
    "fixed context 256",
    "fixed context 256, dropout",
)
KEY = "model", "pairs", "steps", "learning_rate", "seed"


def build(name, data):
    d_hidden = 128 if "256" in name else 64  # in each direction
    encoder = Encoder(len(data.source_vocabulary), 64, d_hidden)
    vocab_size = len(data.target_vocabulary)
    if name == "attention":
        decoder = AttentionDecoder(vocab_size, 64, d_hidden, 2 * d_hidden, 64)
    else:
        decoder = Decoder(vocab_size, 64, d_hidden, 2 * d_hidden)
    model = Seq2Seq(encoder, decoder).apply(initialize)
    if "dropout" in name:
        add_dropout(model)
    return model


def add_dropout(model, probability=0.2):
    """Drop parts of all embeddings and of what the last layer reads, in training."""

    def drop_output(module, inputs, output):
        return F.dropout(output, probability, module.training)

    def drop_input(module, inputs):
        return F.dropout(inputs[0], probability, module.training)

    model.encoder.embedding.register_forward_hook(drop_output)
    model.decoder.embedding.register_forward_hook(drop_output)
    model.decoder.out.register_forward_pre_hook(drop_input)


def train(name, data, pairs, steps, learning_rate, seed):
    torch.manual_seed(seed)
    model = build(name, data)
    batches = Batches(
        data.train[:pairs],
        data.source_vocabulary,
        data.target_vocabulary,
        batch_size=SIZE,
        seed=seed,
    )
    history = fit(
        model,
        batches,
        token_losses,
        optimizer=torch.optim.AdamW(model.parameters(), lr=learning_rate),
        schedule=warmup_cosine(50, steps),
        steps=steps,
        seed=seed,
    )
    return model, sum(history.losses[-90:]) / 90


def evaluate(model, data, pairs):
    """Return the exact match of sentences with one clause, and with two."""
    matches = []
    for clauses in (1, 2):
        chosen = [pair for pair in pairs if pair.clauses == clauses]
        outputs = translate(model, [pair.source for pair in chosen], data)
        match = exact_match(outputs, [pair.target for pair in chosen])
        matches.append(f"{match:.3f}")
    return matches


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--pairs", type=int, help="only runs with so many")
    parser.add_argument("--learning_rate", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load_translation("grammar", train=24000, held_out=1000)
    parts = {"seen": data.train[:1000], "unseen": data.test}
    names = [options.only] if options.only else NAMES
    runs = [run for run in RUNS if options.pairs in (None, run[0])]
    for pairs, steps in runs:
        for name in names:
            run = name, pairs, steps, options.learning_rate, options.seed
            key = dict(zip(KEY, run, strict=True))
            if tuple(map(str, run)) in read_done(options.out, KEY):
                continue
            clock = Clock()
            model, loss = train(name, data, *run[1:])
            row = {"seconds": round(clock.seconds()), "loss": f"{loss:.4f}"}
            for part, pairs_of_part in parts.items():
                one, two = evaluate(model, data, pairs_of_part)
                row[f"{part}, 1 clause"] = one
                row[f"{part}, 2 clauses"] = two
            append(options.out, key | row | provenance())


if __name__ == "__main__":
    main()
