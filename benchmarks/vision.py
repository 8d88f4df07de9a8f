"""The Vision Transformer: its speed beside torchvision's, and how well it learns.

    python benchmarks/vision.py [--folder ../shared/data] [--only steps]

"steps" times a training step, the optimizer's included, of this book's Vision
Transformer and of torchvision's with the same weights. Both take turns within one run,
on one thread, so that whatever else the machine does hits both; the ratio is the median
over rounds. The rows go to vision_steps.csv.

"accuracy" trains models for equal times on real photographs of clothes. At one learning
rate: this book's Vision Transformer, the same with patches of 7 × 7 pixels in place of
4 × 4, and a convolutional network of about as many parameters. At half that rate: the
first again, and torchvision's of the same size. The clock is the process's CPU time,
and the learning rate follows it, so that a busy machine changes little; how many images
were seen stands in each row. The folder holds the four files, unpacked, in
FashionMNIST/raw/; without it they are downloaded. The rows go to vision.csv.

A row is written when it is finished, and what has its row is not repeated, so that an
interrupted benchmark goes on.
"""

import argparse
import csv
import hashlib
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F
import torchvision
from records import Clock, append, provenance, read_done
from torch import nn
from torchvision.models.vision_transformer import VisionTransformer as Torchvisions

from tutorial_lib.data import ImageBatches, load_images
from tutorial_lib.notebook import progress_bar
from tutorial_lib.pretrained import from_torchvision
from tutorial_lib.training import fit, warmup_cosine
from tutorial_lib.vit import VisionTransformer

SIZES = ("image_size", "patch_size", "classes", "d_model", "blocks", "heads", "d_ff")
CASES = [  # sizes as above, channels, images in a batch
    ((8, 2, 10, 64, 2, 4, 128), 1, 64),
    ((28, 4, 10, 64, 2, 4, 128), 1, 64),
    ((224, 16, 1000, 192, 12, 3, 768), 3, 4),
]
CLOTHES = (28, 4, 10, 64, 2, 4, 128)
LARGE_PATCHES = (28, 7, 10, 64, 2, 4, 128)
RUNS = (  # model, learning rate
    ("tutorial_lib", 0.004),
    ("tutorial_lib, patches of 7", 0.004),
    ("convolutions", 0.004),
    ("tutorial_lib", 0.002),
    ("torchvision", 0.002),
)
BATCH = 64
REACH = 2  # pixels by which an image is shifted at most


class ConvolutionalNetwork(nn.Sequential):
    """Three convolutions, each normalized, the first two followed by pooling."""

    def __init__(self, classes, *, channels=1):
        layers = []
        for before, after in ((channels, 32), (32, 64), (64, 64)):
            layers += [
                nn.Conv2d(before, after, 3, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        layers[-1] = nn.AdaptiveAvgPool2d(1)
        super().__init__(*layers, nn.Flatten(), nn.Linear(64, classes))


def make_torchvisions(sizes, channels):
    """Make torchvision's model, which is always for 3 channels, for so many."""
    image_size, patch_size, classes, d_model, num_layers, num_heads, mlp_dim = sizes
    model = Torchvisions(
        image_size,
        patch_size,
        num_layers,
        num_heads,
        d_model,
        mlp_dim,
        num_classes=classes,
    )
    if channels != 3:
        model.conv_proj = nn.Conv2d(channels, d_model, patch_size, stride=patch_size)
        inputs = channels * patch_size**2
        nn.init.trunc_normal_(model.conv_proj.weight, std=inputs**-0.5)  # as theirs
        nn.init.zeros_(model.conv_proj.bias)
    return model


def make_step(model, images, labels):
    """Close over one step of training."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-6, fused=True)

    def step():
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def seconds_of(call, repeats):
    clock = Clock()
    for _ in range(repeats):
        call()
    return clock.seconds() / repeats


def interleave(calls, seconds):
    """Let the calls take turns for about ``seconds``; return a list of times each."""
    once = {name: seconds_of(call, 2) for name, call in calls.items()}
    repeats = {name: max(1, round(0.05 / t)) for name, t in once.items()}
    a_round = sum(once[name] * repeats[name] for name in calls)
    times = {name: [] for name in calls}
    for i in range(max(9, int(seconds / a_round))):
        names = list(calls)[:: 1 if i % 2 else -1]  # nobody is always the first
        for name in names:
            times[name].append(seconds_of(calls[name], repeats[name]))
    return times


def time_steps(sizes, channels, batch, seconds):
    """Yield a row for each of two models of the same sizes and weights."""
    torch.manual_seed(0)
    images = torch.rand(batch, channels, sizes[0], sizes[0])
    labels = torch.randint(sizes[2], (batch,))
    theirs = make_torchvisions(sizes, channels)
    ours = from_torchvision(theirs).train()
    models = {"tutorial_lib": ours, "torchvision": theirs}
    torch.testing.assert_close(*(model(images) for model in models.values()))
    calls = {name: make_step(model, images, labels) for name, model in models.items()}
    times = interleave(calls, seconds)
    for name in models:
        pairs = zip(times[name], times["torchvision"], strict=True)
        yield {
            **dict(zip(SIZES, sizes, strict=True)),
            "channels": channels,
            "batch": batch,
            "contender": name,
            "milliseconds": f"{1000 * statistics.median(times[name]):.2f}",
            "time_ratio": f"{statistics.median(one / its for one, its in pairs):.3f}",
            "rounds": len(times[name]),
            **provenance(torchvision),
        }


def make_model(name):
    if name == "convolutions":
        return ConvolutionalNetwork(CLOTHES[2])
    if name == "torchvision":
        return make_torchvisions(CLOTHES, 1)
    sizes = CLOTHES if name == "tutorial_lib" else LARGE_PATCHES
    image_size, patch_size, classes, d_model, num_layers, num_heads, d_ff = sizes
    return VisionTransformer(
        d_model,
        num_heads,
        num_layers,
        d_ff=d_ff,
        image_size=image_size,
        patch_size=patch_size,
        num_classes=classes,
    )


def vary(images):
    """Shift images (batch, 1, height, width) a little, and mirror half of them."""
    count, _, height, width = images.shape
    padded = F.pad(images[:, 0], (REACH,) * 4)
    down, right = torch.randint(2 * REACH + 1, (2, count, 1))
    rows, columns = down + torch.arange(height), right + torch.arange(width)
    columns = columns.where(torch.rand(count, 1) < 0.5, columns.flip(1))
    pixels = torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None]
    return padded[pixels].unsqueeze(1)


def train_for(seconds, model, data, rate, seed):
    """Train until the CPU time is spent, the learning rate following the clock."""
    batches = ImageBatches(data.train, batch_size=BATCH, seed=seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), rate, weight_decay=0.05, fused=True
    )
    factor = warmup_cosine(100, 1000)  # a tenth of the time, in thousandths of it
    clock = Clock()  # last, because torch's first optimizer takes seconds to import
    seen = 0

    def until_spent():
        nonlocal seen
        epoch = 0
        while True:
            batches.set_epoch(epoch)
            for images, labels in batches:
                if clock.seconds() >= seconds:
                    return
                seen += len(labels)
                yield vary(images), labels
            epoch += 1

    history = fit(
        model,
        until_spent(),
        lambda model, batch: F.cross_entropy(
            model(batch[0]), batch[1], label_smoothing=0.1
        ),
        optimizer=optimizer,
        epochs=1,  # of that stream, which holds several of the data
        schedule=lambda step: factor(1000 * clock.seconds() / seconds),
        seed=seed,
    )
    return history, seen, clock.seconds()


def standardize(data):
    """Shift and scale all pixels so that those to learn from have mean 0, deviation 1.

    Works in place; ``data`` was loaded for this.
    """
    mean, deviation = data.train.images.mean(), data.train.images.std()
    for part in (data.train, data.test):
        part.images.sub_(mean).div_(deviation)


@torch.no_grad()
def predict(model, images):
    return torch.cat([model(some).argmax(dim=1) for some in images.split(100)])


def accuracy(model, part):
    return f"{(predict(model, part.images) == part.labels).float().mean().item():.4f}"


def measure(name, rate, seed, seconds, folder):
    """Train one model, and return its row."""
    data = load_images("fashion_mnist", folder=folder, seed=seed)
    about = provenance(torchvision) | {"data_sha256": fingerprint(data)}
    standardize(data)
    torch.manual_seed(seed)
    model = make_model(name)
    history, seen, spent = train_for(seconds, model, data, rate, seed)
    images = data.test.images
    once = [seconds_of(lambda: predict(model, images), 1) for _ in range(5)]
    return {
        "data": "fashion_mnist",
        "model": name,
        "learning_rate": rate,
        "seed": seed,
        "cpu_seconds": f"{spent:.1f}",
        "steps": len(history.losses),
        "epochs": f"{seen / len(data.train.labels):.1f}",
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "training_images": len(data.train.labels),
        "test_images": len(data.test.labels),
        "accuracy": accuracy(model, data.test),
        "accuracy_training": accuracy(model, data.train),
        "images_per_second_training": f"{seen / spent:.0f}",
        "images_per_second": f"{len(images) / statistics.median(once):.0f}",
        **about,
    }


def fingerprint(data):
    numbers = [part.images.numpy().tobytes() for part in (data.train, data.test)]
    return hashlib.sha256(b"".join(numbers)).hexdigest()[:16]


def run_steps(path, seconds):
    with progress_bar(len(CASES), unit="case") as bar:
        for sizes, channels, batch in CASES:
            if tuple(map(str, sizes)) not in read_done(path, SIZES):
                for row in list(time_steps(sizes, channels, batch, seconds)):
                    append(path, row)
            bar.update()
    with path.open(newline="", encoding="utf-8") as file:
        worst = max(float(row["time_ratio"]) for row in csv.DictReader(file))
    print(f"worst time_ratio of tutorial_lib to torchvision: {worst:.3f}")


def run_accuracy(path, seeds, seconds, folder):
    runs = [(seed, *run) for seed in range(seeds) for run in RUNS]
    with progress_bar(len(runs), unit="run") as bar:
        for seed, name, rate in runs:
            done = read_done(path, ("seed", "model", "learning_rate"))
            if (str(seed), name, str(rate)) not in done:
                append(path, measure(name, rate, seed, seconds, folder))
            bar.update()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--only", choices=("steps", "accuracy"))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each model")
    parser.add_argument("--seconds", type=float, default=96, help="for each training")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.only != "accuracy":
        run_steps(options.out.with_stem(f"{options.out.stem}_steps"), options.seconds)
    if options.only != "steps":
        run_accuracy(options.out, options.seeds, options.seconds, options.folder)


if __name__ == "__main__":
    main()
