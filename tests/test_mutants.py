"""No mutant of a right answer passes, but for those that are shown to be right.

Of each exercise six are tried here, and the others in full/test_more_mutants.py,
which no list of mistakes knows. What may pass stands in `equivalent_mutants.diff` with
its reason, read by hand. A mutant that passes and is wrong is a hole in the exercise's
check: mend the check.
"""

import random
import re
from pathlib import Path

import pytest
from exercise_chapters import chapters, define, excursions
from mutants import mutants

from tutorial_exercises import check

SEED, FIRST, MOST = 1, 6, 20
BOOK = [*chapters(), *excursions()]
TASKS = [(chapter, task) for chapter in BOOK for task in chapter.exercises]
each_task = pytest.mark.parametrize(
    ("chapter", "task"), TASKS, ids=[task.number for _, task in TASKS]
)


def equivalents():
    """Return {number: {(lines that are gone, lines that are new)}} of the file."""
    text = Path(__file__).with_name("equivalent_mutants.diff").read_text("utf-8")
    edits_of = {}
    for part in re.split(r"^# ", text, flags=re.M)[1:]:
        number, _, entries = part.partition("\n")
        edits = re.findall(r"((?:^[-+] .*\n)+)", entries, re.M)
        edits_of[number.split()[0]] = {
            tuple(map(lines_of, "-+", [edit] * 2)) for edit in edits
        }
        assert len(re.findall(r"^(?![-+] |or$)\S", entries, re.M)) > 0, "no reason"
    return edits_of


def lines_of(sign, edit):
    """Return the lines of an edit that begin with a sign."""
    return tuple(line[2:] for line in edit.splitlines() if line[0] == sign)


def as_diff(changes):
    """Write changes as they stand in the file."""
    edits = []
    for gone, new in sorted(changes):
        lines = [*(f"- {line}" for line in gone), *(f"+ {line}" for line in new)]
        edits.append("\n".join(lines))
    return "\nor\n".join(edits)


EQUIVALENT = equivalents()


def chosen(source):
    """Return some mutants; which of a line are chosen depends on that line alone."""

    def order(change):
        return random.Random(f"{SEED} {change}").random()

    by_change = {change: text for _, change, text in mutants(source)}
    return {change: by_change[change] for change in sorted(by_change, key=order)[:MOST]}


def answer_of(chapter, task, source):
    """Run the source; what cannot be run is no answer."""
    try:
        made = define(source, task.name, chapter.names)
        return made() if task.is_value else made
    except Exception:
        return None


def require_that_only_right_ones_pass(chapter, task, tried):
    """Fail with what to mend, if one of the mutants passes and should not."""
    passed = {
        change
        for change, text in tried.items()
        if check(answer_of(chapter, task, text), task.number).passed
    }
    print(f"{task.number}: {len(tried)} mutants tried, {len(passed)} passed")
    known = EQUIVALENT.get(task.number, set())
    unknown = as_diff(passed - known)
    assert not unknown, (
        f"{task.number}: these pass. If one is wrong, mend the check; if it is right, "
        f"copy it with a reason into tests/equivalent_mutants.diff:\n{unknown}"
    )
    gone = as_diff((known & {*tried}) - passed)
    assert not gone, f"take out of tests/equivalent_mutants.diff:\n{gone}"


@each_task
def test_only_mutants_that_are_right_pass(chapter, task, monkeypatch):
    monkeypatch.setattr(task, "seconds", 2.0)
    tried = [*chosen(task.source).items()]
    require_that_only_right_ones_pass(chapter, task, dict(tried[:FIRST]))


@each_task
def test_what_may_pass_is_a_mutant_that_is_tried(chapter, task):
    tried = {*chosen(task.source)}
    known = EQUIVALENT.get(task.number, set())
    gone = as_diff(known - tried)
    assert not gone, f"take out of tests/equivalent_mutants.diff:\n{gone}"
    assert len(tried) > len(known)


def test_every_equivalent_mutant_belongs_to_an_exercise():
    assert {*EQUIVALENT} <= {task.number for _, task in TASKS}


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
