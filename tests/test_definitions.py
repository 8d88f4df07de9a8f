import functools
import linecache

import pytest

from tutorial_lib.definitions import (
    as_python,
    definitions,
    source_of,
    tree_of,
)

TEXT = """\
import functools

@functools.cache
def one():
    return 1

class Two:
    def method(self):
        return 2
"""


def ran(source, name):
    """Define ``name`` as a notebook's cell does: no file holds its source."""
    file = f"<cell {abs(hash(source))}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names = {}
    exec(compile(source, file, "exec"), names)
    return names[name]


def test_definitions_are_listed_with_their_decorators():
    assert definitions(TEXT) == [("one", 2, 5), ("Two", 6, 9)]


def test_what_only_ipython_understands_is_passed_over():
    assert definitions("%pip install x\n!ls\none?\n" + TEXT)[0] == ("one", 5, 8)
    assert as_python("if 1:\n    %time x\n") == "if 1:\n    pass\n"
    with pytest.raises(SyntaxError):
        definitions("def (")


@pytest.mark.parametrize(("name", "first", "last"), [("one", 2, 5), ("Two", 6, 9)])
def test_the_source_of_what_a_cell_defined_is_found(name, first, last):
    lines = TEXT.splitlines(keepends=True)[first:last]
    assert source_of(ran(TEXT, name)) == "".join(lines)


def test_a_definition_inside_another_loses_its_indent():
    def inner():
        return 1

    assert source_of(inner) == "def inner():\n    return 1\n"
    assert source_of(functools.wraps(inner)(lambda: 2)) == source_of(inner)


def test_of_two_definitions_of_one_name_the_one_that_is_given_is_meant():
    source = "def f():\n    return 1\n\ndef f():\n    return 2\n"
    assert source_of(ran(source, "f")) == "def f():\n    return 2\n"


@pytest.mark.parametrize("value", [3, len, int, type("Empty", (), {}), ...])
def test_what_has_no_source_in_python_has_none(value):
    assert tree_of(value) is None
    assert source_of(value) is None
