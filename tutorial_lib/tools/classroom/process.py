"""Run the grader of one submission in processes that can be ended from outside.

What a student's code does to its process, it does to that process alone: one that takes
too long is killed with all it started, and the next exercise gets a fresh one. The
memory limit is kept by Linux. Not prevented are the network and the files that whoever
grades may read and write.

This module does not know what an exercise is, nor what is asked of it.
"""

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tutorial_lib.tools.notebooks import ENVIRONMENT

ROOT = Path(__file__).parents[3]  # where tutorial_lib can be imported from
PROGRAM = """\
import sys
sys.path[0] = sys.argv[1]
from tutorial_lib.tools.classroom.grader import main
main()"""
TO_START = 300  # seconds, for Python and torch
STOPPED = "stopped by Ctrl-C"
TO_STOP = 0.2  # seconds until Ctrl-C is noticed
LONGEST_LINE = 100_000
# Nothing else that is set where the report is made is a student's business.
KEPT = {"LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TUTORIAL_DATA"}
SET = ENVIRONMENT | {"MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass
class Outcome:
    """What is known of a submission: {number: (status, remark)}, or why nothing is."""

    chapter: int | None = None
    marks: dict = field(default_factory=dict)
    problem: str = ""


def grade(root, path, *, chapter=None, seconds, gigabytes, stop=None):
    """Return the Outcome of a submission to the book under ``root``.

    An exercise whose check takes longer than so many seconds, or ends the process, has
    failed. Raises nothing because of what is in the file. ``stop`` is an event, by
    which another thread says that nobody waits for this any more.
    """
    outcome, stop = Outcome(), stop or threading.Event()
    job = {"root": str(Path(root).resolve()), "path": str(Path(path).resolve())}
    job |= {"chapter": chapter, "gigabytes": gigabytes}
    while not stop.is_set():
        with Grader(job | {"done": [*outcome.marks]}, stop) as grader:
            opening = grader.next(TO_START)
            if "exercises" not in opening:
                outcome.problem = opening.get("unusable") or grader.end
                return outcome
            outcome.chapter = opening["chapter"]
            left = [n for n in opening["exercises"] if n not in outcome.marks]
            if all(_add(outcome, number, grader, seconds) for number in left):
                return outcome
    return Outcome(problem=STOPPED)


def _add(outcome, number, grader, seconds):
    """Note what the grader says of an exercise; return whether it is still there."""
    said = grader.next(seconds)
    if said.get("number") == number:
        outcome.marks[number] = str(said["status"]), str(said["remark"])
        return True
    outcome.marks[number] = "failed", grader.end
    return False


class Grader:
    """A process that grades, in an empty folder that is deleted in the end.

    It is told its job by its standard input, and a secret that whatever it says must
    carry: a student's code that writes where the grader writes does not know it.
    end: how it ended, in words.
    """

    def __init__(self, job, stop):
        self.end, self.lines, self.secret = "", queue.Queue(), secrets.token_hex()
        self.stop = stop
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        kept = {name: os.environ[name] for name in KEPT & os.environ.keys()}
        home = {"HOME": self.folder.name, "USERPROFILE": self.folder.name}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(ROOT)],
            cwd=self.folder.name,
            env=kept | SET | home,
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        # It may have ended already, and then says so by what it does not say.
        with contextlib.suppress(BrokenPipeError), self.process.stdin as words:
            words.write(json.dumps(job | {"secret": self.secret}).encode())
        # A thread reads, so that nobody waits for a pipe that is never closed.
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._kill()
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
            self.end = self._how_it_ended()
            return {}
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        self.end = "wrote into the report"
        mine = isinstance(said, dict) and said.get("secret") == self.secret
        return said if mine else {}

    def _line(self, end):
        """Return the next line, or None if there is none in time or on Ctrl-C."""
        while not self.stop.is_set() and (left := end - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                return self.lines.get(timeout=min(left, TO_STOP))
        return None

    def _how_it_ended(self):
        try:
            code = self.process.wait(TO_START)
        except subprocess.TimeoutExpired:
            return "closed the report and did not end"
        if code >= 0:
            return f"ended the process (exit status {code})"
        return f"ended the process (signal {-code})"

    def _kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except AttributeError:  # on Windows
            self.process.kill()
        except (PermissionError, ProcessLookupError):
            pass  # nobody is left of it
        self.process.wait()
