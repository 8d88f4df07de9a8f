"""How many tokens in a second of CPU time a Transformer generates, cached and not.

    python benchmarks/decoding.py [--rounds 5] [--out benchmarks/decoding.csv]

Greedy decoding of 8 to 128 tokens (to 64 for 32 sentences at once) by one model of this
book, once with its KV cache and once recomputing all tokens for each, and by
``torch.nn.Transformer`` with the same weights, which has no cache. All three must
generate the same tokens. They take turns within one run, on one thread, and the clock
is the process's CPU time, so that whatever else the machine does changes little; a
speed is the median over rounds.
"""

import argparse
import csv
import datetime
import platform
import statistics
import time
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from tutorial_lib.data.text import BOS
from tutorial_lib.decoding import greedy
from tutorial_lib.masks import causal_mask
from tutorial_lib.transformer import Decoder, Encoder, Transformer

VOCAB = 1000
D_MODEL = 256
NUM_HEADS = 4
D_FF = 1024
NUM_LAYERS = 2
LENGTHS = (8, 16, 32, 64, 128)  # tokens that are generated, and of the source
CASES = [(1, length) for length in LENGTHS] + [(32, length) for length in LENGTHS[:-1]]
NEVER = -1  # no token ends a sentence, so that all are equally long


class Recomputing(nn.Module):
    """Decodes by a model that is called with the whole target for every token."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def encode(self, source, lengths):
        return source, lengths, source[:, :0]

    def decode_step(self, tokens, state):
        source, lengths, target = state
        target = torch.cat((target, tokens), dim=1)
        return self.model(source, lengths, target)[:, -1], (source, lengths, target)


class Torch(nn.Module):
    """torch.nn.Transformer with the embeddings and weights of ``ours``."""

    def __init__(self, ours):
        super().__init__()
        self.ours = [ours]  # in a list: its weights are not this module's
        self.core = nn.Transformer(
            D_MODEL,
            NUM_HEADS,
            NUM_LAYERS,
            NUM_LAYERS,
            D_FF,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        for side in ("encoder", "decoder"):
            theirs = getattr(self.core, side)
            theirs.norm.load_state_dict(getattr(ours, side).norm.state_dict())
            pairs = zip(getattr(ours, side).layers, theirs.layers, strict=True)
            for layer, other in pairs:
                copy_layer(layer, other)

    def forward(self, source, lengths, target):
        (ours,) = self.ours
        outputs = self.core(
            ours.encoder.embeddings(source),
            ours.decoder.embeddings(target),
            tgt_mask=~causal_mask(target.shape[1]),
            tgt_is_causal=True,
        )
        return ours.decoder.lm_head(outputs)


def copy_layer(ours, theirs):
    """Give torch's layer the weights of ours."""
    norms = ["norm1", "norm2"]
    copy_attention(ours.attention, theirs.self_attn)
    if hasattr(ours, "cross_attention"):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms.append("norm3")
    theirs.linear1.load_state_dict(ours.feed_forward.W_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.W_2.state_dict())
    for norm in norms:
        getattr(theirs, norm).load_state_dict(getattr(ours, norm).state_dict())


@torch.no_grad()
def copy_attention(ours, theirs):
    three = (ours.W_Q, ours.W_K, ours.W_V)
    theirs.in_proj_weight.copy_(torch.cat([W.weight for W in three]))
    theirs.in_proj_bias.copy_(torch.cat([W.bias for W in three]))
    theirs.out_proj.load_state_dict(ours.W_O.state_dict())


def make_contenders():
    """Return the three ways of decoding by name; all hold the same weights."""
    torch.manual_seed(0)
    sizes = (VOCAB, D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS)
    options = {"max_tokens": max(LENGTHS), "norm_first": True}
    model = Transformer(Encoder(*sizes, **options), Decoder(*sizes, **options)).eval()
    return {
        "cached": model,
        "recomputed": Recomputing(model),
        "torch.nn.Transformer": Recomputing(Torch(model).eval()),
    }


def measure(contenders, batch, length, rounds):
    """Return the CPU seconds of each contender, a list over rounds."""
    source = torch.randint(0, VOCAB, (batch, length))
    lengths = torch.full((batch,), length)
    first = torch.full((batch, 1), BOS)
    seconds = {name: [] for name in contenders}
    generated = {}
    options = {"max_new_tokens": length, "eos": NEVER}
    for _ in range(rounds):
        for name, model in contenders.items():
            start = time.process_time()
            with torch.no_grad():
                state = model.encode(source, lengths)
            generated[name] = greedy(model, first, state, **options).tokens
            seconds[name].append(time.process_time() - start)
    if len({str(tokens) for tokens in generated.values()}) > 1:
        raise SystemExit(f"not the same tokens at batch {batch}, {length} tokens")
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    contenders = make_contenders()
    rows = []
    for batch, length in tqdm(CASES, unit="case"):
        seconds = measure(contenders, batch, length, options.rounds)
        for name, times in seconds.items():
            rows.append(
                {
                    "batch": batch,
                    "words": length,
                    "decoding": name,
                    "words_per_second": round(
                        batch * length / statistics.median(times)
                    ),
                    "rounds": options.rounds,
                    "machine": platform.processor() or platform.machine(),
                    "threads": torch.get_num_threads(),
                    "torch": torch.__version__,
                    "date": datetime.date.today().isoformat(),
                }
            )
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
