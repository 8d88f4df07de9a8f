"""The address of the book's repository, which stands once, in ``_config.yml``.

Pages link to Colab only if there is an address, notebooks fetch the library from it,
and the README's chapters open there. Files are edited as text, so comments survive.

This module does not know whether anything answers at the address.
"""

import re
from pathlib import Path

from tools.files import read_text, write_whole

ADDRESS = re.compile(r'^(repository:\n(?: .*\n)*? +url: *)"([^"\n]*)"', re.MULTILINE)
CHAPTER = re.compile(r"\]\([^()\s]*(notebooks/\d\d_\w+\.ipynb)\)")
COLAB = "https://colab.research.google.com/github/{}/blob/main/"
GITHUB = re.compile(
    r"https://github\.com/\w[\w-]*/(?!\.{1,2}$|.*\.git$)[\w.-]+", re.ASCII
)


def read_address(root):
    """Return the address in ``_config.yml`` under ``root``, or ``""`` while unset.

    Raises ValueError if the file has no line for it.
    """
    return _find(Path(root) / "_config.yml")[2]


def write_address(root, address):
    """Set the address and return it as written: no final slash, no ``.git``.

    An empty address unsets it. Raises ValueError unless it is a GitHub repository,
    because Colab opens notebooks from nowhere else.
    """
    given = address.strip()
    address = given.removesuffix("/").removesuffix(".git")
    if given and not GITHUB.fullmatch(address):
        raise ValueError(
            f"{given} is not the address of a GitHub repository: "
            "give one like https://github.com/you/fork"
        )
    path, readme = Path(root) / "_config.yml", Path(root) / "README.md"
    found = _find(path)
    text = found.string[: found.start(2)] + address + found.string[found.end(2) :]
    write_whole(path, text)
    if readme.is_file():
        place = COLAB.format(address.removeprefix("https://github.com/"))
        link = rf"]({place if address else ''}\1)"
        write_whole(readme, CHAPTER.sub(link, read_text(readme)))
    return address


def _find(path):
    found = ADDRESS.search(read_text(path))
    if found is None:
        raise ValueError(
            f'{path} has no line for the address: add url: "" under repository:'
        )
    return found
