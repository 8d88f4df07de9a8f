"""Which look does the work: chapter 11's translator, trained with looks taken away.

    python benchmarks/silenced.py [--seeds 0 1] [--only "both"]

A silenced self-attention adds nothing from the first step to the last. Every model is
trained as in the chapter, but for what its name says, and judged on the sentences that
the chapter holds out. One is chapter 6's recurrent translator, trained in the same way.
Every run is a row of silenced.csv; a run that has its row is not repeated.
"""

import argparse
from pathlib import Path

import torch
from records import Clock, append, provenance, read_done
from torch import nn

from tutorial_lib import seq2seq
from tutorial_lib.data import load_translation
from tutorial_lib.decoding import translate
from tutorial_lib.metrics import exact_match
from tutorial_lib.training import fit, token_losses, warmup_cosine
from tutorial_lib.transformer import Decoder, Encoder, Transformer

RUNS = {
    "nothing": {},
    "the encoder's self-attention": {"silent": ("encoder",)},
    "the decoder's self-attention": {"silent": ("decoder",)},
    "both": {"silent": ("encoder", "decoder")},
    "both, and without places": {"silent": ("encoder", "decoder"), "places": False},
    "nothing, the norm first": {"norm_first": True},
    "nothing, dropout": {"dropout": 0.1},
    "nothing, 24 epochs": {"epochs": 24},
    "nothing, dropout, 24 epochs": {"dropout": 0.1, "epochs": 24},
    "nothing, but recurrent": {"recurrent": True},
    "nothing, but recurrent, 24 epochs": {"recurrent": True, "epochs": 24},
}
KEY = "without", "seed"


def build(data, *, silent=(), places=True, norm_first=False, dropout=0.0):
    sizes = 64, 4, 128, 1  # d_model, num_heads, d_ff, num_layers
    options = {"max_tokens": 256, "norm_first": norm_first, "dropout": dropout}
    encoder = Encoder(len(data.source_vocabulary), *sizes, **options)
    decoder = Decoder(len(data.target_vocabulary), *sizes, **options)
    model = Transformer(encoder, decoder, tied=True)
    for half in map(model.get_submodule, silent):
        for weight in half.layers[0].attention.W_O.parameters():
            nn.init.zeros_(weight).requires_grad_(False)
    if not places:
        for half in (encoder, decoder):
            half.embeddings.position_encoding = nn.Identity()
            half.embeddings.position_encoding.forward = lambda x, start=0: x
    return model


def build_recurrent(data):
    """Return chapter 6's translator."""
    encoder = seq2seq.Encoder(len(data.source_vocabulary), 64, 64)
    decoder = seq2seq.AttentionDecoder(len(data.target_vocabulary), 64, 64, 128, 64)
    return seq2seq.Seq2Seq(encoder, decoder)


def train(data, seed, *, epochs=8, recurrent=False, **options):
    torch.manual_seed(seed)
    model = build_recurrent(data) if recurrent else build(data, **options)
    batches = data.batches(batch_size=64, seed=seed)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=0.006, weight_decay=0.01)
    schedule = warmup_cosine(100, epochs * len(batches))
    plan = {"epochs": epochs, "schedule": schedule, "seed": seed, "progress": False}
    fit(model, batches, token_losses, optimizer=optimizer, **plan)
    return model


def judge(model, data):
    """Return the exact match of held-out sentences with one, two and three clauses."""
    for clauses in (1, 2, 3):
        pairs = [pair for pair in data.test if pair.clauses == clauses]
        sources, targets = zip(*((p.source, p.target) for p in pairs), strict=True)
        outputs = translate(model, sources, data, progress=False)
        yield f"{clauses} clauses", f"{exact_match(outputs, targets):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=RUNS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load_translation("grammar", train=6000, longer=(3,))
    for seed in options.seeds:
        for name in [options.only] if options.only else RUNS:
            key = dict(zip(KEY, (name, seed), strict=True))
            if tuple(map(str, key.values())) in read_done(options.out, KEY):
                continue
            clock = Clock()
            model = train(data, seed, **RUNS[name])
            row = key | {"seconds": round(clock.seconds())} | dict(judge(model, data))
            append(options.out, row | provenance())


if __name__ == "__main__":
    main()
