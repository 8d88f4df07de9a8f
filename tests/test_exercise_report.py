"""Who passed what: answers are found and judged, and no submission harms the report."""

import copy
import csv
import io
import json
import textwrap
from pathlib import Path

import pytest
from classroom import cell_of, handed_in, make_book

from tutorial_lib.__main__ import main
from tutorial_lib.tools.classroom import process, report
from tutorial_lib.tools.classroom.grader import Grading
from tutorial_lib.tools.classroom.process import Outcome, grade
from tutorial_lib.tools.classroom.sheets import sheets
from tutorial_lib.tools.classroom.submission import Unusable, read_cells
from tutorial_lib.tools.notebooks import source_of

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
        grading = Grading(book, path, chapter)
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
    from tutorial_lib.exercises.cards import Result

    monkeypatch.setattr(Result, "passed", True)
    assert {remark for _, remark in marks().values()} == {
        "the check was tampered with: it accepts a wrong answer"
    }


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
def graded_by(monkeypatch, tmp_path):
    """Return a function that grades by another program, which costs no torch."""

    def judge(program, *, seconds=1):
        opening = """
            import json, os, sys, time
            job = json.load(sys.stdin)
            done, secret = job["done"], job["secret"]
            def say(secret=secret, **words):
                print(json.dumps(words | {"secret": secret}), flush=True)
            say(chapter=1, exercises=["1.1", "1.2"])
            def passed(number):
                say(number=number, status="passed", remark="")
            """
        whole = textwrap.dedent(opening) + textwrap.dedent(program)
        monkeypatch.setattr(process, "PROGRAM", whole)
        return grade(ROOT, tmp_path / "ada.ipynb", seconds=seconds, gigabytes=4).marks

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
            time.sleep(3)
        os._exit(0)
        """
    assert graded_by(program)["1.2"] == ("failed", "took longer than 1 seconds")


def test_a_grader_knows_no_secret_and_its_folder_is_deleted(
    graded_by, monkeypatch, tmp_path
):
    monkeypatch.setenv("SECRET", "1")
    program = f"""
        open("left", "w").close()
        found = [os.getcwd(), os.environ["HOME"], "SECRET" in os.environ]
        open({str(tmp_path / "found")!r}, "w").write(json.dumps(found))
        passed("1.1"); passed("1.2")
        """
    graded_by(program)
    folder, home, knows_secret = json.loads((tmp_path / "found").read_text())
    assert folder == home
    assert not Path(folder).exists()
    assert not knows_secret


def test_a_process_that_cannot_start_is_a_reason_not_to_grade(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "PROGRAM", "raise SystemExit(1)")
    outcome = grade(ROOT, tmp_path / "ada.ipynb", seconds=1, gigabytes=4)
    assert outcome == Outcome(problem="ended the process (exit status 1)")


def test_the_grader_itself_outlives_a_harmful_submission(tmp_path):
    [sheet] = sheets(ROOT, "1")
    for task in sheet.tasks:
        task.stub["source"] = task.solved()
    harm = "import os\nprint('x' * 10**6)\nos.fork()\nmy_difference = 2.1972"
    sheet.tasks[0].stub["source"] = harm
    end = "def top_k_weights(scores, k):\n    os._exit(0)\nimport os"
    sheet.tasks[1].stub["source"] = end
    sheet.tasks[3].stub["source"] = "my_scores = [0.0] * 10**10"
    path = tmp_path / "eve.ipynb"
    path.write_text(json.dumps(sheet.notebook))
    outcome = grade(ROOT, path, seconds=120, gigabytes=3)
    assert outcome == Outcome(
        chapter=1,
        marks={
            "1.1": ("passed", ""),
            "1.2": ("failed", "ended the process (exit status 0)"),
            "1.3": ("passed", ""),
            "1.4": ("failed", "MemoryError: "),
        },
    )


# --- The table --------------------------------------------------------------------


def test_the_table_has_a_row_for_each_student_and_a_column_for_each_exercise():
    outcomes = {
        "eve": Outcome(problem="not a notebook"),
        "bob": Outcome(10, {"10.1": ("open", "")}),
        "ada": Outcome(2, {"2.10": ("failed", "no-scale"), "2.9": ("passed", "")}),
        "=ada()": Outcome(2, {"2.9": ("failed", "error:\nodd")}),
    }
    assert report.table(outcomes) == (
        "student,chapter,2.9,2.10,10.1,passed,remarks\n"
        "'=ada(),2,failed,,,0,2.9 error: odd\n"
        "ada,2,passed,failed,,1,2.10 no-scale\n"
        "bob,10,,,open,0,\n"
        "eve,,,,,,could not be graded: not a notebook\n"
    )


def test_students_are_named_by_their_files_and_by_their_folders_where_that_is_needed():
    paths = [Path("in/ada/ch03.ipynb"), Path("in/bob/ch03.ipynb")]
    assert report.students(paths) == ["ada/ch03", "bob/ch03"]
    assert report.students([Path("ada.ipynb"), Path("in/bob.ipynb")]) == ["ada", "bob"]


def test_files_folders_and_patterns_name_each_notebook_once(tmp_path, monkeypatch):
    for name in ("b.ipynb", "a.ipynb", "notes.txt", ".ipynb_checkpoints/a.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    both = [Path("a.ipynb"), Path("b.ipynb")]
    assert report.find_notebooks(["*.ipynb", "a.ipynb", "."]) == both
    with pytest.raises(ValueError, match="there is no c"):
        report.find_notebooks(["c.ipynb"])


def test_the_command_line_writes_the_table_in_order(tmp_path, monkeypatch, capsys):
    def judge(root, path, **rules):
        return Outcome(1, {"1.1": ("passed", f"{path.stem} {rules['seconds']}")})

    monkeypatch.setattr(report, "grade", judge)
    monkeypatch.chdir(ROOT)
    files = [tmp_path / f"{name}.ipynb" for name in ("c", "a", "b")]
    for file in files:
        file.touch()
    out = tmp_path / "report.csv"
    arguments = ["exercises", "--report", *map(str, files), "--out", str(out)]
    assert main([*arguments, "--seconds", "5"]) == 0
    assert capsys.readouterr().out == f"3 submissions are in {out}.\n"
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["remarks"] for row in rows] == ["1.1 a 5.0", "1.1 b 5.0", "1.1 c 5.0"]


def test_ctrl_c_ends_what_is_being_graded_and_keeps_what_was(tmp_path, monkeypatch):
    program = """
        import json, os, signal, sys, time
        job = json.load(sys.stdin)
        def say(**words):
            print(json.dumps(words | {"secret": job["secret"]}), flush=True)
        say(chapter=1, exercises=["1.1"])
        if "first" not in job["path"]:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)
        say(number="1.1", status="passed", remark="")
        """
    monkeypatch.setattr(process, "PROGRAM", textwrap.dedent(program))
    monkeypatch.setattr(report, "PROCESSES", 1)
    for name in ("1-first", "2-second", "3-third"):
        (tmp_path / f"{name}.ipynb").touch()
    outcomes = report.grade_all(ROOT, [str(tmp_path)], seconds=90, gigabytes=1)
    stopped = Outcome(problem="stopped by Ctrl-C")
    passed = Outcome(1, {"1.1": ("passed", "")})
    assert [*outcomes.values()] == [passed, stopped, stopped]


def test_a_table_that_cannot_be_written_is_known_before_anything_is_graded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(report, "grade", lambda *_, **__: pytest.fail("graded"))
    for out in (tmp_path / "ada.ipynb", tmp_path / "nowhere" / "report.csv"):
        with pytest.raises(ValueError, match=r"not, choose another|cannot be written"):
            report.write_report(ROOT, [str(tmp_path)], out, seconds=1, gigabytes=1)
