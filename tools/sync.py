"""Keep the notebooks' form, copies of library definitions and Colab cell true.

A top-level function or class in a notebook whose name exists in ``tutorial_lib`` is the
library's text, decorators and docstring included: there is one implementation. Cells
tagged ``exercise`` are exempt, because there the reader writes the definition.
"""

import re
from pathlib import Path

from tools.files import read_text
from tools.form import shape
from tools.notebooks import (
    chapters,
    code_cells,
    read_notebook,
    source_of,
    tags_of,
    write_notebook,
)
from tools.repository import read_repository
from tutorial_lib.definitions import definitions
from tutorial_lib.installed import MINILM, SMOLLM2

COLAB = """\
# @title Colab setup (does nothing elsewhere)
import sys

keep_marks_on_drive = False  # @param {type: "boolean"}

if "google.colab" in sys.modules:
    import os
    from glob import glob
    from importlib.util import find_spec
    from zipfile import ZipFile, is_zipfile

    library = "ADDRESS"
    for name in filter(is_zipfile, glob("*.zip")):  # and not half uploaded
        if any("tutorial_lib/" in file for file in ZipFile(name).namelist()):
            library = name
    os.environ["GIT_TERMINAL_PROMPT"] = "0"  # a private copy is refused at once
    if library:
        %pip install -q "{library}"
    if not find_spec("tutorial_lib"):
        sys.exit(
            "The book could not be fetched. Get it as a zip, drop that into the file "
            "panel (the folder symbol on the left), and run this cell again."
        )
MODELS    if keep_marks_on_drive:
        from google.colab import drive

        drive.mount("/content/drive")
        os.environ["TUTORIAL_PROGRESS"] = "/content/drive/MyDrive/attention"
"""
LOADED = {"smollm2": SMOLLM2, "minilm": MINILM}  # by the function that loads it


def sync(root, *, check=False):
    """Bring every notebook under ``root`` into line with the library.

    Returns one sentence for each cell that had drifted. With ``check`` nothing is
    written. Raises ValueError, and writes nothing, if a cell or a module is not Python.
    """
    library = library_definitions(Path(root) / "tutorial_lib")
    place = read_repository(root)
    drifted = []
    changed = {}
    for path in chapters(root):
        notebook = read_notebook(path)
        colab = colab_cell(*place, models_loaded(notebook))
        changes = synchronize(path.name, notebook, library, colab)
        changes += shape(path, notebook)
        drifted += [f"{path.name}, cell {change}" for change in changes]
        if changes:
            changed[path] = notebook
    if not check:
        for path, notebook in changed.items():
            write_notebook(path, notebook)
    return drifted


def library_definitions(folder):
    """Return the source text of every public definition in the library, by its name."""
    library = {}
    for path in sorted(folder.rglob("*.py")):
        text = read_text(path)
        for name, first, last in _defined(text, path):
            if not name.startswith("_"):
                library[name] = "\n".join(text.split("\n")[first:last])
    return library


def mirror(source, library, file="the cell"):
    """Replace each definition that the library knows by the library's own text.

    Returns the new source and the names that differed.
    """
    lines = source.split("\n")
    changed = []
    for name, first, last in reversed(_defined(source, file)):
        if name in library and "\n".join(lines[first:last]) != library[name]:
            lines[first:last] = library[name].split("\n")
            changed.insert(0, name)
    return "\n".join(lines), changed


def _defined(source, file):
    try:
        return definitions(source)
    except SyntaxError as error:
        raise ValueError(
            f"{file} is not Python ({error.msg}, line {error.lineno}): "
            "correct it, then sync again"
        ) from None


def synchronize(file, notebook, library, colab):
    """Mirror the library into the notebook of a file, and set its Colab cell, in place.

    Returns ``<id>: <what differed>`` for each cell that changed.
    """
    changes = _place_colab_cell(notebook["cells"], colab)
    for cell in notebook["cells"]:
        is_magic = source_of(cell).startswith("%%")
        if cell["cell_type"] != "code" or is_magic or "exercise" in tags_of(cell):
            continue
        source, names = mirror(source_of(cell), library, f"{file}, cell {cell['id']}")
        if names:
            cell["source"] = source.splitlines(keepends=True)
            changes.append(f"{cell['id']}: {', '.join(names)}")
    return changes


def models_loaded(notebook):
    """Return the packages of the pretrained models that a notebook loads."""
    text = "\n".join(source_of(cell) for cell in code_cells(notebook))
    return [LOADED[name] for name in LOADED if re.search(rf"\b{name}\(\)", text)]


def colab_cell(address, ref, models=()):
    """Return the notebook cell that fetches the library in Google Colab.

    It installs from a zip beside the notebook, or else what ``ref`` names in the
    repository at ``address``; and ``models``, packages that ship pretrained ones. If
    there is no library, or nothing can be had from there, it says so and ends *Run
    all*. Outside Colab it does nothing.
    """
    source = COLAB.replace("ADDRESS", f"git+{address}@{ref}" if address else "")
    lines = []
    for package in models:
        lines.append(f"    %{package.install_line.replace('install', 'install -q')}\n")
    source = source.replace("MODELS", "".join(lines))
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "colab-setup",
        "metadata": {
            "cellView": "form",
            "jupyter": {"source_hidden": True},
            "tags": ["remove-cell"],
        },
        "outputs": [],
        "source": source.rstrip("\n").splitlines(keepends=True),
    }


def _place_colab_cell(cells, colab):
    for cell in cells:
        if cell["id"] == colab["id"]:
            before = cell["metadata"], source_of(cell)
            cell.update(metadata=colab["metadata"], source=colab["source"])
            same = before == (cell["metadata"], source_of(cell))
            return [] if same else [f"{colab['id']}: text"]
    is_code = [cell["cell_type"] == "code" for cell in cells]
    cells.insert(is_code.index(True) if any(is_code) else len(cells), dict(colab))
    return [f"{colab['id']}: missing"]
