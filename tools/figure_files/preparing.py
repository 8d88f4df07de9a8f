"""Preparing a chapter for its figures: how they are drawn, and what ``--set`` changes.

A chapter's parameters stand in its cell tagged ``parameters``; papermill reads them
there and sets others. A setting such as ``seed=7`` goes to every chapter that has the
parameter. The notebook on disk stays as it is. A claim of the chapter that does not
hold, as may be with other parameters, is noted, and the chapter goes on.

This module does not know what a parameter does, nor what becomes of the pictures.
"""

import ast
import copy
import json
from typing import NamedTuple

from tools.notebooks import code_cells, short_name

KINDS = {bool: "True or False", int: "a whole number", float: "a number"}
SETUP = """\
from tools.figure_files.drawing import hand_over

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
        dpi = 300 if dpi is None else dpi
        drawing = Drawing(format or "png", dpi, style or "light")
        if drawing.dpi not in range(10, 2401):
            raise ValueError(f"--dpi {dpi} makes no picture: give 10 to 2400")
        return drawing
    if format in ("svg", "pdf"):
        raise ValueError(
            f"the notebooks store pictures as PNG, not {format}: leave out "
            f"--from-outputs to have them drawn as {format}, or take --format png"
        )
    if dpi is not None or style or settings:
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
    notebook = copy.deepcopy(chapter.notebook)
    for cell in code_cells(notebook):
        cell["outputs"] = []  # whatever is there afterwards was drawn in this run
    if settings:
        notebook = _with_settings(notebook, settings)
    places = [i for i, cell in enumerate(notebook["cells"]) if cell["id"] in cells]
    setup = {"cell_type": "code", "execution_count": None, "id": "hand-over"}
    setup |= {"metadata": {}, "outputs": []}
    setup["source"] = SETUP.format(**drawing._asdict())
    notebook["cells"] = [setup, *notebook["cells"][: max(places) + 1]]
    return notebook


def _with_settings(notebook, settings):
    import nbformat
    from papermill.parameterize import parameterize_notebook

    notebook = nbformat.from_dict(notebook)
    notebook.metadata["papermill"] = {}
    for cell in notebook.cells:
        cell.metadata.setdefault("tags", [])  # papermill looks for it
    return json.loads(nbformat.writes(parameterize_notebook(notebook, settings)))


class Parameter(NamedTuple):
    """A parameter's value in the book, and what its comment says."""

    default: object
    remark: str


def settings_for(chapters, settings):
    """Map the path of each chapter to its settings, a dictionary.

    ``settings`` are texts like ``seed=7``. Raises ValueError for one without ``=``, a
    parameter that no chapter has, and a value of another kind than the book's own.
    """
    if not settings:
        return {chapter.path: {} for chapter in chapters}
    asked = dict(_split(text) for text in settings)
    there = {chapter.path: parameters_of(chapter.path) for chapter in chapters}
    for name in asked:
        if not any(name in parameters for parameters in there.values()):
            raise ValueError(_unknown(name, there))
    return {
        path: {
            name: _read(text, name, parameters[name].default, path)
            for name, text in asked.items()
            if name in parameters
        }
        for path, parameters in there.items()
    }


def parameters_of(path):
    """Map the names in a notebook's cell tagged ``parameters`` to their values."""
    from papermill.inspection import inspect_notebook

    return {
        name: Parameter(ast.literal_eval(found["default"]), found["help"])
        for name, found in inspect_notebook(path).items()
    }


def _split(text):
    name, sign, value = text.partition("=")
    if not (sign and name.strip() and value.strip()):
        raise ValueError(f"--set {text} sets nothing: write it like --set seed=7")
    return name.strip(), value.strip()


def _read(text, name, default, path):
    """Return the value that ``text`` means where the book has ``default``.

    None says nothing of what else would fit: there a number is one, the rest is text.
    """
    if isinstance(default, str):
        return text
    try:
        value = ast.literal_eval(text)
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        value = text  # whatever it is, it is no literal
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if default is not None and type(value) is not type(default):
        kind = KINDS.get(type(default), f"something like {default!r}")
        raise ValueError(
            f"{name}={text} does not fit {path.stem}, where {name} is {default!r}: "
            f"give {kind}"
        )
    return value


def _unknown(name, there):
    known = [
        f"{short_name(path)} has "
        + ", ".join(_described(key, *parameter) for key, parameter in found.items())
        for path, found in there.items()
        if found
    ]
    listed = f"chapter {'; '.join(known)}" if known else "they have none at all"
    return f"no chapter that you asked for has a parameter {name}: {listed}"


def _described(name, default, remark):
    return f"{name}={default}" + (f" ({remark})" if remark else "")
