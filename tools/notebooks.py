"""Notebooks: which chapters there are, what their cells hold, and how one is run.

A notebook is plain dictionaries and lists, as its file is. Whoever runs one gets it
back with its outputs, whatever happened; the file stays as it is.
"""

import asyncio
import atexit
import json
import os
import platform
import sys
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import cache
from pathlib import Path

from tools.files import read_text, write_whole

ROOT = str(Path(__file__).parents[1])  # from where a kernel, too, finds the tools
CELL_TIMEOUT = 300  # seconds
STOPPED = "stopped by Ctrl-C"
ENVIRONMENT = {  # what the book's kernels run with
    # A progress bar would be stored as it last was, and so would somebody's marks.
    "TQDM_DISABLE": "1",
    "TUTORIAL_PROGRESS": "off",
    # What the text claims has to hold, and nobody is there to move a control.
    "TUTORIAL_STRICT": "1",
    "TUTORIAL_WIDGETS": "off",
    # Only the same arithmetic gives results again to the last printed digit.
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
if platform.machine() in ("AMD64", "x86_64"):
    ENVIRONMENT["ATEN_CPU_CAPABILITY"] = "avx2"
    ENVIRONMENT["MKL_CBWR"] = "AVX2"
    ENVIRONMENT["ONEDNN_MAX_CPU_ISA"] = "AVX2"
# Where matplotlib keeps its settings and what fonts there are: else environments share
# that, and one warns in each chapter of fonts that have gone with another.
if os.access(sys.prefix, os.W_OK):
    ENVIRONMENT["MPLCONFIGDIR"] = f"{Path(sys.prefix, 'var', 'cache', 'matplotlib')}"


def chapters(root, wanted=()):
    """Return the paths of the chapters under ``root``: all, or those ``wanted``.

    A chapter is wanted by its number, "6" or "06", or by the start of its name; "" asks
    for nothing. The order is the book's, with the excursions behind the chapters.
    Raises ValueError for one that does not exist.
    """
    paths = sorted(Path(root).glob("notebooks/*.ipynb"))
    chosen = set()
    for text in filter(None, wanted):
        start = f"{text.zfill(2)}_" if text.isdigit() else text
        matching = [path for path in paths if path.name.startswith(start)]
        if not matching:
            known = ", ".join(map(short_name, paths))
            raise ValueError(f"there is no chapter {text}: the book has {known}")
        chosen.update(matching)
    return sorted(chosen) or paths


def short_name(path):
    """Return a chapter's number, "06"; an excursion has none, but a name, "x_cost"."""
    number = path.name.partition("_")[0]
    return number if number.isdigit() else path.stem


def read_notebook(path):
    """Read a notebook. Raises OSError, and ValueError if JupyterLab saves none so."""
    try:
        notebook = json.loads(read_text(path))
        for cell in notebook["cells"]:
            _ = [cell[part] for part in ("cell_type", "id", "metadata", "source")]
    except (KeyError, TypeError, json.JSONDecodeError, RecursionError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(
            f"{path} is not a notebook of format 4.5, in which JupyterLab saves them: "
            f"{reason}"
        ) from None
    return notebook


def write_notebook(path, notebook):
    """Write a notebook as ``as_text`` has it, whole or not at all."""
    write_whole(path, as_text(notebook))


def as_text(notebook):
    """Return a notebook byte for byte as Jupyter writes it: diffs stay small."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    return text + "\n"


def source_of(cell):
    """Return a cell's text, which a file may hold in one piece or line by line."""
    return "".join(cell["source"])


def tags_of(cell):
    """Return a cell's tags."""
    return cell["metadata"].get("tags", [])


def code_cells(notebook):
    """Return the code cells of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook, folder, *, timeout=CELL_TIMEOUT):
    """Run a notebook in ``folder``; return it with its outputs, and what failed.

    A code cell may take ``timeout`` seconds (None: any time). What failed is None,
    ``STOPPED`` after Ctrl-C, or a text whose first line says which cell failed and how;
    the rest is the traceback.
    """
    import nbformat
    from nbclient import NotebookClient, exceptions

    node = nbformat.reads(json.dumps(notebook), as_version=4)
    started = []
    client = NotebookClient(
        node,
        config=connection(),
        coalesce_streams=True,  # else what is stored depends on when it was printed
        extra_arguments=["--log-level=ERROR"],
        kernel_name="python3",
        on_cell_start=lambda cell, **_: started.append(cell["id"]),
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        timeout=timeout,
    )
    failure = None
    try:
        _execute(client)
    except KeyboardInterrupt:
        failure = STOPPED
    except (exceptions.CellControlSignal, exceptions.DeadKernelError) as error:
        failure = f"cell {started[-1]} {_reason(error, timeout)}"
    return json.loads(nbformat.writes(node)), failure


def connection():
    """Return the configuration of a kernel that is reached by files of its own.

    Ports are free when they are chosen, and may be taken by another kernel before this
    one opens them: it dies then, or both wait for ever.
    """
    from traitlets.config import Config

    if os.name != "posix":
        return Config()
    address = Path(_sockets().name, uuid.uuid4().hex[:8])  # such a path must be short
    return Config(ConnectionFileMixin={"transport": "ipc", "ip": f"{address}"})


@cache
def _sockets():
    """Return the folder of this process for the files of kernels."""
    return tempfile.TemporaryDirectory(prefix="kernels-")


def _reason(error, timeout):
    """Say how a cell failed: a sentence, and the traceback if there is one."""
    if hasattr(error, "ename"):
        return f"failed with {error.ename}: {error.evalue}\n{error}"
    if isinstance(error, TimeoutError):
        return f"was still running after {timeout} s"
    return "ended its kernel: is there enough memory?"


def _execute(client):
    """Run a client's notebook; Ctrl-C ends its kernel at once and is passed on.

    In the main thread nbclient takes Ctrl-C for itself, and then fails in some way.
    """
    running = client.async_execute(env=os.environ | ENVIRONMENT | {"PYTHONPATH": ROOT})
    loop = asyncio.new_event_loop()
    task = loop.create_task(running)
    with closing(loop), ThreadPoolExecutor(1) as pool:
        done = pool.submit(_finish, loop, task)
        try:
            done.result()
        except KeyboardInterrupt:
            client.shutdown_kernel = "immediate"
            loop.call_soon_threadsafe(task.cancel)
            raise
        finally:
            wait([done])
            if client.km is None:  # else its kernel ends with this process
                atexit.unregister(client._cleanup_kernel)


def _finish(loop, task):
    """Run a loop until its task has ended, and cancel whatever else runs on it."""
    try:
        return loop.run_until_complete(task)
    finally:
        others = asyncio.all_tasks(loop)
        for other in others:
            other.cancel()
        if others:
            loop.run_until_complete(asyncio.wait(others))
