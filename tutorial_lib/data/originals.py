"""Originals: where the real corpora come from, and how their files are read.

Both are English with French. Tatoeba's sentences are CC BY 2.0 FR, their authors named
line by line in newer files; Multi30k states no licence. Nothing of either is kept in
this repository.

This module knows no words: a sentence is a line of text.
"""

from pathlib import Path

from tutorial_lib.data.downloads import damaged, fetch, read_lines

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
            raise damaged(path, address, f"line {number} has not the columns it should")
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
        raise damaged(path, MULTI30K + name, reason)
    return english[:first], french[:first], "Multi30k, github.com/multi30k/dataset"


def _locate(address, checksum, folder):
    if folder is None:
        return fetch(address, checksum)
    return Path(folder) / address.rsplit("/", 1)[-1]
