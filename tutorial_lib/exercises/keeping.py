"""Keep which exercises have passed, from one session to the next.

The marks stand in `progress.json`, which anyone can read; to delete it loses the marks
and nothing else. It lies in the folder that the environment variable
`TUTORIAL_PROGRESS` names, or else with your user's data: `~/.local/share/tutorial_lib`
on Linux, `~/Library/Application Support/tutorial_lib` on a Mac,
`%LOCALAPPDATA%\\tutorial_lib` on Windows. `TUTORIAL_PROGRESS=off` keeps nothing.

Colab deletes the disk of a runtime when it ends, and the marks with it. A folder on
your Google Drive outlives it; this cell, at the top of a notebook, uses one::

    import os
    from google.colab import drive
    drive.mount("/content/drive")
    os.environ["TUTORIAL_PROGRESS"] = "/content/drive/MyDrive/attention"

Whoever writes waits for the others and adds to what they wrote, so that two notebooks
at once lose nothing. A mark belongs to an exercise's name and title: it no longer
counts once the book asks something else under that name. Nothing here knows how marks
look, nor what an answer was.
"""

import contextlib
import datetime
import json
import os
import sys
import tempfile
from pathlib import Path

from .locking import alone, patiently

VARIABLE = "TUTORIAL_PROGRESS"
OFF = "off"
NAME = "progress.json"
ABOUT = "Exercises that passed. Delete this file to begin afresh: only the marks go."
IN_COLAB = (
    "Colab forgets your marks when the runtime ends. To keep them, mount your Drive "
    f"and set `{VARIABLE}` to a folder on it."
)
SAID = set()  # sentences that need no repeating in this session


class Damaged(ValueError):
    """The file is not what was written."""


def keep(exercise):
    """Mark an exercise as passed; return a sentence the first time that fails, or "".

    Never raises because of the file.
    """
    try:
        path = _place()
        if path is None or _is_kept(path, exercise):
            return ""
        return _once(_add(path, exercise))
    except Exception as error:  # no file is worth a check
        return _once(
            f"This mark lasts for this session only ({_reason(error)}): set "
            f"`{VARIABLE}` to a folder that you may write to."
        )


def kept(exercises):
    """Return the names of the exercises that are marked, and a sentence on trouble."""
    try:
        path = _place()
        content = {} if path is None else _read(path)
        return {one.name for one in exercises if _holds(content, one)}, ""
    except Damaged:
        return set(), (
            f"Earlier marks cannot be shown: `{path}` is damaged. Mend or delete it, "
            "or pass one more exercise to begin a new one."
        )
    except Exception as error:
        return set(), f"Earlier marks cannot be read ({_reason(error)})."


def _place():
    """Return the path of the file, or None where nothing is to be kept."""
    chosen = os.environ.get(VARIABLE)
    # The marks of whoever tests the book must not change what its notebooks show.
    if chosen == OFF or (not chosen and "PYTEST_VERSION" in os.environ):
        return None
    folder = Path(chosen).expanduser() if chosen else _data_folder() / "tutorial_lib"
    return folder / NAME


def _data_folder():
    """Return where the system wants a user's data. Raises RuntimeError: no home."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    named = os.environ.get("XDG_DATA_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share"


def _is_kept(path, exercise):
    try:
        return _holds(_read(path), exercise)
    except Damaged:
        return False


def _holds(content, exercise):
    mark = content.get("passed", {}).get(exercise.name)
    return isinstance(mark, dict) and mark.get("title") == exercise.title


def _add(path, exercise):
    """Add a mark to what the file holds by now; return what there is to say."""
    # A folder on a Drive that is not mounted must not be made up on the disk.
    path.parent.mkdir(parents=not os.environ.get(VARIABLE), exist_ok=True)
    said = IN_COLAB if _is_lost_with_the_runtime() else ""
    with alone(path.with_suffix(".lock")):
        try:
            content = _read(path)
        except Damaged:
            aside = path.with_suffix(".damaged.json")
            patiently(os.replace, path, aside)
            content, said = {}, f"`{path}` was damaged: it is now `{aside.name}`."
        mark = {"number": exercise.number, "title": exercise.title}
        mark["on"] = datetime.date.today().isoformat()
        passed = content.get("passed", {}) | {exercise.name: mark}
        _write(path, {"about": ABOUT} | content | {"passed": passed})
    return said


def _is_lost_with_the_runtime():
    return "google.colab" in sys.modules and not os.environ.get(VARIABLE)


def _read(path):
    """Return what the file holds, {} if there is none. Raises Damaged and OSError."""
    try:
        content = json.loads(patiently(path.read_text, encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        raise Damaged from None
    if not isinstance(content, dict) or not isinstance(content.get("passed"), dict):
        raise Damaged
    return content


def _write(path, content):
    """Write the whole file beside the old one, and only then put it in its place."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    number, temporary = tempfile.mkstemp(".tmp", "progress-", path.parent)
    try:
        with open(number, "wb") as file:
            file.write(text.encode(errors="backslashreplace"))
            file.flush()
            os.fsync(number)
        patiently(os.replace, temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _reason(error):
    where = getattr(error, "filename", None)
    return f"`{where}`: {error.strerror}" if where else str(error)


def _once(sentence):
    if sentence in SAID:
        return ""
    SAID.add(sentence)
    return sentence
