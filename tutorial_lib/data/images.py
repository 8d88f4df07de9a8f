"""Images to recognize: handwritten digits, scenes made of them, and clothes.

``load_images`` gives all three one form, in a part to learn from and a part to be
judged on.

This module knows no model, and nothing of how a scene is made.
"""

import random
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import torch

from tutorial_lib.data.counts import check_counts
from tutorial_lib.data.downloads import read_fashion_mnist
from tutorial_lib.data.scenes import make_scenes

PARTS = ("train", "test")
NAMES = ("digits", "cluttered_digits", "fashion_mnist")
DIGITS = tuple("0123456789")
DIGITS_ATTRIBUTION = (
    "Optical Recognition of Handwritten Digits: Alpaydin and Kaynak (1998), CC BY 4.0, "
    "from scikit-learn"
)
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class Images(NamedTuple):
    """Images with what they show, as tensors whose rows go together.

    ``boxes`` says where the labelled object is: its top row and left column, and the
    first row and column behind it, so that ``image[:, top:bottom, left:right]`` cuts it
    out. It is None where the object fills the image.
    """

    images: torch.Tensor  # (image, channel, height, width), float32 in 0…1
    labels: torch.Tensor  # (image,), int64
    boxes: torch.Tensor | None = None  # (image, 4), int64, in pixels


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Labelled images in two parts.

    ``classes[label]`` is the word for a label. ``attribution`` says whom to name.
    """

    name: str
    train: Images
    test: Images
    classes: tuple[str, ...]
    attribution: str

    def batches(self, part="train", *, size, shuffle=True, seed=0):
        """Return the ``ImageBatches`` of one part, "train" or "test"."""
        if part not in PARTS:
            raise ValueError(f'part must be "train" or "test", got {part!r}')
        return ImageBatches(getattr(self, part), size=size, shuffle=shuffle, seed=seed)

    def __repr__(self):
        sizes = ", ".join(
            f"{len(getattr(self, part).labels):,} {part}" for part in PARTS
        )
        channels, height, width = self.train.images.shape[1:]
        boxes = "" if self.train.boxes is None else ", boxes given"
        return (
            f"{self.name}: {sizes} images of {height} × {width} pixels, channels: "
            f"{channels}; {len(self.classes)} classes{boxes}"
        )


class ImageBatches:
    """Pairs (images, labels) of at most ``size`` rows; iterating once is one epoch.

    ``images`` is (batch, channel, height, width) and ``labels`` (batch,). The last
    batch may be smaller. The same seed and epoch give the same batches; with
    ``shuffle=False`` the images stay in their order. Raises ValueError if ``size`` is
    not a positive whole number.
    """

    def __init__(self, images, *, size, shuffle=True, seed=0):
        check_counts(size=size)
        self.images, self.size = images, size
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0

    def set_epoch(self, epoch):
        """Choose the shuffle of the next iteration, as torch's samplers do."""
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.images.labels) // self.size)

    def __iter__(self):
        order = list(range(len(self.images.labels)))
        if self.shuffle:
            random.Random(f"images {self.seed} {self.epoch}").shuffle(order)
        for rows in torch.tensor(order).split(self.size):
            yield self.images.images[rows], self.images.labels[rows]


def load_images(name, *, train=None, held_out=None, folder=None, seed=0):
    """Return labelled images in two parts, as ``ImageData``.

    ``name`` is "digits" (1,797 real scans of 8 × 8 pixels, which scikit-learn brings
    along) or "cluttered_digits" (scenes of 32 × 32 with one whole digit and six
    fragments of others, see ``make_scenes``; those held out are made of held-out digits
    only) or "fashion_mnist" (70,000 real photographs of clothes, 28 × 28 pixels).

    ``train`` and ``held_out`` are the numbers of images to learn from and to be judged
    on. Of the digits 450 are held out and the others are for training; every stretch
    of them has the classes in like shares. Of the scenes 2,000 and 500 are made, and
    of the clothes all 60,000 and 10,000 are taken. A smaller ``train`` is the beginning
    of a larger one. ``seed`` chooses what is held out, the scenes and the order.

    Of the clothes only: ``folder`` holds the files, which are read unchecked, and
    without it they are fetched and checked. Raises ValueError for arguments that do
    not fit, and DataError for a file that is missing or damaged.
    """
    _check(name, train, held_out, folder)
    if name == "digits":
        return _digits(train, held_out, seed)
    if name == "cluttered_digits":
        return _cluttered_digits(train or 2000, held_out or 500, seed)
    return _fashion_mnist(train, held_out, folder, seed)


def _check(name, train, held_out, folder):
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
    if folder is not None and name != "fashion_mnist":
        raise ValueError(f"{name} reads no file: leave out folder=")
    check_counts(train=train, held_out=held_out)


def _digits(train, held_out, seed):
    from sklearn.datasets import load_digits

    scans = load_digits()
    order = _balanced_order(scans.target.tolist(), random.Random(f"digits {seed}"))
    held_out = 450 if held_out is None else held_out
    left = max(len(order) - held_out, 0)
    if not 1 <= (left if train is None else train) <= left:
        raise ValueError(
            f"held_out={held_out} leaves {left} of {len(order)} digits to train on, "
            f"which does not fit train={train}: ask for fewer"
        )
    images = torch.from_numpy(scans.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(scans.target).long()
    rest, test = order[held_out:], order[:held_out]
    parts = [Images(images[rows], labels[rows]) for rows in (rest[:train], test)]
    return ImageData("digits", *parts, DIGITS, DIGITS_ATTRIBUTION)


def _cluttered_digits(train, held_out, seed):
    digits = _digits(None, None, seed)
    parts = [
        Images(*make_scenes(*getattr(digits, part)[:2], count, seed=f"{part} {seed}"))
        for part, count in (("train", train), ("test", held_out))
    ]
    return ImageData("cluttered_digits", *parts, DIGITS, DIGITS_ATTRIBUTION)


def _fashion_mnist(train, held_out, folder, seed):
    *parts, attribution = read_fashion_mnist(folder=folder)
    parts = [
        _first(wanted, *part, random.Random(f"{name} {seed}"))
        for name, wanted, part in zip(PARTS, (train, held_out), parts, strict=True)
    ]
    return ImageData("fashion_mnist", *parts, CLOTHES, attribution)


def _first(wanted, images, labels, rng):
    """Shuffle one part and take as many images as are wanted, or all."""
    if wanted is not None and wanted > len(labels):
        raise ValueError(
            f"there are {len(labels)} images and {wanted} are wanted: ask for fewer"
        )
    rows = rng.sample(range(len(labels)), len(labels))[:wanted]
    return Images(images[rows].unsqueeze(1) / 255, labels[rows])


def _balanced_order(labels, rng):
    """Shuffle rows so that any stretch of them has each label in proportion.

    Each label's rows, at random, are spread evenly from 0 to 1 and sorted together.
    """
    counts, seen, places = Counter(labels), Counter(), {}
    for row in rng.sample(range(len(labels)), len(labels)):
        label = labels[row]
        places[row] = (seen[label] + rng.random()) / counts[label]
        seen[label] += 1
    return sorted(places, key=places.get)
