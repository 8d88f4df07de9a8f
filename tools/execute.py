"""Run notebooks in place and store what they show.

A notebook is run again only if its code, or what it uses of the library, changed since
its last run. One that fails stays as it was on disk, and the others still run. What is
stored depends on the code alone: no times, no machine, no editor's private metadata.

This module does not know what the notebooks are about, nor whether their results
are right: the tests compare them.
"""

import sys
import time
from pathlib import Path

from tools.dependencies import fingerprint
from tools.files import write_whole
from tools.notebooks import STOPPED, chapters, read_notebook, run, write_notebook
from tutorial_lib.notebook.widgets import VIEW

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    # The lexer is what lets the book color cells that hold a magic.
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
CELL_METADATA = {"cellView", "collapsed", "jupyter", "mystnb", "tags"}
JUPYTER_METADATA = {"outputs_hidden", "source_hidden"}


def execute(root, chapter=""):
    """Run the notebooks under ``root`` that changed; return how many failed.

    ``chapter`` picks one. Ctrl-C ends the run, and what was run before it is stored.
    Raises ValueError if there is no such chapter.
    """
    paths = chapters(root, [chapter])
    folder = Path(root, "_build", "executed")
    stamps = {path: folder / f"{path.stem}.sha256" for path in paths}
    stale = [
        path
        for path, stamp in stamps.items()
        if not stamp.is_file() or stamp.read_text() != fingerprint(root, path)
    ]
    print(f"{len(paths) - len(stale)} of {len(paths)} notebooks are up to date.")
    failed = 0
    for path in stale:
        code = fingerprint(root, path)
        failure = _execute_one(path)
        if failure is None:
            stamps[path].parent.mkdir(parents=True, exist_ok=True)
            write_whole(stamps[path], code)
            continue
        failed += 1
        said = f"{path.name}: nothing is stored: {failure}"
        print(said, file=sys.stderr, flush=True)
        if failure == STOPPED:
            break
    return failed


def _execute_one(path):
    """Run one notebook and store it; return None, or say why it is as it was."""
    text = path.read_bytes()
    print(f"{path.stem}: running", end=" … ", flush=True)
    start = time.monotonic()
    notebook, failure = run(read_notebook(path), path.parent)
    print(f"{time.monotonic() - start:.1f} s", flush=True)
    if failure is None and path.read_bytes() != text:
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
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
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
