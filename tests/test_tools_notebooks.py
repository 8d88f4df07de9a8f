"""Which chapters there are, how a notebook is written, and what a run gives back."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.files import write_whole
from tools.notebooks import (
    STOPPED,
    chapters,
    code_cells,
    read_notebook,
    run,
    write_notebook,
)

pytest.importorskip("nbclient")
ROOT = Path(__file__).parents[1]


def notebook(*sources):
    about = {"cell_type": "code", "execution_count": None, "metadata": {}}
    cells = [
        about | {"id": f"cell-{i}", "outputs": [], "source": source}
        for i, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def root(tmp_path):
    """Make a book of three chapters and an excursion."""
    (tmp_path / "notebooks").mkdir()
    for name in ("01_one", "02_two", "11_more", "x_cost"):
        write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", notebook("1"))
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], ["01_one", "02_two", "11_more", "x_cost"]),
        ([""], ["01_one", "02_two", "11_more", "x_cost"]),
        (["2"], ["02_two"]),
        (["11", "01_o"], ["01_one", "11_more"]),
        (["1", "01"], ["01_one"]),
        (["x_cost"], ["x_cost"]),
    ],
)
def test_chapters_are_chosen_by_number_or_name_in_book_order(root, wanted, found):
    assert [path.stem for path in chapters(root, wanted)] == found


@pytest.mark.parametrize("wanted", ["3", "12", "two"])
def test_a_chapter_that_does_not_exist_is_named_with_those_that_do(root, wanted):
    message = f"there is no chapter {wanted}: the book has 01, 02, 11, x_cost"
    with pytest.raises(ValueError, match=message):
        chapters(root, ["1", wanted])


def test_notebooks_are_written_byte_for_byte_as_jupyter_does(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    content = notebook("x = 'é'\nx\n", "# ½")
    for cell in content["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    write_notebook(tmp_path / "ours.ipynb", content)
    node = nbformat.from_dict(json.loads(json.dumps(content)))
    nbformat.write(node, tmp_path / "theirs.ipynb")
    ours, theirs = (tmp_path / f"{name}.ipynb" for name in ("ours", "theirs"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert read_notebook(tmp_path / "ours.ipynb") == content


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    write_whole(path, "before")

    def fails(*_):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no space left") as caught:
        write_whole(path, b"after")
    assert caught.value.filename == f"{path}"
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_kernel_has_fonts_and_settings_of_its_own_environment(tmp_path):
    source = "import matplotlib as m\nprint(m.get_cachedir(), m.get_configdir())"
    ran, failure = run(notebook(source), tmp_path)
    assert failure is None
    [output] = code_cells(ran)[0]["outputs"]
    place = os.path.join(sys.prefix, "var", "cache", "matplotlib")
    assert "".join(output["text"]) == f"{place} {place}\n"


def test_a_failure_names_the_cell_and_keeps_what_was_shown_before(tmp_path):
    ran, failure = run(notebook("1", "raise KeyError('x')", "3"), tmp_path)
    first, *traceback = failure.splitlines()
    assert first == "cell cell-1 failed with KeyError: 'x'"
    assert any("raise KeyError" in line for line in traceback)
    assert [bool(cell["outputs"]) for cell in code_cells(ran)] == [True, True, False]


def test_a_kernel_that_dies_and_a_cell_that_never_ends_are_told_apart(tmp_path):
    _, died = run(notebook("1", "import os\nos._exit(1)"), tmp_path)
    assert died == "cell cell-1 ended its kernel: is there enough memory?"
    _, slow = run(notebook("while True: pass"), tmp_path, timeout=1)
    assert slow == "cell cell-0 was still running after 1 s"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_a_run_and_keeps_what_was_shown(tmp_path):
    press = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\n"
    ran, failure = run(notebook("1", f"{press}time.sleep(60)"), tmp_path)
    assert failure == STOPPED
    assert code_cells(ran)[0]["outputs"]


def test_ctrl_c_leaves_no_traceback_when_the_program_ends(tmp_path):
    press = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\n"
    program = (
        "import pathlib, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tools.notebooks import run\n"
        f"stopped = {notebook(f'{press}time.sleep(60)')}\n"
        "print(run(stopped, pathlib.Path.cwd())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{STOPPED}\n", "")
