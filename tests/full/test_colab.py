"""What `make colab-test` finds, without Colab's packages: that takes minutes."""

import os
import re
import subprocess
import sys

import pytest
from colab.__main__ import costs, line
from colab.host import ADDRESS, REF, Host, changes, publish

from tools.notebooks import read_notebook, write_notebook

pytest.importorskip("nbval")
SETUP = 'import sys\nassert "google.colab" in sys.modules\n"pip says much"'
DRAW = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


def text(words):
    data = {"text/plain": [words]}
    return {"data": data, "metadata": {}, "output_type": "execute_result"}


def picture():
    data = {
        "image/png": "aGVsbG8=",
        "text/plain": ["<Figure size 640x480 with 1 Axes>"],
    }
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def cell(name, source, *outputs, tags=()):
    for output in outputs:
        if output["output_type"] == "execute_result":
            output["execution_count"] = 1
    return {
        "cell_type": "code",
        "execution_count": 1,
        "id": name,
        "metadata": {"tags": list(tags)},
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


@pytest.fixture
def run(tmp_path):
    """Return a function that runs cells as a notebook, and returns their records."""
    host = Host(sys.executable, tmp_path / "repository", tmp_path / "host")

    def run_cells(*cells):
        path = tmp_path / "01_cells.ipynb"
        about = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        write_notebook(path, {"cells": list(cells), **about})
        records, printed = host.run(path)
        assert bool(printed) == any(record["failure"] for record in records)
        return {record["id"]: record for record in records}

    return run_cells


def test_a_notebook_as_in_the_book_passes(run):
    records = run(
        cell("colab-setup", SETUP),
        cell("alone", "import os\nos.listdir()", text("['01_cells.ipynb']")),
        cell("trained", "3", text("2"), tags=["nbval-ignore-output"]),
        cell("drawn", DRAW, picture()),
    )
    assert [record["failure"] for record in records.values()] == [None] * 4
    assert records["drawn"]["pictures"] == 1
    assert "seconds" in records["drawn"]


def test_every_cell_that_differs_from_the_book_is_found(run):
    records = run(
        cell("other", "1 + 2", text("2")),
        cell("more", "1 + 1\nprint('and')\n2", text("2")),
        cell("fails", "1 / 0"),
        cell("bare", "2", picture(), tags=["nbval-ignore-output"]),
        cell("drawn", DRAW, tags=["nbval-ignore-output"]),
        cell("same", "2", text("2")),
    )
    failures = {name: record["failure"] for name, record in records.items()}
    assert failures.pop("same") is None
    assert re.search(r"wanted: '2'\n +got: +'3'$", failures["other"])
    assert "Unexpected output fields" in failures["more"]
    assert "ZeroDivisionError" in failures["fails"]
    assert "Pictures: 1 in the book, 0 here" in failures["bare"]
    assert "Pictures: 0 in the book, 1 here" in failures["drawn"]


def test_a_setup_cell_may_add_packages_and_change_none():
    before = {"numpy": "2.1.3", "torch": "2.11.0", "tqdm": "4.67.1"}
    after = {**before, "tutorial-lib": "2.0.0", "sacrebleu": "2.6.0"}
    assert changes(before, after) == []
    after["numpy"] = "2.2.0"
    del after["tqdm"], after["tutorial-lib"]
    assert changes(before, after) == [
        "tutorial-lib was not installed",
        "numpy 2.1.3, which is preinstalled, became 2.2.0",
        "tqdm 4.67.1, which is preinstalled, was removed",
    ]


def test_what_is_installed_is_the_working_tree_with_an_address(tmp_path):
    book = tmp_path / "book"
    address = 'repository:\n  url: ""\n  branch: "main"\n  ref: ""\n'
    (book / "notebooks").mkdir(parents=True)
    (book / "_config.yml").write_text(address)
    (book / "gone.txt").write_text("committed, and deleted since")
    about = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    write_notebook(book / "notebooks/01_a.ipynb", {"cells": [cell("a", "1")], **about})
    subprocess.run(["git", "init", "--quiet"], cwd=book, check=True)
    subprocess.run(["git", "add", "."], cwd=book, check=True)
    (book / "gone.txt").unlink()
    (book / "_config.yml").write_text(f"{address}# as it stands now\n")
    (book / "draft.txt").write_text("belongs to nobody")

    published = publish(book, tmp_path / "published")

    assert sorted(os.listdir(published)) == [".git", "_config.yml", "notebooks"]
    assert "# as it stands now" in (published / "_config.yml").read_text()
    [setup, _] = read_notebook(published / "notebooks/01_a.ipynb")["cells"]
    assert f"git+{ADDRESS}@{REF}" in "".join(setup["source"])
    tags = ["git", "tag", "--points-at", "HEAD"]
    assert subprocess.check_output(tags, cwd=published, text=True) == f"{REF}\n"
    assert (book / "_config.yml").read_text().startswith(address)


def record(name, seconds, pictures=0):
    return {"id": name, "seconds": seconds, "pictures": pictures}


def test_the_table_counts_from_the_first_cell_to_the_first_figure():
    cells = [record("colab-setup", 20.2), record("train", 30.1), record("plot", 5.0, 1)]
    rest = [record("plot-again", 100.0, 1)]
    assert line("09_x", cells + rest).split() == ["09_x", "20", "55", "155"]
    assert costs(cells + rest) == []
    cells[1] = record("train", 36.1)
    assert line("09_x", cells + rest).split() == ["09_x", "20", "61!", "161"]
    assert costs(cells + rest) == [
        "! more than 60 s to the first figure: train 36 s, colab-setup 20 s, plot 5 s"
    ]
