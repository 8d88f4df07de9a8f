"""A table of who passed what, and how often each mistake was made.

This module does not know how an answer is judged: each submission runs in a process of
its own, which is begun anew, behind the exercise that did it, where it ends too early.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

from tools.files import write_whole
from tools.notebooks import ENVIRONMENT, ROOT, STOPPED, chapters

PROCESSES = min(4, os.cpu_count() or 1)
BAR = {"unit": "submission", "leave": False, "disable": None}  # in a terminal only


def write_report(root, submissions, out, **rules):
    """Grade notebooks and folders of them, and write the table into the file ``out``.

    The table grows with each submission, so that what ends the report loses no other.
    Returns {student: marks}. Raises ValueError if there is no notebook or no such
    chapter, OSError if the table cannot be written, and at the end what kept a
    submission from being graded.
    """
    chapters(root, [rules.get("chapter", "")])  # known before hours are spent
    paths, found = find_notebooks(submissions), {}
    folder = os.path.commonpath([path.parent for path in paths])
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, table(found))
    pool = ThreadPoolExecutor(PROCESSES)
    graded = {pool.submit(grade, root, path, **rules): path for path in paths}
    try:
        for future in tqdm(as_completed(graded), total=len(paths), **BAR):
            if future.exception() is None:
                student = graded[future].relative_to(folder).with_suffix("").as_posix()
                found[student] = future.result()
                write_whole(out, table(found))
    finally:
        pool.shutdown(cancel_futures=True)
    for future in graded:
        future.result()  # raises what the submission raised
    return found


def find_notebooks(submissions):
    """Return the full paths of the notebooks that are meant, each once, in order."""
    found = set()
    for path in map(Path, submissions):
        inside = path.rglob("*.ipynb") if path.is_dir() else [path]
        found |= {one.absolute() for one in inside if one.is_file()}
    kept = [path for path in sorted(found) if ".ipynb_checkpoints" not in path.parts]
    if not kept:
        raise ValueError(f"there is no notebook in {', '.join(map(str, submissions))}")
    return kept


def grade(root, path, *, chapter="", seconds=60):
    """Return {number: (status, remark)} of a submission to the book under ``root``.

    An exercise that takes more than so many seconds, or ends the process, has failed.
    For what cannot be graded the number is empty, and the remark says why.
    """
    job = {"root": os.path.abspath(root), "notebook": os.path.abspath(path)}
    job |= {"chapter": chapter, "seconds": seconds}
    marks, left = {}, [""]
    while left:
        said, end = _run(job | {"done": [*marks]})
        if end == STOPPED or not said:
            said = [end]
        numbers, *new = said
        if isinstance(numbers, str):
            return {"": ("", f"could not be graded: {numbers}")}
        marks |= {number: tuple(mark) for number, mark in new}
        left = [number for number in numbers if number not in marks]
        if left:
            marks[left[0]] = "failed", end
    return marks


def _run(job):
    """Run the grader in a folder of its own; return what it said, and how it ended.

    Its files are open here: an answer that empties the folder takes nothing away.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open(Path(folder, "marks"), "w+", encoding="utf-8") as marks,
        open(Path(folder, "late"), "w+", encoding="utf-8") as late,
    ):
        command = [sys.executable, "-m", "tools.grading", json.dumps(job)]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": ROOT}
        code = subprocess.call(command, cwd=folder, env=environment, **streams)
        said = [json.loads(line) for line in marks]
        end = f"ended the process (exit status {code})"
        if late.read():
            end = f"took longer than {job['seconds']} seconds"
    return said, STOPPED if code == -signal.SIGINT else end


def table(found):
    """Return the CSV text for {student: marks}, rows and columns in order."""
    numbers = {number for marks in found.values() for number in marks if number}
    numbers = sorted(numbers, key=lambda number: [*map(int, number.split("."))])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", *numbers, "passed", "remarks"])
    for student, marks in sorted(found.items()):
        statuses = [marks.get(number, [""])[0] for number in numbers]
        said = [
            f"{number} {mark[1]}".strip() for number, mark in marks.items() if mark[1]
        ]
        row = [student, *statuses, statuses.count("passed"), "; ".join(said)]
        writer.writerow(row)
    return text.getvalue().encode(errors="backslashreplace").decode()


def mistakes(found):
    """Return [(number and remark, how often it failed)], the most frequent first.

    Of equally frequent ones the first student's come first.
    """
    marks = [mark for _, student in sorted(found.items()) for mark in student.items()]
    failed = [f"{n} {remark}" for n, (status, remark) in marks if status == "failed"]
    return Counter(failed).most_common()
