"""Hints, solutions and progress: what a student asks for between two checks.

Solutions are read as text, not run; where they are not installed, it says so.
"""

import ast
import importlib.util
import pathlib
import textwrap

from tutorial_lib.definitions import source_in

from .cards import Hints, Progress, Solution
from .check import CHECKED
from .exercise import EXERCISES, load_chapters, lookup, unknown
from .marks import kept

ASKED = {}  # exercise name: how many of its hints were asked for
MISSING = "The solutions are not part of this copy of the book: ask your instructor."


def hint(answer):
    """Show one more hint for an exercise (a function, a class, a name or a number)."""
    exercise = lookup(answer)
    if exercise is None:
        return unknown(answer)
    total = len(exercise.hints)
    shown = ASKED[exercise.name] = min(ASKED.get(exercise.name, 0) + 1, total)
    return Hints(exercise.heading, exercise.hints[:shown], total)


def solution(answer):
    """Show a solution of an exercise (a function, a class, a name or a number).

    A notebook folds it away; `print(solution(…))` shows it as text.
    """
    exercise = lookup(answer)
    if exercise is None:
        return unknown(answer)
    source = _source(exercise) or MISSING
    return Solution(exercise.heading, exercise.call, source)


def progress(chapter=None):
    """Show which exercises pass: of one chapter, or of all that were ever begun.

    What passed in another session is shown as passed earlier. What a check says in this
    one goes before, but for an answer that is still open.
    """
    load_chapters()
    marked, trouble = kept(EXERCISES.values())
    begun = {e.chapter for e in EXERCISES.values() if e.name in {*CHECKED, *marked}}
    chapters = begun if chapter is None else {int(chapter)}
    chosen = [e for e in EXERCISES.values() if e.chapter in chapters]
    chosen.sort(key=lambda exercise: [*map(int, exercise.number.split("."))])
    entries = [_entry(exercise, exercise.name in marked) for exercise in chosen]
    title = ", ".join(f"Chapter {number}" for number in sorted(chapters))
    if not title:
        title = "No exercise was checked yet."
    elif not entries:
        title += " has no exercises."
    return Progress(title, entries, trouble)


def _entry(exercise, is_marked):
    _, result = CHECKED.get(exercise.name, (None, None))
    status, heading = result.status if result else "open", exercise.heading
    if is_marked and status == "open":
        return "earlier", heading
    passed = " (passed earlier)" if is_marked and status != "pass" else ""
    return status, heading + passed


def _source(exercise):
    path = _solutions(exercise.chapter)
    if path is None:
        return None
    text = path.read_text(encoding="utf-8")
    if exercise.is_value:
        return _value_source(text, exercise.number)
    return source_in(text, exercise.name)


def _solutions(chapter):
    name = f"{__package__}.chapter_{chapter:02d}.solutions"
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return pathlib.Path(found.origin) if found else None


def _value_source(text, number):
    """Return an entry of ANSWERS: its value, under the comment that explains it."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "ANSWERS":
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if key.value == number:
                    comment = _comment_above(text.splitlines(), key.lineno)
                    source = " " * key.col_offset + ast.get_source_segment(text, value)
                    return "\n".join([*comment, textwrap.dedent(source)])
    return None


def _comment_above(lines, line):
    comment = []
    while (above := lines[line - 2 - len(comment)].strip()).startswith("#"):
        comment.insert(0, above)
    return comment
