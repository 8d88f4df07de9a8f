"""The same two GPTs on a GPU, at the size of nanoGPT's example for one.

    python benchmarks/gpt_gpu.py [--folder ../shared/data] [--nanogpt path/to/model.py]

Six layers of six heads, 384 dimensions, contexts of 256 characters, 64 of them in a
batch, dropout 0.2, 5,000 steps in bfloat16, neither model compiled: that
example's settings for both (config/train_shakespeare_char.py). The validation text is
predicted after every 250 steps, and the test text with the weights that were best
there; a row of gpt_gpu.csv has these bits per character, and the time of the training
steps on the wall, which says little where others used the GPU, too.
"""

import argparse
import copy
import time
from pathlib import Path

import torch
from gpt import (
    Text,
    adamw,
    bits_per_character,
    load_nanogpt,
    loss_of,
    make,
)
from records import append, provenance, read_done

from tutorial_lib.training import fit, warmup_cosine

SIZES = {
    "d_model": 384,
    "num_heads": 6,
    "num_layers": 6,
    "context": 256,
    "dropout": 0.2,
}
VARIANTS = {"GPT": "first", "nanoGPT": "second"}  # as each is published
BATCH = 64
STEPS = 5000
EVERY = 250


def train(name, text, published, seed, steps):
    """Train one model, and return its row."""
    torch.manual_seed(seed)
    model = make(name, len(text.characters), published, variant=VARIANTS[name], **SIZES)
    model.cuda()
    optimizer = adamw(model, 0.001)
    bfloat16 = torch.autocast("cuda", dtype=torch.bfloat16)
    cosine = warmup_cosine(100, steps)
    generator = torch.Generator().manual_seed(seed)
    points = []
    watch = Watch()

    def batches():
        for step in range(steps + 1):
            if step % EVERY == 0:
                with watch, bfloat16:
                    bits = bits_per_character(name, model, text.valid, SIZES["context"])
                    points.append((bits, step, copy.deepcopy(model.state_dict())))
            if step < steps:
                yield text.batch(BATCH, SIZES["context"], generator)

    def loss(model, batch):
        with bfloat16:
            return loss_of(name)(model, batch)

    fit(
        model,
        batches(),
        loss,
        optimizer=optimizer,
        epochs=1,
        schedule=lambda step: 0.1 + 0.9 * cosine(step) if step > 100 else step / 100,
        seed=seed,
    )
    valid, step, weights = min(points, key=lambda point: point[0])
    model.load_state_dict(weights)
    with bfloat16:
        test = bits_per_character(name, model, text.test, SIZES["context"])
    row = {"contender": name, "seed": seed, "steps": steps}
    row.update(
        {"best_step": step, "bits_valid": f"{valid:.4f}", "bits_test": f"{test:.4f}"}
    )
    row.update(
        {"bits_valid_end": f"{points[-1][0]:.4f}", "seconds": f"{watch.seconds:.1f}"}
    )
    row["parameters"] = sum(weight.numel() for weight in model.parameters())
    return row | about()


class Watch:
    """The seconds on the wall since it was made, without those when it stood."""

    def __init__(self):
        self.start = now()
        self.seconds = 0.0

    def __enter__(self):
        self.seconds = now() - self.start

    def __exit__(self, *error):
        self.start = now() - self.seconds


def now():
    torch.cuda.synchronize()
    return time.perf_counter()


def about():
    return {"gpu": torch.cuda.get_device_name(), **provenance()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--nanogpt", type=Path, help="its model.py; else: download")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each model")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here: benchmarks/gpt.py runs on processors")
    text = Text(options.folder)
    published = load_nanogpt(options.nanogpt)
    for part in ("train", "valid", "test"):
        setattr(text, part, getattr(text, part).cuda())
    for seed in range(options.seeds):
        for name in VARIANTS:
            if (name, str(seed)) not in read_done(options.out, ("contender", "seed")):
                append(options.out, train(name, text, published, seed, options.steps))


if __name__ == "__main__":
    main()
