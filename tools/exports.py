"""Write the chapters for a class: without solutions, or as masters for a grader.

Or the solutions alone, in one document for instructors: the answer key.

A master holds stubs, solutions and tests, the book's own checks; Otter Assign or
nbgrader makes the students' copy of it. What is written depends on the book alone, and
a file that is there already and differs is left as it is, and named. Nothing is run.
"""

import ast
import re
from pathlib import Path

from tools.files import read_text, write_whole
from tools.notebooks import as_text, code_cells, source_of, tags_of
from tools.sheets import sheets

ROOT = Path(__file__).parents[1]
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
# Otter's container has no GPU, and this index has the wheels for that.
TORCH_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"

OTTER_CONFIG = """\
# ASSIGNMENT CONFIG
name: {name}
init_cell: false
check_all_cell: false
export_cell: false
generate: true
python_version: "3.13"
requirements: requirements.txt
files: [tutorial_lib, tutorial_exercises, tutorial_figures]"""

# With an empty stub a student's copy runs from top to bottom, as the book does:
# nbgrader's own stub raises an error.
NBGRADER_CONFIG = '''\
"""How nbgrader treats the chapters of the book, which must be installed beside it."""

import os

import tutorial_exercises  # noqa: F401

# Else what one student has passed would count as passed earlier by the next.
os.environ["TUTORIAL_PROGRESS"] = "off"
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {"python": ""}
c.ExecutePreprocessor.timeout = 300  # seconds a cell may take
'''

KEY = """\
# Answers to the exercises

A solution stands in the place of the blanks in its stub. Other answers may be right:
what counts is the check in the notebook.
"""

# By its number, so that a cell that stopped, or another name, is told as in a notebook.
# Otter runs all lines, whatever fails, and shows the last that did.
TEST = """\
import tutorial_exercises

result = tutorial_exercises.check("{number}")
assert result.passed, f"{{result.note}} {{result.message}}".strip()"""
TEST_OF_VALUE = """\
import tutorial_exercises

result = tutorial_exercises.check(globals().get("{name}"), "{number}")
missing = "There is no `{name}` in this notebook: did its cell stop with an error?"
assert result.passed, result.message if "{name}" in globals() else missing"""


def export(root, kind, folder, *wanted):
    """Write chapters for "student", "otter" or "nbgrader", or the answers' "key".

    All chapters, or those ``wanted``: "3" or "03". Returns the paths of the files.

    Raises ValueError, before anything is written, if there is no such chapter or if a
    file is there already and differs, and OSError if one cannot be written.
    """
    contents = {}
    chosen = sheets(root, *wanted)
    if kind == "key":
        contents["answer_key.md"] = answer_key(chosen)
    if kind in FILES:
        for sheet in chosen:
            without_solutions(sheet)
            contents.update(FILES[kind](sheet))
    if kind == "otter":
        contents.update(_library())
    files = {Path(folder) / name: content for name, content in contents.items()}
    for path, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        if path.exists() and path.read_bytes() != content:
            raise ValueError(
                f"{path} is there already and differs, so nothing is written: name an "
                "empty folder, or move it away"
            )
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    return [*files]


def answer_key(chosen):
    """Return the solutions of some sheets, in order, as Markdown.

    Raises ValueError for an exercise without a solution.
    """
    parts = [KEY]
    for sheet in chosen:
        title = source_of(sheet.notebook["cells"][0]).partition("\n")[0].strip("# ")
        parts.append(f"## {title}\n")
        for task in sheet.tasks:
            code = f"```python\n{task.solved().strip()}\n```\n"
            parts.append(f"### {task.exercise.heading}\n\n{code}")
    return "\n".join(parts)


def without_solutions(sheet):
    """Take out of a sheet the cells that show solutions, and what gives them away.

    From a stub to the next heading no cell keeps what it showed, since what uses an
    answer shows it.
    """
    kept = []
    inside = False
    for cell in sheet.notebook["cells"]:
        if "solution" in tags_of(cell):
            continue
        if cell["cell_type"] == "code":
            inside = inside or "exercise" in tags_of(cell)
            if inside:
                _clear(cell)
        elif re.search("^#", source_of(cell), re.MULTILINE):
            inside = False
        kept.append(cell)
    sheet.notebook["cells"] = kept


def _student(sheet):
    return {sheet.path.name: as_text(sheet.notebook)}


def _otter(sheet):
    config = _cell("raw", "otter", OTTER_CONFIG.format(name=sheet.path.stem))
    tasks = {task.stub["id"]: task for task in sheet.tasks}
    cells = [config]
    for cell in sheet.notebook["cells"]:
        task = tasks.get(cell["id"])
        cells += _otter_question(task) if task else [cell]
    return {sheet.path.name: _master(sheet, cells)}


def _otter_question(task):
    name = f"q{task.exercise.number.replace('.', '_')}"

    def mark(place, source):
        return _cell("raw", f"{name}-{place}", source)

    # The book's own check stands below: Otter's cell would need Otter to run.
    question = f"name: {name}\npoints: 1\ncheck_cell: false"
    return [
        mark("begin", f"# BEGIN QUESTION\n{question}"),
        mark("begin-answer", "# BEGIN SOLUTION"),
        _answered(task, "# BEGIN SOLUTION NO PROMPT", "# END SOLUTION"),
        mark("end-answer", "# END SOLUTION"),
        mark("begin-test", "# BEGIN TESTS"),
        _cell("code", f"{name}-test", _test(task)),
        mark("end-test", "# END TESTS"),
        mark("end", "# END QUESTION"),
    ]


def _nbgrader(sheet):
    by_stub = {task.stub["id"]: task for task in sheet.tasks}
    by_check = {task.check["id"]: task for task in sheet.tasks}
    cells = []
    for cell in sheet.notebook["cells"]:
        if cell["id"] in by_stub:
            cell = _nbgrader_answer(by_stub[cell["id"]])
        cells.append(cell)
        if cell["id"] in by_check:
            cells.append(_nbgrader_test(by_check[cell["id"]]))
    path = f"source/{sheet.path.stem}/{sheet.path.name}"
    return {path: _master(sheet, cells), "nbgrader_config.py": NBGRADER_CONFIG}


def _nbgrader_answer(task):
    cell = _answered(task, "### BEGIN SOLUTION", "### END SOLUTION")
    about = {"grade": False, "locked": False, "solution": True}
    return _about(cell, _grade_id(task), about)


def _nbgrader_test(task):
    """Return the cell that gives the point, whose test students do not see."""
    lines = ["# 1 point", "### BEGIN HIDDEN TESTS", _test(task), "### END HIDDEN TESTS"]
    name = f"{_grade_id(task)}-test"
    cell = _cell("code", name, "\n".join(lines))
    about = {"grade": True, "locked": True, "points": 1, "solution": False}
    return _about(cell, name, about)


def _grade_id(task):
    return f"exercise-{task.exercise.number.replace('.', '-')}"


def _about(cell, name, about):
    """Return a cell with what nbgrader has to know about it."""
    about = {**about, "grade_id": name, "schema_version": 3, "task": False}
    return {**cell, "metadata": {**cell["metadata"], "nbgrader": about}}


def _answered(task, begin, end):
    """Return the stub followed by the solution, which the students' copy lacks."""
    lines = [source_of(task.stub), begin, task.solved(), end]
    return task.stub | {"source": "\n".join(lines)}


def _test(task):
    test = TEST_OF_VALUE if task.exercise.is_value else TEST
    return test.format(name=task.name, number=task.exercise.number)


def _cell(kind, name, source):
    cell = {"cell_type": kind, "id": name, "metadata": {}, "source": source}
    if kind == "code":
        _clear(cell)
    return cell


def _master(sheet, cells):
    notebook = sheet.notebook | {"cells": cells}
    for cell in code_cells(notebook):
        _clear(cell)
    return as_text(notebook)


def _clear(cell):
    """Take from a code cell what it showed."""
    cell["outputs"] = []
    cell["execution_count"] = None


FILES = {"student": _student, "otter": _otter, "nbgrader": _nbgrader}


def _library():
    """Return what Otter packs: the packages without answers, and what they need."""
    files = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.*")):
            name = path.relative_to(ROOT).as_posix()
            if re.fullmatch(r"tutorial_exercises/(chapter_\d\d|x_\w+).py", name):
                files[name] = without_answers(read_text(path))
            elif path.suffix != ".pyc":
                files[name] = path.read_bytes()
    files["requirements.txt"] = "\n".join([TORCH_INDEX, *_pinned(), ""])
    return files


def without_answers(source):
    """Return a chapter's exercises without solutions, and edits that give them away."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
        if any(mark.startswith("Exercise(") for mark in marks):
            lines[node.body[0].lineno - 1 : node.end_lineno] = ["    ...\n"]
        target = getattr(node, "targets", [None])[0]
        if getattr(target, "attr", "") == "mistakes":
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)


def _pinned():
    """Return the pinned versions of what the packages depend on."""
    project = read_text(ROOT / "pyproject.toml")
    [listed] = re.findall(r"^dependencies = \[(.*?)^\]", project, re.M | re.S)
    names = set(re.findall(r'"([\w-]+)', listed))
    pins = read_text(ROOT / "requirements.txt").splitlines()
    return [pin for pin in pins if pin.partition("==")[0] in names]
