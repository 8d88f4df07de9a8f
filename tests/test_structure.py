"""The house: small rooms, one idea in each, and stairs that lead down."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures", "tools")
MODULES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
# Words that say nothing of what a module holds.
VAGUE = {"common", "core", "helpers", "misc", "util", "utils"}
BELOW = {  # what each package may import besides itself
    "tutorial_lib": set(),
    "tutorial_exercises": {"tutorial_lib"},
    "tutorial_figures": {"tutorial_lib"},
    "tools": {"tutorial_lib", "tutorial_exercises", "tutorial_figures"},
}
KIT_USES = ("tutorial_lib.definitions", "tutorial_lib.randomness")
CHAPTER = re.compile(r"tutorial_exercises\.chapter_\d\d\b")


def name_of(path):
    """Return a module's full name: "tutorial_lib.data.text"."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Return the names of the book's modules that a module imports somewhere."""
    found, package = set(), list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*start, *filter(None, [node.module])])
            found |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
    return {name for name in found if name in NAMES and name != name_of(path)}


NAMES = {name_of(path) for path in MODULES}
IMPORTS = {name_of(path): imports_of(path) for path in MODULES}


def arrows(allowed):
    """List the imports, as pairs of modules, that a rule does not allow."""
    return sorted(
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if not allowed(name, other)
    )


def test_packages_import_only_what_lies_below_them():
    def allowed(name, other):
        package, used = name.partition(".")[0], other.partition(".")[0]
        return package == used or used in BELOW[package]

    assert arrows(allowed) == []


def test_the_kit_knows_no_chapter_and_no_model():
    def allowed(name, other):
        if not name.startswith("tutorial_exercises") or CHAPTER.match(name):
            return True
        known = other.startswith(
            (
                "tutorial_exercises",
                "tutorial_lib.randomness",
                "tutorial_lib.definitions",
            )
        )
        return other == "tutorial_lib" or (known and not CHAPTER.match(other))

    assert arrows(allowed) == []


def test_a_chapter_s_exercises_use_no_other_chapter_s():
    def allowed(name, other):
        own, others = CHAPTER.match(name), CHAPTER.match(other)
        return not (own and others) or own[0] == others[0]

    assert arrows(allowed) == []


def test_the_library_does_not_know_how_it_is_shown():
    def allowed(name, other):
        shows = "tutorial_lib.plotting"
        inside = name.startswith("tutorial_lib.") and not name.startswith(shows)
        return not (inside and other.startswith(shows))

    assert arrows(allowed) == []


def test_no_imports_lead_in_a_circle():
    above = {name: set(others) for name, others in IMPORTS.items()}
    faces = {name_of(path) for path in MODULES if path.name == "__init__.py"}
    left = set(above) - faces  # a face hands on what stands in its own rooms
    while free := {name for name in left if not above[name] & left}:
        left -= free
    assert left == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_holds(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert path.stem not in VAGUE
