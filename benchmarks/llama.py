"""From GPT-2 to Llama, one change after the other: what each does in equal time.

    python benchmarks/llama.py [--folder ../shared/data]

Five models learn characters of Shakespeare, each for the same CPU time: GPT-2 as this
book builds it, then with RMSNorm and without biases, then with SwiGLU, then with rotary
encoding for the table of positions, and last, which makes it a Llama, with heads of
queries that share keys and values in pairs. Each is tried with the same five learning
rates for a shorter time, and then trained with its best, from three seeds. The
loss is that of the validation text, in nats per character; text, batches, optimizer and
schedule are those of gpt.py.

The rows of the search go to llama_search.csv, those of the trainings to llama.csv. A
row is written when it is finished, and what has its row is not repeated.
"""

import argparse
import csv
import math
from pathlib import Path

import torch
from gpt import CONTEXT, Text, bits_per_character, initialize, train_for
from records import append, provenance, read_done
from torch import nn

from tutorial_lib.gpt import GPT
from tutorial_lib.llama import GroupedQueryAttention, Llama, RMSNorm, SwiGLU

CHANGES = ("GPT-2", "RMSNorm, no biases", "SwiGLU", "RoPE", "GQA")
RATES = (0.0015, 0.003, 0.006, 0.012, 0.024)
D_MODEL = 96
NUM_HEADS = 4
NUM_KV_HEADS = 2
NUM_LAYERS = 4
D_FF = 4 * math.ceil(2 * D_MODEL / 3)  # of the SwiGLU
BYTES = 4  # of a float32
TRIAL = 27.5  # CPU seconds with each learning rate


def make(change, vocab_size):
    """Make a GPT with all changes up to this one."""
    if change == CHANGES[-1]:
        model = Llama(
            vocab_size,
            D_MODEL,
            NUM_HEADS,
            NUM_LAYERS,
            num_kv_heads=NUM_KV_HEADS,
            d_ff=D_FF,
        )
        return initialize(model)
    model = GPT(vocab_size, D_MODEL, NUM_HEADS, NUM_LAYERS, max_tokens=CONTEXT)
    initialize(model)
    number = CHANGES.index(change)
    if number >= 1:
        without_biases(model)
    if number >= 2:
        with_gates(model)
    if number >= 3:
        with_rotation(model)
    return model


def without_biases(model):
    """Exchange every norm, and take the biases away."""
    model.norm = RMSNorm(D_MODEL)
    for layer in model.layers:
        layer.norm1, layer.norm2 = RMSNorm(D_MODEL), RMSNorm(D_MODEL)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.bias = None


def with_gates(model):
    """Exchange every feed-forward network for a SwiGLU with as many weights."""
    for layer in model.layers:
        layer.feed_forward = SwiGLU(D_MODEL, D_FF)
        for name, weight in layer.feed_forward.named_parameters():
            adds = name == "W_down.weight"
            nn.init.normal_(weight, std=0.02 / (2 * NUM_LAYERS if adds else 1) ** 0.5)


def with_rotation(model):
    """Rotate queries and keys, and add zeros for the learned positions."""
    for layer in model.layers:
        ours = GroupedQueryAttention(D_MODEL, NUM_HEADS, NUM_HEADS)
        ours.load_state_dict(layer.attention.state_dict())
        layer.attention = ours
    nn.init.zeros_(model.position_embedding.weight).requires_grad_(False)


def measure(text, change, rate, seconds, seed):
    """Train one model; return how well it predicts, and what it took."""
    torch.manual_seed(seed)
    model = make(change, len(text.characters))
    settings = {"learning_rate": rate}
    steps, spent = train_for(seconds, "GPT", model, text, settings, seed)
    nats = bits_per_character("GPT", model, text.valid) * math.log(2)
    heads = NUM_KV_HEADS if change == CHANGES[-1] else NUM_HEADS
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    return {
        "nats_valid": f"{nats:.4f}",
        "steps": steps,
        "cpu_seconds": f"{spent:.1f}",
        "parameters": sum(weight.numel() for weight in learned),
        "cache_bytes_per_token": (
            2 * NUM_LAYERS * heads * (D_MODEL // NUM_HEADS) * BYTES
        ),
        **provenance(),
    }


def best_rate(path, change):
    """Return the learning rate that was best on the validation text."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["change"] == change]
    return float(min(rows, key=lambda row: float(row["nats_valid"]))["learning_rate"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each model")
    parser.add_argument("--seconds", type=float, default=60, help="for each training")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = Text(options.folder)
    search = options.out.with_stem(f"{options.out.stem}_search")
    for rate in RATES:
        for change in CHANGES:
            key = {"change": change, "learning_rate": rate}
            if (change, str(rate)) not in read_done(search, key):
                result = measure(text, change, rate, TRIAL, 0)
                append(search, key | result)
    for seed in range(options.seeds):
        for change in CHANGES:
            key = {"change": change, "seed": seed}
            if (change, str(seed)) not in read_done(options.out, key):
                rate = best_rate(search, change)
                result = measure(text, change, rate, options.seconds, seed)
                append(options.out, key | {"learning_rate": rate} | result)


if __name__ == "__main__":
    main()
