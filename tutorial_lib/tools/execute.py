"""Run notebooks in place and store what they show.

A notebook is run again only if its code or the library changed since its last run.
One that fails stays as it was on disk, and the others still run. What is stored
depends on the code alone: no times, no machine, no editor's private metadata.

This module does not know what the notebooks are about, nor whether their results
are right: the tests compare them.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from tutorial_lib.tools.sync import read_notebook, write_notebook

CELL_TIMEOUT = 300  # seconds
# A progress bar would be stored as it last was, and so would the marks of whoever runs.
QUIET = {"TQDM_DISABLE": "1", "TUTORIAL_PROGRESS": "off"}
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    # The lexer is what lets the book color cells that hold a magic.
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"
CELL_METADATA = {"cellView", "collapsed", "jupyter", "mystnb", "tags"}
JUPYTER_METADATA = {"outputs_hidden", "source_hidden"}


def execute(root, chapter=""):
    """Run the notebooks under ``root`` that changed; return how many failed.

    ``chapter`` picks notebooks by the start of their name, and ``"2"`` means
    ``"02"``. Raises ValueError if it picks none.
    """
    root = Path(root)
    start = chapter.zfill(2) if chapter.isdigit() else chapter
    paths = sorted(root.glob(f"notebooks/{start}*.ipynb"))
    if chapter and not paths:
        raise ValueError(f"no notebook starts with {start}: look into notebooks/")
    stale = [path for path in paths if not _is_up_to_date(root, path)]
    print(f"{len(paths) - len(stale)} of {len(paths)} notebooks are up to date.")
    return sum(not _execute_one(root, path) for path in stale)


def _execute_one(root, path):
    text, code = path.read_bytes(), fingerprint(root, path)
    print(f"{path.stem}: running", end=" … ", flush=True)
    start = time.monotonic()
    notebook, failure = run(path)
    print(f"{time.monotonic() - start:.1f} s", flush=True)
    if failure is None and path.read_bytes() != text:
        failure = "was edited while it ran, so nothing is stored: run it again"
    if failure is not None:
        print(f"{path.name}: {failure}", file=sys.stderr, flush=True)
        return False
    write_notebook(path, normalize(notebook))
    stamp = _stamp(root, path)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(code, encoding="utf-8")
    return True


def run(path):
    """Run one notebook in its own folder, without touching the file.

    Returns the notebook with its outputs, and ``None`` or a text saying which cell
    failed and how.
    """
    import nbformat
    from nbclient import NotebookClient, exceptions

    notebook, started = nbformat.read(path, as_version=4), []
    client = NotebookClient(
        notebook,
        coalesce_streams=True,  # else what is stored depends on when it was printed
        extra_arguments=["--log-level=ERROR"],
        kernel_name="python3",
        on_cell_start=lambda cell, cell_index: started.append(cell["id"]),
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        timeout=CELL_TIMEOUT,
    )
    failure = None
    try:
        client.execute(env=os.environ | QUIET)
    except (exceptions.CellControlSignal, exceptions.DeadKernelError) as error:
        failure = f"cell {started[-1]} failed, so nothing is stored\n{error}"
    return json.loads(nbformat.writes(notebook)), failure


def normalize(notebook):
    """Keep only what the book uses; change the notebook in place.

    Other metadata go, and so do widgets, which are dead without their kernel: what
    else their cell shows, as that of ``tutorial_lib.figures.text_box`` does, stays.
    """
    notebook["metadata"] = NOTEBOOK_METADATA
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)
        metadata = _only(cell["metadata"], CELL_METADATA)
        if "jupyter" in metadata:
            metadata["jupyter"] = _only(metadata["jupyter"], JUPYTER_METADATA)
        cell["metadata"] = {key: kept for key, kept in metadata.items() if kept != {}}
    return notebook


def _only(metadata, allowed):
    return {key: entry for key, entry in metadata.items() if key in allowed}


def fingerprint(root, path):
    """Return a digest of everything that a notebook's outputs depend on.

    That is its code cells, the library's files and the pinned environment.
    """
    digest = hashlib.sha256()
    library = root / "tutorial_lib"
    for source in sorted(library.rglob("*.*")):
        is_tool = "tools" in source.relative_to(library).parts
        if source.suffix in {".css", ".js", ".py"} and not is_tool:
            digest.update(source.read_bytes())
    digest.update((root / "requirements.txt").read_bytes())
    for cell in read_notebook(path)["cells"]:
        if cell["cell_type"] == "code":
            digest.update("".join(cell["source"]).encode() + b"\0")
    return digest.hexdigest()


def _stamp(root, path):
    return root / "_build" / "executed" / f"{path.stem}.sha256"


def _is_up_to_date(root, path):
    stamp = _stamp(root, path)
    return stamp.is_file() and stamp.read_text() == fingerprint(root, path)
