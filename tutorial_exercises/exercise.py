"""What an exercise is: its solution, decorated, and what its author says about it."""

import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from functools import cache, cached_property
from typing import NamedTuple

EXERCISES = {}  # by name, and by number


class Wrong(Exception):
    """What to tell a student about a wrong answer."""


class Known(NamedTuple):
    """An answer that the author has foreseen; of a right one the sentence is ""."""

    sentence: str
    answer: object


class Exercise:
    """A task: its solution, an oracle, steps that try an answer, and known mistakes.

    number: as in the notebook's heading; what stands before the dot is the chapter.
    axes: names of the output's axes, with spaces between: "query key"; where a tuple is
        returned, {name of a part: its axes}.
    tolerance: largest absolute difference that counts as equal.
    seconds: how long one call of an answer may take.
    """

    hints = mistakes = ""

    def __init__(self, number, title, *, axes="", tolerance=1e-5, seconds=5.0):
        self.number, self.order = number, [*map(int, number.split("."))]
        self.chapter = self.order[0]
        self.heading = f"Exercise {number} · {title}"
        self.axes, self.tolerance, self.seconds = axes, tolerance, seconds
        self.steps = []

    def __call__(self, *inputs):
        """Call the solution; the first call, as a decorator, takes it.

        A solution is a function, a class, or for a value a function without arguments.
        Raises ValueError if another exercise has its name or number.
        """
        if hasattr(self, "solution"):
            return self.solution(*inputs)
        [solution] = inputs
        self.solution = self.definition = solution
        self.name, self.is_class = solution.__name__, inspect.isclass(solution)
        self.is_value = not (self.is_class or inspect.signature(solution).parameters)
        self.call = f'"{self.number}"' if self.is_value else self.name
        if {self.name, self.number} & EXERCISES.keys():
            raise ValueError(f"there is another {self.name}, or exercise {self.number}")
        EXERCISES[self.name] = EXERCISES[self.number] = self
        return self

    def oracle(self, definition):
        """Take the slow, plain definition that answers are compared with."""
        self.definition = definition

    def cases(self, generate):
        """Take a generator of (label, inputs …), for which answer and oracle agree.

        Of a class, the first input is the tuple of sizes that it is built with.
        """
        self.steps.append(("", generate))

    def demand(self, label):
        """Take a function of an `Answer` that returns what to say, if there is any."""
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
        why, value = re.search(r'"""(.*?)"""\s+return (.*)', self.source, re.S).groups()
        comment = textwrap.indent(textwrap.dedent(f"    {why}").strip(), "# ")
        return f"{comment}\n{textwrap.dedent('    ' + value)}"

    @property
    def hint_list(self):
        """The hints, each one text."""
        found = re.split(r"^- ", self.hints, flags=re.M)[1:]
        return [" ".join(hint.split()) for hint in found]

    @cached_property
    def known(self):
        """The answers foreseen in ``mistakes``; none in a copy without solutions."""
        entries = re.findall(r"((?:^\S.*\n)+)((?:^ .*\n|^\n)+)", self.mistakes, re.M)
        found = []
        for head, edits in entries if self.shown else ():
            sentence = " ".join(head.split())
            sentence = "" if sentence == "right:" else sentence
            for edit in re.split(r"^    (?! |and )", edits, flags=re.M)[1:]:
                found.append(Known(sentence, self._edited(edit)))
        return found

    def _edited(self, edit):
        """Return the answer that replacements in the solution make."""
        source = self.source
        for change in re.split(r"^    and ", edit, flags=re.M):
            first, *more = change.rstrip().split("\n")
            old, arrow, new = first.partition(" →")
            before, *after = source.split(old)
            if not arrow or len(after) != 1:
                raise ValueError(
                    f"Exercise {self.number}: an edit is `old → new`, and the old text "
                    f"occurs once in the solution, not {len(after)} times: {first!r}"
                )
            line = before.rpartition("\n")[2]
            depth = line[: len(line) - len(line.lstrip())]
            lines = [new[1:], *(depth + one.removeprefix(" " * 8) for one in more)]
            source = before + "\n".join(lines).replace("…", old) + after[0]
        whole = vars(sys.modules[self.solution.__module__]) if self.is_class else None
        names = dict(whole or self.solution.__globals__)
        exec(source, names)
        return names[self.name]() if self.is_value else names[self.name]


@cache
def load_chapters():
    """Import the exercises of every chapter, once."""
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if re.fullmatch(r"chapter_\d\d", module.name):
            importlib.import_module(f"{__package__}.{module.name}")
