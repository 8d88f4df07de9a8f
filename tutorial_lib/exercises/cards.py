"""How results, hints, solutions and progress look, as text and as HTML.

The HTML is the same bytes every time (no ids, no times), so that a notebook's stored
output can be compared. Nothing here runs or judges an answer.
"""

import html
import re
import textwrap
from dataclasses import dataclass, field

from .card_style import STYLE

ICONS = {"pass": "✅", "fail": "❌", "open": "⬜", "unknown": "❔"}
WORDS = {"pass": "Passed", "fail": "Not right yet", "open": "Open", "unknown": ""}
MARKS = {"pass": "✓", "fail": "✗", "open": "·"}
STEP_WORDS = {"pass": "passed", "fail": "failed", "open": "not tried yet"}
BADGES = {"pass": "✓", "fail": "✗", "open": "…", "unknown": "?"}


class Card:
    """Something to show: `lines()` is its text, `body()` the inside of its HTML."""

    status = "open"

    def __repr__(self):
        return "\n".join(self.lines())

    def _repr_html_(self):
        opening = f'<div class="exercise-card {self.status}" role="status">'
        return f"{STYLE}\n{opening}{self.body()}</div>"


@dataclass(repr=False)
class Result(Card):
    """What a check found.

    status: "pass", "fail", "open" or "unknown" (no such exercise).
    code: a stable word for the diagnosis, empty where it passed.
    message: what to tell the student. steps: pairs (status, label).
    printed: the first lines that the answer printed meanwhile.
    call: the exercise as a student writes it between brackets.
    """

    heading: str
    status: str
    code: str = ""
    message: str = ""
    steps: list = field(default_factory=list)
    printed: list = field(default_factory=list)
    hints: tuple = ()
    call: str = ""

    @property
    def passed(self):
        """Whether every step passed."""
        return self.status == "pass"

    @property
    def title(self):
        """How it went, in a word, and the heading."""
        return _title(self.status, self.heading)

    def lines(self):
        """Yield the card's lines of text."""
        yield f"{ICONS[self.status]} {self.title}"
        yield from (f"   {MARKS[status]} {label}" for status, label in self.steps)
        yield from textwrap.indent(self.message, "     ").splitlines()
        if self.printed:
            yield "     Your code printed:"
            yield from (f"       {line}" for line in self.printed)
        if self.hints and not self.passed:
            yield f"   Stuck? hint({self.call})"

    def body(self):
        """Return the inside of the HTML card."""
        parts = [f"{_badge(self.status)}<strong>{html.escape(self.title)}</strong>"]
        if self.steps:
            steps = "".join(map(_step, self.steps))
            parts.append(f'<ul class="steps">{steps}</ul>')
        if self.message:
            parts.append(f'<div class="said">{rich(self.message)}</div>')
        if self.printed:
            text = html.escape("\n".join(self.printed))
            parts.append(f"Your code printed:<pre>{text}</pre>")
        if not self.passed:
            hints = (f"<div>{rich(hint)}</div>" for hint in self.hints)
            parts += (_folded(f"Hint {n}", hint) for n, hint in enumerate(hints, 1))
        return "".join(parts)


@dataclass(repr=False)
class Hints(Card):
    """The hints asked for so far, out of all there are."""

    heading: str
    shown: tuple
    total: int

    def lines(self):
        """Yield one line a hint."""
        for number, hint in enumerate(self.shown, 1):
            yield f"Hint {number} of {self.total}: {hint}"
        if not self.shown:
            yield f"{self.heading} has no hints."

    def body(self):
        """Return the inside of the HTML card."""
        return "".join(f"<div>{rich(line)}</div>" for line in self.lines())


@dataclass(repr=False)
class Solution(Card):
    """A solution: `print` shows it, a notebook folds it, `repr` only points to it."""

    heading: str
    call: str
    source: str

    def __str__(self):
        return self.source

    def lines(self):
        """Yield one line that gives nothing away."""
        yield f"Solution of {self.heading}: print(solution({self.call})) shows it."

    def body(self):
        """Return a closed box with the source in it."""
        source = f"<pre><code>{html.escape(self.source)}</code></pre>"
        return _folded(f"Solution · {html.escape(self.heading)}", source)


@dataclass(repr=False)
class Progress(Card):
    """How many exercises pass: `entries` are pairs (status, heading)."""

    title: str
    entries: list

    def lines(self):
        """Yield one line an exercise, then a bar."""
        for status, heading in self.entries:
            yield f"{ICONS[status]} {_title(status, heading)}"
        done = round(20 * self._passed() / max(1, len(self.entries)))
        yield f"{'█' * done:░<20} {self._sentence()}"

    def body(self):
        """Return the inside of the HTML card."""
        rows = "".join(
            f'<li class="{status}">{_badge(status)}'
            f"{html.escape(_title(status, heading))}</li>"
            for status, heading in self.entries
        )
        sentence = html.escape(self._sentence())
        amount = f'value="{self._passed()}" max="{max(1, len(self.entries))}"'
        progress = f'<progress {amount} aria-label="{sentence}"></progress>'
        return f"<ul>{rows}</ul>{progress} {sentence}"

    def _passed(self):
        return sum(status == "pass" for status, _ in self.entries)

    def _sentence(self):
        if not self.entries:
            return self.title
        return f"{self.title}: {self._passed()} of {len(self.entries)} exercises passed"


def rich(text):
    """Escape text for HTML, and set what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def _title(status, heading):
    return f"{WORDS[status]}: {heading}" if WORDS[status] else heading


def _badge(status):
    return f'<span class="exercise-badge" aria-hidden="true">{BADGES[status]}</span>'


def _step(step):
    status, label = step
    mark = f'<span role="img" aria-label="{STEP_WORDS[status]}">{MARKS[status]}</span>'
    return f'<li class="{status}">{mark}{rich(label)}</li>'


def _folded(summary, inside):
    return f"<details><summary>{summary}</summary>{inside}</details>"
