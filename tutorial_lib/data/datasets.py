"""Data sets by name: sentence pairs and images, each kind in one form.

No source sentence stands in two parts, and vocabularies know the training part only.

This module knows no model, and of files the photographs alone that come with the book.
"""

import random
from collections import Counter
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import NamedTuple

import torch
from safetensors.torch import load_file

from tutorial_lib.data.downloads import cache_folder, read_multi30k, read_tatoeba
from tutorial_lib.data.stories import split
from tutorial_lib.data.text import (
    Batches,
    SentencePair,
    Vocabulary,
    tokenize,
)
from tutorial_lib.sizes import check_counts

MIN_COUNTS = {"grammar": 1, "tatoeba": 2, "multi30k": 5}
CLOTHES = (
    "T-shirt",
    "trousers",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


@dataclass(frozen=True, repr=False)
class Translation:
    """English sentences with their French translations, in three parts.

    ``references`` maps each source sentence of ``valid`` and ``test`` to all its
    translations; of Tatoeba's several, the pair has the first.
    """

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    references: dict[tuple[str, ...], list[tuple[str, ...]]]

    def batches(self, part="train", *, batch_size, shuffle=True, seed=0):
        """Return the ``Batches`` of one part, "train", "valid" or "test"."""
        return Batches(
            getattr(self, part),
            self.source_vocabulary,
            self.target_vocabulary,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
        )


def load_translation(
    name, *, train=None, held_out=500, longer=(), first=None, folder=None, seed=0
):
    """Return English–French sentence pairs in three parts, as a ``Translation``.

    ``name`` is "grammar" (made on the spot, with gold alignments), "tatoeba" (everyday
    sentences, the short ones first) or "multi30k" (captions of photographs; its
    official parts, tested on test_2016_flickr).

    ``train`` is the most training pairs: all, but 3,000 of the grammar. ``held_out`` is
    the number of test sentences of the grammar and of Tatoeba; a fifth as many more are
    for validation. A token is known if the training part has it once, twice in Tatoeba
    and five times in Multi30k. A pair with an empty side is left out.

    Of files only: the ``first`` so many lines of Tatoeba are read; ``folder`` holds the
    files, which are read unchecked, and without it they are fetched and checked. Of the
    grammar only: ``longer`` lists numbers of clauses, 3 to 6, of which the test part
    gets half of ``held_out`` each: lengths that training never showed. ``seed`` chooses
    the held-out sentences and the grammar's. Raises ValueError for arguments that do
    not fit, and DataError for a file that is missing or damaged.
    """
    if name not in MIN_COUNTS:
        raise ValueError(f"name must be one of {', '.join(MIN_COUNTS)}, got {name!r}")
    given = first or folder if name == "grammar" else longer
    if given:
        raise ValueError("first= and folder= are for files, longer= for the grammar")
    if name == "multi30k" and (first is not None or held_out != 500):
        raise ValueError("Multi30k has official parts: leave out first= and held_out=")
    check_counts(train=train, held_out=held_out, first=first)
    if name == "grammar":
        parts = split(train or 3000, held_out // 5, held_out, seed=seed, longer=longer)
    elif name == "tatoeba":
        pairs = _tokenized(read_tatoeba(folder=folder, first=first))
        parts = _hold_out(pairs, held_out, seed)
    else:
        parts = [
            _tokenized(read_multi30k(part, folder=folder))
            for part in ("train", "val", "test_2016_flickr")
        ]
    return _assemble(name, *parts, train)


def _tokenized(lines):
    pairs = (
        SentencePair(tuple(tokenize(english, "en")), tuple(tokenize(french, "fr")))
        for english, french in lines
    )
    return [pair for pair in pairs if pair.source and pair.target]


def _hold_out(pairs, held_out, seed):
    """Hold source sentences out of training, each with all its translations."""
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    number = held_out + held_out // 5
    if number >= len(sources):
        raise ValueError(
            f"held_out={held_out} and a fifth as many for validation leave none of the "
            f"{len(sources)} English sentences to train on: hold out fewer"
        )
    random.Random(f"held out {seed}").shuffle(sources)
    groups = {source: [] for source in sources}
    for pair in pairs:
        groups[pair.source].append(pair)
    cuts = sources[number:], sources[held_out:number], sources[:held_out]
    parts = []
    for cut in cuts:
        parts.append([pair for source in cut for pair in groups[source]])
    return parts


def _assemble(name, train, valid, test, most):
    """Make the parts disjoint, held-out sentences single, and the vocabularies."""
    references = {}
    for pair in (*test, *valid):
        references.setdefault(pair.source, []).append(pair.target)
    train = [pair for pair in train if pair.source not in references][:most]
    sources = [pair.source for pair in train]
    targets = [pair.target for pair in train]
    return Translation(
        train,
        _one_each(valid),
        _one_each(test),
        Vocabulary(sources, min_count=MIN_COUNTS[name]),
        Vocabulary(targets, min_count=MIN_COUNTS[name]),
        references,
    )


def _one_each(pairs):
    """Return the first pair of each source sentence."""
    firsts = {}
    for pair in pairs:
        firsts.setdefault(pair.source, pair)
    return list(firsts.values())


class Images(NamedTuple):
    """Images with what they show, as tensors whose rows go together."""

    images: torch.Tensor  # (image, channel, height, width), float32 in 0…1
    labels: torch.Tensor  # (image,), int64


class ImageData(NamedTuple):
    """Labelled images in two parts."""

    train: Images
    test: Images


class ImageBatches:
    """Pairs (images, labels) of at most ``batch_size``; iterating once is one epoch.

    ``images`` is (batch, channel, height, width) and ``labels`` (batch,). The last
    batch may be smaller. The same seed and epoch give the same batches. Raises
    ValueError for a batch size that is no positive whole number.
    """

    def __init__(self, images, *, batch_size, seed=0):
        check_counts(batch_size=batch_size)
        self.images = images
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        """Choose the shuffle of the next iteration, as torch's samplers do."""
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.images.labels) // self.batch_size)

    def __iter__(self):
        order = list(range(len(self.images.labels)))
        random.Random(f"images {self.seed} {self.epoch}").shuffle(order)
        for rows in torch.tensor(order).split(self.batch_size):
            yield self.images.images[rows], self.images.labels[rows]


def load_images(name, *, folder=None, seed=0):
    """Return labelled images in two parts, as ``ImageData``.

    ``name`` is "digits" (1,797 real scans of 8 × 8 pixels, Alpaydin and Kaynak, 1998,
    CC BY 4.0, from scikit-learn; 450 are held out, and every stretch of them has the
    classes in like shares) or "fashion_mnist" (70,000 real photographs of clothes,
    28 × 28 pixels, in their official parts, MIT licence, from torchvision). ``seed``
    chooses what is held out, and the order.

    ``folder`` holds the clothes as torchvision lays them out; where they are not there,
    or not in the cache folder without it, they are fetched. Raises ValueError for
    another name, and RuntimeError if they cannot be had.
    """
    if name == "digits":
        return ImageData(*_digits(seed))
    if name != "fashion_mnist":
        raise ValueError(f"name must be one of digits, fashion_mnist, got {name!r}")
    return ImageData(*_clothes(folder or cache_folder(), seed))


def sample_clothes():
    """Return the twenty photographs of clothes that come with the book, as ``Images``.

    They are of 28 × 28 pixels, the first two of each class among those that
    `tutorial_lib.pretrained.clothes_vit` was tested on; ``CLOTHES`` names the classes.
    Fashion-MNIST: Xiao et al. (2017), MIT licence.
    """
    with as_file(files("tutorial_lib.data") / "clothes.safetensors") as path:
        sample = load_file(path)
    return Images(sample["images"].float() / 255, sample["labels"])


def _digits(seed):
    from sklearn.datasets import load_digits

    scans = load_digits()
    order = _balanced_order(scans.target.tolist(), random.Random(f"digits {seed}"))
    images = torch.from_numpy(scans.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(scans.target).long()
    return [Images(images[rows], labels[rows]) for rows in (order[450:], order[:450])]


def _clothes(folder, seed):
    from torchvision.datasets import FashionMNIST

    for part in ("train", "test"):
        clothes = FashionMNIST(folder, train=part == "train", download=True)
        images = clothes.data.unsqueeze(1) / 255
        labels = clothes.targets
        rows = random.Random(f"{part} {seed}").sample(range(len(labels)), len(labels))
        yield Images(images[rows], labels[rows])


def _balanced_order(labels, rng):
    """Shuffle rows so that any stretch of them has each label in proportion.

    Each label's rows, at random, are spread evenly from 0 to 1 and sorted together.
    """
    counts = Counter(labels)
    seen = Counter()
    positions = {}
    for row in rng.sample(range(len(labels)), len(labels)):
        label = labels[row]
        positions[row] = (seen[label] + rng.random()) / counts[label]
        seen[label] += 1
    return sorted(positions, key=positions.get)
