"""Write the chapters for a class: without solutions, or as masters for a grader.

What is written depends on the book alone, and nothing that is there already is lost: a
file that would change is left as it is, and named.

This module does not know what stands in a chapter, and it runs none.
"""

from pathlib import Path

from tools.files import read_text, write_whole
from tools.notebooks import as_text, source_of, tags_of

from . import masters
from .sheets import sheets

ROOT = Path(__file__).parents[2]
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
# What of the library no student gets: right answers, and edits of them.
SECRET = {"solutions.py", "mistakes.diff", "__pycache__"}


def export(root, kind, folder, chapter=""):
    """Write chapters for "student", "otter" or "nbgrader"; return the files' paths.

    Raises ValueError, before anything is written, if there is no such chapter or if a
    file is there already and differs, and OSError if one cannot be written.
    """
    files = {}
    for sheet in sheets(root, chapter):
        without_solutions(sheet)
        files |= FILES[kind](sheet)
    if kind == "otter":
        files |= _library()
    files = {Path(folder) / name: text for name, text in files.items()}
    for path, text in files.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise ValueError(
                f"{path} is there already and differs, so nothing is written: name an "
                "empty folder, or move it away"
            )
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    return [*files]


def without_solutions(sheet):
    """Take out of a sheet the cells that show solutions, and what gives them away.

    From a stub to the next heading no cell keeps what it showed, since what uses an
    answer shows it.
    """
    kept, inside = [], False
    for cell in sheet.notebook["cells"]:
        if "solution" in tags_of(cell):
            continue
        if cell["cell_type"] == "markdown":
            inside = inside and not _has_heading(source_of(cell))
        inside = inside or "exercise" in tags_of(cell)
        if inside and cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        kept.append(cell)
    sheet.notebook["cells"] = kept


def _has_heading(text):
    return any(line.startswith("#") for line in text.splitlines())


def _student(sheet):
    return {sheet.path.name: as_text(sheet.notebook)}


def _otter(sheet):
    return {sheet.path.name: as_text(masters.otter(sheet))}


def _nbgrader(sheet):
    name = f"source/{sheet.path.stem}/{sheet.path.name}"
    text = as_text(masters.nbgrader(sheet))
    return {name: text, "nbgrader_config.py": masters.NBGRADER_CONFIG}


FILES = {"student": _student, "otter": _otter, "nbgrader": _nbgrader}


def _library():
    """Return the library's files, as Otter packs them, without the solutions."""
    paths = (path for name in PACKAGES for path in (ROOT / name).rglob("*.*"))
    return {
        path.relative_to(ROOT).as_posix(): read_text(path)
        for path in sorted(paths)
        if path.suffix in {".css", ".js", ".py"} and SECRET.isdisjoint(path.parts)
    }
