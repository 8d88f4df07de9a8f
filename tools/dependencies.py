"""Dependencies: the files of the packages that a notebook's outputs depend on.

They are those that its cells import, what these import in turn, and so on; the files
beside a module that have its stem, as a figure's script has, or that it names; and the
exercises of the notebook's own chapter, which no cell imports by name. A name that a
package hands on leads to its module alone.

This module reads imports as text and runs nothing.
"""

import ast
import hashlib
import re
from pathlib import Path

from tools.files import read_text
from tools.notebooks import code_cells, read_notebook, source_of
from tutorial_lib.definitions import as_python

PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
# A module in a text, with or without a name in it: "tutorial_lib.position:ALiBi".
NAMED = re.compile(rf"[\"']((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?::\w+)?[\"']")
HANDED_ON = r"^from ([.\w]+) import (?:[^(\n]*|\([^)]*)\b{}\b"


def fingerprint(root, path):
    """Return a digest of everything that a notebook's outputs depend on.

    That is its code cells, its part of the packages, and the pinned environment.
    """
    digest = hashlib.sha256((Path(root) / "requirements.txt").read_bytes())
    for file in library_files(root, path):
        digest.update(file.name.encode() + file.read_bytes())
    for cell in code_cells(read_notebook(path)):
        digest.update(source_of(cell).encode() + b"\0")
    return digest.hexdigest()


def library_files(root, path):
    """Return the files under ``root`` that the notebook at ``path`` depends on."""
    root, found, waiting = Path(root), set(), set()
    for cell in code_cells(read_notebook(path)):
        waiting |= _imported(root, source_of(cell), root)
    if waiting:
        own = f"chapter_{Path(path).name[:2]}.py"
        waiting |= {*(root / "tutorial_exercises").glob(own)}
    while waiting:
        file = waiting.pop()
        found.add(file)
        text = read_text(file) if file.suffix == ".py" else ""
        if file.name != "__init__.py" or re.search("^(class|def) ", text, re.MULTILINE):
            waiting |= _imported(root, text, file.parent)
            for other in file.parent.iterdir() if text else ():
                if other.stem == file.stem or f'"{other.name}"' in text:
                    waiting.add(other)
            waiting -= found
    return sorted(filter(Path.is_file, found))


def _imported(root, source, folder):
    """Return the files that a source in ``folder`` imports, or names in a text."""
    names = {*NAMED.findall(source)}
    try:
        tree = ast.parse(as_python(source))
    except SyntaxError:  # a cell of another language
        return set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _full("." * node.level + (node.module or ""), root, folder)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return {file for name in names for file in _files(root, name)}


def _full(module, root, folder):
    """Return the full name of a module that is named from within ``folder``."""
    name = module.lstrip(".")
    up = len(module) - len(name)
    parts = [folder, *folder.parents][up - 1].relative_to(root).parts if up else ()
    return ".".join([*parts, *filter(None, [name])])


def _files(root, name):
    """Yield the files that define what a full name stands for."""
    first, *parts = name.split(".")
    place = root / first
    if first not in PACKAGES:
        return
    while place.is_dir():
        face = place / "__init__.py"
        if face.is_file():
            yield face
        if not parts or parts[0] == "*":
            yield from place.glob("*.*")
            return
        part, *parts = parts
        inside = place / part
        text = read_text(face) if face.is_file() else ""
        handed = re.search(HANDED_ON.format(part), text, re.MULTILINE)
        if handed and not inside.is_dir() and not inside.with_suffix(".py").is_file():
            yield from _files(root, f"{_full(handed[1], root, place)}.{part}")
            return
        place = inside
    if place.with_suffix(".py").is_file():
        yield place.with_suffix(".py")
