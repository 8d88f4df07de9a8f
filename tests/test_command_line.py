"""The command line with odd words: one sentence each, and nothing half-written."""

import base64
import contextlib
import errno
import io
import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tools.__main__ import main
from tools.notebooks import write_notebook

BOOK = Path(__file__).parents[1]
CHAPTER = Path("notebooks/01_sums.ipynb")
FIGURE = {"mystnb": {"figure": {"caption": "A sum.", "name": "fig-sum"}}}
WRITING = {  # commands that write, and what they would write first
    "student": (["exercises", "--student", "out"], "out/01_sums.ipynb"),
    "otter": (["exercises", "--otter", "out"], "out/01_sums.ipynb"),
    "nbgrader": (
        ["exercises", "--nbgrader", "out"],
        "out/source/01_sums/01_sums.ipynb",
    ),
    "key": (["exercises", "--key", "out"], "out/answer_key.md"),
    "figures": (["figures", "--out", "out"], "out/fig-sum.png"),
    "sync": (["sync"], f"{CHAPTER}"),
    "repository": (["repository", "https://github.com/a/b"], "_config.yml"),
    "execute": (["execute"], f"{CHAPTER}"),
}


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch):
    """Make a book of one chapter in an odd folder, and work there."""
    root = tmp_path / "a book's"
    (root / "notebooks").mkdir(parents=True)
    (root / "tutorial_lib").mkdir()
    for name in ("_config.yml", "pyproject.toml", "requirements.txt"):
        shutil.copy(BOOK / name, root)
    monkeypatch.chdir(root)
    buffer = io.BytesIO()
    Image.new("RGB", (60, 20)).save(buffer, "png", dpi=(90, 90))
    picture = base64.b64encode(buffer.getvalue()).decode()
    shown = {"data": {"image/png": picture}, "metadata": {}}
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "id": "sum",
        "metadata": FIGURE,
        "outputs": [{**shown, "output_type": "display_data"}],
        "source": "1 + 1",
    }
    write_notebook(
        CHAPTER, {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )
    return root


@contextlib.contextmanager
def full_disk():
    """Let every file end after a few bytes, as it does on a full disk."""

    def write(path, content):
        with open(path, "wb") as file:
            file.write(content[:9])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        yield


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()}


def refused(words, capsys):
    """Run a command that fails, and return the sentence in which it says why."""
    assert main(words) == 1
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_spoken_of_and_nothing_is_half_written(name, book, capsys):
    before = contents(book)
    words, file = WRITING[name]
    with full_disk():
        sentence = refused(words, capsys)
    assert sentence == f"{file} cannot be read or written: No space left on device"
    assert contents(book) == before
    assert main(words) == 0  # once there is room
    assert contents(book).keys() - before.keys() or contents(book) != before


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("name", ["student", "otter", "nbgrader", "key", "figures"])
def test_what_is_in_the_way_is_named(name, kind, capsys):
    words, file = WRITING[name]
    if kind == "file":
        Path("out").write_text("mine")
    else:
        Path(file).mkdir(parents=True)
    sentence = refused(words, capsys)
    assert " cannot be read or written: " in sentence
    assert sentence.startswith("out" if kind == "file" else file)
    assert kind == "folder" or Path("out").read_text() == "mine"


@pytest.mark.parametrize("words", [["exercises", "--student", "out"], ["execute"]])
@pytest.mark.parametrize("chapter", ["*", "-1", "7", "../01"])
def test_a_chapter_that_does_not_exist_is_refused(words, chapter, capsys):
    option = ["--", chapter] if words == ["execute"] else [f"--chapter={chapter}"]
    sentence = f"there is no chapter {chapter}: the book has 01"
    assert refused([*words, *option], capsys) == sentence


@pytest.mark.parametrize(
    "words", [[], ["--student", ""], ["--otter", "a", "--nbgrader", "b"]]
)
def test_exercises_are_written_for_one_thing(words, capsys):
    sentence = "choose one of --student, --otter, --nbgrader and --key, "
    sentence += "and name a folder"
    assert refused(["exercises", *words], capsys) == sentence


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "list indices must be"),
        ('{"cells": [{"cell_type": "code", "metadata": {}}]}', "it has no 'id'"),
    ],
)
@pytest.mark.parametrize("name", WRITING)
def test_what_is_no_notebook_is_named(name, text, reason, capsys):
    CHAPTER.write_text(text)
    sentence = refused(WRITING[name][0], capsys)
    assert sentence.startswith(f"{CHAPTER} is not a notebook of format 4.5, in which")
    assert reason in sentence


@pytest.mark.parametrize("name", WRITING)
def test_a_byte_order_mark_is_no_part_of_a_file(name):
    for path in (CHAPTER, Path("_config.yml")):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert main(WRITING[name][0]) == 0
