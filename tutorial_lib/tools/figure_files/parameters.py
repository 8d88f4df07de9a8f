"""Parameters: what ``--set seed=7`` means in which chapter.

A chapter's parameters stand in its cell tagged ``parameters``; papermill reads them
there and sets others. A setting goes to every chapter that has the parameter.

This module does not know what a parameter does.
"""

import ast
from typing import NamedTuple

KINDS = {bool: "True or False", int: "a whole number", float: "a number"}


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
    except (SyntaxError, ValueError):
        value = text
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
        f"{path.name[:2]} has "
        + ", ".join(_described(key, *parameter) for key, parameter in found.items())
        for path, found in there.items()
        if found
    ]
    listed = f"chapter {'; '.join(known)}" if known else "they have none at all"
    return f"no chapter that you asked for has a parameter {name}: {listed}"


def _described(name, default, remark):
    return f"{name}={default}" + (f" ({remark})" if remark else "")
