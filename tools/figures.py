"""Figures for slides: those of the chapters, one file a figure.

PNG files are the figures that the notebooks store; the pictures that chapters begin
with are always SVG files. For other figures as SVG or PDF the chapters are run, and
what they show is drawn in that format; one that fails costs nobody else's figures, and
keeps those it drew before. An interactive figure is also written as a page of its own,
which needs no other page and no internet. The notebooks stay as they are.
"""

import base64
import copy
import difflib
import itertools
import os
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

from tools import notebooks
from tools.files import write_whole
from tools.notebooks import code_cells, read_notebook
from tutorial_figures.figure import PAGE
from tutorial_lib.notebook import unfolded

STORED = "image/png"  # the form in which notebooks keep their figures
DRAWING = "image/svg+xml"  # and the pictures that chapters begin with
DRAWN = "application/vnd.attention-book.file"  # a file as base64, while a chapter runs
LIVE = "data-figure="  # what the HTML of every live figure carries
SETUP = "from tools.figures import hand_over\n\nhand_over({!r})"


class Figure(NamedTuple):
    """A figure, the cell that shows it, and the outputs of this cell."""

    name: str
    cell: str
    is_live: bool
    outputs: list


def export(root, out, *, chapter=(), only=(), format="png"):
    """Write figures of the book under ``root`` into the folder ``out``.

    ``chapter`` and ``only`` pick chapters and figures, all without them. Returns how
    many chapters failed. Raises ValueError for what does not exist, and OSError if a
    file cannot be written.
    """
    read = {path: read_notebook(path) for path in notebooks.chapters(root, chapter)}
    wanted = choose(read, only)
    Path(out).mkdir(parents=True, exist_ok=True)
    count = 0
    failed = 0
    for path, names in wanted.items():
        notebook = read[path]
        failure = None
        if format != "png":
            print(f"{path.stem}: running", flush=True)
            prepared = prepare(path, notebook, names, format)
            notebook, failure = notebooks.run(prepared, path.parent)
        for figure in figures_of(path, notebook):
            if figure.name in names and write(out, figure, format):
                count += 1
        if failure:
            failed += 1
            reason = failure.partition("\n")[0]
            print(f"{path.stem}: {reason}", file=sys.stderr)
        if failure == notebooks.STOPPED:
            break
    print(f"Wrote {count} figure{'s'[count == 1 :]} into {out}.")
    return failed


def figures_of(path, notebook):
    """List the figures of a chapter, stored or just run.

    A static one has the name that the book gives it, in the metadata of its cell. A
    live one is known by what its cell shows, and named after the cell.
    """
    figures = []
    chapter = notebooks.short_name(path).replace("_", "-")
    for cell in code_cells(notebook):
        about = cell["metadata"].get("mystnb", {}).get("figure", {})
        is_live = LIVE in shown(cell["outputs"], "text/html")
        if "name" in about or is_live:
            name = about.get("name", f"fig-{chapter}-{cell['id']}")
            figures.append(Figure(name, cell["id"], is_live, cell["outputs"]))
    return figures


def shown(outputs, kind):
    """Return the first content of a MIME type among a cell's outputs, or ``""``."""
    for output in outputs:
        content = output.get("data", {}).get(kind)
        if content:
            return "".join(content)
    return ""


def choose(read, only=()):
    """Map each chapter's path to the names of its figures that are wanted, if any.

    Without ``only`` all are. Raises ValueError, with the names that are most alike, for
    one that does not exist.
    """
    names = {}
    for path, notebook in read.items():
        names[path] = [figure.name for figure in figures_of(path, notebook)]
    known = list(itertools.chain(*names.values()))
    for name in only:
        if name not in known:
            near = ", ".join(difflib.get_close_matches(name, known, cutoff=0))
            raise ValueError(f"there is no figure {name}: did you mean {near}?")
    wanted = {}
    for path in names:
        chosen = [name for name in names[path] if not only or name in only]
        if chosen:
            wanted[path] = chosen
    return wanted


def prepare(path, notebook, names, format):
    """Return the notebook to run for its figures of these names.

    It ends with the last cell that shows one, and stores no outputs from before.
    """
    showing = [one.cell for one in figures_of(path, notebook) if one.name in names]
    setup = {"cell_type": "code", "execution_count": None, "id": "hand-over"}
    cells = [{**setup, "metadata": {}, "outputs": [], "source": SETUP.format(format)}]
    for cell in copy.deepcopy(notebook["cells"]):
        cells.append(cell)
        if cell["cell_type"] == "code":
            cell["outputs"] = []
        if cell["id"] == showing[-1]:
            break
    return {**notebook, "cells": cells}


def hand_over(format):
    """Let the kernel that this runs in hand over each figure as a file, svg or pdf.

    Of a figure with controls, that is the first picture.
    """
    os.environ["TUTORIAL_WIDGETS"] = "first"
    import matplotlib.figure
    from IPython import get_ipython

    import tutorial_figures.figure
    from tutorial_lib.plotting.figure import draw

    def static(figure):
        return {DRAWN: base64.b64encode(draw(figure, format, dpi=300)).decode()}

    def live(figure):
        file = base64.b64encode(figure.still(format)).decode()
        return {DRAWN: file, "text/html": figure.html}

    bundles = get_ipython().display_formatter.mimebundle_formatter
    bundles.for_type(matplotlib.figure.Figure, static)
    bundles.for_type(tutorial_figures.figure.Figure, live)


def write(out, figure, format):
    """Write the files of one figure; return whether its picture was there."""
    drawing = shown(figure.outputs, DRAWING)
    if drawing:
        write_whole(Path(out, f"{figure.name}.svg"), drawing)
        return True
    content = shown(figure.outputs, STORED if format == "png" else DRAWN)
    if not content:
        return False
    write_whole(Path(out, f"{figure.name}.{format}"), base64.b64decode(content))
    if figure.is_live:
        fragment = unfolded(shown(figure.outputs, "text/html"))
        page = PAGE.format(title=escape(figure.name), figure=fragment)
        write_whole(Path(out, f"{figure.name}.html"), page)
    return True
