"""No mutant of a right answer passes, but for those that are shown to be right.

Twenty of each exercise are tried, which no list of mistakes knows. What may pass stands
in `equivalent_mutants.diff` with its reason, read by hand. A mutant that passes and is
wrong is a hole in the exercise's check: mend the check.
"""

import random
from pathlib import Path

import pytest
from exercise_chapters import chapters, define
from mutants import mutants

from tutorial_exercises import check, run
from tutorial_exercises.mistakes import read

SEED, MOST = 1, 20
EQUIVALENT = read(
    Path(__file__).with_name("equivalent_mutants.diff").read_text("utf-8")
)
BOOK = [chapter for chapter in chapters() if chapter.notebook_path()]
TASKS = [(chapter, task) for chapter in BOOK for task in chapter.exercises]


def chosen(source):
    """Return some mutants; which of a line are chosen depends on that line alone."""

    def order(change):
        return random.Random(f"{SEED} {change}").random()

    found = {change: text for _, change, text in mutants(source)}
    return {change: found[change] for change in sorted(found, key=order)[:MOST]}


def answer_of(chapter, task, source):
    """Run the source; what cannot be run is no answer."""
    try:
        made = define(
            source, "answer" if task.is_value else task.name, vars(chapter.solutions)
        )
        return made() if task.is_value else made
    except Exception:
        return None


@pytest.mark.parametrize(
    ("chapter", "task"), TASKS, ids=[task.number for _, task in TASKS]
)
def test_only_mutants_that_are_right_pass(chapter, task, monkeypatch):
    monkeypatch.setattr(run, "SECONDS", 2.0)
    source = chapter.definitions.get(task.name)
    if task.is_value:
        source = f"def answer():\n    return {chapter.answers[task.name]!r}"
    tried = chosen(source)
    passed = {
        change
        for change, text in tried.items()
        if check(answer_of(chapter, task, text), task.name).passed
    }
    print(f"{task.number}: {len(tried)} mutants tried, {len(passed)} passed")
    right = {known(edit) for _, _, edit in EQUIVALENT.get(task.name, [])}
    assert passed == right
    assert len(tried) > len(passed)


def known(edit):
    """Return an edit as the lines that are gone and those that are new."""
    return tuple(tuple(line[2:] for line in edit if line[0] == sign) for sign in "-+")


def test_every_equivalent_mutant_has_a_reason_and_belongs_to_an_exercise():
    assert {*EQUIVALENT} <= {task.name for _, task in TASKS}
    assert all(reason for found in EQUIVALENT.values() for _, reason, _ in found)


def test_a_mutant_differs_in_one_thing():
    source = "def f(x, y):\n    if x < 1:\n        x = y[1:] + g(x, k=2)\n    return x"
    changed = {new for _, (old, new), _ in mutants(source) if len(old) == 1}
    assert changed >= {
        *[("if x <= 1:",), ("if x > 1:",), ("if not x < 1:",), ("if y < 1:",)],
        *[("if x < 2:",), ("if x < 0:",), ("x = y[:] + g(x, k=2)",), ("pass",)],
        *[("x = y[1:] - g(x, k=2)",), ("x = y[1:]",), ("x = g(x, k=2)",)],
        *[("x = y[1:] + g(k=2)",), ("x = y[1:] + g(x)",), ("x = y[1:] + x",)],
        *[("x = y[2:] + g(x, k=2)",), ("x = y[1:] + g(x, k=1)",), ("return y",)],
    }


def test_what_is_written_for_people_stays():
    kept = ['"""Say what."""', "import math", "def f(x: int=0) -> float:"]
    condition, wording = "if x > 2:", "raise ValueError(f'{x + 1} exceeds {True}')"
    source = "\n".join(
        [*kept, f"    {condition}", f"        {wording}", "    return x"]
    )
    gone = {old for _, (old, _), _ in mutants(source)}
    assert gone == {(kept[2],), (condition,), (condition, wording), ("return x",)}
