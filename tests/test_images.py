"""Images in one form: honest parts, boxes that fit, and files that may be bad."""

import gzip
import hashlib
import importlib.util
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tutorial_lib.data import DataError, Images, downloads, load_images, make_scenes

SHARED = Path(__file__).parents[2] / "shared" / "data" / "FashionMNIST" / "raw"
IMAGES, LABELS = "images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"
PARTS = ("train", "test")
FILES = [f"{part}-{kind}" for part in ("train", "t10k") for kind in (IMAGES, LABELS)]


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


@pytest.fixture(scope="module")
def scenes():
    return load_images("cluttered_digits", train=300, held_out=100)


@pytest.fixture(scope="module")
def scans():
    """Return the labels of scikit-learn's digits, by the bytes of their pixels."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return {
        image.astype(np.float32).tobytes(): int(label)
        for image, label in zip(bunch.images, bunch.target, strict=True)
    }


def as_bytes(image):
    """Return the bytes of a digit (channel, height, width), scaled as scanned."""
    return (image[0] * 16).numpy().tobytes()


def cut_out(part):
    for image, (top, left, bottom, right) in zip(
        part.images, part.boxes.tolist(), strict=True
    ):
        yield image[:, top:bottom, left:right]


def assert_equal(part, other):
    for tensor, expected in zip(part, other, strict=True):
        assert torch.equal(tensor, expected) if expected is not None else tensor is None


def assert_is_in_form(data):
    for part in (data.train, data.test):
        assert part.images.dtype == torch.float32
        assert part.images.min() >= 0 and part.images.max() <= 1
        assert part.images.max() > 0.99
        assert part.labels.dtype == torch.int64
        assert len(part.images) == len(part.labels)
        assert set(part.labels.tolist()) == set(range(len(data.classes)))
    assert data.attribution


def test_digits_come_in_the_one_form(digits):
    assert_is_in_form(digits)
    assert digits.train.images.shape == (1347, 1, 8, 8)
    assert digits.test.images.shape == (450, 1, 8, 8)
    assert digits.train.boxes is None
    assert digits.classes[7] == "7"
    assert repr(digits) == (
        "digits: 1,347 train, 450 test images of 8 × 8 pixels, channels: 1; 10 classes"
    )


def test_every_digit_is_in_one_part_with_its_label(digits, scans):
    labelled = [
        (as_bytes(image), int(label))
        for part in (digits.train, digits.test)
        for image, label in zip(part.images, part.labels, strict=True)
    ]
    assert len(labelled) == len(set(labelled)) == len(scans) == 1797
    assert dict(labelled) == scans


@pytest.mark.parametrize("seed", range(5))
def test_every_stretch_of_the_digits_has_the_classes_in_like_shares(seed):
    digits = load_images("digits", seed=seed)
    whole = torch.cat([digits.test.labels, digits.train.labels])
    shares = whole.bincount() / len(whole)
    for labels in (digits.test.labels, digits.train.labels, digits.train.labels[:100]):
        assert (labels.bincount() - shares * len(labels)).abs().max() < 2


def test_fewer_digits_are_the_first_of_them_and_the_test_stays(digits):
    fewer = load_images("digits", train=50)
    assert_equal(fewer.test, digits.test)
    assert torch.equal(fewer.train.images, digits.train.images[:50])
    assert len(load_images("digits", held_out=797).train.labels) == 1000


@pytest.mark.parametrize("name", ["digits", "cluttered_digits"])
def test_the_seed_decides(name):
    first, again, other = (
        load_images(name, train=20, held_out=20, seed=seed) for seed in (1, 1, 2)
    )
    assert_equal(first.train, again.train)
    assert_equal(first.test, again.test)
    assert not torch.equal(first.train.images, other.train.images)
    assert not torch.equal(first.test.images, other.test.images)


def test_scenes_come_in_the_one_form(scenes):
    assert_is_in_form(scenes)
    assert scenes.train.images.shape == (300, 1, 32, 32)
    assert scenes.train.boxes.shape == (300, 4)
    assert scenes.train.boxes.dtype == torch.int64
    assert repr(scenes) == (
        "cluttered_digits: 300 train, 100 test images of 32 × 32 pixels, channels: 1; "
        "10 classes, boxes given"
    )
    everything = load_images("cluttered_digits")
    assert [len(part.labels) for part in (everything.train, everything.test)] == [
        2000,
        500,
    ]
    assert torch.equal(everything.train.images[:300], scenes.train.images)
    assert torch.equal(everything.test.boxes[:100], scenes.test.boxes)


def test_a_box_holds_exactly_a_digit_of_the_same_part_and_label(scenes, digits):
    for part in PARTS:
        own = getattr(digits, part)
        known = dict(zip(map(as_bytes, own.images), own.labels.tolist(), strict=True))
        inside = [as_bytes(piece) for piece in cut_out(getattr(scenes, part))]
        labels = getattr(scenes, part).labels.tolist()
        assert [known[piece] for piece in inside] == labels


def pieces(images):
    """List all bright pieces of 4 × 4 pixels, as bytes."""
    cut = (images * 16).unfold(2, 4, 1).unfold(3, 4, 1).reshape(-1, 16)
    return [piece.tobytes() for piece in cut[cut.mean(1) >= 0.3 * 16].numpy()]


def test_fragments_are_cut_from_digits_of_the_same_part(scenes, digits):
    known = {part: set(pieces(getattr(digits, part).images)) for part in PARTS}
    for part, other in zip(PARTS, PARTS[::-1], strict=True):
        shown, found = getattr(scenes, part), []
        for image, box in zip(shown.images[:20], shown.boxes.tolist(), strict=False):
            rest, (top, left, bottom, right) = image.clone(), box
            rest[:, top:bottom, left:right] = 0
            own = known[part].intersection(pieces(rest[None]))
            assert len(own) >= 6
            found += own - known[other]
        assert len(found) > 20


def solid(count=3, side=8):
    """Return digits without a dark pixel, and their labels."""
    images = torch.linspace(0.4, 1, count).reshape(-1, 1, 1, 1)
    return images.repeat(1, 1, side, side), torch.arange(count)


def test_six_fragments_of_a_quarter_lie_apart_from_the_digit_and_each_other():
    made, labels, boxes = make_scenes(*solid(), 60)
    for scene, label, (top, left, bottom, right) in zip(
        made, labels, boxes.tolist(), strict=True
    ):
        assert (bottom - top, right - left) == (8, 8)
        values, areas = scene[scene > 0].unique(return_counts=True)
        own = solid()[0][label].max()
        assert areas[values == own] == 64
        assert areas.sum() == 64 + 6 * 16
        around = F.pad(scene, (1, 1, 1, 1))[:, top : bottom + 2, left : right + 2]
        assert (around > 0).sum() == 64
        assert blobs(scene[0] > 0) == 7


def blobs(filled):
    """Count the connected regions of a boolean image, corners touching too."""
    from scipy.ndimage import label

    return label(filled.numpy(), np.ones((3, 3)))[1]


def test_digits_and_fragments_reach_every_edge(scenes):
    boxes = torch.cat([scenes.train.boxes, scenes.test.boxes])
    assert boxes.min(0).values.tolist() == [0, 0, 8, 8]
    assert boxes.max(0).values.tolist() == [24, 24, 32, 32]
    ink = scenes.train.images.amax((0, 1))
    assert (ink.amax(0) > 0).all() and (ink.amax(1) > 0).all()


def test_patches_cut_every_digit_alike_unless_it_may_lie_anywhere(scenes):
    assert (scenes.train.boxes % 4 == 0).all()
    _, _, boxes = make_scenes(*solid(), 100, step=1)
    assert set((boxes[:, 0] % 4).tolist()) == set((boxes[:, 1] % 4).tolist())
    assert set((boxes[:, 0] % 4).tolist()) == {0, 1, 2, 3}


def test_fragments_tell_nothing_about_the_label():
    images, labels = solid(10)
    made, shown, _ = make_scenes(images, labels, 400)
    values = images[:, 0, 0, 0]
    present = (made.flatten(1)[:, :, None] == values).any(1)  # (image, label)
    present[torch.arange(400), shown] = False
    others = present.float().mean(0)
    assert (others - others.mean()).abs().max() < 0.12
    twins = torch.cat([images, images]), torch.cat([labels, labels])
    same = make_scenes(*twins, 400)
    area = (same[0] == values[same[1]].reshape(-1, 1, 1, 1)).flatten(1).sum(1)
    assert ((area > 64).float().mean() - (1 - (18 / 19) ** 6)).abs() < 0.06


def test_every_fragment_has_something_to_see(digits):
    mostly_dark = digits.train.images * (digits.train.images > 0.9)
    made, _, _ = make_scenes(mostly_dark, digits.train.labels, 50, fragments=1)
    bare, _, boxes = make_scenes(mostly_dark, digits.train.labels, 50, fragments=0)
    inside = torch.stack([piece.sum() for piece in cut_out(Images(bare, None, boxes))])
    assert torch.allclose(bare.sum((1, 2, 3)), inside)
    assert made.sum((1, 2, 3)).median() > bare.sum((1, 2, 3)).median() + 0.3 * 16


def test_noise_is_faint_and_moves_nothing(digits):
    clean, noisy = (
        make_scenes(*digits.train[:2], 40, noise=noise) for noise in (0.0, 0.1)
    )
    assert torch.equal(clean[2], noisy[2])
    assert noisy[0].dtype == torch.float32
    assert noisy[0].min() >= 0 and noisy[0].max() <= 1
    grey = (clean[0] > 0.4) & (clean[0] < 0.6)  # never cut off
    assert (noisy[0] - clean[0])[grey].std() == pytest.approx(0.1, rel=0.1)
    fewer = make_scenes(*digits.train[:2], 7, noise=0.1)
    assert torch.equal(fewer[0], noisy[0][:7])


def test_scenes_for_which_there_is_no_room_or_nothing_to_cut_are_refused():
    with pytest.raises(ValueError, match="12 × 12 pixels has no room for 2 pieces"):
        make_scenes(*solid(), 1, size=12)
    with pytest.raises(ValueError, match="6 × 6 pixels has no room for 1 pieces"):
        make_scenes(*solid(), 1, size=6)
    with pytest.raises(ValueError, match="none bright enough"):
        make_scenes(*solid(1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count must be a positive whole number, got 0"),
        ({"count": 1.5}, "count must be a positive whole number, got 1.5"),
        ({"size": -32}, "size must be a positive whole number, got -32"),
        ({"step": 0}, "step must be a positive whole number, got 0"),
        ({"fragments": -1}, "fragments must be a whole number, 0 or more, got -1"),
        ({"noise": -0.1}, "noise must be a number, 0 or more, got -0.1"),
        ({"noise": float("nan")}, "noise must be .* got nan"),
    ],
)
def test_scenes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_scenes(*solid(), **{"count": 1} | options)


def test_batches_hold_every_image_once_with_its_label(digits):
    batches = digits.batches(size=100)
    images, labels = zip(*batches, strict=True)
    assert [len(batch) for batch in labels] == [100] * 13 + [47]
    assert len(batches) == 14
    rows = {
        as_bytes(image): label for image, label in zip(*digits.train[:2], strict=True)
    }
    shown = zip(torch.cat(images), torch.cat(labels), strict=True)
    assert all(rows.pop(as_bytes(image)) == label for image, label in shown)
    assert rows == {}


def test_seed_and_epoch_decide_the_order(digits):
    def order(epoch=0, **options):
        batches = digits.batches(size=50, **options)
        batches.set_epoch(epoch)
        return torch.cat([labels for _, labels in batches]).tolist()

    assert order() == order() == order(seed=0)
    assert len({str(o) for o in (order(), order(1), order(2), order(seed=1))}) == 4
    assert order(shuffle=False) == order(5, shuffle=False)
    assert order(shuffle=False) == digits.train.labels.tolist()
    assert order(part="test", shuffle=False) == digits.test.labels.tolist()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mnist", {}, "one of digits, cluttered_digits, fashion_mnist, got 'mnist'"),
        ("digits", {"folder": "."}, "digits reads no file: leave out folder="),
        ("cluttered_digits", {"folder": "."}, "reads no file"),
        ("digits", {"train": 1348}, "leaves 1347 of 1797 digits to train on"),
        ("digits", {"held_out": 1797}, "leaves 0 of 1797"),
        ("digits", {"train": 0}, "train must be a positive whole number, got 0"),
        ("cluttered_digits", {"held_out": 0}, "held_out must be a positive"),
        ("cluttered_digits", {"train": 2.5}, "positive whole number, got 2.5"),
        ("fashion_mnist", {"held_out": -1}, "held_out must be a positive"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(name, options, words):
    with pytest.raises(ValueError, match=words) as caught:
        load_images(name, **options)
    assert "\n" not in str(caught.value)


def test_batches_that_cannot_be_are_refused(digits):
    with pytest.raises(ValueError, match='part must be "train" or "test"'):
        digits.batches("valid", size=10)
    for size in (0, 2.5):
        with pytest.raises(ValueError, match="size must be a positive whole number"):
            digits.batches(size=size)


def idx(values):
    """Write an array of bytes in the idx format of these files."""
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def clothes(count):
    """Make images that each have one brightness, the label ten times over."""
    labels = np.arange(count) % 10
    images = np.tile((labels * 10 + 5)[:, None, None], (1, 28, 28))
    return images, labels


def write_copy(folder):
    folder.mkdir(parents=True, exist_ok=True)
    contents = [idx(values) for count in (30, 20) for values in clothes(count)]
    for name, content in zip(FILES, contents, strict=True):
        (folder / name).write_bytes(gzip.compress(content))
    return folder


@pytest.fixture
def copy(tmp_path):
    return write_copy(tmp_path / "copy")


def test_clothes_are_read_from_a_folder_with_their_labels(copy):
    data = load_images("fashion_mnist", folder=copy)
    assert data.train.images.shape == (30, 1, 28, 28)
    assert data.test.images.shape == (20, 1, 28, 28)
    assert data.train.images.dtype == torch.float32
    for part in (data.train, data.test):
        expected = (part.labels * 10 + 5) / 255
        assert torch.allclose(part.images.amin((1, 2, 3)), expected)
        assert torch.allclose(part.images.amax((1, 2, 3)), expected)
    assert data.classes[9] == "Ankle boot"
    assert "MIT" in data.attribution


def test_a_folder_may_be_laid_down_as_torchvision_does_and_unzipped(copy, tmp_path):
    expected = load_images("fashion_mnist", folder=copy)
    raw = write_copy(tmp_path / "deep" / "FashionMNIST" / "raw")
    for name in FILES:
        (raw / name[:-3]).write_bytes(gzip.decompress((raw / name).read_bytes()))
        (raw / name).unlink()
    data = load_images("fashion_mnist", folder=str(tmp_path / "deep"))
    assert_equal(data.train, expected.train)


def test_nothing_is_written_into_the_folder(copy):
    before = sorted(copy.rglob("*"))
    load_images("fashion_mnist", folder=copy)
    assert sorted(copy.rglob("*")) == before


def test_clothes_are_shuffled_by_the_seed_and_the_first_are_taken(copy):
    data, other = (load_images("fashion_mnist", folder=copy, seed=s) for s in (0, 1))
    fewer = load_images("fashion_mnist", folder=copy, train=12, held_out=3)
    assert torch.equal(fewer.train.labels, data.train.labels[:12])
    assert torch.equal(fewer.test.labels, data.test.labels[:3])
    assert data.train.labels.tolist() != [i % 10 for i in range(30)]
    assert data.train.labels.tolist() != other.train.labels.tolist()
    with pytest.raises(ValueError, match="there are 20 images and 21 are wanted"):
        load_images("fashion_mnist", folder=copy, held_out=21)


def refused(**options):
    """Load clothes that cannot be had, and return the one line that says so."""
    with pytest.raises(DataError) as caught:
        load_images("fashion_mnist", **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "http://fashion-mnist.s3-website" in message
    return message


def test_a_missing_and_a_truncated_file_are_named_with_the_way_out(copy):
    path = copy / FILES[1]
    path.write_bytes(path.read_bytes()[:-9])
    assert refused(folder=copy).startswith(f"{path} cannot be read: Compressed file")
    path.unlink()
    message = refused(folder=copy)
    assert message.startswith(f"{path} cannot be read: there is no such file")
    assert message.endswith("save it there")


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>Please log in</html>", idx(clothes(30)[0])[:-5], idx(clothes(9)[0])],
)
def test_a_file_that_is_not_what_it_should_be_is_spoken_of(copy, content):
    (copy / FILES[0]).write_bytes(gzip.compress(content))
    message = refused(folder=copy)
    assert message.startswith(f"{copy / FILES[0]} cannot be read: ")
    assert message.endswith("save it there")


def test_one_image_is_not_taken_for_a_file_of_them(copy):
    images, labels = clothes(1)
    (copy / FILES[0]).write_bytes(gzip.compress(idx(images[0])))
    (copy / FILES[1]).write_bytes(gzip.compress(idx(labels.squeeze())))
    assert "cannot be read: " in refused(folder=copy)


def test_a_label_of_no_class_is_spoken_of(copy):
    _, labels = clothes(20)
    labels[7] = 255
    path = copy / FILES[3]
    path.write_bytes(gzip.compress(idx(labels)))
    assert refused(folder=copy).startswith(
        f"{path} cannot be read: of 10 classes, 0 to 9, none has the label 255."
    )


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Return the place of the clothes in the cache, from where nothing can be had."""
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path / "cache"))
    for proxy in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # where nobody listens
    return tmp_path / "cache" / "FashionMNIST" / "raw"


def test_offline_says_what_failed_and_the_way_out(cache):
    message = refused()
    assert message.startswith(f"{FILES[1]} could not be downloaded: the connection to ")
    assert f"{downloads.FASHION_MNIST}{FILES[1]} yourself" in message
    assert f"save it as {cache / FILES[1]}" in message


def test_what_was_once_fetched_is_read_without_a_network(cache, monkeypatch):
    write_copy(cache)
    pins = {n: hashlib.sha256((cache / n).read_bytes()).hexdigest() for n in FILES}
    monkeypatch.setattr(downloads, "FASHION_MNIST_CHECKSUMS", pins)
    data = load_images("fashion_mnist")
    assert (len(data.train.labels), len(data.test.labels)) == (30, 20)


def test_the_addresses_the_pins_and_the_words_are_those_of_torchvision(copy):
    [package] = importlib.util.find_spec("torchvision").submodule_search_locations
    source = (Path(package) / "datasets" / "mnist.py").read_text()  # not imported: slow
    assert f'"{downloads.FASHION_MNIST}"' in source
    for name, checksum in downloads.FASHION_MNIST_CHECKSUMS.items():
        assert f'("{name}", "{checksum.removeprefix("md5:")}")' in source
    words = [f'"{word}"' for word in load_images("fashion_mnist", folder=copy).classes]
    assert f"classes = [{', '.join(words)}]" in source


@pytest.fixture
def real(tmp_path):
    if not SHARED.exists():
        pytest.skip(f"needs a copy of Fashion-MNIST in {SHARED}")
    return shutil.copytree(SHARED, tmp_path / "real")


def test_the_real_clothes_come_in_the_one_form(real):
    data = load_images("fashion_mnist", folder=real)
    assert_is_in_form(data)
    assert data.train.images.shape[1:] == (1, 28, 28)
    train, test = (
        {image.numpy().tobytes() for image in part.images}
        for part in (data.train, data.test)
    )
    assert len(train & test) == 0
    trousers, bags = (data.train.images[data.train.labels == i] for i in (1, 8))
    assert bags[..., :, 2:5].mean() > 2 * trousers[..., :, 2:5].mean()
