"""Marks: which exercises have passed, kept in one file from one day to the next.

The file lies in the folder that the environment variable `TUTORIAL_PROGRESS` names, or
else with the user's data; `TUTORIAL_PROGRESS=off` keeps nothing. A mark counts as long
as the exercise has the same heading. A file that cannot be read is kept beside the new
one, as `marks.unreadable`. Colab deletes its disk: name a folder on a Drive.
"""

import json
import os
import sys
from pathlib import Path

from platformdirs import user_data_path

VARIABLE = "TUTORIAL_PROGRESS"
IN_COLAB = (
    "Colab forgets your marks when the runtime ends. To keep them on your Drive, tick "
    "`keep_marks_on_drive` in the first cell and run it, then this check, again."
)


def keep(exercise, passed=True):
    """Mark an exercise as passed, or take its mark away; return what there is to say.

    Never raises.
    """
    marks, trouble = kept()
    try:
        file = _file()
        is_kept = marks.pop(exercise.number, None) == exercise.heading
        if file is None or passed == is_kept:
            return ""
        if passed:
            marks[exercise.number] = exercise.heading
        file.parent.mkdir(parents=not os.environ.get(VARIABLE), exist_ok=True)
        text = json.dumps(marks, ensure_ascii=False)
        if trouble:
            file.replace(file.with_suffix(".unreadable"))
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except (OSError, RuntimeError) as error:  # there may be no home
        mark = "This mark lasts" if passed else "That it fails is kept"
        return f"{mark} for this session only ({error})."
    in_colab = "google.colab" in sys.modules and not os.environ.get(VARIABLE)
    return trouble or (IN_COLAB if in_colab and passed else "")


def kept():
    """Return {number: heading} of what has passed, and a sentence on trouble, or ""."""
    try:
        file = _file()
        if file is None or not file.exists():
            return {}, ""
        marks = json.loads(file.read_text("utf-8-sig"))
        if not isinstance(marks, dict):
            raise ValueError("it holds something else")
        return marks, ""
    except (OSError, RuntimeError, ValueError) as error:
        return {}, f"Earlier marks cannot be read ({error})."


def _file():
    """Return where the marks lie, or None where nothing is to be kept."""
    chosen = os.environ.get(VARIABLE)
    # The marks of whoever tests the book must not change what its notebooks show.
    if chosen == "off" or (not chosen and "PYTEST_VERSION" in os.environ):
        return None
    folder = chosen or user_data_path("tutorial_lib", appauthor=False)
    return Path(folder).expanduser() / "marks.json"
