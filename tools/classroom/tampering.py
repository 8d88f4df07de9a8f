"""Notice what forges a pass: a look at what the grader holds, a change of what judges.

A student's code runs in the process that judges it, so whoever means to can forge a
pass all the same. What is noticed are the ways near at hand.
"""

import inspect
import sys

from tutorial_exercises.exercise import EXERCISES
from tutorial_lib.definitions import functions_of

CELL = "<cell "  # begins the name of the file that a cell is compiled as
JUDGES = ("tutorial_exercises", "tools")
FRAMES = {"ag_frame", "cr_frame", "gi_frame", "tb_frame"}
LOOKS = {"gc.get_objects", "gc.get_referents", "gc.get_referrers"}
LOOKS |= {"sys._current_frames", "sys._getframe"}


def is_own(answer):
    """Return whether an answer's code stands in a cell, or it has none in Python."""
    files = [function.__code__.co_filename for function in functions_of(answer)]
    return not files or any(file.startswith(CELL) for file in files)


def watch(tell):
    """Tell, from now on and before it happens, when a cell looks at other frames."""
    looking = []

    def look(event, arguments):
        is_frame = event == "object.__getattr__" and arguments[1] in FRAMES
        if looking or not (is_frame or event in LOOKS):
            return
        looking.append(event)  # since the next line is an event, too
        frame = sys._getframe(1)
        looking.clear()
        while frame.f_code.co_filename == inspect.__file__:
            frame = frame.f_back
        if frame.f_code.co_filename.startswith(CELL):
            tell(f"looked into the grader: {arguments[1] if is_frame else event}")

    sys.addaudithook(look)


def judges():
    """Return a set of (place, id of the object there): all that judges answers."""
    found = {}
    for name, module in [*sys.modules.items()]:
        if name.startswith(JUDGES):
            found |= {f"{name}.{key}": value for key, value in vars(module).items()}
    for exercise in EXERCISES.values():
        steps = {f"step {n}": step for n, step in enumerate(exercise.steps, 1)}
        parts = vars(exercise) | steps
        found |= {f"{exercise.name}, {key}": part for key, part in parts.items()}
    return {(place, id(value)) for place, value in found.items()}
