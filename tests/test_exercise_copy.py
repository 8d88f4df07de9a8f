"""A copy of the book without solutions: it checks, and gives no answer away."""

import ast
import json
import os
import subprocess
import sys

import pytest
from exercise_chapters import ROOT, chapters

from tools.exports import export

CHAPTERS = chapters()
TRIVIAL = 45  # characters: shorter lines are those of many answers

SESSION = """\
import json, torch
from tutorial_exercises import check, solution, use
from tutorial_exercises.check import find

def not_transposed(context, W_O):
    return context @ W_O.weight.reshape(context.shape[1], context.shape[-1], -1)

def right(context, W_O):
    return context @ W_O.weight.T.unflatten(0, (context.shape[1], -1))

print(json.dumps({
    "wrong": check(not_transposed, "8.3").message,
    "right": check(right, "8.3").status,
    "value": check({"rank": 96, "parameters": 37248}, "8.5").message,
    "solution": str(solution("8.3")),
    "used": use(lambda score, heads, loss: [], "8.4") is find("8.4").definition,
    "mistakes": len(find("8.3").known),
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Write the library as students get it; return its folder."""
    folder = tmp_path_factory.mktemp("copy")
    export(ROOT, "otter", folder, "8")
    return folder


@pytest.fixture(scope="module")
def messages(copy):
    """Return what checks say in that copy."""
    environment = os.environ | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", SESSION]
    ran = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout.splitlines()[-1])


def test_a_mistake_is_told_by_its_difference(messages):
    assert "values differ. The first is at" in messages["wrong"]
    assert messages["mistakes"] == 0
    assert messages["value"] == "Entry 'rank': 96 is not right."


def test_a_right_answer_passes_and_the_oracle_stands_in(messages):
    assert messages["right"] == "pass"
    assert messages["used"] is True
    assert "not part of this copy" in messages["solution"]


def given(chapter):
    """Return the lines that a chapter's stubs give."""
    cells = chapter.notebook.cells
    stubs = [cells[place].source for _, place, _ in chapter.stubs()]
    return set(map(without_comment, "\n".join(stubs).splitlines()))


def without_comment(line):
    return line.split("  #")[0].strip()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: str(chapter.number))
def test_no_line_of_a_solution_stands_in_what_students_get(chapter, copy):
    lines = {
        ast.unparse(part)
        for task in chapter.exercises
        for part in ast.walk(ast.parse(task.source))
        if isinstance(part, (ast.Assign, ast.Return, ast.AugAssign))
    }
    secret = {line for line in lines if len(line) >= TRIVIAL} - given(chapter)
    exercises = [*(copy / "tutorial_exercises").rglob("*.*")]
    assert len(exercises) > len(CHAPTERS)
    for path in exercises:
        lines = set(map(without_comment, path.read_text("utf-8").splitlines()))
        assert secret & lines == set(), path
