"""Run notebooks in place and store what they show.

A notebook is run again only if its code cells or a file of the three packages changed
since its last run. One that fails stays as it was on disk, and the others still run.
What is stored depends on the code alone: no times, no machine, no editor's metadata.
"""

import hashlib
import sys
import time
from pathlib import Path

from tools.files import write_whole
from tools.notebooks import (
    STOPPED,
    chapters,
    code_cells,
    read_notebook,
    run,
    source_of,
    write_notebook,
)
from tutorial_lib.notebook.widgets import VIEW

PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    # The lexer is what lets the book color cells that hold a magic.
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = {"cellView", "collapsed", "gives_away", "jupyter", "mystnb", "tags"}
JUPYTER_METADATA = {"outputs_hidden", "source_hidden"}


def execute(root, chapter=""):
    """Run the notebooks under ``root`` that changed; return how many failed.

    ``chapter`` picks one, which is run in any case. Ctrl-C ends the run, and what was
    run before it is stored. Raises ValueError if there is no such chapter.
    """
    failed = 0
    for path in chapters(root, [chapter]):
        stamp = Path(root, "_build", "executed", f"{path.stem}.sha256")
        code = digest(root, path)
        if not chapter and stamp.is_file() and stamp.read_text() == code:
            print(f"{path.stem}: up to date", flush=True)
            continue
        failure = _execute_one(path)
        if failure is None:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            write_whole(stamp, code)
            continue
        failed += 1
        message = f"{path.name}: nothing is stored: {failure}"
        print(message, file=sys.stderr, flush=True)
        if failure == STOPPED:
            break
    return failed


def digest(root, path):
    """Return a digest of a notebook's code, the packages and the pinned versions."""
    root = Path(root)
    content = hashlib.sha256((root / "requirements.txt").read_bytes())
    for package in PACKAGES:
        for file in sorted(root.glob(f"{package}/**/*.*")):
            if file.is_file() and file.suffix != ".pyc":
                content.update(file.read_bytes())
    for cell in code_cells(read_notebook(path)):
        content.update(source_of(cell).encode() + b"\0")
    return content.hexdigest()


def _execute_one(path):
    """Run one notebook and store it; return None, or why it stays as it was."""
    before = path.read_bytes()
    print(f"{path.stem}: running", end=" … ", flush=True)
    start = time.monotonic()
    notebook, failure = run(read_notebook(path), path.parent)
    print(f"{time.monotonic() - start:.1f} s", flush=True)
    if failure is None and path.read_bytes() != before:
        return "was edited while it ran: run it again"
    if failure is None:
        write_notebook(path, normalize(notebook))
    return failure


def normalize(notebook):
    """Keep only what the book uses; change the notebook in place.

    Other metadata go, and so do widgets, which are dead without their kernel: what
    else their cell shows, as that of a text box does, stays.
    """
    notebook["metadata"] = NOTEBOOK_METADATA
    notebook["nbformat"] = 4
    notebook["nbformat_minor"] = 5
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(VIEW, None)
        metadata = _only(cell["metadata"], CELL_METADATA)
        if "jupyter" in metadata:
            metadata["jupyter"] = _only(metadata["jupyter"], JUPYTER_METADATA)
        cell["metadata"] = {key: kept for key, kept in metadata.items() if kept != {}}
    return notebook


def _only(metadata, allowed):
    return {key: entry for key, entry in metadata.items() if key in allowed}
