"""Running a chapter for its figures, as far as the last one that is wanted.

The notebook on disk stays as it is. A claim of the chapter that does not hold, as may
be with other parameters, is noted, and the chapter goes on; any other failure ends it,
and what was drawn until then is kept.

This module does not know what becomes of the pictures.
"""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from tutorial_lib.tools.execute import QUIET

# The arithmetic that the book's results were computed with, as in the Makefile.
ARITHMETIC = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",
    "OMP_NUM_THREADS": "1",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "PYTHONHASHSEED": "0",
}
STOPPED = "stopped by Ctrl-C"
SETUP = """\
from tutorial_lib.tools.figure_files.drawing import hand_over

hand_over(format={format!r}, dpi={dpi!r}, style={style!r})
"""


class Drawing(NamedTuple):
    """How pictures are drawn: ``format`` svg, pdf or png, ``style`` light or dark."""

    format: str
    dpi: int
    style: str


def drawing_for(*, format, dpi, style, settings, from_outputs):
    """Return the ``Drawing`` that options ask for, with None for what they leave open.

    With ``from_outputs`` that is None, and ValueError is raised for an option that the
    stored pictures cannot follow.
    """
    if not from_outputs:
        drawing = Drawing(format or "png", dpi or 300, style or "light")
        if drawing.dpi not in range(10, 2401):
            raise ValueError(f"--dpi {dpi} makes no picture: give 10 to 2400")
        return drawing
    if format in ("svg", "pdf"):
        raise ValueError(
            f"the notebooks store pictures as PNG, not {format}: leave out "
            f"--from-outputs to have them drawn as {format}, or take --format png"
        )
    if dpi or style or settings:
        raise ValueError(
            "--from-outputs takes the pictures as they are stored: leave it out to "
            "have them drawn with --dpi, --style or --set"
        )
    return None


def prepare(chapter, cells, settings, drawing):
    """Return the notebook to run for the figures that ``cells`` show.

    It ends with the last of them, stores no outputs, begins by handing its figures
    over, and has the ``settings`` behind its parameters.
    """
    import nbformat

    notebook = nbformat.reads(json.dumps(chapter.notebook), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []  # whatever is there afterwards was drawn in this run
    if settings:
        notebook = _with_settings(notebook, settings)
    last = max(i for i, cell in enumerate(notebook.cells) if cell.id in cells)
    setup = nbformat.v4.new_code_cell(SETUP.format(**drawing._asdict()), id="hand-over")
    notebook.cells = [setup, *notebook.cells[: last + 1]]
    return notebook


def _with_settings(notebook, settings):
    from papermill.parameterize import parameterize_notebook

    notebook.metadata["papermill"] = {}
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])  # papermill looks for it
    return parameterize_notebook(notebook, settings)


def run(notebook, folder, tick):
    """Run a prepared notebook in ``folder``, calling ``tick()`` after each code cell.

    Returns the notebook with its outputs, and ``None``, ``STOPPED`` or a text saying
    which cell failed and how.
    """
    import nbformat
    from nbclient import NotebookClient, exceptions

    started = []
    client = NotebookClient(
        notebook,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        kernel_name="python3",
        on_cell_executed=lambda **_: tick(),
        on_cell_start=lambda cell, **_: started.append(cell["id"]),
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        timeout=None,  # with a real corpus, training takes minutes
    )
    failure = None
    try:
        _execute(client)
    except KeyboardInterrupt:
        failure = STOPPED
    except exceptions.CellExecutionError as error:
        said = error.evalue.partition("\n")[0]
        failure = f"cell {started[-1]} failed with {error.ename}: {said}"
    except exceptions.DeadKernelError:
        failure = f"the kernel died in cell {started[-1]}: is there enough memory?"
    return json.loads(nbformat.writes(notebook)), failure


def _execute(client):
    """Run a client's notebook; Ctrl-C ends its kernel at once and is passed on.

    In the main thread nbclient takes Ctrl-C for itself, and then fails in some way.
    """
    running = client.async_execute(env=os.environ | QUIET | ARITHMETIC)
    loop = asyncio.new_event_loop()
    with closing(loop), ThreadPoolExecutor(1) as pool:
        task = loop.create_task(running)
        done = pool.submit(loop.run_until_complete, task)
        try:
            done.result()
        except KeyboardInterrupt:
            client.shutdown_kernel = "immediate"
            loop.call_soon_threadsafe(task.cancel)
            raise
