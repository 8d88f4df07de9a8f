"""Fashion-MNIST: 70,000 real photographs of clothes, read by torchvision.

Torchvision knows where its files are, fetches them and checks them; a copy of one's own
is read unchecked.

This module knows the files, and nothing of what is done with the images.
"""

import gzip
import http.client
import tempfile
import zlib
from pathlib import Path

from tutorial_lib.data.downloads import DataError, cache_folder, damaged

ATTRIBUTION = "Fashion-MNIST, github.com/zalandoresearch/fashion-mnist, MIT"
BROKEN = (OSError, EOFError, zlib.error, http.client.HTTPException)
NOT_IDX = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)


def read_fashion_mnist(*, folder=None):
    """Read the official training and test part.

    ``folder`` holds the four files, gzipped or not, in itself or as torchvision lays
    them down in FashionMNIST/raw; nothing is written there. Without it torchvision
    fetches them into the cache folder. Returns two pairs of images (image, height,
    width) in 0…255 and labels (image,), and the words for the labels. Raises DataError.
    """
    if folder is None:
        return _read(cache_folder(), download=True)
    with tempfile.TemporaryDirectory() as root:
        raw = Path(root) / "FashionMNIST" / "raw"
        raw.mkdir(parents=True)
        for address in _addresses():
            _unpack(_find(Path(folder), address), raw, address)
        return _read(root, download=False, copied_from=folder)


def _addresses():
    from torchvision.datasets import FashionMNIST

    return [FashionMNIST.mirrors[0] + name for name, _ in FashionMNIST.resources]


def _find(folder, address):
    """Return where a file of ``folder`` is, or where it should be."""
    name = Path(address).name
    places = [
        place / spelled
        for place in (folder, folder / "FashionMNIST" / "raw")
        for spelled in (name, name.removesuffix(".gz"))
    ]
    return next((place for place in places if place.is_file()), places[0])


def _unpack(path, raw, address):
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except FileNotFoundError:
        raise damaged(path, address, "there is no such file") from None
    except BROKEN as error:
        raise damaged(path, address, str(error)) from None
    (raw / Path(address).stem).write_bytes(content)


def _read(root, *, download, copied_from=None):
    from torchvision.datasets import FashionMNIST

    parts = []
    try:
        for train in (True, False):
            part = FashionMNIST(root, train=train, download=download)
            if len(part.data) != len(part.targets):
                raise ValueError(
                    f"{len(part.data)} images and {len(part.targets)} labels"
                )
            parts.append((part.data, part.targets))
    except (*BROKEN, *NOT_IDX) as error:
        reason = " ".join(str(error).split()) or "a file is not what it should be"
        raise _unavailable(reason, root, copied_from) from None
    return *parts, tuple(FashionMNIST.classes)


def _unavailable(reason, root, copied_from):
    from torchvision.datasets import FashionMNIST

    names = ", ".join(name for name, _ in FashionMNIST.resources)
    way_out = f"download {names} from {FashionMNIST.mirrors[0]}"
    if copied_from is not None:
        return DataError(
            f"Fashion-MNIST in {copied_from} cannot be read: {reason}. To mend it, "
            f"{way_out} (again) and save them there"
        )
    return DataError(
        f"Fashion-MNIST cannot be had: {reason}. Delete {Path(root) / 'FashionMNIST'} "
        f"and try again later, or {way_out} yourself and name their folder with folder="
    )
