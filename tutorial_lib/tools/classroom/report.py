"""A table of who passed what: one row for each submission, one column an exercise.

This module does not know how an answer is judged.
"""

import csv
import glob
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.tools.files import write_whole

from .process import grade
from .sheets import sheets

PROCESSES = min(4, os.cpu_count() or 1)


def write_report(root, submissions, out, **rules):
    """Grade, and write the table into the file ``out``, or print it if that is None.

    Raises ValueError, before anything is graded, if the table cannot be written.
    """
    if out is None:
        print(table(grade_all(root, submissions, **rules)), end="")
        return
    path = Path(out)
    if path.suffix != ".csv":
        raise ValueError(
            f"the table is a .csv file: --out {path} is not, choose another"
        )
    try:
        path.open("a").close()
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror})") from None
    outcomes = grade_all(root, submissions, **rules)
    write_whole(path, table(outcomes))
    failed = sum(bool(outcome.problem) for outcome in outcomes.values())
    print(f"{len(outcomes)} submissions are in {path}", end="")
    print(f"; {failed} of them could not be graded." if failed else ".")


def grade_all(root, submissions, *, chapter="", seconds, gigabytes):
    """Return {student: Outcome} for files, folders and patterns of files.

    After Ctrl-C the rest are not graded, and their outcomes say so. Raises ValueError
    if there is no such file or no such chapter.
    """
    paths = find_notebooks(submissions)
    rules = {"chapter": sheets(root, chapter)[0].chapter if chapter else None}
    stop = threading.Event()
    rules |= {"seconds": seconds, "gigabytes": gigabytes, "stop": stop}
    with (
        progress_bar(len(paths), unit="submission") as bar,
        ThreadPoolExecutor(PROCESSES) as pool,
    ):

        def judge(path):
            outcome = grade(root, path, **rules)
            bar.update()
            return outcome

        futures = [pool.submit(judge, path) for path in paths]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
        outcomes = [future.result() for future in futures]
    return dict(zip(students(paths), outcomes, strict=True))


def find_notebooks(submissions):
    """Return the notebooks that are meant, each once, in order."""
    found = set()
    for name in submissions:
        matches = [Path(match) for match in glob.glob(name)] or [Path(name)]
        for path in matches:
            if not path.exists():
                raise ValueError(f"there is no {path}: name notebooks or their folder")
            inside = path.rglob("*.ipynb") if path.is_dir() else [path]
            found |= {p for p in inside if ".ipynb_checkpoints" not in p.parts}
    if not found:
        raise ValueError(f"there is no notebook in {', '.join(submissions)}")
    return sorted(found)


def students(paths):
    """Return a name for each file: its own, after its folders where two have the same.

    >>> students([Path("in/ada/ch03.ipynb"), Path("in/bob/ch03.ipynb")])
    ['ada/ch03', 'bob/ch03']
    """
    names = [path.stem for path in paths]
    if len(set(names)) == len(names):
        return names
    folder = os.path.commonpath([path.resolve().parent for path in paths])
    return [
        path.resolve().relative_to(folder).with_suffix("").as_posix() for path in paths
    ]


def table(outcomes):
    """Return the CSV text for {student: Outcome}, its rows and columns in order."""
    numbers = {number for outcome in outcomes.values() for number in outcome.marks}
    numbers = sorted(numbers, key=lambda number: [*map(int, number.split("."))])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "chapter", *numbers, "passed", "remarks"])
    for student in sorted(outcomes):
        outcome = outcomes[student]
        statuses = [outcome.marks.get(number, ("", ""))[0] for number in numbers]
        passed = "" if outcome.problem else statuses.count("passed")
        row = [_harmless(student), outcome.chapter, *statuses, passed]
        writer.writerow([*row, _harmless(_remarks(outcome))])
    return text.getvalue()


def _remarks(outcome):
    if outcome.problem:
        return f"could not be graded: {outcome.problem}"
    said = ((number, remark) for number, (_, remark) in outcome.marks.items() if remark)
    return "; ".join(f"{number} {' '.join(remark.split())}" for number, remark in said)


def _harmless(text):
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
