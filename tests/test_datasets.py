"""Data sets in one form: parts that share nothing, from a seed or from files."""

import gzip
import struct
from collections import Counter

import numpy as np
import pytest
import torch

from tutorial_lib.data import (
    CLOTHES,
    DataError,
    ImageBatches,
    downloads,
    load_images,
    load_translation,
    sample_clothes,
)

PARTS = ("train", "valid", "test")
FLICKR = "test_2016_flickr"
FASHION = [
    f"FashionMNIST/raw/{part}-{kind}-ubyte"
    for part in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def idx(values):
    """Write an array of bytes in the idx format of Fashion-MNIST's files."""
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def clothes(count):
    """Make images that each have one brightness, the label ten times over."""
    labels = np.arange(count) % 10
    return np.tile((labels * 10 + 5)[:, None, None], (1, 28, 28)), labels


@pytest.fixture
def folder(tmp_path):
    """Write small files in the form of the real ones.

    Tatoeba has 30 English sentences with three translations each; Multi30k 8, 3 and 3
    pairs, one sentence of which is in two parts, and one line empty; Fashion-MNIST 30
    and 20 images.
    """
    ends = [f"It’s {i}!\tC’est {i}{end}\t#{i}" for i in range(30) for end in ".!?"]
    write(tmp_path / "tatoeba/fra.txt", "\n".join(ends) + "\n")
    for part, numbers in (
        ("train", range(8)),
        ("val", (8, 9, 10)),
        (FLICKR, (1, 11, 12)),
    ):
        for language, word in ("en", "Dog"), ("fr", "Chien"):
            lines = [f"{word} {i}\n" if i != 5 else "\n" for i in numbers]
            write(tmp_path / f"multi30k/{part}.{language}.gz", "".join(lines))
    arrays = [*clothes(30), *clothes(20)]
    for name, values in zip(FASHION, arrays, strict=True):
        write(tmp_path / name, idx(values))
    return tmp_path


def sources(data, part):
    return {pair.source for pair in getattr(data, part)}


def assert_is_honest(data, *, min_count):
    """Find the parts apart, and vocabularies of the training part alone."""
    train, valid, test = (sources(data, part) for part in PARTS)
    assert train and valid and test
    assert not (train & valid or train & test or valid & test)
    assert valid | test == set(data.references)
    for side in ("source", "target"):
        counts = Counter(token for pair in data.train for token in getattr(pair, side))
        known = {token for token, count in counts.items() if count >= min_count}
        assert set(getattr(data, f"{side}_vocabulary").tokens[4:]) == known


def test_tatoeba_holds_out_sentences_with_all_their_translations(folder):
    data = load_translation("tatoeba", folder=folder, held_out=10)
    assert [len(getattr(data, part)) for part in PARTS] == [18 * 3, 2, 10]
    assert_is_honest(data, min_count=2)
    for pair in (*data.valid, *data.test):
        answers = [("c'", "est", pair.source[2], end) for end in ".!?"]
        assert data.references[pair.source] == answers
        assert pair.target == answers[0]
    other = load_translation("tatoeba", folder=folder, held_out=10, seed=1)
    assert data.test != other.test


def test_only_the_first_lines_are_read_and_the_first_pairs_learned_from(folder):
    options = {"folder": folder, "first": 24, "held_out": 3}
    data = load_translation("tatoeba", **options)
    assert len(data.train) == (24 // 3 - 3) * 3
    numbers = {int(pair.source[2]) for part in PARTS for pair in getattr(data, part)}
    assert numbers == set(range(8))
    assert load_translation("tatoeba", **options, train=7).train == data.train[:7]


def test_sentences_that_differ_only_in_writing_are_one_and_empty_ones_none(tmp_path):
    lines = ["Go!\tVa !", "GO !\tva\u202f!", "Go!\tPars !", "Hi.\tSalut."]
    write(tmp_path / "tatoeba/fra.txt", "\n".join([*lines, "Alone.\t", "\tSeul."]))
    data = load_translation("tatoeba", folder=tmp_path, held_out=1)
    taken = dict(data.references)
    for pair in data.train:
        taken.setdefault(pair.source, []).append(pair.target)
    assert taken == {
        ("go", "!"): [("va", "!"), ("va", "!"), ("pars", "!")],
        ("hi", "."): [("salut", ".")],
    }


def test_multi30k_keeps_its_parts_but_for_a_sentence_in_two(folder):
    data = load_translation("multi30k", folder=folder)
    expected = {"train": "0 2 3 4 6 7", "valid": "8 9 10", "test": "1 11 12"}
    for part, numbers in expected.items():
        pairs = getattr(data, part)
        assert [pair.target[1] for pair in pairs] == numbers.split()
    assert_is_honest(data, min_count=5)


def test_grammar_sentences_carry_what_the_grammar_knows():
    data = load_translation("grammar", train=300, held_out=50, longer=(3,))
    assert [len(getattr(data, part)) for part in PARTS] == [300, 10, 75]
    assert_is_honest(data, min_count=1)
    assert Counter(pair.clauses for pair in data.test) == {1: 25, 2: 25, 3: 25}
    assert {pair.clauses for pair in data.train} == {1, 2}
    for pair in data.test:
        targets, positions = zip(*pair.alignment, strict=True)
        assert set(targets) == set(range(len(pair.target)))
        assert set(positions) == set(range(len(pair.source)))
        assert len(pair.tags) == len(pair.source)
    again, other = (load_translation("grammar", train=300, seed=s) for s in (0, 1))
    assert data.train == again.train != other.train


def test_every_part_gives_its_batches():
    data = load_translation("grammar", train=20, held_out=10)
    for part in PARTS:
        batches = list(data.batches(part, batch_size=4))
        assert sum(len(batch.source) for batch in batches) == len(getattr(data, part))
    [whole] = data.batches(batch_size=20, shuffle=False)
    assert whole.source_lengths.tolist() == [len(pair.source) for pair in data.train]


def test_what_does_not_fit_is_refused_by_name(folder):
    with pytest.raises(ValueError, match="grammar, tatoeba, multi30k, got 'wmt'"):
        load_translation("wmt")
    with pytest.raises(ValueError, match="digits, fashion_mnist, got 'mnist'"):
        load_images("mnist")
    for_files = "first= and folder= are for files"
    with pytest.raises(ValueError, match=for_files):
        load_translation("grammar", first=10)
    with pytest.raises(ValueError, match=for_files):
        load_translation("grammar", folder=folder)
    for options in ({"first": 10}, {"held_out": 10}):
        with pytest.raises(ValueError, match="Multi30k has official parts"):
            load_translation("multi30k", folder=folder, **options)
    with pytest.raises(ValueError, match="longer= for the grammar"):
        load_translation("tatoeba", folder=folder, longer=(3,))
    with pytest.raises(ValueError, match=r"held_out=25 .* none of the 30 English"):
        load_translation("tatoeba", folder=folder, held_out=25)
    for longer in (3, (2,), (3, 3.5), (7,), "3"):
        with pytest.raises(ValueError, match="must list numbers from 3 to 6, got"):
            load_translation("grammar", train=10, held_out=10, longer=longer)


@pytest.mark.parametrize("count", [-5, 0, 2.5])
@pytest.mark.parametrize("name", ["train", "held_out", "first"])
def test_what_is_no_number_of_things_is_refused(folder, name, count):
    message = f"{name} must be a positive whole number, got {count}"
    with pytest.raises(ValueError, match=message):
        load_translation("tatoeba", folder=folder, **{name: count})


def test_without_a_folder_files_are_fetched_into_the_cache(folder, monkeypatch):
    fetched = []

    def fetch(address, checksum, *, folder):
        fetched.append((address, checksum, folder))
        return folder / address.rsplit("/", 1)[-1]

    monkeypatch.setattr(downloads, "fetch", fetch)
    monkeypatch.setenv("TUTORIAL_DATA", str(folder))
    load_translation("multi30k")
    assert len(load_images("fashion_mnist").test.labels) == 20
    assert len(fetched) == 6
    for address, checksum, place in fetched:
        name = str((place / address.rsplit("/", 1)[-1]).relative_to(folder))
        assert downloads.FILES[name] == (address, checksum)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


def as_bytes(image):
    """Return the bytes of a digit (channel, height, width), scaled as scanned."""
    return (image[0] * 16).numpy().tobytes()


def assert_is_in_form(data, size):
    for part in data:
        assert part.images.dtype == torch.float32 and part.labels.dtype == torch.int64
        assert part.images.min() == 0 and 0.99 < part.images.max() <= 1
        assert part.images.shape == (len(part.labels), 1, size, size)
        assert set(part.labels.tolist()) == set(range(10))


def test_every_digit_is_in_one_part_with_its_label(digits):
    from sklearn.datasets import load_digits

    assert_is_in_form(digits, 8)
    assert [len(part.labels) for part in digits] == [1347, 450]
    labelled = [
        (as_bytes(image), int(label))
        for part in digits
        for image, label in zip(*part, strict=True)
    ]
    scans = zip(*load_digits(return_X_y=True), strict=True)
    scans = {image.astype(np.float32).tobytes(): label for image, label in scans}
    assert len(labelled) == len(scans) == 1797 and dict(labelled) == scans


@pytest.mark.parametrize("seed", range(3))
def test_every_stretch_of_the_digits_has_the_classes_in_like_shares(seed, digits):
    data = load_images("digits", seed=seed)
    assert data.test.images.equal(digits.test.images) == (seed == 0)
    whole = torch.cat([data.test.labels, data.train.labels])
    shares = whole.bincount() / len(whole)
    for labels in (data.test.labels, data.train.labels, data.train.labels[:100]):
        assert (labels.bincount() - shares * len(labels)).abs().max() < 2


def test_image_batches_hold_every_image_once_with_its_label(digits):
    batches = ImageBatches(digits.train, batch_size=100)
    images, labels = zip(*batches, strict=True)
    assert [len(batch) for batch in labels] == [100] * 13 + [47]
    assert len(batches) == 14
    rows = {as_bytes(x): label for x, label in zip(*digits.train, strict=True)}
    shown = zip(torch.cat(images), torch.cat(labels), strict=True)
    assert all(rows.pop(as_bytes(image)) == label for image, label in shown)
    assert rows == {}


def test_seed_and_epoch_decide_the_order_of_images(digits):
    def order(epoch=0, seed=0):
        batches = ImageBatches(digits.train, batch_size=50, seed=seed)
        batches.set_epoch(epoch)
        return torch.cat([labels for _, labels in batches]).tolist()

    first = torch.cat(
        [labels for _, labels in ImageBatches(digits.train, batch_size=50)]
    )
    assert order() == order() == first.tolist()
    assert len({str(o) for o in (order(), order(1), order(2), order(seed=1))}) == 4
    for size in (0, 2.5):
        with pytest.raises(ValueError, match="batch_size must be a positive whole"):
            ImageBatches(digits.train, batch_size=size)


def test_the_clothes_that_come_with_the_book_are_two_of_each_class():
    images, labels = sample_clothes()
    assert images.shape == (20, 1, 28, 28) and images.dtype == torch.float32
    assert labels.tolist() == sorted([*range(len(CLOTHES)), *range(len(CLOTHES))])
    brightest = images.amax(dim=(1, 2, 3))
    assert images.min() == 0 and brightest.min() > 0.5 and brightest.max() == 1
    assert len({as_bytes(image) for image in images}) == 20


def test_clothes_are_read_with_their_labels_and_shuffled_by_the_seed(folder):
    data, other = (load_images("fashion_mnist", folder=folder, seed=s) for s in (0, 1))
    for part, count in zip(data, (30, 20), strict=True):
        assert part.images.shape == (count, 1, 28, 28)
        expected = (part.labels * 10 + 5)[:, None, None, None] / 255
        assert torch.allclose(part.images, expected.expand_as(part.images))
        assert not part.labels.equal(torch.arange(count) % 10)
    assert not data.train.labels.equal(other.train.labels)


def damaged(name, path):
    """Load what is damaged, and assert that one line says so, and the way out."""
    root = path.parents[1]
    with pytest.raises(DataError) as caught:
        load_translation(name, folder=root)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path} cannot be read: ")
    address, _ = downloads.FILES[str(path.relative_to(root))]
    assert message.endswith(f". Download {address} (again) and save it there")
    return message


@pytest.mark.parametrize(
    ("name", "file", "content", "reason"),
    [
        ("tatoeba", "tatoeba/fra.txt", None, "No such file"),
        ("tatoeba", "tatoeba/fra.txt", "Go.\tVa.\nNo tab.", "line 2 has 1 columns"),
        ("tatoeba", "tatoeba/fra.txt", "1\tGo.\t2\tVa.", "line 1 has 4 columns"),
        ("tatoeba", "tatoeba/fra.txt", "\n\n", "it has no line"),
        ("tatoeba", "tatoeba/fra.txt", "É.\tÉté.".encode("latin-1"), "can't decode"),
        ("multi30k", f"multi30k/{FLICKR}.fr.gz", None, "No such file"),
        ("multi30k", "multi30k/val.fr.gz", "Un\nDeux\n", "2 lines, val.en.gz 3"),
    ],
)
def test_a_missing_or_damaged_file_is_named(folder, name, file, content, reason):
    path = folder / file
    path.unlink()
    if content is not None:
        write(path, content)
    assert reason in damaged(name, path)


def test_a_truncated_file_is_named(folder):
    path = folder / "multi30k/train.fr.gz"
    path.write_bytes(path.read_bytes()[:-9])
    damaged("multi30k", path)
