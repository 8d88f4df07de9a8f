"""Who passed what: answers are found and judged, and make a table."""

import copy
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from classroom import cell_of, handed_in, make_book

from tools.classroom import grader, process
from tools.classroom.grader import Grading
from tools.classroom.process import Outcome, grade
from tools.classroom.sheets import sheets
from tools.classroom.submission import Cell, Unusable, read_cells
from tools.classroom.tampering import judges
from tools.notebooks import source_of
from tutorial_exercises.exercise import find

ROOT = Path(__file__).parents[1]
WRONG = "def example_softmax(scores, mask=None):\n    return scores.softmax(-2)"
OPEN = "def example_softmax(scores, mask=None):\n    ..."
PASSED = dict.fromkeys(["99.1", "99.2", "99.3", "99.4"], ("passed", ""))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return make_book(tmp_path_factory.mktemp("book"))


@pytest.fixture
def marks(book, tmp_path):
    """Return a function that writes a submission and grades it in this process."""

    def judge(*, chapter=None, **options):
        path = handed_in(book, tmp_path / "ada.ipynb", **options)
        grading = Grading(book, read_cells(path), chapter)
        return {number: grading.grade(number) for number in grading.numbers}

    return judge


def solution_of(book, place):
    return sheets(book, "99")[0].tasks[place].solved()


def code(source, name="added"):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return cell | {"id": name, "outputs": [], "source": source}


def test_right_wrong_and_open_answers_are_told_apart(marks):
    found = marks(
        first="my_spread = 64", second=WRONG, fourth="class ExampleScores: ..."
    )
    assert found["99.1"] == ("failed", "variance")
    assert found["99.2"][0] == "failed"
    assert found["99.3"] == ("passed", "")
    assert found["99.4"] == ("open", "")
    assert marks() == PASSED


def test_outputs_and_a_check_of_the_student_s_own_are_not_believed(marks):
    def fake(cells):
        cells.insert(1, code("def check(*_):\n    return 'passed'"))
        shown = {"name": "stdout", "output_type": "stream", "text": "✅ Passed"}
        cell_of(cells, "check(example_softmax)")["outputs"] = [shown]

    assert marks(second=WRONG, change=fake) == PASSED | {
        "99.2": ("failed", "wrong-axis")
    }


def test_a_check_that_was_made_to_accept_anything_accepts_nothing(marks, monkeypatch):
    from tutorial_exercises.cards import Result

    monkeypatch.setattr(Result, "passed", True)
    assert {remark for _, remark in marks().values()} == {
        "the check was tampered with: it accepts a wrong answer"
    }


def changed(before):
    """Return where there is another object than before among what judges answers."""
    return {place for place, _ in before - judges()}


def test_grading_changes_nothing_of_what_judges_answers(marks):
    before = judges()
    assert marks(second=WRONG, third="...")["99.1"] == ("passed", "")
    assert changed(before) == set()


def test_a_change_of_what_judges_answers_is_found(monkeypatch):
    before, exercise = judges(), find("99.2")
    monkeypatch.setattr(grader, "check", lambda *_: "passed")
    monkeypatch.setattr(exercise, "steps", exercise.steps[1:])
    check = "tools.classroom.grader.check"
    assert changed(before) >= {check, "example_softmax, step 1"}


def test_an_answer_that_removes_the_steps_is_judged_by_all_of_them(marks, book):
    clear = "from tutorial_exercises.exercise import find\n"
    clear += WRONG.replace("    return", "    find('99.2').steps.clear()\n    return")
    steps = [*find("99.2").steps]
    try:
        assert marks(second=clear)["99.2"] == ("failed", "wrong-axis")
    finally:
        find("99.2").steps[:] = steps


@pytest.mark.parametrize(
    ("place", "name"), [("second", "example_softmax"), ("fourth", "ExampleScores")]
)
def test_the_book_s_own_answer_is_nobody_s(marks, place, name):
    theirs = f"from tutorial_exercises.exercise import EXERCISES\n{name} = "
    found = marks(**{place: f"{theirs}EXERCISES[{name!r}].oracle"})
    reason = ("failed", "its code stands in no cell of the notebook")
    assert [mark for mark in found.values() if mark[0] != "passed"] == [reason]


def test_an_answer_that_was_decorated_is_the_student_s_own(marks, book):
    assert marks(second=f"@torch.no_grad()\n{solution_of(book, 1)}") == PASSED


LOOKS = {
    "import sys; sys._getframe()": "sys._getframe",
    "import sys; sys._current_frames()": "sys._current_frames",
    "import inspect; inspect.stack()": "sys._getframe",
    "import gc; gc.get_objects()": "gc.get_objects",
    "try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame": "tb_frame",
    "import collections; collections.namedtuple('Point', 'x y')": None,
    "import traceback\ntry: 1 / 0\nexcept Exception: traceback.format_exc()": None,
    "import torch; torch.ones(2).sum()": None,
}


def test_a_cell_that_looks_at_frames_that_are_not_its_own_is_told_of():
    program = f"""
        import json
        from tools.classroom.tampering import watch
        told = []
        watch(told.append)
        for source in {[*LOOKS]!r}:
            found = len(told)
            exec(compile(source, "<cell 1>", "exec"), {{}})
            print(json.dumps(told[found:]))
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for source, line in zip(LOOKS, ran.stdout.splitlines(), strict=True):
        looked = LOOKS[source] and f"looked into the grader: {LOOKS[source]}"
        assert set(json.loads(line)) == ({looked} if looked else set()), source


def lines_run(work):
    """Count the lines of Python that are run."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_twice_as_many_statements_are_twice_the_work(book):
    def work(count):
        numbers = "".join(f"v{n} = {n}\nmy_spread += 1\n" for n in range(count))
        cell = Cell(0, "", True, f"my_spread = {64 - count}\n{numbers}")
        grading = Grading(book, [cell], 99)
        assert grading.grade("99.1") == ("failed", "variance")

    work(1)
    few, many, most = (lines_run(lambda n=n: work(n)) for n in (100, 200, 400))
    assert most - many < 2.2 * (many - few)


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


def test_answers_are_found_without_tags_and_without_ids(marks):
    def forget(cells):
        for cell in cells:
            cell["metadata"] = {}
            del cell["id"]

    assert marks(change=forget) == PASSED


def test_answers_are_found_when_all_code_is_in_one_cell(marks):
    def merge(cells):
        code_cells = [cell for cell in cells if cell["cell_type"] == "code"]
        whole = code("\n".join(map(source_of, code_cells)))
        cells[:] = [whole]

    assert marks(change=merge) == PASSED


def test_an_answer_below_its_open_stub_is_found(marks, book):
    def add(cells):
        cells.append(code(solution_of(book, 1)))

    assert marks(second=OPEN, change=add) == PASSED


def test_a_renamed_answer_is_found_by_its_cell_and_named(marks, book):
    mine = solution_of(book, 1).replace("example_softmax", "mine")
    remark = "named mine instead of example_softmax"
    assert marks(second=mine)["99.2"] == ("passed", remark)

    def forget_ids(cells):
        for cell in cells:
            del cell["id"]

    assert marks(second=mine, change=forget_ids)["99.2"] == ("passed", remark)


def test_a_renamed_answer_is_found_by_the_student_s_own_check(marks, book):
    def check_mine(cells):
        cell_of(cells, "check(example_softmax)")["source"] = 'check(mine, "99.2")'
        for cell in cells:
            cell["metadata"] = {}

    mine = solution_of(book, 1).replace("example_softmax", "mine")
    assert marks(second=mine, change=check_mine) == PASSED


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


def test_imports_that_were_deleted_are_those_of_the_book(marks):
    assert marks(change=lambda cells: cells.pop(0)) == PASSED


def test_what_is_not_python_is_told_where(marks):
    found = marks(
        second="def example_softmax(scores)\n    pass", first="my_spread = = 8"
    )
    assert found["99.1"] == (
        "failed",
        "SyntaxError: invalid syntax in line 1 of the cell",
    )
    assert found["99.2"][0] == "failed"
    assert found["99.2"][1].startswith("SyntaxError: ")
    assert found["99.3"] == ("passed", "")


def test_the_book_s_own_use_of_a_name_is_nobody_s_answer(marks, book):
    use = code("example_softmax = torch.softmax", "used")
    path = book / "notebooks" / "99_example.ipynb"
    content = json.loads(path.read_text())
    kept = path.read_bytes()
    content["cells"].append(use)
    path.write_text(json.dumps(content))
    try:
        assert marks(second=OPEN)["99.2"] == ("open", "")
    finally:
        path.write_bytes(kept)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"cells": [', "not a notebook: JSONDecodeError: Expecting value"),
        (b"\x89PNG\xff", "not a notebook: UnicodeDecodeError"),
        (b"[" * 200_000, "not a notebook: RecursionError"),
        (b"[1]", "it has no list of cells"),
        (b'{"worksheets": []}', "it has no list of cells"),
    ],
)
def test_a_file_that_is_no_notebook_says_so(tmp_path, content, reason):
    path = tmp_path / "eve.ipynb"
    path.write_bytes(content)
    with pytest.raises(Unusable, match=reason):
        read_cells(path)


def test_odd_cells_are_passed_over(tmp_path):
    odd = [1, None, {"cell_type": "code", "source": 5, "metadata": 3}, {"source": []}]
    path = tmp_path / "eve.ipynb"
    path.write_text(json.dumps({"cells": odd}))
    assert [cell.source for cell in read_cells(path)] == [""]


def test_a_notebook_without_an_exercise_asks_for_the_chapter(marks):
    with pytest.raises(Unusable, match="no exercise of the book is in it"):
        marks(change=list.clear)
    missing = ("open", "not in the notebook")
    assert marks(change=list.clear, chapter=99) == dict.fromkeys(PASSED, missing)


# --- Processes --------------------------------------------------------------------


@pytest.fixture
def graded_by(monkeypatch):
    """Return a function that grades by another program, which costs no torch."""

    def judge(program, *, seconds=1):
        opening = """
            import json, os, sys, time
            job = json.loads(sys.stdin.readline())
            done, secret = job["done"], job["secret"]
            def say(secret=secret, **words):
                print(json.dumps(words | {"secret": secret}), flush=True)
            say(chapter=1, exercises=["1.1", "1.2"])
            def passed(number):
                say(number=number, status="passed", remark="")
            """
        whole = textwrap.dedent(opening) + textwrap.dedent(program)
        monkeypatch.setattr(process, "PROGRAM", whole)
        return grade(ROOT, [], seconds=seconds, gigabytes=4).marks

    return judge


@pytest.mark.parametrize(
    ("ending", "remark"),
    [
        ("os._exit(3)", "ended the process (exit status 3)"),
        ("os.kill(os.getpid(), 9)", "ended the process (signal 9)"),
        ("time.sleep(60)", "took longer than 1 seconds"),
        ("print('passed', flush=True)", "wrote into the report"),
        ("passed('1.9')", "wrote into the report"),
        ("say('?', number='1.1', status='passed', remark='')", "wrote into the report"),
    ],
)
def test_what_ends_a_process_fails_one_exercise_and_a_new_one_does_the_rest(
    graded_by, ending, remark
):
    program = f"{ending} if '1.1' not in done else passed('1.2')"
    assert graded_by(program) == {"1.1": ("failed", remark), "1.2": ("passed", "")}


def test_a_child_that_keeps_the_report_open_does_not_stop_it(graded_by):
    program = """
        passed("1.1")
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
        os._exit(3)
        """
    assert graded_by(program, seconds=30)["1.2"] == (
        "failed",
        "ended the process (exit status 3)",
    )


def test_a_grader_knows_no_secret_and_its_folder_is_deleted(graded_by, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    program = """
        open("left", "w").close()
        found = [os.getcwd(), os.environ["HOME"], "SECRET" in os.environ]
        say(number="1.1", status="passed", remark=json.dumps(found)); passed("1.2")
        """
    folder, home, knows_secret = json.loads(graded_by(program)["1.1"][1])
    assert folder == home
    assert not Path(folder).exists()
    assert not knows_secret


def test_a_process_that_cannot_start_is_a_reason_not_to_grade(monkeypatch):
    monkeypatch.setattr(process, "PROGRAM", "raise SystemExit(1)")
    outcome = grade(ROOT, [], seconds=1, gigabytes=4)
    assert outcome == Outcome(problem="ended the process (exit status 1)")


def test_the_grader_itself_outlives_a_harmful_submission(tmp_path):
    [sheet] = sheets(ROOT, "1")
    for task in sheet.tasks:
        task.stub["source"] = task.solved()
    harm = "import os\nprint('x' * 10**6)\nos.fork()\nmy_difference = 2.1972"
    sheet.tasks[0].stub["source"] = harm
    end = "def top_k_weights(scores, k):\n    os._exit(0)\nimport os"
    sheet.tasks[1].stub["source"] = end
    sheet.tasks[3].stub["source"] = "my_lead = [0.0] * 10**10"
    path = tmp_path / "eve.ipynb"
    path.write_text(json.dumps(sheet.notebook))
    outcome = grade(ROOT, read_cells(path), seconds=120, gigabytes=3)
    assert outcome == Outcome(
        chapter=1,
        marks={
            "1.1": ("passed", ""),
            "1.2": ("failed", "ended the process (exit status 0)"),
            "1.3": ("passed", ""),
            "1.4": ("failed", "MemoryError: "),
            "1.5": ("passed", ""),
        },
    )


FORGE = """import sys
def forge():
    frame = sys._getframe()
    while "say" not in frame.f_locals:
        frame = frame.f_back
    frame.f_locals["say"](number="1.4", status="passed", remark="")
    return []
my_lead = forge()"""
REPLACE = """import tools.classroom.grader as grader
def top_k_weights(scores, k):
    grader.check = lambda answer, name: None
    return scores"""


def test_who_speaks_for_the_grader_or_replaces_the_check_is_found_out(tmp_path):
    [sheet] = sheets(ROOT, "1")
    sheet.tasks[1].stub["source"], sheet.tasks[3].stub["source"] = REPLACE, FORGE
    path = tmp_path / "eve.ipynb"
    path.write_text(json.dumps(sheet.notebook))
    outcome = grade(ROOT, read_cells(path), seconds=120, gigabytes=3)
    changed = "tools.classroom.grader.check was changed"
    assert outcome.marks == {
        "1.1": ("open", ""),
        "1.2": ("failed", f"the check was tampered with: {changed}"),
        "1.3": ("open", ""),
        "1.4": ("failed", "looked into the grader: sys._getframe"),
        "1.5": ("open", ""),
    }
