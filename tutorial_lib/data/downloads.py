"""Files of real data: where they come from, fetched once, checked, and read.

Files lie in one cache folder, the environment variable ``TUTORIAL_DATA`` or the
system's usual place. Pooch fetches them, and gives a file its name there only when its
checksum is right, so that several processes may fetch one file at once.

Tatoeba and Multi30k are English with French. Tatoeba's sentences are CC BY 2.0 FR,
their authors named line by line in newer files; Multi30k states no licence.
Fashion-MNIST are 70,000 photographs of clothes. None of it is kept in this repository.

This module knows no words, and nothing of what is done with images: a sentence is a
line of text, and an image numbers.
"""

import gzip
import os
import struct
import urllib.parse
import zipfile
from pathlib import Path

import torch

from tutorial_lib.progress_bar import progress_bar

# The file at manythings.org/anki grows with time. This is its copy of 167,130 lines at
# Dive into Deep Learning, whose authors publish the SHA-1 with the address.
TATOEBA = (
    "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
    "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5",
)
MULTI30K = (  # one commit of github.com/multi30k/dataset
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_CHECKSUMS = {  # SHA-256
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en.gz": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
    ),
    "test_2016_flickr.fr.gz": (
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"
    ),
}
SHAKESPEARE = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/"
    "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
# Where torchvision has it from, and the checksums that it knows.
FASHION_MNIST = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FASHION_MNIST_CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
}


class DataError(RuntimeError):
    """A data file is missing or damaged: the message names it and says the way out."""


def cache_folder():
    """Return the folder that holds downloaded files, a Path; it need not exist."""
    import pooch

    return Path(os.environ.get("TUTORIAL_DATA") or pooch.os_cache("tutorial_lib"))


def fetch(address, checksum, *, folder=None):
    """Return the path of a file, downloaded unless a good copy lies in ``folder``.

    ``checksum`` is SHA-256, or another as ``"sha1:…"``. ``folder`` is the cache folder
    unless given. Raises DataError if the file cannot be had or its checksum is wrong;
    then, or after an interruption, no part of it is left.
    """
    import pooch
    import requests

    host, name = urllib.parse.urlsplit(address).netloc, _name(address)
    path = Path(folder or cache_folder()) / name
    try:
        with progress_bar(1, unit="B") as bar:  # pooch learns the total, and sets it
            bar.unit_scale = True  # kB, MB
            bar.set_description(name, refresh=False)
            get = pooch.HTTPDownloader(progressbar=bar)
            pooch.retrieve(address, checksum, name, path.parent, downloader=get)
        return path
    except requests.HTTPError as error:
        reason = f"{host} answered {error.response.status_code} {error.response.reason}"
    except requests.RequestException as error:
        reason = f"the connection to {host} failed ({type(error).__name__})"
    except ValueError:
        reason = f"what arrived does not have the checksum {checksum} and was deleted"
    except OSError as error:
        reason = str(error)
    found = " (what lies there now has another checksum)" if path.exists() else ""
    raise DataError(
        f"{name} could not be downloaded: {reason}. Try again later, or download "
        f"{address} yourself and save it as {path}{found}"
    )


def _name(address):
    return urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1]


def _damaged(path, address, reason):
    return DataError(
        f"{path} cannot be read: {reason}. Download {address} (again) and save it there"
    )


def read_lines(path, address, *, member=None):
    """Return the lines of a UTF-8 text file, plain, gzip, or ``member`` of a zip.

    Lines end at a newline and nowhere else, so that parallel files stay parallel. A
    byte-order mark at the beginning is no part of the text.
    Raises DataError, which names ``address`` as the place to have the file from, if it
    is missing, truncated or not UTF-8.
    """
    try:
        text = _read(path, address, member).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _damaged(path, address, f"line {line} is not UTF-8") from None
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def _read(path, address, member=None):
    """Return the bytes of a file, unpacked."""
    try:
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        if path.suffix != ".zip":
            return path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if Path(name).name == member]
            return archive.read(names[0] if names else member)
    except FileNotFoundError:
        raise _damaged(path, address, "there is no such file") from None
    except Exception as error:  # each way of packing has errors of its own
        raise _damaged(path, address, str(error)) from None


def read_tatoeba(*, folder=None, first=None):
    """Read Tatoeba's pairs, short sentences first: English and French lines.

    ``folder`` holds fra.txt, or the zip file with it, and is read unchecked; without it
    the file is fetched. Only the ``first`` so many lines are read. Returns English
    sentences, French sentences and whom to name for them. Raises DataError.
    """
    address, checksum = TATOEBA
    path = Path(folder or "") / "fra.txt"
    if folder is None or not path.exists():
        path = _locate(address, checksum, folder)
    lines = read_lines(path, address, member="fra.txt")[:first]
    tabs = next((line.count("\t") for line in lines if line), 0)
    for number, line in enumerate(lines, start=1):
        if not tabs or (line and line.count("\t") != tabs):
            reason = f"line {number} has not the columns it should"
            raise _damaged(path, address, reason)
    rows = [line.split("\t") if line else ("", "") for line in lines]
    english, french = ([row[column] for row in rows] for column in (0, 1))
    where = f"column 3 of {path}" if tabs > 1 else "the sentence's page there"
    return english, french, f"tatoeba.org, CC BY 2.0 FR; its author: {where}"


def read_multi30k(part, *, folder=None, first=None):
    """Read ``part``, "train", "val" or "test_2016_flickr", of Multi30k.

    ``folder`` holds its files and is read unchecked; without it they are fetched. Only
    the ``first`` so many lines are read. Returns English sentences, French sentences
    and whom to name for them. Raises DataError.
    """
    sides = []
    for name in (f"{part}.en.gz", f"{part}.fr.gz"):
        path = _locate(MULTI30K + name, MULTI30K_CHECKSUMS[name], folder)
        sides.append(read_lines(path, MULTI30K + name))
    english, french = sides
    if len(english) != len(french):
        reason = f"it has {len(french):,} lines and {part}.en.gz {len(english):,}"
        raise _damaged(path, MULTI30K + name, reason)
    return english[:first], french[:first], "Multi30k, github.com/multi30k/dataset"


def read_shakespeare(*, folder=None):
    """Read 40,000 lines of Shakespeare's plays, the text of nanoGPT's examples.

    ``folder`` holds input.txt and is read unchecked; without it the file is fetched.
    Returns the text, 1,115,394 characters of 65 kinds. Raises DataError.
    """
    address, checksum = SHAKESPEARE
    return "\n".join(read_lines(_locate(address, checksum, folder), address)) + "\n"


def _locate(address, checksum, folder):
    if folder is None:
        return fetch(address, checksum)
    return Path(folder) / _name(address)


def read_fashion_mnist(*, folder=None):
    """Read the official training and test part of Fashion-MNIST.

    ``folder`` holds the four files, gzipped or not, in itself or as torchvision lays
    them down in FashionMNIST/raw, and is read unchecked; without it they are fetched.
    Returns two pairs of images (image, height, width) in 0…255 and labels (image,), and
    whom to name for them. Raises DataError.
    """
    parts = []
    for part in ("train", "t10k"):
        name = f"{part}-labels-idx1-ubyte.gz"
        labels, path = _read_idx(name, folder)
        if labels.max() >= 10:
            reason = f"of 10 classes, 0 to 9, none has the label {labels.max()}"
            raise _damaged(path, FASHION_MNIST + name, reason)
        name = f"{part}-images-idx3-ubyte.gz"
        images, path = _read_idx(name, folder)
        if images.shape[1:] != (28, 28) or images.shape[:1] != labels.shape:
            reason = f"{tuple(images.shape)} numbers for {tuple(labels.shape)} labels"
            raise _damaged(path, FASHION_MNIST + name, reason)
        parts.append((images, labels.long()))
    return *parts, "Fashion-MNIST, github.com/zalandoresearch/fashion-mnist, MIT"


def _read_idx(name, folder):
    """Read a file of bytes whose header says how many axes they have, and how long."""
    address = FASHION_MNIST + name
    path = _find_idx(name, folder)
    content = _read(path, address)
    try:
        axes = content[3]
        sizes = struct.unpack_from(f">{axes}I", content, 4)
        numbers = torch.frombuffer(
            bytearray(content), dtype=torch.uint8, offset=4 + 4 * axes
        )
        return numbers.reshape(sizes), path
    except (IndexError, RuntimeError, ValueError, struct.error):
        raise _damaged(path, address, "it is not in the idx format") from None


def _find_idx(name, folder):
    """Return where a file of ``folder`` is, or should be; without one, fetch it."""
    raw = Path("FashionMNIST") / "raw"  # torchvision's place, so that it may share it
    if folder is None:
        checksum = FASHION_MNIST_CHECKSUMS[name]
        return fetch(FASHION_MNIST + name, checksum, folder=cache_folder() / raw)
    places = [
        Path(folder) / place / spelled
        for place in ("", raw)
        for spelled in (name, name.removesuffix(".gz"))
    ]
    return next((place for place in places if place.is_file()), places[0])
