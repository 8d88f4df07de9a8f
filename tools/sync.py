"""Keep the notebooks' form, copies of library definitions and Colab cell true.

The library is the source: a top-level function or class in a notebook whose name
exists in ``tutorial_lib`` is the library's text, decorators and docstring included.
Cells tagged ``exercise`` are exempt, because there the reader writes the definition.

This module does not know what a definition means, and it runs none.
"""

import difflib
from pathlib import Path

from tools.files import read_text
from tools.form import shape
from tools.notebooks import chapters, read_notebook, source_of, tags_of, write_notebook
from tools.repository import read_address
from tutorial_lib.definitions import definitions

COLAB_TITLE = "# @title Colab setup (does nothing elsewhere)\nimport sys\n\n"
COLAB_INSTALL = """\
if "google.colab" in sys.modules:
    %pip install -q "git+{address}"
"""
COLAB_EXPLANATION = """\
if "google.colab" in sys.modules:
    print("This copy of the book does not say where its library can be found.")
    print("Its owner sets the address with:")
    print("python -m tools repository https://github.com/you/fork")
"""


def sync(root, *, check=False):
    """Bring every notebook under ``root`` into line with the library.

    Returns one sentence for each cell that had drifted. With ``check`` nothing is
    written. Raises ValueError, and writes nothing, if a cell or a module is not Python.
    """
    library = library_definitions(Path(root) / "tutorial_lib")
    colab = colab_cell(read_address(root))
    drifted, changed = [], {}
    for path in chapters(root):
        notebook = read_notebook(path)
        changes = synchronize(path.name, notebook, library, colab)
        changes += shape(path, notebook)
        drifted += [f"{path.name}, cell {change}" for change in changes]
        if changes:
            changed[path] = notebook
    for path, notebook in ({} if check else changed).items():
        write_notebook(path, notebook)
    return drifted


def library_definitions(folder):
    """Return the texts of every public definition in the modules of ``folder``.

    The result maps names to lists of source texts without a final newline: more than
    one where modules share a name, as the translators' encoders do. The packages in the
    folder are left out: no chapter shows what is in them.
    """
    found = {}
    for path in sorted(folder.glob("*.py")):
        text = read_text(path)
        for name, first, last in _defined(text, path):
            if not name.startswith("_"):
                lines = text.split("\n")[first:last]
                found.setdefault(name, []).append("\n".join(lines))
    return found


def mirror(source, library, file="the cell"):
    """Replace each definition that the library knows by the library's own text.

    Where modules share a name, the text that resembles the notebook's most is meant.
    Returns the new source and the names that differed.
    """
    lines, changed = source.split("\n"), []
    for name, first, last in reversed(_defined(source, file)):
        text = "\n".join(lines[first:last])
        if name in library and text not in library[name]:
            lines[first:last] = _most_similar(text, library[name]).split("\n")
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


def _most_similar(text, candidates):
    def similarity(candidate):
        return difflib.SequenceMatcher(None, candidate, text, autojunk=False).ratio()

    return max(candidates, key=similarity)


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


def colab_cell(address):
    """Return the notebook cell that fetches the library in Google Colab.

    Outside Colab the cell does nothing. While ``address`` is empty it explains, in
    Colab, what the owner of the copy has to do.
    """
    body = COLAB_INSTALL.format(address=address) if address else COLAB_EXPLANATION
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "colab-setup",
        "metadata": {"cellView": "form", "tags": ["remove-cell"]},
        "outputs": [],
        "source": (COLAB_TITLE + body).rstrip("\n").splitlines(keepends=True),
    }


def _place_colab_cell(cells, colab):
    for cell in cells:
        if cell["id"] == colab["id"]:
            if source_of(cell) == source_of(colab):
                return []
            cell["source"] = colab["source"]
            return [f"{colab['id']}: address"]
    is_code = [cell["cell_type"] == "code" for cell in cells]
    cells.insert(is_code.index(True) if any(is_code) else len(cells), dict(colab))
    return [f"{colab['id']}: missing"]
