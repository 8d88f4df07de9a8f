"""What an exercise is: its solution, decorated, and what its author says about it."""

import importlib
import inspect
import pkgutil
import re
import textwrap
from functools import cache, cached_property
from typing import NamedTuple

from tutorial_lib.definitions import functions_of

EXERCISES = {}  # by name, and by number


class Wrong(Exception):
    """What to tell a student about a wrong answer."""


class Fault(ValueError):
    """What to tell an author about an exercise."""


class Known(NamedTuple):
    """An answer that the author has foreseen; of a right one the sentence is ""."""

    sentence: str
    answer: object


class Exercise:
    """A task: its solution, an oracle, steps that try an answer, and known mistakes.

    number: as in the notebook's heading, "7.2"; what stands before the dot is the
        chapter, or an excursion's letter, as in "A.2".
    axes: names of the output's axes, with spaces between: "query key"; where a tuple is
        returned, {name of a part: its axes}.
    tolerance: largest absolute difference that counts as equal.
    seconds: how long one call of an answer may take.
    """

    hints = mistakes = ""

    def __init__(self, number, title, *, axes="", tolerance=1e-5, seconds=5.0):
        self.number = number
        chapter, _, place = number.partition(".")
        is_excursion = not chapter.isdigit()
        self.chapter = chapter if is_excursion else int(chapter)
        self.order = (is_excursion, self.chapter, int(place))
        self.heading = f"Exercise {number} · {title}"
        self.axes = axes
        self.tolerance = tolerance
        self.seconds = seconds
        self.steps = []

    def __call__(self, *inputs):
        """Take the solution, as a decorator; when there is one, call it."""
        if hasattr(self, "solution"):
            return self.solution(*inputs)
        [solution] = inputs
        self.solution = self.definition = solution
        self.name = solution.__name__
        self.is_class = inspect.isclass(solution)
        self.is_value = not (self.is_class or inspect.signature(solution).parameters)
        self.call = f'"{self.number}"' if self.is_value else self.name
        for key in {self.name, self.number} & EXERCISES.keys():
            other = f"{key} is that of {EXERCISES[key].heading}"
            raise self.fault(f"choose another name or number: {other}.")
        EXERCISES[self.name] = EXERCISES[self.number] = self
        return self

    def fault(self, message):
        """Return the error that tells an author what to change in this exercise."""
        return Fault(f"{self.heading}: {message}")

    def oracle(self, definition):
        """Take the slow, plain definition that answers are compared with."""
        self.definition = definition

    def cases(self, generate):
        """Take a generator of (label, inputs …), for which answer and oracle agree."""
        self.steps.append(("", generate))

    def demand(self, label):
        """Take a function of an `Attempt` that returns what to say, if there is any."""
        if not (label and isinstance(label, str)):
            raise self.fault(f'a demand has a label: `@{self.name}.demand("…")`.')
        return lambda examine: self.steps.append((label, examine))

    @cached_property
    def source(self):
        """The solution's source, without its decorator."""
        source = inspect.getsource(self.solution)
        return source[re.search(r"^(def|class) ", source, re.M).start() :].rstrip()

    @property
    def shown(self):
        """The solution as a student reads it; None in a copy of the book without it."""
        if re.search(r"^ +\.\.\.$", self.source, re.M):
            return None
        if not self.is_value:
            return self.source
        why = textwrap.indent(inspect.getdoc(self.solution), "# ")
        value = self.source.rpartition("\n    return ")[2]
        return f"{why}\n{textwrap.dedent(f'    {value}')}"

    @property
    def hint_list(self):
        """The hints, each one text."""
        hints = re.split(r"^- ", self.hints, flags=re.M)[1:]
        return [" ".join(hint.split()) for hint in hints]

    @cached_property
    def known(self):
        """The answers foreseen in ``mistakes``; none in a copy without solutions."""
        text = self.mistakes if self.shown else ""
        known = []
        _, *parts = re.split(r"^((?:\S.*\n)+)", text, flags=re.M)
        for head, edits in zip(parts[::2], parts[1::2], strict=True):
            sentence = " ".join(head.split())
            lost, *edits = re.split(r"^    (?! |and )", edits, flags=re.M)
            if lost.strip() or not edits or re.search(" (→|->) ", sentence):
                fault = f"below {sentence!r} an edit must follow, indented by four."
                raise self.fault(f"in {self.name}.mistakes, {fault}")
            sentence = "" if sentence == "right:" else sentence
            known += [Known(sentence, self._edited(edit)) for edit in edits]
        return known

    def _edited(self, edit):
        """Return the answer that replacements in the solution make."""
        source = self.source
        try:
            for change in re.split(r"^    and ", edit, flags=re.M):
                source = replaced(source, *change.rstrip().split("\n"))
            names = dict(functions_of(self.solution)[0].__globals__)
            exec(source, names)
            return names[self.name]() if self.is_value else names[self.name]
        except Exception as error:
            first_line = edit.partition("\n")[0]
            fault = f"`{first_line}` cannot be made: {error}"
            raise self.fault(f"in {self.name}.mistakes, {fault}") from None


def replaced(source, edit, *more):
    """Return the source after an edit, `old → new`, and more lines of the new text."""
    old, arrow, new = edit.partition(" →")
    times = source.count(old)
    if not arrow:
        raise ValueError("it has no arrow. Write `old → new`.")
    if times != 1:
        how = "Take more of the text around it." if times else "Copy it from there."
        raise ValueError(f"`{old}` is in the solution {times} times, not once. {how}")
    if not all(re.match(r" {8}|$", line) for line in more):
        raise ValueError("more lines of the new text are to be indented by eight.")
    before, after = source.split(old)
    depth = re.match(r" *", before.rpartition("\n")[2])[0]
    lines = [new[1:], *(depth + line.removeprefix(" " * 8) for line in more)]
    return before + "\n".join(lines).replace("…", old) + after


def find(key):
    """Return the exercise of a name or a number, or None."""
    load_chapters()
    if isinstance(key, Exercise):
        return key
    if isinstance(key, float):  # a number without its quotes
        key = str(key)
    if not isinstance(key, str):
        return None
    return EXERCISES.get(key, EXERCISES.get(key.upper()))  # "r.1" is R.1


@cache
def load_chapters():
    """Import the exercises of every chapter and excursion, once."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if re.fullmatch(r"chapter_\d\d|x_\w+", module.name):
            importlib.import_module(f"{__package__}.{module.name}")
