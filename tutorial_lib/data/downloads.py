"""Files of real data: where they come from, fetched once, checked, and read.

They lie in one cache folder, the environment variable ``TUTORIAL_DATA`` or the system's
usual place. Pooch fetches them, and gives a file its name there only when its checksum
is right, so that several processes may fetch one file at once. A ``folder`` that a
reader is given is laid out like the cache, and is read unchecked.

Tatoeba and Multi30k are English with French. Tatoeba's sentences are CC BY 2.0 FR,
their authors named line by line in newer files; Multi30k states no licence. stories260K
is a language model of one megabyte. None of it is kept in this repository.

This module knows no tokens.
"""

import gzip
import os
import re
import urllib.parse
import zipfile
from pathlib import Path
from typing import NamedTuple

from tutorial_lib.data.subwords import SubwordTokenizer, read_tokenizer
from tutorial_lib.notebook import progress_bar

# The file at manythings.org/anki grows with time. This is its copy of 167,130 lines at
# Dive into Deep Learning, whose authors publish the SHA-1 with the address.
TATOEBA = "https://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip"
# Words that stand in a tenth of its lines, short as they are, and in no other language.
USUAL = {
    "English": re.compile(r"\b(?:i|you|he|she|the|is)\b", re.IGNORECASE),
    "French": re.compile(r"\b(?:je|elle|nous|vous|est|les|une|pas)\b", re.IGNORECASE),
}
MANY = 200  # lines
MULTI30K = (  # one commit of github.com/multi30k/dataset
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_CHECKSUMS = {
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
FILES = {  # where they lie in a folder: address and checksum
    "tatoeba/fra-eng.zip": (TATOEBA, "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5"),
    "tatoeba/fra.txt": (f"fra.txt in {TATOEBA}", None),  # never fetched
    "shakespeare/input.txt": (
        "https://raw.githubusercontent.com/karpathy/char-rnn/"
        "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
}
STORIES260K = "https://huggingface.co/karpathy/tinyllamas/resolve/main/stories260K/"
FILES["stories260k/stories260K.bin"] = (
    STORIES260K + "stories260K.bin",
    "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
)
FILES["stories260k/tok512.bin"] = (
    STORIES260K + "tok512.bin",
    "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
)
for _name, _checksum in MULTI30K_CHECKSUMS.items():
    FILES[f"multi30k/{_name}"] = MULTI30K + _name, _checksum


class DataError(RuntimeError):
    """A data file is missing or damaged: the message names it and says the way out."""


def cache_folder():
    """Return the folder that holds downloaded files, a Path; it need not exist.

    Raises DataError where nobody can tell where the user's home is.
    """
    import pooch

    try:
        folder = os.environ.get("TUTORIAL_DATA") or pooch.os_cache("tutorial_lib")
        return Path(folder).expanduser()
    except RuntimeError as error:
        raise DataError(
            f"there is no folder for downloaded files ({error}): name one in the "
            "environment variable TUTORIAL_DATA"
        ) from None


def fetch(address, checksum, *, folder=None):
    """Return the path of a file, downloaded unless a good copy lies in ``folder``.

    ``checksum`` is SHA-256, or another as ``"sha1:…"``. ``folder`` is the cache folder
    unless given. Raises DataError if the file cannot be had or its checksum is wrong;
    then, or after an interruption, no part of it is left.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")  # the bar says what is fetched
    name = urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1]
    path = Path(folder or cache_folder()) / name
    try:
        with progress_bar(1, unit="byte") as bar:  # pooch learns the total, and sets it
            bar.unit_scale = True  # kB, MB
            bar.set_description(name, refresh=False)
            get = pooch.HTTPDownloader(progressbar=bar)
            pooch.retrieve(address, checksum, name, path.parent, downloader=get)
        return path
    except (OSError, ValueError) as error:  # no connection, or a wrong checksum
        reason = f"{error}".replace("\n", " ")
    found = " (what lies there now has another checksum)" if path.exists() else ""
    raise DataError(
        f"{name} could not be downloaded: {reason}. Try again later, or download "
        f"{address} yourself and save it as {path}{found}"
    )


def _place(name, folder):
    """Return the path of a file of FILES: in ``folder``, or else fetched."""
    if folder is not None:
        return Path(folder) / name
    address, checksum = FILES[name]
    return fetch(address, checksum, folder=(cache_folder() / name).parent)


def _read(name, folder, parse):
    """Return what ``parse`` makes of a file of FILES, unpacked, or raise DataError."""
    return _parsed(name, _place(name, folder), lambda path: parse(_unpack(path)))


def _parsed(name, path, parse):
    """Return what ``parse`` makes of a path, or raise DataError."""
    try:
        return parse(path)
    except Exception as error:  # each way of packing has errors of its own
        raise DataError(
            f"{path} cannot be read: {error}. Download {FILES[name][0]} (again) and "
            "save it there"
        ) from None


def _unpack(path):
    """Return the bytes of a file, of what is in a gzip file, of fra.txt in a zip."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/fra.txt")]
        return archive.read(names[0] if names else "fra.txt")


def _lines(content):
    """Return the lines of UTF-8 bytes, without a byte-order mark at the beginning.

    They end at a newline and nowhere else, so that parallel files stay parallel; in a
    file without any, at a carriage return, as once on a Mac.
    """
    text = content.decode("utf-8-sig")
    text = text if "\n" in text else text.replace("\r", "\n")
    text = text.removesuffix("\n")
    return [line.rstrip("\r") for line in text.split("\n")]


def read_tatoeba(*, folder=None, first=None):
    """Read Tatoeba's pairs, short sentences first: a list of (English, French).

    Only the ``first`` so many lines are read. A ``folder`` holds the file unpacked:
    fra.txt. Raises DataError, also for a file in other languages, if it has many lines.
    """
    name = "tatoeba/fra-eng.zip" if folder is None else "tatoeba/fra.txt"

    def parse(content):
        rows = [line.split("\t") for line in _lines(content)[:first]]
        for number, row in enumerate(rows, start=1):
            # Newer files name the author in the third column; lines may be empty.
            if len(row) not in (2, 3) and row != [""]:
                raise ValueError(f"line {number} has {len(row)} columns, not 2 or 3")
        rows = [row for row in rows if row != [""]]
        if not rows:
            raise ValueError("it has no line")
        _check_languages(rows)
        return [(english, french) for english, french, *_ in rows]

    return _read(name, folder, parse)


def _check_languages(rows):
    """Refuse other languages, as far as many lines can tell."""
    for column, (language, words) in enumerate(USUAL.items()):
        known = sum(bool(words.search(row[column])) for row in rows)
        if len(rows) >= MANY and known < len(rows) / 20:
            raise ValueError(
                f"column {column + 1} is not {language}: of {len(rows):,} lines, "
                f"{known:,} have one of its most usual words"
            )


def read_multi30k(part, *, folder=None):
    """Read ``part``, "train", "val" or "test_2016_flickr", of Multi30k.

    Returns a list of (English, French). Raises DataError.
    """
    english = _read(f"multi30k/{part}.en.gz", folder, _lines)

    def parse(content):
        french = _lines(content)
        if len(english) != len(french):
            raise ValueError(f"it has {len(french)} lines, {part}.en.gz {len(english)}")
        return list(zip(english, french, strict=True))

    return _read(f"multi30k/{part}.fr.gz", folder, parse)


def read_shakespeare(*, folder=None):
    """Read Shakespeare's plays, the text of nanoGPT's examples, as one string.

    It has 1,115,394 characters of 65 kinds. Raises DataError.
    """
    return "\n".join(_read("shakespeare/input.txt", folder, _lines)) + "\n"


class Checkpoint(NamedTuple):
    """A published model: the file of its weights, and what cuts texts for it."""

    path: Path
    tokenizer: SubwordTokenizer


def load_stories260k(*, folder=None):
    """Return the `Checkpoint` of stories260K, a Llama of 260,032 weights.

    It learned from short English stories, Eldan and Li (2023), and
    `tutorial_lib.pretrained.from_llama2c` makes a model of its path: Andrej Karpathy's
    llama2.c, MIT licence. Raises DataError.
    """
    name, vocabulary = "stories260k/stories260K.bin", "stories260k/tok512.bin"
    path = _place(name, folder)
    _parsed(name, path, Path.stat)
    tokenizer = _parsed(vocabulary, _place(vocabulary, folder), read_tokenizer)
    return Checkpoint(path, tokenizer)
