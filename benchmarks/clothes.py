"""Train the Vision Transformer of photographs of clothes that chapters 14 and 15 open.

    python benchmarks/clothes.py [--folder ../shared/data] [--seconds 1400]

A few thousand photographs are too few for a Vision Transformer alone, so it learns from
a convolutional network: Touvron et al. (2021). First the network is trained on the
labels, for an eighth of the time. Then the Vision Transformer is trained to predict the
network's probabilities, on images that are shifted, mirrored and mixed in pairs. The
learning rates were not searched for, and follow the clock, which is the process's CPU
time.

The folder holds the four files, unpacked, in FashionMNIST/raw/; without it they are
downloaded. What is written:

* tutorial_lib/weights/clothes.safetensors, the weights in 16 bits;
* tutorial_lib/data/clothes.safetensors, the first two test images of each class, which
  were chosen before any map of them was seen;
* clothes.csv, a row with the accuracy of these very weights, read back, on all test
  images.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
import torchvision
from records import Clock, append, provenance
from safetensors.torch import save_file
from torch import nn
from torchvision.transforms import Normalize
from vision import accuracy, fingerprint, vary

import tutorial_lib
from tutorial_lib.data import ImageBatches, load_images
from tutorial_lib.pretrained import clothes_vit
from tutorial_lib.training import fit, warmup_cosine
from tutorial_lib.vit import VisionTransformer

LIBRARY = Path(tutorial_lib.__file__).parent
WEIGHTS = LIBRARY / "weights" / "clothes.safetensors"
IMAGES = LIBRARY / "data" / "clothes.safetensors"
CLASSES = 10
IMAGES_A_CLASS = 2
BATCH = 64
TEACHER_SHARE = 1 / 8  # of the time
TEACHER_RATE = 0.004
RATE = 0.001
SHARPER = 2  # the teacher's logits are multiplied by this


class Teacher(nn.Sequential):
    """Four convolutions, each normalized, two of them followed by pooling."""

    def __init__(self, classes):
        layers = []
        for before, after, pooled in (
            (1, 32, True),
            (32, 64, False),
            (64, 64, True),
            (64, 128, False),
        ):
            layers.append(nn.Conv2d(before, after, 3, padding=1, bias=False))
            layers.append(nn.BatchNorm2d(after))
            layers.append(nn.ReLU())
            if pooled:
                layers.append(nn.MaxPool2d(2))
        layers.append(nn.AdaptiveAvgPool2d(1))
        layers.append(nn.Flatten())
        layers.append(nn.Dropout(0.2))
        layers.append(nn.Linear(128, classes))
        super().__init__(*layers)


def make_vit():
    return VisionTransformer(
        96, 6, 6, d_ff=192, image_size=28, patch_size=4, num_classes=CLASSES
    )


def label_loss(model, batch):
    images, labels = batch
    return F.cross_entropy(model(images), labels, label_smoothing=0.1)


class TeacherLoss:
    """How far a model's probabilities are from a teacher's, on pairs that are mixed."""

    def __init__(self, teacher):
        self.teacher = teacher.eval()
        self.share = torch.distributions.Beta(0.8, 0.8)

    def __call__(self, model, batch):
        images, _ = batch
        share = self.share.sample((len(images), 1, 1, 1))
        mixed = share * images + (1 - share) * images.flip(0)
        with torch.no_grad():
            probabilities = (SHARPER * self.teacher(mixed)).softmax(dim=-1)
        return F.cross_entropy(model(mixed), probabilities)


def train_for(seconds, model, part, loss, rate, standardize):
    """Train until the CPU time is spent; return the number of steps."""
    batches = ImageBatches(part, batch_size=BATCH)
    optimizer = torch.optim.AdamW(
        model.parameters(), rate, weight_decay=0.05, fused=True
    )
    factor = warmup_cosine(100, 1000)  # a tenth of the time, in thousandths of it
    clock = Clock()

    def varied_until_spent():
        epoch = 0
        while True:
            batches.set_epoch(epoch)
            for images, labels in batches:
                if clock.seconds() >= seconds:
                    return
                yield standardize(vary(images)), labels
            epoch += 1

    history = fit(
        model,
        varied_until_spent(),
        loss,
        optimizer=optimizer,
        epochs=1,  # of that stream, which holds many of the data
        schedule=lambda step: factor(1000 * clock.seconds() / seconds),
        seed=0,
    )
    return len(history.losses)


@torch.no_grad()
def read_raw_pixels(model, mean, deviation):
    """Change a model of standardized pixels so that it takes pixels in 0…1."""
    patch_embedding = model.patch_embedding
    sums = patch_embedding.weight.sum(dim=(1, 2, 3))  # (d_model,)
    patch_embedding.bias -= mean / deviation * sums
    patch_embedding.weight /= deviation


def choose_images(part):
    """Return the rows of the first images of each class, class by class."""
    rows = [
        (part.labels == label).nonzero()[:IMAGES_A_CLASS, 0] for label in range(CLASSES)
    ]
    return torch.cat(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="of the data; without it: download")
    parser.add_argument("--seconds", type=float, default=1400, help="of training")
    parser.add_argument("--out", default=Path(__file__).with_suffix(".csv"), type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = load_images("fashion_mnist", folder=options.folder)
    data_sha256 = fingerprint(data)
    chosen = choose_images(data.test)
    pixels = (255 * data.test.images[chosen]).round().to(torch.uint8)
    save_file({"images": pixels, "labels": data.test.labels[chosen]}, IMAGES)

    mean = data.train.images.mean()
    deviation = data.train.images.std()
    standardize = Normalize([mean], [deviation])
    clock = Clock()
    teacher = Teacher(CLASSES)
    seconds = TEACHER_SHARE * options.seconds
    train_for(seconds, teacher, data.train, label_loss, TEACHER_RATE, standardize)
    vit = make_vit()
    seconds = options.seconds - seconds
    loss = TeacherLoss(teacher)
    steps = train_for(seconds, vit, data.train, loss, RATE, standardize)
    spent = clock.seconds()
    read_raw_pixels(vit, mean, deviation)
    save_file(vit.half().state_dict(), WEIGHTS)

    vit = clothes_vit()
    standardized_test = data.test._replace(images=standardize(data.test.images))
    row = {
        "data": "fashion_mnist",
        "model": "tutorial_lib, distilled",
        "learning_rate": RATE,
        "cpu_seconds": f"{spent:.0f}",
        "steps": steps,
        "epochs": f"{steps * BATCH / len(data.train.labels):.0f}",
        "parameters": sum(weight.numel() for weight in vit.parameters()),
        "training_images": len(data.train.labels),
        "test_images": len(data.test.labels),
        "accuracy": accuracy(vit, data.test),
        "accuracy_training": accuracy(vit, data.train),
        "accuracy_teacher": accuracy(teacher, standardized_test),
        **provenance(torchvision),
        "data_sha256": data_sha256,
    }
    append(options.out, row)


if __name__ == "__main__":
    main()
