"""Known mistakes: what people write instead of the right answer, as edits of it.

`chapter_NN/mistakes.diff` holds a chapter's, exercise by exercise::

    # 4.1 packed_mask
    inverted: Your mask is inverted: True means that a query may look.
    - return same & is_word & causal_mask(sentence.shape[1])
    + return ~(same & is_word & causal_mask(sentence.shape[1]))

The old lines stand once in the solution, whole, at any depth. A line `or` begins
another way to make the same mistake, and `= 4.0` is a wrong value. A mistake without a
message is one that a step of the check finds by itself, and `right` are other right
answers. Nothing is read or run before somebody asks for it.

This module does not know what a check is.
"""

import functools
import importlib
import linecache
from pathlib import Path

from tutorial_lib.definitions import source_in

INDENTS = range(0, 24, 4)


class Known:
    """A known answer: its code, what to tell who gave it, and how it is made."""

    def __init__(self, code, message, make):
        self.code, self.message, self._make = code, message, make

    @functools.cached_property
    def answer(self):
        """The answer itself, made when it is first asked for."""
        return self._make()


def known(exercise):
    """Return what is known of an exercise: mistakes, and other right answers.

    Empty where a copy of the book has no solutions.
    """
    package = f"{__package__}.chapter_{exercise.chapter:02d}"
    try:
        solutions = importlib.import_module(f"{package}.solutions")
        entries = _entries(Path(solutions.__file__).with_name("mistakes.diff"))
    except (ModuleNotFoundError, FileNotFoundError):
        return []
    return [
        Known(code, message, functools.partial(_made, exercise, edit, solutions))
        for code, message, edit in entries.get(exercise.name, [])
    ]


@functools.cache
def _entries(path):
    return read(path.read_text(encoding="utf-8"))


def read(text):
    """Return {exercise: [(code, message, lines of the edit)]} of a file's text."""
    found, entries, head, edits = {}, [], [], []
    for line in [*text.splitlines(), ""]:
        is_edit = line[:1] in ("-", "+", "=") and line[1:2] in ("", " ")
        if edits and not is_edit and line != "or":
            code, _, message = " ".join(head).partition(":")
            entries += [(code, message.strip(), tuple(edit)) for edit in edits]
            head, edits = [], []
        if line.startswith("# "):
            entries = found.setdefault(line.split()[-1], [])
        elif is_edit or line == "or":
            if not edits or line[0] in "=o":
                edits.append([])
            edits[-1] += [line] * is_edit
        elif line:
            head.append(line)
    return found


def edited(source, edit):
    """Return the source with the old lines, which must stand in it once, replaced."""
    lines = source.split("\n")
    old, new = ([line[2:] for line in edit if line[0] == sign] for sign in "-+")
    places = [
        (first, depth)
        for depth in INDENTS
        for first in range(len(lines))
        if lines[first : first + len(old)] == _indented(old, depth)
    ]
    if len(places) != 1:
        raise ValueError(f"these lines must stand once in the solution: {old}")
    [(first, depth)] = places
    lines[first : first + len(old)] = _indented(new, depth)
    return "\n".join(lines)


def _indented(lines, depth):
    return [" " * depth + line if line else line for line in lines]


def _made(exercise, edit, solutions):
    """Return the answer that an edit makes."""
    if exercise.is_value:
        return eval(edit[0][2:], dict(vars(solutions)))
    return define(edited(_source(exercise.name, solutions), edit), exercise, solutions)


@functools.cache
def _source(name, solutions):
    text = Path(solutions.__file__).read_text(encoding="utf-8")
    return source_in(text, name)


def define(source, exercise, solutions):
    """Run source among the solutions' names, as a cell would: errors can quote it."""
    file, lines = f"<{exercise.name} {hash(source)}>", source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)
    names = dict(vars(solutions), __name__="answers")
    exec(compile(source, file, "exec"), names)
    return names[exercise.name]
