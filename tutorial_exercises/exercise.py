"""What an exercise is, and the register in which every exercise of the book stands.

The register fills itself: the first look-up imports the `checks` of every `chapter_NN`
folder of this package, so no notebook has to. This module does not know how an answer
is run, nor what of it is right.
"""

import contextlib
import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass

from .cards import Result
from .mistakes import known

EXERCISES: dict[str, "Exercise"] = {}


class Wrong(Exception):
    """A diagnosis: `code` is stable and tested, `message` is what the student reads."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Step:
    """One thing a check looks at: what it is called, and how it is looked at."""

    label: str
    run: Callable


class Exercise:
    """A task with an oracle, known wrong answers, and steps that find the first fault.

    number: "3.2", as in the heading; its first part is the chapter.
    title: the words of the heading.
    name: name of the function or class to write; left out, the answer is a value.
    returns: axes of the returned tensor ("batch query key"), or, where a tuple is
        returned, its parts and their axes ({"outputs": "query d_v", …}).
    hints: sentences, from a nudge to nearly the answer.
    needs: names of earlier exercises that the answer calls. While it is checked, the
        library's versions stand in for them: an error is not carried forward.
    fallback: what `use` hands out meanwhile: a callable, or "module:name".
    tolerance: largest absolute difference that counts as equal.
    seconds: how long one call of the answer may take; None means the usual limit.
    Raises ValueError if the number or the name is taken.
    """

    def __init__(
        self,
        number,
        title,
        *,
        name=None,
        returns="",
        hints=(),
        needs=(),
        fallback=None,
        tolerance=1e-5,
        seconds=None,
    ):
        if not re.fullmatch(r"\d+\.\d+", number):
            raise ValueError(f'an exercise number looks like "3.2", not {number!r}')
        self.number, self.title, self.name = number, title, name or number
        self.returns, self.hints, self.needs = returns, tuple(hints), tuple(needs)
        self.fallback, self.tolerance, self.seconds = fallback, tolerance, seconds
        self.oracle, self.steps = None, []
        _register(self)

    @property
    def chapter(self):
        """The chapter's number."""
        return int(self.number.split(".")[0])

    @property
    def heading(self):
        """The words over the exercise in the notebook."""
        return f"Exercise {self.number} · {self.title}"

    @property
    def is_value(self):
        """Whether the answer is a value and not a function or a class."""
        return self.name == self.number

    @property
    def call(self):
        """How a student writes the exercise between brackets: `f`, or `"3.1"`."""
        return f'"{self.number}"' if self.is_value else self.name

    def spec(self, oracle):
        """Take the slow, plain definition every answer is compared with."""
        self.oracle = oracle
        return oracle

    def step(self, label):
        """Add something to look at; `label` completes "the answer …" in the card."""
        return lambda run: self.steps.append(Step(label, run)) or run

    @functools.cached_property
    def mistakes(self):
        """The known wrong answers that have a message, in order."""
        return [mistake for mistake in known(self) if mistake.message]

    def library_version(self):
        """Return the fast version of the answer, or else the oracle.

        The oracle also stands in where a copy of the book has no solutions.
        """
        if self.is_value:
            return self.oracle()
        if isinstance(self.fallback, str):
            module, name = self.fallback.split(":")
            with contextlib.suppress(ModuleNotFoundError):
                return getattr(importlib.import_module(module), name)
            return self.oracle
        return self.fallback or self.oracle


def _register(exercise):
    for other in EXERCISES.values():
        if {exercise.number, exercise.name} & {other.number, other.name}:
            raise ValueError(
                f"{exercise.heading} ({exercise.name}) and {other.heading} "
                f"({other.name}) share a number or a name: each must be unique"
            )
    EXERCISES[exercise.name] = exercise


@functools.cache
def load_chapters():
    """Import every chapter's checks, once."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg and re.fullmatch(r"chapter_\d\d", module.name):
            importlib.import_module(f"{__package__}.{module.name}.checks")


def find(key):
    """Return the exercise with this name or number, or None."""
    load_chapters()
    by_number = {exercise.number: exercise for exercise in EXERCISES.values()}
    return EXERCISES.get(key) or by_number.get(key)


def nearest(key):
    """Return up to three exercise names that look like `key`, best first."""
    load_chapters()
    return difflib.get_close_matches(key, EXERCISES, n=3, cutoff=0.6)


def lookup(answer, name=None):
    """Return the exercise an answer belongs to, by its own or the given name."""
    key = _key(answer, name)
    return find(key) if isinstance(key, str) else None


def unknown(answer, name=None):
    """Return a card that says why this is no exercise, and what was perhaps meant."""
    key = _key(answer, name)
    if not isinstance(key, str):
        return _card("This is not an exercise by itself", _advice(answer))
    exercise = find(key)
    if exercise:
        return _card(exercise.heading, f"Check the answer itself: {_usage(exercise)}.")
    close = [f"`{EXERCISES[name].call}`" for name in nearest(key)]
    message = f"Did you mean {' or '.join(close)}?" if close else ""
    return _card(f"There is no exercise {key!r}", message)


def _key(answer, name):
    return getattr(answer, "__name__", answer) if name is None else str(name)


def _advice(answer):
    exercise = find(type(answer).__name__)
    if exercise:
        return f"Check the class itself: {_usage(exercise)}."
    return 'Say which exercise it answers: `check(answer, "1.1")`.'


def _usage(exercise):
    answer = "answer, " if exercise.is_value else ""
    return f"`check({answer}{exercise.call})`"


def _card(heading, message):
    return Result(heading, "unknown", "unknown", message)
