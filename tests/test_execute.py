"""Running notebooks in place."""

import shutil
from pathlib import Path

import pytest

from tools.execute import execute, normalize
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
    failing = root / "notebooks" / "02_fails.ipynb"
    before = failing.read_bytes()

    assert execute(root) == 1

    assert failing.read_bytes() == before
    assert (
        "02_fails.ipynb: nothing is stored: cell cell-1 failed"
        in capsys.readouterr().err
    )
    [cell] = read_notebook(root / "notebooks" / "01_sums.ipynb")["cells"]
    assert cell["outputs"][0]["data"]["text/plain"] == ["2"]
    assert cell["execution_count"] == 1


def test_only_what_changed_runs_again(root, capsys):
    first = root / "notebooks" / "01_sums.ipynb"
    assert execute(root, "1") == 0
    stored = first.read_bytes()
    capsys.readouterr()

    assert execute(root, "01") == 0
    assert capsys.readouterr().out == "1 of 1 notebooks are up to date.\n"
    assert first.read_bytes() == stored

    (root / "requirements.txt").write_text("changed==1\n")
    assert execute(root, "01_sums") == 0
    assert "01_sums: running" in capsys.readouterr().out
    assert first.read_bytes() == stored


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
