"""Who passed what: answers are found and judged, and make a table."""

import copy
import csv
import json
from pathlib import Path

import pytest
from classroom import cell_of, handed_in, make_book

from tools import report
from tools.__main__ import main
from tools.grading import Grading, read_cells
from tools.notebooks import STOPPED, source_of
from tools.report import find_notebooks, grade, mistakes, table, write_report
from tools.sheets import sheets

ROOT = Path(__file__).parents[1]
WRONG = "def example_softmax(scores, mask=None):\n    return scores.softmax(-2)"
OPEN = "def example_softmax(scores, mask=None):\n    ..."
PASSED = dict.fromkeys(["99.1", "99.2", "99.3", "99.4"], ("passed", ""))
VARIANCE = "failed", "64 is the variance of q·k: take its root."


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return make_book(tmp_path_factory.mktemp("book"))


@pytest.fixture
def marks(book, tmp_path):
    """Return a function that writes a submission and grades it in this process."""

    def judge(*, chapter="", **options):
        path = handed_in(book, tmp_path / "ada.ipynb", **options)
        grading = Grading(book, read_cells(path), chapter)
        return {number: grading.grade(number) for number in grading.tasks}

    return judge


def solution_of(book, place):
    return sheets(book, "99")[0].tasks[place].solved()


def code(source, name="added"):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return cell | {"id": name, "outputs": [], "source": source}


# --- One submission ---------------------------------------------------------------


def test_right_wrong_and_open_answers_are_told_apart(marks):
    found = marks(
        first="my_spread = 64", second=WRONG, fourth="class ExampleScores: ..."
    )
    assert found["99.1"] == VARIANCE
    assert found["99.2"][0] == "failed"
    assert found["99.3"] == ("passed", "")
    assert found["99.4"] == ("open", "")
    assert marks() == PASSED


def test_outputs_and_a_check_of_the_student_s_own_are_not_believed(marks):
    def fake(cells):
        cells.insert(1, code("def check(*_):\n    return 'passed'"))
        shown = {"name": "stdout", "output_type": "stream", "text": "✅ Passed"}
        cell_of(cells, "check(example_softmax)")["outputs"] = [shown]

    found = marks(second=WRONG, change=fake)
    assert found["99.2"][0] == "failed"
    assert found | {"99.2": ("passed", "")} == PASSED


def test_an_answer_that_was_decorated_is_the_student_s_own(marks, book):
    assert marks(second=f"@torch.no_grad()\n{solution_of(book, 1)}") == PASSED


def test_of_copied_cells_the_last_that_is_filled_in_counts(marks):
    def copy_stub(cells):
        place = cells.index(cell_of(cells, "def example_softmax"))
        for number, source in enumerate([WRONG, source_of(cells[place]), OPEN], 1):
            twin = copy.deepcopy(cells[place])
            cells.insert(place + number, twin | {"id": f"twin-{number}"})
            twin["source"] = source
            cells[place + number]["source"] = source

    assert marks(change=copy_stub) == PASSED
    assert marks(change=copy_stub, second=WRONG)["99.2"][0] == "failed"


def test_of_deleted_cells_the_exercise_stays_open(marks):
    def delete(cells):
        cells.remove(cell_of(cells, "def example_softmax"))

    assert marks(change=delete) == PASSED | {"99.2": ("open", "not in the notebook")}


def without_tags_and_ids(cells):
    for cell in cells:
        cell["metadata"] = {}
        del cell["id"]


def all_in_one_cell(cells):
    sources = [source_of(cell) for cell in cells if cell["cell_type"] == "code"]
    cells[:] = [code("\n".join(sources))]


def without_imports(cells):
    cells.pop(0)


@pytest.mark.parametrize(
    "change", [without_tags_and_ids, all_in_one_cell, without_imports]
)
def test_answers_are_found_wherever_they_stand(marks, change):
    assert marks(change=change) == PASSED


def test_an_answer_below_its_open_stub_is_found(marks, book):
    def add(cells):
        cells.append(code(solution_of(book, 1)))

    assert marks(second=OPEN, change=add) == PASSED


def ids_as_colab_keeps_them(cells):
    for cell in cells:
        cell["metadata"] = {"id": cell.pop("id")}


def without_ids(cells):
    for cell in cells:
        del cell["id"]


@pytest.mark.parametrize("change", [None, ids_as_colab_keeps_them, without_ids])
def test_a_renamed_answer_is_found_by_its_cell_and_named(marks, book, change):
    mine = solution_of(book, 1).replace("example_softmax", "mine")
    found = marks(second=mine, change=change)
    assert found["99.2"] == ("passed", "named mine, not example_softmax")


def test_only_what_an_answer_needs_is_run(marks):
    def train(cells):
        cells.insert(1, code("history = 1 / 0\nraise SystemExit"))
        cells.insert(2, code("from math import *\n%time\nroot = sqrt\ntorch?", "more"))
        half = (
            "def half(x):\n    history = 4\n    history *= x\n    return root(history)"
        )
        cells.insert(3, code(half, "below"))

    assert marks(first="my_spread = 0\nmy_spread += half(16)", change=train) == PASSED


def test_a_built_in_name_that_is_bound_further_down_keeps_its_meaning(marks, book):
    def bind(cells):
        cells.append(code("float = 3"))

    answer = solution_of(book, 1).replace("torch.inf", 'float("inf")')
    assert "float" in answer
    assert marks(second=answer, change=bind) == PASSED


def test_an_answer_that_needs_what_fails_is_told_the_first_error(marks):
    def train(cells):
        cells.insert(1, code("model = 1 / 0"))

    failed = "failed", "ZeroDivisionError: division by zero"
    assert marks(first="my_spread = model", change=train)["99.1"] == failed


def test_what_is_not_python_is_told_where(marks):
    found = marks(
        second="def example_softmax(scores)\n    pass", first="my_spread = = 8"
    )
    for number in ("99.1", "99.2"):
        assert found[number][0] == "failed"
        assert found[number][1].startswith("SyntaxError: ")
        assert "line 1" in found[number][1]
    assert found["99.3"] == ("passed", "")


def test_the_book_s_own_use_of_a_name_is_nobody_s_answer(marks, book):
    path = book / "notebooks" / "99_example.ipynb"
    kept = path.read_bytes()
    content = json.loads(kept)
    content["cells"].append(code("example_softmax = torch.softmax", "used"))
    path.write_text(json.dumps(content))
    try:
        assert marks(second=OPEN)["99.2"] == ("open", "")
    finally:
        path.write_bytes(kept)


def test_a_notebook_without_an_exercise_asks_for_the_chapter(marks):
    with pytest.raises(ValueError, match="no exercise of the book is in it"):
        marks(change=list.clear)
    missing = ("open", "not in the notebook")
    assert marks(change=list.clear, chapter="99") == dict.fromkeys(PASSED, missing)


# --- Its process ------------------------------------------------------------------


@pytest.fixture
def harmful(tmp_path):
    """Return a function that writes a chapter 1 with these answers, or right ones."""

    def write(**answers):
        [sheet] = sheets(ROOT, "1")
        for task in sheet.tasks:
            number = task.exercise.number.replace(".", "_")
            task.stub["source"] = answers.get(f"_{number}", task.solved())
        path = tmp_path / "eve.ipynb"
        path.write_text(json.dumps(sheet.notebook))
        return path

    return write


def test_what_ends_a_process_fails_one_exercise_and_a_new_one_does_the_rest(harmful):
    path = harmful(
        _1_1="import os\nprint('x' * 10**6)\nmy_difference = 2.1972",
        _1_2="def top_k_weights(scores, k):\n    os._exit(0)\nimport os",
        _1_4="my_lead = [0.0] * 10**10",
    )
    assert grade(ROOT, path, seconds=120) == {
        "1.1": ("passed", ""),
        "1.2": ("failed", "ended the process (exit status 0)"),
        "1.3": ("passed", ""),
        "1.4": ("failed", "MemoryError: "),
        "1.5": ("passed", ""),
    }


def test_an_answer_that_empties_its_folder_keeps_its_marks(harmful):
    empty = "import os\nfor name in os.listdir():\n    os.remove(name)\n"
    found = grade(ROOT, harmful(_1_1=f"{empty}my_difference = 2.1972"))
    assert len(found) == 5 and {*found.values()} == {("passed", "")}


def test_a_loop_that_never_ends_costs_its_exercise_alone(harmful):
    found = grade(ROOT, harmful(_1_4="while True: pass\nmy_lead = []"), seconds=10)
    assert found.pop("1.4") == ("failed", "took longer than 10 seconds")
    assert {status for status, _ in found.values()} == {"passed"}


def test_a_file_that_is_no_notebook_says_so(tmp_path):
    path = tmp_path / "eve.ipynb"
    path.write_bytes(b'{"cells": [')
    [(number, (status, remark))] = grade(ROOT, path).items()
    assert number == status == ""
    assert remark.startswith("could not be graded: JSONDecodeError: Expecting value")


def test_ctrl_c_is_no_fault_of_the_submission(harmful):
    end = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nmy_difference = 1"
    found = grade(ROOT, harmful(_1_1=end))
    assert found == {"": ("", f"could not be graded: {STOPPED}")}


# --- The table --------------------------------------------------------------------


def test_the_table_has_a_row_for_each_student_and_a_column_for_each_exercise():
    found = {
        "eve": {"": ("", "could not be graded: KeyError: 'cells'")},
        "bob": {"10.1": ("open", "")},
        "ada": {"2.10": ("failed", "no scale"), "2.9": ("passed", "")},
        "dan": {"2.9": ("failed", "no scale")},
        "zoe\udce9": {"2.10": ("failed", "no scale")},
    }
    assert table(found) == (
        "student,2.9,2.10,10.1,passed,remarks\n"
        "ada,passed,failed,,1,2.10 no scale\n"
        "bob,,,open,0,\n"
        "dan,failed,,,0,2.9 no scale\n"
        "eve,,,,0,could not be graded: KeyError: 'cells'\n"
        "zoe\\udce9,,failed,,0,2.10 no scale\n"
    )
    assert mistakes(found) == [("2.10 no scale", 2), ("2.9 no scale", 1)]


def test_equally_frequent_mistakes_come_in_the_order_of_students():
    found = {"bob": {"2.9": ("failed", "a")}, "ada": {"2.9": ("failed", "b")}}
    assert mistakes(found) == [("2.9 b", 1), ("2.9 a", 1)]


def test_files_and_folders_name_each_notebook_once(tmp_path):
    for name in ("b/3.ipynb", "a/3.ipynb", "a.txt", ".ipynb_checkpoints/3.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_notebooks([tmp_path, tmp_path / "b" / "3.ipynb"])
    assert found == [tmp_path / "a" / "3.ipynb", tmp_path / "b" / "3.ipynb"]
    with pytest.raises(ValueError, match="there is no notebook in nowhere"):
        find_notebooks(["nowhere"])


@pytest.fixture
def submissions(tmp_path, monkeypatch):
    """Make a folder of three, graded by their names alone; work beside the book."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(report, "PROCESSES", 1)
    for name in ("c", "a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "03.ipynb").touch()

    def judge(root, path, **rules):
        return {"3.1": ("failed", f"no scale in {rules['seconds']}")}

    monkeypatch.setattr(report, "grade", judge)
    return tmp_path / "in"


def test_the_command_line_writes_the_table_and_counts_the_mistakes(
    submissions, tmp_path, capsys
):
    out = tmp_path / "new" / "report.csv"
    words = ["exercises", "--report", str(submissions), "--out", str(out)]
    assert main([*words, "--seconds", "5"]) == 0
    assert capsys.readouterr().out == (
        f"3 submissions are in {out}.\n   3 × 3.1 no scale in 5\n"
    )
    rows = [*csv.DictReader(out.read_text().splitlines())]
    assert [row["student"] for row in rows] == ["a/03", "b/03", "c/03"]
    assert {row["3.1"] for row in rows} == {"failed"}


def test_what_was_graded_before_the_report_ends_is_kept(
    submissions, tmp_path, monkeypatch
):
    def judge(root, path, **rules):
        if path.parent.name == "b":
            raise OSError("too many processes")
        return {"3.1": ("passed", "")}

    monkeypatch.setattr(report, "grade", judge)
    with pytest.raises(OSError, match="too many"):
        write_report(ROOT, [submissions], tmp_path / "report.csv", seconds=5)
    assert "a/03,passed,1," in (tmp_path / "report.csv").read_text()


def test_what_cannot_be_is_known_before_anything_is_graded(
    submissions, tmp_path, monkeypatch
):
    monkeypatch.setattr(report, "grade", lambda *_, **__: pytest.fail("graded"))
    with pytest.raises(ValueError, match="there is no chapter 77"):
        write_report(ROOT, [submissions], tmp_path / "report.csv", chapter="77")
    with pytest.raises(OSError, match="directory"):
        write_report(ROOT, [submissions], submissions)
