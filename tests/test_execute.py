"""Running notebooks in place."""

import shutil
from pathlib import Path

import pytest

from tools.execute import PACKAGES, digest, execute, normalize
from tools.notebooks import read_notebook, write_notebook

pytest.importorskip("nbclient")
BOOK = Path(__file__).parents[1]


def notebook(*sources):
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{i}",
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
        }
        for i, source in enumerate(sources)
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def root(tmp_path):
    """Make a book of two notebooks, the second of which fails."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tutorial_lib").mkdir()
    shutil.copy(BOOK / "requirements.txt", tmp_path)
    write_notebook(tmp_path / "notebooks/01_sums.ipynb", notebook("1 + 1"))
    write_notebook(tmp_path / "notebooks/02_fails.ipynb", notebook("2", "1 / 0", "3"))
    return tmp_path


def test_a_failing_notebook_stays_as_it_was_and_the_others_run(root, capsys):
    first = root / "notebooks" / "01_sums.ipynb"
    failing = root / "notebooks" / "02_fails.ipynb"
    before = failing.read_bytes()

    assert execute(root) == 1

    assert failing.read_bytes() == before
    message = "02_fails.ipynb: nothing is stored: cell cell-1 failed"
    assert message in capsys.readouterr().err
    [cell] = read_notebook(first)["cells"]
    assert cell["outputs"][0]["data"]["text/plain"] == ["2"]
    assert cell["execution_count"] == 1

    stored = first.read_bytes()
    assert execute(root) == 1
    printed = capsys.readouterr().out
    assert "01_sums: up to date" in printed
    assert "02_fails: running" in printed
    assert execute(root, "1") == 0  # which is named, and so is run again
    assert "01_sums: running" in capsys.readouterr().out
    assert first.read_bytes() == stored


@pytest.mark.parametrize("package", PACKAGES)
def test_a_notebook_is_out_of_date_when_a_package_changes(root, package):
    path = root / "notebooks" / "01_sums.ipynb"
    before = digest(root, path)
    (root / package / "inner").mkdir(parents=True)
    (root / package / "inner" / "figure.js").write_text("start();")
    assert digest(root, path) != before


def test_a_notebook_is_out_of_date_when_its_code_or_the_pins_change_not_its_text(root):
    path = root / "notebooks" / "01_sums.ipynb"
    before = digest(root, path)
    changed = notebook("1 + 1")
    text = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "# Sums"}
    changed["cells"].insert(0, text)
    write_notebook(path, changed)
    assert digest(root, path) == before
    write_notebook(path, notebook("1 + 2"))
    assert digest(root, path) != before
    write_notebook(path, notebook("1 + 1"))
    (root / "requirements.txt").write_text("changed==1\n")
    assert digest(root, path) != before


def test_only_the_metadata_that_the_book_uses_is_stored():
    content = notebook("1")
    content["metadata"] = {"widgets": {}, "language_info": {"version": "3.11.7"}}
    content["cells"][0]["metadata"] = {
        "execution": {"iopub.status.busy": "2026-01-01"},
        "jupyter": {"source_hidden": True, "was_scrolled": True},
        "tags": ["hide-input"],
    }
    stored = normalize(content)
    assert stored["metadata"]["language_info"]["pygments_lexer"] == "ipython3"
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}
    assert stored["cells"][0]["metadata"] == {
        "jupyter": {"source_hidden": True},
        "tags": ["hide-input"],
    }


def test_of_a_widget_only_what_lives_without_a_kernel_is_stored():
    content = notebook("ask(answer, 'Who?')")
    data = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "0123"},
        "text/plain": ["You"],
    }
    shown = {"data": data, "metadata": {}, "output_type": "display_data"}
    content["cells"][0]["outputs"] = [shown]
    [output] = normalize(content)["cells"][0]["outputs"]
    assert output["data"] == {"text/plain": ["You"]}
