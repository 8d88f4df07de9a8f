"""The library as a house: small rooms, one idea in each, and stairs that lead down."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "tutorial_lib"
MODULES = sorted(LIBRARY.rglob("*.py"))
SCRIPTS = sorted(LIBRARY.rglob("*.js"))
FUNCTIONS = (ast.AsyncFunctionDef, ast.FunctionDef)
# Words that say nothing of what a module holds.
VAGUE = {"common", "core", "helpers", "helping", "misc", "util", "utils"}
VAGUE |= {"asking", "expecting", "keeping", "locking", "lookup", "nests", "stopped"}
VAGUE |= {"trial", "watch"}
SHOWS = {"figures", "plotting"}
KIT_USES = {"definitions", "exercises", "randomness"}
CHAPTER = re.compile(r"exercises\.chapter_\d\d\b")


def name_of(path):
    """Return a module's name within the library: "data.text", "" for the library."""
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Return the names of the library's modules that a module imports somewhere."""
    found, package = set(), list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*start, *filter(None, [node.module])])
            found |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
    names = {name.removeprefix("tutorial_lib.") for name in found if "." in name}
    return {name for name in names if name in NAMES and name != name_of(path)}


NAMES = {name_of(path) for path in MODULES} - {""}
IMPORTS = {name_of(path): imports_of(path) for path in MODULES}


def room_of(name):
    """Return the first part of a module's name: where it stands in the library."""
    return name.partition(".")[0]


def code_lines(function, source):
    """Count the lines of a body that are neither blank, comment nor docstring."""
    documented = {
        line
        for inner in ast.walk(function)
        if isinstance(inner, (*FUNCTIONS, ast.ClassDef)) and ast.get_docstring(inner)
        for line in range(inner.body[0].lineno, inner.body[0].end_lineno + 1)
    }
    lines = source.splitlines()
    return sum(
        bool(lines[number - 1].split("#")[0].strip())
        for number in range(function.body[0].lineno, function.end_lineno + 1)
        if number not in documented
    )


def arrows(allowed):
    """List the imports, as pairs of modules, that a rule does not allow."""
    return sorted(
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if not allowed(name, other)
    )


def test_nothing_imports_a_tool_but_tools_and_the_command_line():
    def allowed(name, other):
        return room_of(other) != "tools" or room_of(name) in ("tools", "__main__")

    assert arrows(allowed) == []


def test_exercises_are_for_readers_and_no_part_of_the_library():
    def allowed(name, other):
        users = ("exercises", "tools")
        return room_of(other) != "exercises" or room_of(name) in users

    assert arrows(allowed) == []


def test_the_kit_knows_no_chapter_and_no_model():
    def allowed(name, other):
        if room_of(name) != "exercises" or CHAPTER.match(name):
            return True
        return room_of(other) in KIT_USES and not CHAPTER.match(other)

    assert arrows(allowed) == []


def test_a_chapter_s_exercises_use_no_other_chapter_s():
    def allowed(name, other):
        own, others = CHAPTER.match(name), CHAPTER.match(other)
        return not (own and others) or own[0] == others[0]

    assert arrows(allowed) == []


def test_models_do_not_know_how_they_are_shown():
    def allowed(name, other):
        shows = room_of(other) in SHOWS
        return not shows or room_of(name) in (*SHOWS, "exercises", "tools", "training")

    assert arrows(allowed) == []


def test_no_imports_lead_in_a_circle():
    above = {name: set(others) for name, others in IMPORTS.items()}
    faces = {name_of(path) for path in MODULES if path.name == "__init__.py"}
    left = set(above) - faces  # a face hands on what stands in its own rooms
    while free := {name for name in left if not above[name] & left}:
        left -= free
    assert left == set()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_it_holds(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 350
    assert ast.get_docstring(ast.parse(source))
    assert path.stem not in VAGUE


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_have_at_most_25_lines_of_code(path):
    source = path.read_text(encoding="utf-8")
    long = {
        node.name: code_lines(node, source)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, FUNCTIONS)
    }
    assert {name: lines for name, lines in long.items() if lines > 25} == {}


def test_who_opens_the_folder_meets_few_names():
    seen = [p for p in LIBRARY.iterdir() if p.name[0] not in "_." and p.is_file()]
    folders = [p for p in LIBRARY.iterdir() if (p / "__init__.py").is_file()]
    names = sorted(path.name for path in [*seen, *folders])
    assert len(names) <= 24, names
