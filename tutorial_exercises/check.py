"""Check an answer and use it; ask for a hint, the solution or the progress.

`check` finds the exercise and the answer, ``examine`` tries the answer in cases and
demands, each an ``Attempt``, and what comes of it is a ``Card``.
"""

import difflib

from .cards import Card
from .compare import describe_error
from .examine import examine
from .exercise import EXERCISES, Exercise, Wrong, find, load_chapters
from .marks import keep, kept
from .notebook import answer_in_notebook, names_of, refuse_stale

CHECKED = {}  # number of an exercise: (the answer last checked, its card's status)
ASKED = {}  # number of an exercise: how many of its hints were asked for
MISSING = "The solutions are not part of this copy of the book: ask your instructor."


def check(answer=..., name=None):
    """Say what is right about an answer and what is not yet.

    answer: a function or class whose name is the exercise's; any value together with
    the exercise's number (`check(width, "2.1")`); or only the number of a function or
    class, which is then looked for in the notebook.
    Returns a card. Never raises because of an answer, and leaves random state alone.
    """
    try:
        exercise = exercise_of(answer, name)
        if exercise is None:
            return unknown(answer, name)
        refuse_stale(exercise, answer)
        note = ""
        if isinstance(answer, Exercise):  # its author tries the solution
            answer = exercise.solution() if exercise.is_value else exercise.solution
        if isinstance(answer, (str, float)) and name is None:
            answer, note = answer_in_notebook(exercise)
        card = examine(exercise, answer)
        CHECKED[exercise.number] = (answer, card.status)
        is_judged = card.status in ("pass", "fail")  # and not still to be written
        mark = keep(exercise, card.passed) if is_judged else ""
        card.note = f"{note}\n{mark}".strip()
        return card
    except Wrong as wrong:
        return Card("unknown", exercise.heading, str(wrong))
    except Exception as error:  # a fault of the check, or a very odd answer
        return Card("unknown", "The check itself failed", describe_error(error))


def use(answer, name=None):
    """Return the answer once it passes its check, until then the library's."""
    exercise = exercise_of(answer, name)
    if exercise is None:
        print(unknown(answer, name))
        return answer
    checked, status = CHECKED.get(exercise.number, (None, None))
    if checked is not answer:
        status = check(answer, exercise.number).status
    if status == "pass":
        return answer
    print(f"Using the library's {exercise.name} until yours passes its check.")
    return exercise.solution if exercise.shown else exercise.definition


def hint(answer=...):
    """Show one more hint for an exercise (a function, a class, a name or a number)."""
    exercise = exercise_of(answer)
    if exercise is None:
        return unknown(answer, usage='hint("{}")')
    hints = exercise.hint_list
    asked = min(ASKED.get(exercise.number, 0) + 1, len(hints))
    ASKED[exercise.number] = asked
    lines = [f"{n}. {text}" for n, text in enumerate(hints[:asked], 1)]
    heading = f"{asked} of {len(hints)} · {exercise.heading}"
    return Card("hint", heading, "\n".join(lines))


def solution(answer=...):
    """Show a solution of an exercise; `print(solution(…))` shows it as text."""
    exercise = exercise_of(answer)
    if exercise is None:
        return unknown(answer, usage='solution("{}")')
    source = exercise.shown or MISSING
    return Card("solution", exercise.heading, call=exercise.call, source=source)


def progress(chapter=None):
    """Show which exercises pass: of one chapter, or of all chapters begun."""
    load_chapters()
    exercises = sorted({*EXERCISES.values()}, key=lambda exercise: exercise.order)
    if chapter is not None:
        number = str(chapter).lstrip("0")
        own = [one for one in exercises if str(one.chapter) == number]
        if not own:
            chapters = [one.chapter for one in exercises if not one.order[0]]
            first, last = chapters[0], chapters[-1]
            message = f"There are exercises in chapters {first} to {last}."
            return Card("unknown", f"There is no chapter {chapter!r}", message)
        exercises = own
    marks, note = kept()
    rows = []
    begun = {one.chapter for one in exercises if is_begun(one, marks)}
    for exercise in exercises:
        if chapter is not None or exercise.chapter in begun:
            rows.append((status_of(exercise, marks), exercise.heading))
    done = sum(status in ("pass", "earlier") for status, _ in rows)
    heading = f"{done} of {len(rows)} exercises passed"
    return Card("overview", heading, rows=rows, note=note)


def is_begun(exercise, marks):
    """Whether an exercise was checked in this session, or has passed earlier."""
    return exercise.number in CHECKED or status_of(exercise, marks) != "open"


def status_of(exercise, marks):
    """Return how an exercise stands in this session, or by a mark of an earlier one."""
    _, status = CHECKED.get(exercise.number, (None, "open"))
    if status == "open" and marks.get(exercise.number) == exercise.heading:
        return "earlier"
    return status


def exercise_of(answer, name=None):
    """Return the exercise of a name, a number or an answer, or None."""
    if name is not None:
        return find(name)
    exercise = find(getattr(answer, "__name__", answer))
    if exercise is None and callable(answer):  # a lambda in a variable, or a module
        for key in [*names_of(answer), type(answer).__name__]:
            exercise = exercise or find(key)
    return exercise


def unknown(answer, name=None, usage='check(answer, "{}")'):
    """Return a card that says why this is no exercise, and what was perhaps meant."""
    which = f"Say which exercise it is: `{usage.format('1.2')}`."
    if answer is ... and name is None:
        return Card("unknown", "Nothing is given", which)
    key = str(getattr(answer, "__name__", answer) if name is None else name)[:60]
    heading = f"There is no exercise {key!r}" if key != "<lambda>" else "A lambda"
    chapter = key.partition(".")[0]
    same = [one.number for one in {*EXERCISES.values()} if str(one.chapter) == chapter]
    close = difflib.get_close_matches(key, EXERCISES, n=1)
    message = which
    if same and "." in key:
        numbers = sorted(same)
        message = f"That chapter has {', '.join(numbers)}: "
        message += f"`{usage.format(numbers[0])}`."
    elif close:
        message = f"Did you mean `{EXERCISES[close[0]].call}`?"
    return Card("unknown", heading, message)
