"""Figures for slides: those of the chapters, drawn again or taken as they are stored.

Chapters are run, with other parameters if need be, and what they draw is written into a
folder, one file a figure, with a credit below it. A chapter that fails costs nobody
else's figures, and keeps those it drew before. The book's notebooks stay as they are.

This module does not know how a figure is drawn, nor what a parameter does.
"""

import ast
import base64
import copy
import difflib
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from tools import notebooks
from tools.credits import book_of, credit, credited, label_of
from tools.drawing import PICTURE
from tools.figure_pages import live_page
from tools.files import write_whole
from tools.notebooks import code_cells, read_notebook, source_of, tags_of
from tutorial_lib.notebook import unfolded

STORED = "image/png"  # the form in which notebooks keep their pictures
LIVE = "data-figure="  # what the HTML of every live figure carries
SETUP = """\
from tools.drawing import hand_over

hand_over({!r}, {!r}, {!r}, {!r})
"""


class Figure(NamedTuple):
    """A figure: ``cell`` names the cell that shows it, ``outputs`` are the cell's.

    ``label`` is what its page calls it, such as "Fig. 2.1".
    """

    name: str
    label: str
    cell: str
    is_live: bool
    outputs: list


def export(root, out, *, chapter=(), only=(), settings=(), from_outputs=False, **asked):
    """Write figures of the book under ``root`` into the folder ``out``.

    ``chapter`` and ``only`` pick chapters and figures, all without them; ``settings``
    are texts like ``seed=7``; ``asked`` are the format, dpi and style. With
    ``from_outputs`` the pictures are those that the notebooks store, and nothing runs.
    Returns how many chapters failed. Raises ValueError for what does not exist or
    cannot be had, and OSError if a file cannot be written.
    """
    drawing = drawing_for(from_outputs, settings, **asked)
    read = {path: read_notebook(path) for path in notebooks.chapters(root, chapter)}
    wanted, settings = choose(read, only), settings_for(read, settings)
    book = book_of(root)
    Path(out).mkdir(parents=True, exist_ok=True)
    count, problems = 0, {path: ["not begun"] for path in wanted}
    for path, notebook, failure in _shown(read, wanted, settings, drawing, book):
        written = [
            figure.name
            for figure in figures_of(path, notebook)
            if figure.name in wanted[path] and _write(out, figure, drawing, book)
        ]
        count += len(written)
        missing = ", ".join(name for name in wanted[path] if name not in written)
        missing = missing and f"not written: {missing}"
        problems[path] = [*filter(None, [failure, missing])]
    print(f"Wrote {count} figure{'s'[count == 1 :]} into {out}.")
    for path, failures in problems.items():
        for failure in failures:
            print(f"{path.stem}: {failure}", file=sys.stderr)
    return sum(map(bool, problems.values()))


def drawing_for(from_outputs, settings, *, format=None, dpi=None, style=None):
    """Return how pictures are drawn: format, dpi and style, or None if they are not."""
    if not from_outputs:
        return format or "png", dpi or 300, style or "light"
    if format in ("svg", "pdf") or dpi is not None or style or settings:
        raise ValueError(
            "--from-outputs takes the pictures as they are stored, as PNG: leave it "
            "out to have them drawn with --format, --dpi, --style or --set"
        )
    return None


def figures_of(path, notebook):
    """List the figures of a chapter, stored or just run.

    A static one has the name that the book gives it, in the metadata of its cell. A
    live one is known by what its cell shows, and named after the cell.
    """
    found, place = [], notebooks.short_name(path).replace("_", "-")
    for cell in code_cells(notebook):
        figure = cell["metadata"].get("mystnb", {}).get("figure", {})
        is_live = LIVE in _shows(cell["outputs"], "text/html")
        if "name" in figure or is_live:
            name = figure.get("name", f"fig-{place}-{cell['id']}")
            label = label_of(path, notebook, len(found) + 1)
            found.append(Figure(name, label, cell["id"], is_live, cell["outputs"]))
    return found


def _shows(outputs, kind):
    """Return the first content of a MIME type among a cell's outputs, or ``""``."""
    contents = (output.get("data", {}).get(kind) for output in outputs)
    return "".join(next(filter(None, contents), ""))


def choose(read, only=()):
    """Map each chapter's path to the names of its figures that are wanted, if any.

    Without ``only`` all are. Raises ValueError, with the names that are most alike, for
    one that does not exist.
    """
    there = {path: [one.name for one in figures_of(path, read[path])] for path in read}
    known = [name for names in there.values() for name in names]
    for name in {*only} - {*known}:
        near = difflib.get_close_matches(name, known, cutoff=0)
        raise ValueError(f"there is no figure {name}: did you mean {', '.join(near)}?")
    chosen = {
        path: [name for name in names if not only or name in only]
        for path, names in there.items()
    }
    return {path: names for path, names in chosen.items() if names}


def settings_for(read, settings):
    """Map the paths of chapters to their settings, dictionaries.

    ``settings`` are texts like ``seed=7``; each goes to the chapters that have such a
    parameter. Raises ValueError where there is none, or if it is of another kind.
    """
    there = {path: parameters_of(notebook) for path, notebook in read.items()}
    found = defaultdict(dict)
    for setting in settings:
        name, _, text = setting.partition("=")
        having = [path for path in there if name in there[path]]
        if not having:
            known = sorted({*()}.union(*there.values()))
            raise ValueError(
                f"no chapter that you asked for has a parameter {name}: "
                f"they have {', '.join(known) or 'none'}"
            )
        for path in having:
            found[path][name] = _value(setting, text, there[path][name])
    return found


def parameters_of(notebook):
    """Map the names in a notebook's cell tagged ``parameters`` to their values."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for cell in code_cells(notebook)
        if "parameters" in tags_of(cell)
        for node in ast.parse(source_of(cell)).body
    }


def _value(setting, text, default):
    """Return the value that a text means where the book has ``default``."""
    try:
        value = text if isinstance(default, str) else ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = None
    if type(value) is not type(default):
        raise ValueError(
            f"--set {setting} does not fit: give something like {default!r}"
        )
    return value


def _shown(read, wanted, settings, drawing, book):
    """Yield each chapter's path, its notebook with the figures, and what failed."""
    if drawing is None:
        yield from ((path, read[path], "") for path in wanted)
        return
    bar = tqdm(wanted, unit="chapter", leave=False, disable=None)
    for path in bar:
        figures = figures_of(path, read[path])
        credits = {
            one.cell: credit(book, one.label)
            for one in figures
            if one.name in wanted[path]
        }
        prepared = prepare(read[path], credits, settings[path], drawing)
        # With other settings, training may take minutes.
        notebook, failure = notebooks.run(prepared, path.parent, timeout=None)
        for cell in code_cells(notebook):
            kinds = [output["output_type"] for output in cell["outputs"]]
            if "claim" in tags_of(cell) and "error" in kinds:
                bar.write(f"{path.stem}: the claim {cell['id']} does not hold here")
        yield path, notebook, (failure or "").partition("\n")[0]
        if failure == notebooks.STOPPED:
            return


def prepare(notebook, credits, settings, drawing):
    """Return the notebook to run for some figures.

    ``credits`` maps the ids of the cells that show them to the line below each. The
    notebook ends with the last of them, stores no outputs, hands each figure over, has
    the ``settings`` behind its parameters, and goes on where a claim of the chapter
    does not hold, as may be with other parameters.
    """
    last = max(i for i, one in enumerate(notebook["cells"]) if one["id"] in credits)
    prepared = []
    for cell in copy.deepcopy(notebook["cells"][: last + 1]):
        if cell["id"] in credits:
            source = SETUP.format(*drawing, credits[cell["id"]])
            prepared.append(_code(f"hand-over-{cell['id']}", source))
        prepared.append(cell)
        if cell["cell_type"] == "code":
            cell["outputs"] = []  # whatever is there afterwards was drawn in this run
        if "claim" in tags_of(cell):
            cell["metadata"]["tags"].append("raises-exception")
        if "parameters" in tags_of(cell):
            lines = [f"{name} = {value!r}" for name, value in settings.items()]
            prepared.append(_code("settings", "\n".join(lines)))
    return notebook | {"cells": prepared}


def _code(name, source):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
    return cell | {"id": name, "outputs": [], "source": source}


def _write(out, figure, drawing, book):
    """Write the files of one figure; return whether its picture was there."""
    line = credit(book, figure.label)
    content = _shows(figure.outputs, PICTURE if drawing else STORED)
    if not content:
        return False
    content = base64.b64decode(content)
    suffix = drawing[0] if drawing else "png"
    content = content if drawing else credited(content, line)
    write_whole(Path(out, f"{figure.name}.{suffix}"), content)
    if figure.is_live:
        style = drawing[2] if drawing else "light"
        fragment = unfolded(_shows(figure.outputs, "text/html"))
        said = _shows(figure.outputs, "text/plain")
        page = live_page(fragment, figure.name, said, line, style)
        write_whole(Path(out, f"{figure.name}.html"), page)
    return True
