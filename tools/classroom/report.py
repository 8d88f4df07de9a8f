"""A table of who passed what: one row for each submission, one column an exercise.

This module does not know how an answer is judged.
"""

import contextlib
import csv
import glob
import io
import math
import os
import signal
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from operator import itemgetter
from pathlib import Path

from tools.files import write_whole
from tutorial_lib.progress_bar import progress_bar

from .process import Outcome, grade
from .sheets import sheets
from .submission import Unusable, read_cells

PROCESSES = min(4, os.cpu_count() or 1)
FORMULAS = tuple("=+-@＝＋－＠")


def write_report(root, submissions, out, **rules):
    """Grade, and write the table into the file ``out``, or print it if that is None.

    It grows in a file beside, which in the end replaces the old table. Raises
    ValueError, before anything is graded, if a limit or ``out`` cannot be used.
    """
    for name in ("seconds", "gigabytes"):
        if not 0 < rules[name] < math.inf:
            raise ValueError(f"--{name} {rules[name]:g} is no finite number above 0")
    sys.stdout.reconfigure(errors="backslashreplace")
    growing, outcomes = out and _growing(Path(out)), []
    with _ctrl_c() as stop:
        for outcome in grade_all(root, submissions, stop, **rules):
            outcomes.append(outcome)
            if growing:
                with contextlib.suppress(OSError):  # the end tells of it
                    write_whole(growing, table(outcomes))
        if growing:
            _replace(out, growing, outcomes)
        else:
            print(table(outcomes), end="")


def _growing(path):
    """Return the file in which the table grows; raise ValueError if none can."""
    if path.suffix != ".csv" or path.is_dir():
        reason = f"the table is a .csv file: --out {path} is not, choose another"
        raise ValueError(reason)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror})") from None
    return path.with_suffix(".unfinished.csv")


def _replace(path, growing, outcomes):
    """Put the table in the place of the old one, or print it where that fails."""
    try:
        write_whole(growing, table(outcomes))
        growing.replace(path)
    except OSError as error:
        print(table(outcomes), end="")
        reason = f"{path} cannot be written ({error.strerror}): the table is above"
        raise ValueError(reason) from None
    failed = sum(bool(outcome.problem) for _, outcome in outcomes)
    print(f"{len(outcomes)} submissions are in {path}", end="")
    print(f"; {failed} of them could not be graded." if failed else ".")


@contextlib.contextmanager
def _ctrl_c():
    """Give an event that Ctrl-C sets; then a second one does nothing, until the end."""
    stop = threading.Event()

    def note(*_):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        if not stop.is_set():
            signal.signal(signal.SIGINT, before)


def grade_all(root, submissions, stop, *, chapter="", seconds, gigabytes):
    """Yield (student, Outcome) for files, folders and patterns of files, as they come.

    All are read before any is run, so that none changes another. Once the event
    ``stop`` is set the rest are not graded, and their outcomes say so. Raises
    ValueError if there is no such file or no such chapter.
    """
    paths = find_notebooks(submissions)
    rules = {"chapter": sheets(root, chapter)[0].chapter if chapter else None}
    rules |= {"seconds": seconds, "gigabytes": gigabytes, "stop": stop}
    contents = [*map(_content, paths)]
    with (
        progress_bar(len(paths), unit="submission") as bar,
        ThreadPoolExecutor(PROCESSES) as pool,
    ):
        futures = [pool.submit(_outcome, root, one, rules) for one in contents]
        names = dict(zip(futures, students(paths), strict=True))
        for future in as_completed(futures):
            bar.update()
            yield names[future], future.result()


def _content(path):
    """Return the cells of a submission, or why there are none."""
    try:
        return read_cells(path)
    except Unusable as reason:
        return reason


def _outcome(root, content, rules):
    try:
        if isinstance(content, Unusable):
            raise content
        return grade(root, content, **rules)
    except Exception as error:  # no reason to lose the others
        return Outcome(problem=str(error) or type(error).__name__)


def find_notebooks(submissions):
    """Return the notebooks that are meant, each once, in order."""
    found = set()
    for name in submissions:
        matches = [name] if os.path.lexists(name) else glob.glob(name)
        if not matches:
            raise ValueError(f"there is no {name}: name notebooks or their folder")
        for path in map(Path, matches):
            is_folder = path.is_dir() and path.suffix != ".ipynb"
            inside = path.rglob("*.ipynb") if is_folder else [path]
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
    """Return the CSV text for pairs (student, Outcome), rows and columns in order."""
    numbers = {number for _, outcome in outcomes for number in outcome.marks}
    numbers = sorted(numbers, key=lambda number: [*map(int, number.split("."))])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "chapter", *numbers, "passed", "remarks"])
    for student, outcome in sorted(outcomes, key=itemgetter(0)):
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
    """Return a text that any file can hold and no spreadsheet takes for a formula."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}" if text.lstrip().startswith(FORMULAS) else text
