"""Chapters for a class: copies without solutions, masters for two graders."""

import json
import os
from importlib.metadata import requires
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import nbformat
import pytest
import torch
from classroom import NAME, make_book
from exercise_chapters import chapters
from packaging.requirements import Requirement
from statements import statements

from tools.__main__ import main
from tools.exports import _test, export
from tools.notebooks import read_notebook, source_of, tags_of, write_notebook
from tools.sheets import Sheet, sheets
from tutorial_exercises import solution

ROOT = Path(__file__).parents[1]
CHAPTERS = chapters()
each_chapter = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=[str(chapter.number) for chapter in CHAPTERS]
)
MARKS = {"otter": ("# BEGIN SOLUTION NO PROMPT", "# END SOLUTION")}
MARKS["nbgrader"] = ("### BEGIN SOLUTION", "### END SOLUTION")


@pytest.fixture
def book(tmp_path):
    return make_book(tmp_path)


def exported(book, kind):
    """Export the example chapter; return the cells of its notebook."""
    files = export(book, kind, book / "out")
    [path] = [file for file in files if file.suffix == ".ipynb"]
    nbformat.validate(nbformat.read(path, as_version=4))
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def cut(cell, kind):
    """Take from a cell what the grader takes out of the students' copy."""
    lines = source_of(cell).split("\n")
    begin, end = MARKS[kind]
    if begin in lines:
        del lines[lines.index(begin) : lines.index(end) + 1]
    return "\n".join(lines)


def test_a_student_s_copy_lacks_the_solution_cells_and_nothing_else(book):
    before = Sheet(book / "notebooks" / NAME).notebook["cells"]
    cells = exported(book, "student")
    kept = [cell["id"] for cell in before if "solution" not in tags_of(cell)]
    assert len(kept) == len(before) - 4
    assert [cell["id"] for cell in cells] == kept
    sources = {cell["id"]: cell["source"] for cell in before}
    assert all(cell["source"] == sources[cell["id"]] for cell in cells)


def test_the_key_has_every_solution_of_the_book_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["exercises", "--key", f"{tmp_path}"]) == 0
    path = tmp_path / "answer_key.md"
    assert capsys.readouterr().out == f"Wrote the answers into {path}.\n"
    key = path.read_text()
    tasks = []
    for sheet in sheets(ROOT):
        tasks += sheet.tasks
    headings = [line[4:] for line in key.splitlines() if line.startswith("### ")]
    assert headings == [task.exercise.heading for task in tasks]
    assert len(tasks) > 60 and all(task.solved().strip() in key for task in tasks)
    assert "\n## 3 · " in key


def test_an_excursion_without_exercises_is_no_sheet(book):
    cell = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Cost"}
    content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    write_notebook(book / "notebooks" / "x_cost.ipynb", content)
    assert [sheet.path.name for sheet in sheets(book)] == [NAME]
    with pytest.raises(ValueError, match="x_cost has no exercises: name a chapter"):
        sheets(book, "x_cost")
    both = [sheet.chapter for sheet in sheets(ROOT, "4", "3")]
    assert both == [3, 4]


def test_a_student_s_copy_shows_nothing_between_a_stub_and_the_next_heading(book):
    cells = [cell for cell in exported(book, "student") if "outputs" in cell]
    shown = [cell["id"] for cell in cells if cell["outputs"]]
    assert shown == ["cell-0", "after"]


@each_chapter
def test_no_other_cell_needs_what_the_solution_cells_bind(chapter):
    for cell in Sheet(chapter.notebook_path()).notebook["cells"]:
        if "solution" in tags_of(cell):
            assert [s for s in statements(None, source_of(cell)) if s.binds] == []


@each_chapter
def test_exports_of_the_book_are_notebooks_in_which_no_solution_can_be_read(
    chapter, tmp_path
):
    texts = {}
    for kind in ("student", "otter", "nbgrader"):
        files = export(ROOT, kind, tmp_path / kind, str(chapter.number))
        [path] = [file for file in files if file.suffix == ".ipynb"]
        nbformat.validate(nbformat.read(path, as_version=4))
        texts[kind] = [source_of(c) for c in json.loads(path.read_text())["cells"]]
        if kind in MARKS:
            cells = json.loads(path.read_text())["cells"]
            texts[kind] = [cut(cell, kind) for cell in cells]
    for task in sheets(ROOT, str(chapter.number))[0].tasks:
        answer = str(solution(task.exercise.number))
        for kind, sources in texts.items():
            assert source_of(task.stub) in sources, kind
            assert not any(answer in source for source in sources), kind


@pytest.mark.parametrize("kind", ["otter", "nbgrader"])
def test_a_master_holds_stub_solution_and_the_book_s_check_of_each_exercise(book, kind):
    cells = exported(book, kind)
    sheet = Sheet(book / "notebooks" / NAME)
    tests = [source_of(c) for c in cells if "assert result.passed" in source_of(c)]
    assert len(tests) == 4
    for task, test in zip(sheet.tasks, tests, strict=True):
        [stub] = [cell for cell in cells if cell["id"] == task.stub["id"]]
        assert cut(stub, kind) == source_of(task.stub)
        assert task.solved() in source_of(stub)
        answer = f'globals().get("{task.name}"), ' if task.exercise.is_value else ""
        assert f'check({answer}"{task.exercise.number}")' in test
        assert test.count("assert") == 1
    assert not any(cell.get("outputs") for cell in cells)
    assert not any("solution" in tags_of(cell) for cell in cells)


@pytest.fixture
def run_test(book, monkeypatch):
    """Return a function that runs an exercise's test in a notebook of these names."""

    def run(number, names):
        tasks = Sheet(book / "notebooks" / NAME).tasks
        [task] = [task for task in tasks if task.exercise.number == number]
        notebook = SimpleNamespace(user_ns=names)
        monkeypatch.setattr("tutorial_exercises.notebook.shell", lambda: notebook)
        exec(_test(task), names)

    return run


def test_a_grader_says_what_is_missing_after_a_cell_that_stopped(run_test):
    with pytest.raises(AssertionError, match="There is no `example_softmax"):
        run_test("99.2", {})
    with pytest.raises(
        AssertionError, match="There is no `my_spread` in this notebook"
    ):
        run_test("99.1", {})


def test_a_grader_knows_an_answer_of_another_name(run_test):
    names = {"__name__": "__main__", "torch": torch}
    exec("def mine(scores, mask=None):\n    return scores", names)
    told = "no `example_softmax`, so this is about `mine`[^✗]* values differ"
    with pytest.raises(AssertionError, match=told):
        run_test("99.2", names)


def test_an_otter_master_marks_each_question_in_otter_s_order(book):
    cells = exported(book, "otter")
    marks = [source_of(c).split("\n")[0] for c in cells if c["cell_type"] == "raw"]
    questions = [c for c in cells if "# BEGIN QUESTION" in source_of(c)]
    # Students have the book's check. Otter's cell stops where there is no Otter.
    assert all("\ncheck_cell: false" in source_of(one) for one in questions)
    question = ["# BEGIN QUESTION", "# BEGIN SOLUTION", "# END SOLUTION"]
    question += ["# BEGIN TESTS", "# END TESTS", "# END QUESTION"]
    assert marks == ["# ASSIGNMENT CONFIG", *question * 4]


def test_otter_gets_the_library_without_its_solutions(book):
    exported(book, "otter")
    packed = {path.relative_to(book / "out") for path in (book / "out").rglob("*.*")}
    assert Path("tutorial_exercises/check.py") in packed
    assert Path("tutorial_figures/base.js") in packed
    assert Path("tutorial_figures/induction_run.json") in packed
    assert Path("tutorial_exercises/cards.css") in packed
    chapter = (book / "out/tutorial_exercises/chapter_08.py").read_text("utf-8")
    assert "mistakes" not in chapter and "heads = split(x, 3)" in chapter
    assert "def is_wrong_split(split):\n    ...\n" in chapter


def test_otter_installs_what_the_packages_need_as_it_is_pinned(book):
    [config] = [c for c in exported(book, "otter") if c["id"] == "otter"]
    assert "requirements: requirements.txt" in source_of(config)
    lines = (book / "out" / "requirements.txt").read_text().splitlines()
    index, *pins = lines
    assert index == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert {*pins} <= {*(ROOT / "requirements.txt").read_text().splitlines()}
    wanted = [Requirement(one) for one in requires("tutorial_lib")]
    wanted = {one.name for one in wanted if one.marker is None}
    assert "torch" in wanted
    assert {Requirement(pin).name for pin in pins} == wanted


def test_an_nbgrader_source_gives_a_point_for_each_exercise(book):
    cells = exported(book, "nbgrader")
    about = [c["metadata"]["nbgrader"] for c in cells if "nbgrader" in c["metadata"]]
    assert len({one["grade_id"] for one in about}) == len(about) == 8
    assert [one.get("points") for one in about] == [None, 1] * 4
    assert [one["solution"] for one in about] == [True, False] * 4
    assert (book / "out" / "source" / "99_example" / NAME).is_file()


def test_nbgrader_empties_stubs_and_lends_no_student_another_s_marks(book, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", "")  # so that it is put back afterwards
    exported(book, "nbgrader")
    config = MagicMock()
    text = (book / "out" / "nbgrader_config.py").read_text()
    exec(text, {"get_config": lambda: config})
    assert config.ClearSolutions.code_stub == {"python": ""}
    assert os.environ["TUTORIAL_PROGRESS"] == "off"


def test_a_file_that_is_there_already_is_not_lost_and_nothing_is_written(book):
    out = book / "out"
    out.mkdir()
    (out / "nbgrader_config.py").write_text("mine")
    with pytest.raises(ValueError, match="already and differs, so nothing is written"):
        export(book, "nbgrader", out)
    assert [path.name for path in out.rglob("*")] == ["nbgrader_config.py"]
    with pytest.raises(ValueError, match="already and differs"):
        export(book, "student", book / "notebooks")


@pytest.mark.parametrize(
    ("tag", "source", "message"),
    [
        ("check", "", r"ipynb, cell \S+ must check the exercise of a stub above"),
        ("check", "check(x, '99.9')", "must check the exercise of a stub"),
        ("exercise", None, "must check the exercise of a stub"),
        ("exercise", "1", "stub of Exercise 99.1 · .* must define or assign my_spread"),
    ],
)
def test_a_chapter_without_its_stub_or_check_is_named(book, tag, source, message):
    path = book / "notebooks" / NAME
    notebook = read_notebook(path)
    for cell in notebook["cells"]:
        if tag in tags_of(cell):
            cell.update({"metadata": {}} if source is None else {"source": source})
    write_notebook(path, notebook)
    with pytest.raises(ValueError, match=message):
        export(book, "otter", book / "out")
    assert not (book / "out").exists()


def test_the_command_line_says_how_many_notebooks_it_wrote(book, monkeypatch, capsys):
    monkeypatch.chdir(book)
    (book / "_config.yml").touch()
    assert main(["exercises", "--student", "out"]) == 0
    assert capsys.readouterr().out == "Wrote 1 notebook into out.\n"
    assert (book / "out" / NAME).is_file()


def test_several_chapters_are_written_into_one_key(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    chosen = ["--chapter", "3", "--chapter", "4"]
    assert main(["exercises", "--key", str(tmp_path), *chosen]) == 0
    key = (tmp_path / "answer_key.md").read_text(encoding="utf-8")
    assert "### Exercise 3.1" in key and "### Exercise 4.1" in key
    assert "### Exercise 5.1" not in key
