"""What make does with environments and halves of files, in a small clone."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOOK = Path(".environments/book")
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


def make(clone, *words):
    """Run make; return the exit status and what was said."""
    outer = {name for name in os.environ if name.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run(
        ["make", "INSTALLER=pip", *words],
        cwd=clone,
        env={name: os.environ[name] for name in os.environ.keys() - outer},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return ran.returncode, ran.stdout


def install(clone):
    return make(clone, f"{BOOK / 'installed'}")


@pytest.fixture
def clone(tmp_path):
    """Make a clone that asks for nothing, with an environment that has no pip."""
    clone = tmp_path / "a book's clone"
    (clone / "book").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", clone)
    (clone / "book" / "requirements.txt").touch()
    command = [sys.executable, "-m", "venv", "--without-pip", clone / BOOK]
    subprocess.run(command, check=True)
    (clone / BOOK / "installed").write_text(f"{clone.resolve()}\n")
    return clone


def test_an_environment_that_was_moved_is_made_anew(clone, tmp_path):
    moved = clone.rename(tmp_path / "elsewhere")
    status, said = install(moved)
    assert status == 0, said
    subprocess.run([moved / BOOK / "bin" / "pip", "--version"], check=True)
    assert (moved / BOOK / "installed").read_text() == f"{moved.resolve()}\n"
    assert install(moved) == (0, "")


def test_an_environment_that_stayed_is_kept(clone):
    (clone / BOOK / "mine").touch()
    _, said = install(clone)
    assert (clone / BOOK / "mine").exists()
    assert "No module named pip" in said  # so that it was kept, and nothing else


def test_the_reader_s_own_environment_is_left_alone(clone):
    for file in (".venv/mine", "requirements.txt", "pyproject.toml"):
        (clone / file).parent.mkdir(exist_ok=True)
        (clone / file).touch()
    full = Path(".environments/full")
    _, said = make(clone, f"{full / 'installed'}", f"PYTHON={sys.executable}")
    assert (clone / full / "bin" / "pip").exists(), said
    assert (clone / ".venv" / "mine").exists()


def test_half_a_file_is_not_left_to_pass_for_a_whole_one(clone):
    (clone / "notebooks").mkdir()
    (clone / "notebooks" / "01_sums.ipynb").touch()
    python = clone / BOOK / "bin" / "python"
    python.unlink()
    python.write_text('#!/bin/sh\nmkdir -p _build/slides && echo half > "$3"; exit 1\n')
    python.chmod(0o755)
    deck = "_build/slides/01_sums.html"
    status, said = make(clone, "-o", f"{BOOK / 'installed'}", deck)
    assert status != 0 and "Making the slides of 01_sums" in said
    assert not (clone / deck).exists()


def test_a_port_that_is_taken_is_named(clone):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        status, said = make(clone, "-o", "_build/book.built", "serve", f"PORT={port}")
    assert status != 0
    assert f"Port {port} cannot be had: try PORT=8080, say" in said
    assert "Traceback" not in said
