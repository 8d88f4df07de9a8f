"""What make does with an environment, in a small clone of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BOOK = Path(".venv-book")
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


def install(clone):
    """Make the book's environment; return the exit status and what was said."""
    outer = {name for name in os.environ if name.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run(
        ["make", f"{BOOK / 'installed'}", "INSTALLER=pip"],
        cwd=clone,
        env={name: os.environ[name] for name in os.environ.keys() - outer},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return ran.returncode, ran.stdout


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
