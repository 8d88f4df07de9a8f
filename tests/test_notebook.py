"""What a notebook of the book does besides: folds, claims, and its form in the file."""

import copy
import io
import sys

import pytest
from exercise_chapters import executed, text_of
from nbformat.v4 import new_code_cell, new_notebook

from tools.form import shape
from tutorial_exercises.cards import Card
from tutorial_lib.notebook import claim, prepare_notebook, unfolded
from tutorial_lib.notebook.folds import BEGIN as FOLD_BEGIN
from tutorial_lib.notebook.widgets import VIEW

BEGIN = "from tutorial_lib.notebook import prepare_notebook\nprepare_notebook()"
SELF_SHOWN = """
class Shown:
    def _ipython_display_(self):
        print("shows itself")
"""
FIGURE = "from tutorial_lib.plotting import show_heatmaps\nshow_heatmaps([[1.0]])"


def test_a_claim_that_holds_prints_nothing(capsys):
    with claim("one is one"):
        assert 1 == 1
    assert capsys.readouterr().out == ""


def test_a_claim_that_fails_tells_readers_and_goes_on(capsys, monkeypatch):
    monkeypatch.delenv("TUTORIAL_STRICT", raising=False)
    with claim("one is two"):
        assert 1 == 2
    with claim("there is a name"):
        assert nowhere  # noqa: F821
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    first, second = " ".join(printed.split()).split(" Not as")
    assert first == (
        "Not as in the book: one is two. Something above was changed, or a training "
        "was stopped. What failed: 1 == 2"
    )
    assert second == (
        " in the book: there is a name. Run the cells above it first; they define "
        "nowhere."
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_of_another_encoding_loses_single_characters(encoding, monkeypatch):
    monkeypatch.delenv("TUTORIAL_STRICT", raising=False)
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", console)
    with claim("√2 is 1"):
        assert 1 == 2
    print(Card("pass", "Exercise 1.2", rows=[("pass", "rows sum to 1")]))
    print(Card("solution", "Exercise 1.2", source="x = 1  # → 2"))
    console.flush()
    printed = console.buffer.getvalue().decode(encoding)
    assert "Not as in the book: ?2 is 1." in printed
    assert "Passed: Exercise 1.2" in printed and "rows sum to 1" in printed
    assert "x = 1  # ? 2" in printed


def test_without_ipython_a_notebook_is_prepared_by_nothing(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    prepare_notebook()
    assert "IPython" not in sys.modules and capsys.readouterr().out == ""


def test_a_claim_that_fails_is_set_in_lines_of_up_to_80_signs(capsys, monkeypatch):
    monkeypatch.delenv("TUTORIAL_STRICT", raising=False)
    with claim("of words of three signs " + "and " * 30):
        assert 1 == 2
    first, *_ = capsys.readouterr().out.splitlines()
    assert 76 <= len(first) <= 80


def test_a_claim_that_fails_stops_the_book_s_own_tests(monkeypatch):
    monkeypatch.setenv("TUTORIAL_STRICT", "1")
    with pytest.raises(AssertionError), claim("one is two"):
        assert 1 == 2


def test_an_interrupt_goes_through_a_claim(monkeypatch):
    monkeypatch.delenv("TUTORIAL_STRICT", raising=False)
    with pytest.raises(KeyboardInterrupt), claim("nobody stops this"):
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def cells():
    sources = [
        BEGIN,
        BEGIN,  # as when the cell is run again
        "# @title Answer\nprint('printed')\n{'shown': 1}",
        "print('printed')",
        f"# @title Answer\n{FIGURE}",
        "# @title Answer\nimport pandas\npandas.DataFrame({'a': [1]})",
        "# @title Answer\n1 / 0",
        "'after an error'",
        f"# @title Answer{SELF_SHOWN}\nShown()",
        "# @title Answer\nimport ipywidgets\nipywidgets.Label('live')",
    ]
    cells = [new_code_cell(source) for source in sources]
    cells[6].metadata["tags"] = ["raises-exception"]
    return executed(new_notebook(cells=cells)).cells


def pages(cell):
    return [output.get("data", {}).get("text/html", "") for output in cell.outputs]


def test_what_an_answer_shows_and_prints_is_folded_once(cells):
    printed, shown = pages(cells[2])
    assert unfolded(shown) == "<pre>{&#x27;shown&#x27;: 1}</pre>"
    assert unfolded(printed) == "<pre>printed\n</pre>"
    assert text_of(cells[2]) == "printed\n{'shown': 1}"


def test_a_figure_and_a_table_of_an_answer_are_folded(cells):
    [figure], [table] = pages(cells[4]), pages(cells[5])
    assert figure.startswith(FOLD_BEGIN) and "data:image/png;base64," in figure
    assert "image/png" in cells[4].outputs[0].data  # what pages take
    assert unfolded(table).startswith("<div>") and "<details" not in unfolded(table)


def test_other_cells_are_as_they_are_also_after_an_error(cells):
    assert text_of(cells[3]) == "printed\n" and pages(cells[3]) == [""]
    [error] = cells[6].outputs
    assert error.ename == "ZeroDivisionError"
    assert pages(cells[7]) == [""]


def test_what_shows_itself_is_folded_and_controls_are_not(cells):
    assert [unfolded(page) for page in pages(cells[8])] == ["<pre>shows itself\n</pre>"]
    [control] = cells[9].outputs
    assert VIEW in control.data and "text/html" not in control.data


# --- The form in the file ---------------------------------------------------------


def text(name, source, *tags):
    about = {"cell_type": "markdown", "id": name, "metadata": {"tags": [*tags]}}
    return about | {"source": source}


def code(name, source, *tags):
    return text(name, source, *tags) | {"cell_type": "code", "outputs": []}


FORM = {
    "cells": [
        text("one", "So: $$ a \\tag{?} $$ and $$ b \\tag{9} $$"),
        text("seen", "What is *seen*.", "caption"),
        code("run", "1 + 1", "answer"),
        text("told", "It is 2.", "answer"),
        text("said", "**Fig. 7** Two.", "answer", "caption"),
        code("aside", "# @title More\n1", "answer", "aside"),
    ]
}


def test_captions_and_equations_are_numbered_and_answers_folded():
    notebook = copy.deepcopy(FORM)
    changes = shape("06_name.ipynb", notebook)
    assert len(changes) == len(FORM["cells"])
    one, seen, run, told, said, aside = map(
        "".join, (cell["source"] for cell in notebook["cells"])
    )
    assert one == "So: $$ a \\tag{6.1} $$ and $$ b \\tag{6.2} $$"
    assert seen == "**Fig. 6.1** What is *seen*."
    assert run == "# @title Answer\n1 + 1"
    assert notebook["cells"][2]["metadata"]["jupyter"] == {"source_hidden": True}
    assert told == "<details><summary>Answer</summary>\n\nIt is 2.\n\n</details>"
    assert "<summary>Caption</summary>\n\n**Fig. 6.2** Two.\n" in said
    assert aside == "# @title More\n1"
    assert shape("06_name.ipynb", notebook) == []
    notebook["cells"][2]["metadata"]["jupyter"] = {}
    assert shape("06_name.ipynb", notebook) == ["run: form"]


def test_an_excursion_counts_without_a_chapter():
    notebook = copy.deepcopy(FORM)
    shape("x_name.ipynb", notebook)
    assert "".join(notebook["cells"][1]["source"]) == "**Fig. 1** What is *seen*."
