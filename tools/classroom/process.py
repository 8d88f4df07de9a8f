"""Run the grader of one submission in processes that can be ended from outside.

One that takes too long, or that tampered with what judges it, is ended with all it
started, and the next exercise gets a fresh one. How far a student's code can reach
meanwhile is the guard's business: see there.

This module does not know what an exercise is, nor what is asked of it.
"""

import contextlib
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.notebooks import ENVIRONMENT, STOPPED

ROOT = Path(__file__).parents[2]  # where the packages can be imported from
PROGRAM = """\
import sys
sys.path[0] = sys.argv[1]
from tools.classroom.grader import main
main()"""
GUARD = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))]
HAS_GUARD = hasattr(os, "fork")  # which Windows has not
TO_START = 300  # seconds, for Python and torch
TO_STOP = 0.2  # seconds until Ctrl-C is noticed
TO_END = 10  # seconds, for the guard
LONGEST_LINE, LONGEST_REMARK = 100_000, 200  # characters
STATUSES = ("passed", "failed", "open")
# Nothing else that is set where the report is made is a student's business.
KEPT = {"LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TUTORIAL_DATA"}
SET = ENVIRONMENT | {"MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass
class Outcome:
    """What is known of a submission: {number: (status, remark)}, or why nothing is."""

    chapter: int | None = None
    marks: dict = field(default_factory=dict)
    problem: str = ""


def grade(root, cells, *, chapter=None, seconds, gigabytes, stop=None):
    """Return the Outcome of a submission's cells to the book under ``root``.

    An exercise whose check takes longer than so many seconds, or ends the process, has
    failed. Raises nothing because of what is in a cell. ``stop`` is an event, by which
    another thread says that nobody waits for this any more.
    """
    outcome, stop = Outcome(), stop or threading.Event()
    job = {"root": str(Path(root).resolve()), "chapter": chapter}
    job["cells"] = [*map(vars, cells)]
    while not stop.is_set():
        with Grader(job | {"done": [*outcome.marks]}, gigabytes, stop) as grader:
            opening = grader.next(TO_START)
            if "exercises" not in opening:
                outcome.problem = opening.get("unusable") or grader.end
                return outcome
            outcome.chapter = opening["chapter"]
            left = [n for n in opening["exercises"] if n not in outcome.marks]
            done = all(_add(outcome, number, grader, seconds) for number in left)
            if done or (not stop.is_set() and left[-1] in outcome.marks):
                return outcome
    return Outcome(problem=STOPPED)


def _add(outcome, number, grader, seconds):
    """Note what the grader says of an exercise; return whether it is still there."""
    said = grader.next(seconds)
    judged = said.get("number") == number and said.get("status") in STATUSES
    remark = said.get("remark" if judged else "tampered", grader.end)
    status = said["status"] if judged else "failed"
    outcome.marks[number] = status, str(remark)[:LONGEST_REMARK]
    return judged


class Grader:
    """A process that grades, in an empty folder that is deleted in the end.

    It is told its job by its standard input, and a secret that whatever it says must
    carry: a student's code that writes where the grader writes does not know it.
    end: how it ended, in words.
    """

    def __init__(self, job, gigabytes, stop):
        self.end, self.lines, self.secret = "", queue.Queue(), secrets.token_hex()
        self.stop = stop
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        kept = {name: os.environ[name] for name in KEPT & os.environ.keys()}
        home = dict.fromkeys(("HOME", "TMPDIR", "USERPROFILE"), self.folder.name)
        guard = [*GUARD, str(gigabytes)] if HAS_GUARD else []
        self.process = subprocess.Popen(
            [*guard, sys.executable, "-c", PROGRAM, str(ROOT)],
            cwd=self.folder.name,
            env=kept | SET | home,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # It may have ended already, and then says so by what it does not say.
        with contextlib.suppress(BrokenPipeError):
            line = json.dumps(job | {"secret": self.secret}) + "\n"
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        # A thread reads, so that nobody waits for a pipe that is never closed.
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # by which the guard knows
        try:
            self.process.wait(TO_END if HAS_GUARD else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(RecursionError):  # of folders that lie too deep
            self.folder.cleanup()

    def _read(self):
        while line := self.process.stdout.readline(LONGEST_LINE):
            self.lines.put(line)
        self.lines.put(b"")

    def next(self, seconds):
        """Return what the process says next, or {} where it says nothing in time."""
        line = self._line(time.monotonic() + seconds)
        if line is None:
            stopped = self.stop.is_set()
            self.end = STOPPED if stopped else f"took longer than {seconds:g} seconds"
            return {}
        if not line:
            code = self.process.wait(TO_START)
            # The guard cannot end by a signal as its command did.
            how = f"signal {256 - code}" if 128 < code < 256 else f"exit status {code}"
            self.end = f"ended the process ({how})"
            return {}
        self.end = "wrote into the report"
        with contextlib.suppress(ValueError, RecursionError):
            said = json.loads(line)
            if isinstance(said, dict) and said.get("secret") == self.secret:
                return said
        return {}

    def _line(self, end):
        """Return the next line, or None if there is none in time or on Ctrl-C."""
        while not self.stop.is_set() and (left := end - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                return self.lines.get(timeout=min(left, TO_STOP))
        return None
