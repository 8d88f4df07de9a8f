"""Packages import only what stands below them, and nothing in a circle."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARIES = {"tutorial_lib", "tutorial_exercises", "tutorial_figures"}
# What each package may import besides itself.
BELOW = {
    "tutorial_lib": set(),
    "tutorial_exercises": {"tutorial_lib"},
    "tutorial_figures": {"tutorial_lib"},
    "tools": LIBRARIES,
    "benchmarks": {*LIBRARIES, "tools"},
}


def name_of(path):
    """Return a module's full name: "tutorial_lib.data.text"."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported(path):
    """Return the full names of all that a module imports, as far as they are ours."""
    names = set()
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, node.module] if node.module else above)
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.partition(".")[0] in BELOW}


MODULES = sorted(path for package in BELOW for path in (ROOT / package).rglob("*.py"))


@functools.cache
def all_imports():
    """Return what each module imports, by its name."""
    return {name_of(path): imported(path) for path in MODULES}


def test_packages_import_only_what_stands_below_them():
    wrong = []
    for module, names in all_imports().items():
        package = module.partition(".")[0]
        for name in sorted(names):
            other = name.partition(".")[0]
            if other != package and other not in BELOW[package]:
                wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_the_library_s_models_import_neither_plotting_nor_exercises():
    above = "tutorial_lib.plotting"
    wrong = []
    for module, names in all_imports().items():
        if module.startswith("tutorial_lib") and not module.startswith(above):
            wrong += [module for name in names if name.startswith(above)]
    assert wrong == []


def test_a_chapter_s_exercises_import_no_other_chapter_s():
    chapters = "tutorial_exercises.chapter_"
    wrong = []
    for module, names in all_imports().items():
        wrong += [
            f"{module} imports {name}"
            for name in names
            if name.startswith(chapters) and not name.startswith(module)
        ]
    assert wrong == []


def test_no_imports_lead_in_a_circle():
    left = {
        name for name in all_imports() if not (ROOT / name.replace(".", "/")).is_dir()
    }
    free = left
    while free:
        free = {name for name in left if not all_imports()[name] & (left - {name})}
        left = left - free
    assert left == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_does(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
