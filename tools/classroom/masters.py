"""Masters for two graders: Otter Assign and nbgrader, from the same notebook.

A master holds stubs, solutions and tests; the grader makes the students' copy of it.
The test is the book's own check. This module writes no file.
"""

from tools.notebooks import source_of

# With an empty stub a student's copy runs from top to bottom, as the book does:
# nbgrader's own stub raises an error.
NBGRADER_CONFIG = '''\
"""How nbgrader treats the chapters of the book."""

import importlib.util

if importlib.util.find_spec("tutorial_lib") is None:
    raise SystemExit(
        "tutorial_lib is not installed here, so that nobody would get a point: "
        "pip install the folder of the book"
    )

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {"python": ""}
c.ExecutePreprocessor.timeout = 300  # seconds a cell may take
'''

OTTER_CONFIG = """\
# ASSIGNMENT CONFIG
name: {name}
init_cell: false
check_all_cell: false
export_cell: false
generate: true
files: [tutorial_lib, tutorial_exercises, tutorial_figures]"""

TEST = """\
import tutorial_exercises

result = tutorial_exercises.check({name}, "{number}")
assert result.passed, result.message"""


def otter(sheet):
    """Return the master that `otter assign` takes, as plain dictionaries."""
    cells = [_cell("raw", "otter", OTTER_CONFIG.format(name=sheet.path.stem))]
    for cell, task in _with_tasks(sheet):
        cells += _otter_question(task) if task else [cell]
    return _master(sheet, cells)


def _otter_question(task):
    number = task.exercise.number.replace(".", "_")
    lines = ["# BEGIN SOLUTION NO PROMPT", task.solved(), "# END SOLUTION"]
    source = "\n".join([source_of(task.stub), *lines])
    test = _cell("code", f"q{number}-test", _test(task))
    return [
        _mark(number, "begin", f"# BEGIN QUESTION\nname: q{number}\npoints: 1"),
        _mark(number, "begin-answer", "# BEGIN SOLUTION"),
        task.stub | {"source": _lines(source)},
        _mark(number, "end-answer", "# END SOLUTION"),
        _mark(number, "begin-test", "# BEGIN TESTS"),
        test,
        _mark(number, "end-test", "# END TESTS"),
        _mark(number, "end", "# END QUESTION"),
    ]


def _mark(number, name, source):
    return _cell("raw", f"q{number}-{name}", source)


def nbgrader(sheet):
    """Return the source that `nbgrader generate_assignment` takes."""
    cells, checked = [], {task.check["id"]: task for task in sheet.tasks}
    for cell, task in _with_tasks(sheet):
        cells.append(_answer(task) if task else cell)
        if cell["id"] in checked:
            cells.append(_graded(checked[cell["id"]]))
    return _master(sheet, cells)


def _answer(task):
    """Return the stub followed by the solution, which the students' copy lacks."""
    lines = ["### BEGIN SOLUTION", task.solved(), "### END SOLUTION"]
    source = "\n".join([source_of(task.stub), *lines])
    about = {"grade": False, "locked": False, "solution": True}
    metadata = task.stub["metadata"] | _about_grade(_grade_id(task), about)
    return task.stub | {"metadata": metadata, "source": _lines(source)}


def _graded(task):
    """Return the cell that gives the point, whose test students do not see."""
    lines = ["# 1 point", "### BEGIN HIDDEN TESTS", _test(task), "### END HIDDEN TESTS"]
    name = f"{_grade_id(task)}-test"
    cell = _cell("code", name, "\n".join(lines))
    about = {"grade": True, "locked": True, "points": 1, "solution": False}
    cell["metadata"] = _about_grade(name, about)
    return cell


def _grade_id(task):
    return f"exercise-{task.exercise.number.replace('.', '-')}"


def _about_grade(name, about):
    return {"nbgrader": {"grade_id": name, "schema_version": 3, "task": False} | about}


def _with_tasks(sheet):
    """Yield (cell, None), or a stub and its task, in order."""
    tasks = {task.stub["id"]: task for task in sheet.tasks}
    for cell in sheet.notebook["cells"]:
        yield cell, tasks.get(cell["id"])


def _test(task):
    return TEST.format(name=task.name, number=task.exercise.number)


def _cell(kind, name, source):
    cell = {"cell_type": kind, "id": name, "metadata": {}, "source": _lines(source)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _lines(source):
    return source.splitlines(keepends=True)


def _master(sheet, cells):
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return sheet.notebook | {"cells": cells}
