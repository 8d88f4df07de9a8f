"""Marks: which exercises have passed, kept from one session to the next.

A mark is a file of its own, named after the exercise, that holds its title: two
notebooks at once cannot harm each other, and to delete one takes one mark away. It no
longer counts once the book asks something else under that name. The marks lie in the
folder that the environment variable `TUTORIAL_PROGRESS` names, or else with your user's
data: `~/.local/share/tutorial_lib` on Linux, `~/Library/Application
Support/tutorial_lib` on a Mac, `%LOCALAPPDATA%\\tutorial_lib` on Windows.
`TUTORIAL_PROGRESS=off` keeps nothing.

Colab deletes the disk of a runtime when it ends, and the marks with it. A folder on
your Google Drive outlives it; this cell, at the top of a notebook, uses one::

    import os
    from google.colab import drive
    drive.mount("/content/drive")
    os.environ["TUTORIAL_PROGRESS"] = "/content/drive/MyDrive/attention"

Nothing here knows how marks look, nor what an answer was.
"""

import os
import sys
from pathlib import Path

VARIABLE = "TUTORIAL_PROGRESS"
OFF = "off"
IN_COLAB = (
    "Colab forgets your marks when the runtime ends. To keep them, mount your Drive "
    f"and set `{VARIABLE}` to a folder on it."
)
SAID = set()  # sentences that need no repeating in this session


def keep(exercise):
    """Mark an exercise as passed; return what there is to say, or "". Never raises."""
    try:
        folder = _folder()
        if folder is None or _holds(folder, exercise):
            return ""
        # A folder on a Drive that is not mounted must not be made up on the disk.
        folder.mkdir(parents=not os.environ.get(VARIABLE), exist_ok=True)
        _path(folder, exercise).write_bytes(_title(exercise))
    except Exception as error:  # no file is worth a check
        return _once(
            f"This mark lasts for this session only ({_reason(error)}): set "
            f"`{VARIABLE}` to a folder that you may write to."
        )
    forgets = "google.colab" in sys.modules and not os.environ.get(VARIABLE)
    return _once(IN_COLAB) if forgets else ""


def kept(exercises):
    """Return the names of the exercises that are marked, and a sentence on trouble."""
    found = set()
    try:
        folder = _folder()
        if folder is not None and _is_there(folder):
            found |= {one.name for one in exercises if _holds(folder, one)}
    except Exception as error:
        return found, f"Earlier marks cannot be read ({_reason(error)})."
    return found, ""


def _folder():
    """Return where the marks lie, or None where nothing is to be kept."""
    chosen = os.environ.get(VARIABLE)
    # The marks of whoever tests the book must not change what its notebooks show.
    if chosen == OFF or (not chosen and "PYTEST_VERSION" in os.environ):
        return None
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("tutorial_lib", appauthor=False)


def _is_there(folder):
    """Whether there may be marks; raises OSError if no folder could be made there."""
    if os.environ.get(VARIABLE) and not folder.exists():
        os.stat(folder.parent)
    return folder.exists()


def _holds(folder, exercise):
    """Whether an exercise is marked. Raises OSError where that cannot be read."""
    try:
        return _path(folder, exercise).read_bytes() == _title(exercise)
    except FileNotFoundError:
        return False


def _path(folder, exercise):
    return folder / f"{exercise.name}.txt"


def _title(exercise):
    return exercise.title.encode("utf-8", "backslashreplace")


def _reason(error):
    where = getattr(error, "filename", None)
    return f"`{where}`: {error.strerror}" if where else str(error).rstrip(".")


def _once(sentence):
    new, _ = sentence not in SAID, SAID.add(sentence)
    return sentence if new else ""
