"""Dependencies: the files of the library that a notebook's outputs depend on.

They are those that its cells import, what these import in turn, and so on; the scripts
and styles that a module names; and the exercises of the notebook's own chapter, which
no cell imports by name. A name that a package only hands on leads to the module that
defines it, and not to the others that stand beside it.

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
NAMED = re.compile(
    rf"[\"']((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?::\w+)?[\"']"
)  # a module, in a text


def fingerprint(root, path):
    """Return a digest of everything that a notebook's outputs depend on.

    That is its code cells, its part of the library, and the pinned environment.
    """
    digest = hashlib.sha256((Path(root) / "requirements.txt").read_bytes())
    for file in library_files(root, path):
        digest.update(file.name.encode() + file.read_bytes())
    for cell in code_cells(read_notebook(path)):
        digest.update(source_of(cell).encode() + b"\0")
    return digest.hexdigest()


def library_files(root, path):
    """Return the files under ``root`` that the notebook at ``path`` depends on."""
    root, found = Path(root), set()
    waiting = set()
    for cell in code_cells(read_notebook(path)):
        waiting |= {*_imported(root, source_of(cell), root)}
    if waiting:
        own = root / "tutorial_exercises" / f"chapter_{Path(path).name[:2]}"
        waiting |= {file for file in own.glob("*.*") if file.is_file()}
    while waiting:
        file = waiting.pop()
        found.add(file)
        if file.suffix == ".py" and not _is_face(file):
            text = read_text(file)
            waiting |= {*_imported(root, text, file.parent), *_beside(file, text)}
            waiting -= found
    return sorted(found)


def _imported(root, source, folder):
    """Yield the files that a source in ``folder`` imports, or names in a text."""
    for name in NAMED.findall(source):
        yield from _files(root, name.split("."))
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            module = _module(root, node, folder)
            for alias in node.names:
                yield from _files(root, [*module, alias.name])


def _tree(source):
    try:
        return ast.parse(as_python(source))
    except SyntaxError:  # a cell of another language
        return ast.Module([], [])


def _module(root, node, folder):
    """Return the full name, in parts, of the module that is imported from."""
    own = node.module.split(".") if node.module else []
    if not node.level:
        return own
    up = [folder, *folder.parents][node.level - 1]
    return [*up.relative_to(root).parts, *own]


def _files(root, parts):
    """Yield the files that define what a name, in parts, stands for."""
    if parts[0] not in PACKAGES:
        return
    for end in range(1, len(parts) + 1):
        place, names = root.joinpath(*parts[:end]), parts[end:]
        if place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
            return
        face = place / "__init__.py"
        if face.is_file():
            yield face
            if not (names and _is_module(place / names[0])):
                yield from _handed_on(root, face, names)


def _is_module(place):
    return place.is_dir() or place.with_suffix(".py").is_file()


def _handed_on(root, face, names):
    """Yield the files of what a package hands on under the first of these names.

    Without a name that is all it hands on.
    """
    for node in _tree(read_text(face)).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if not names or names[0] in ("*", alias.asname or alias.name):
                    module = _module(root, node, face.parent)
                    yield from _files(root, [*module, alias.name])


def _is_face(file):
    """Whether a package's file defines nothing: what it imports it only hands on."""
    if file.name != "__init__.py":
        return False
    body = _tree(read_text(file)).body
    return not any(isinstance(node, (ast.ClassDef, ast.FunctionDef)) for node in body)


def _beside(file, text):
    """Yield the scripts and styles beside a module that its text names."""
    for other in file.parent.iterdir():
        if other.suffix in (".css", ".js") and f'"{other.name}"' in text:
            yield other
