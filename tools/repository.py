"""The address of the book's repository, which stands once, in ``_config.yml``.

With it stands which commit Colab takes from there, as a tag, a branch or the commit's
own name: notebooks install the library of that commit, and pages and the README's
chapters open there. Files are edited as text, so comments survive. Nothing is asked of
the address.
"""

import re
import subprocess
from pathlib import Path

from tools.files import read_text, write_whole

LINE = r'^(repository:\n(?: .*\n)*? +{}: *)"([^"\n]*)"'
CHAPTER = re.compile(r"\]\([^()\s]*(notebooks/\d\d_\w+\.ipynb)\)")
COLAB = "https://colab.research.google.com/github/{}/blob/{}/"
COMMIT = re.compile(r"[0-9a-f]{7,40}")
GITHUB = re.compile(
    r"https://github\.com/\w[\w-]*/(?!\.{1,2}$|.*\.git$)[\w.-]+", re.ASCII
)
REF = re.compile(r"\w([\w./-]*\w)?", re.ASCII)
VERSION = re.compile(r'^version = "(.*)"$', re.MULTILINE)


def read_repository(root):
    """Return the address in ``_config.yml`` under ``root``, and what is taken from it.

    Both are ``""`` while unset. Raises ValueError if the file has no line for one.
    """
    text = read_text(Path(root) / "_config.yml")
    return _find(text, "url")[2], _find(text, "ref")[2]


def write_repository(root, address, ref=None):
    """Set the address and the ref, and return both as they are written.

    An address is written without a final slash or ``.git``; an empty one unsets both.
    ``ref`` is a tag, a branch or a commit; without it, the tag of the version. Pages
    open there, but for a commit: they open on ``main``, because no commit can hold a
    link to itself. Raises ValueError unless the address is that of a GitHub repository,
    because Colab opens notebooks from nowhere else, or if there is no such ref in git.
    """
    given = address.strip()
    address = given.removesuffix("/").removesuffix(".git")
    if given and not GITHUB.fullmatch(address):
        raise ValueError(
            f"{given} is not the address of a GitHub repository: "
            "give one like https://github.com/you/fork"
        )
    ref = (_checked(ref) if ref else _version_tag(root)) if address else ""
    branch = "main" if not ref or COMMIT.fullmatch(ref) else ref
    path = Path(root) / "_config.yml"
    readme = Path(root) / "README.md"
    text = read_text(path)
    for key, value in {"url": address, "branch": branch, "ref": ref}.items():
        match = _find(text, key)
        text = text[: match.start(2)] + value + text[match.end(2) :]
    write_whole(path, text)
    if readme.is_file():
        place = COLAB.format(address.removeprefix("https://github.com/"), branch)
        link = rf"]({place if address else ''}\1)"
        write_whole(readme, CHAPTER.sub(link, read_text(readme)))
    return address, ref


def _checked(ref):
    if not REF.fullmatch(ref) or ".." in ref:
        raise ValueError(f"{ref} names no tag, branch or commit: give one like v3.0.0")
    return ref


def _version_tag(root):
    """Return the tag of the version, "v3.0.0", which must not be taken yet."""
    tag = "v" + VERSION.search(read_text(Path(root) / "pyproject.toml"))[1]
    tags = subprocess.run(
        ["git", "tag", "--list", tag], cwd=root, capture_output=True, text=True
    )
    if tags.stdout.strip():
        raise ValueError(
            f"the tag {tag} is there already: name another one, which you will make, "
            "for example --ref autumn"
        )
    return tag


def _find(text, key):
    match = re.search(LINE.format(key), text, re.MULTILINE)
    if match is None:
        raise ValueError(
            f'_config.yml has no line for it: add {key}: "" under repository:'
        )
    return match
