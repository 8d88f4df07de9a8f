"""How results, hints, solutions and progress look, as text and as HTML.

The HTML is the same bytes every time (no ids, no times), so that a notebook's stored
output can be compared. Nothing here runs or judges an answer.
"""

import html
import re
import textwrap
from dataclasses import dataclass, field

ICONS = {"pass": "✅", "fail": "❌", "open": "⬜", "unknown": "❔"}
WORDS = {"pass": "passed", "fail": "not right yet", "open": "open", "unknown": ""}
MARKS = {"pass": "✓", "fail": "✗", "open": "·"}

# Colours are mixed from the text colour of the page, so light and dark need one set.
# The last rule undoes the white box that the book's theme puts behind HTML in the dark.
STYLE = """<style>
.exercise-card{border-left:4px solid var(--mark);padding:.3em .9em;margin:.4em 0;
color:inherit;background:none;font-family:inherit}
.exercise-card[data-status=pass]{--mark:#1a9850}
.exercise-card[data-status=fail]{--mark:#d73027}
.exercise-card[data-status=open]{--mark:#7b8794}
.exercise-card ul{list-style:none;margin:.3em 0;padding:0}
.exercise-card li.open{opacity:.75}
.exercise-card .message,.exercise-card pre{white-space:pre-wrap;margin:.4em 0;
overflow-wrap:anywhere;padding:.5em .7em;border-radius:4px;color:inherit;border:0;
background:color-mix(in srgb,var(--mark,gray) 12%,transparent)}
.exercise-card code{color:inherit;background:none;border:0;padding:0}
.exercise-card summary{cursor:pointer;padding:.2em 0}
.exercise-card progress{width:12em;max-width:60%;accent-color:#1a9850}
html[data-theme=dark] .bd-content div.cell_output .text_html:has(.exercise-card){
background:none!important;color:inherit!important;padding:0!important}
</style>"""


class Card:
    """Something to show: `lines()` is its text, `body()` the inside of its HTML."""

    status = "open"

    def __repr__(self):
        return "\n".join(self.lines())

    def _repr_html_(self):
        opening = f'<div class="exercise-card" role="status" data-status={self.status}>'
        return f"{STYLE}{opening}{self.body()}</div>"


@dataclass(repr=False)
class Result(Card):
    """What a check found.

    status: "pass", "fail", "open" or "unknown" (no such exercise).
    code: a stable word for the diagnosis; empty when passed.
    message: what to tell the student. steps: pairs (status, label).
    printed: the first lines the answer printed meanwhile.
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

    def _title(self):
        word = WORDS[self.status]
        return f"{ICONS[self.status]} {self.heading}" + (f": {word}" if word else "")

    def lines(self):
        """Return the card as lines of text."""
        yield self._title()
        yield from (f"   {MARKS[status]} {label}" for status, label in self.steps)
        yield from textwrap.indent(self.message, "     ").splitlines()
        if self.printed and not self.passed:
            yield "     Your code printed:"
            yield from (f"       {line}" for line in self.printed)
        if self.hints and not self.passed:
            yield f"   Stuck? hint({self.call})"

    def body(self):
        """Return the inside of the HTML card."""
        parts = [f"<strong>{html.escape(self._title())}</strong>"]
        if self.steps:
            parts.append(f"<ul>{''.join(map(_step, self.steps))}</ul>")
        if self.message:
            parts.append(f'<div class="message">{rich(self.message)}</div>')
        if self.printed and not self.passed:
            text = html.escape("\n".join(self.printed))
            parts.append(f"Your code printed:<pre>{text}</pre>")
        if not self.passed:
            parts += map(_folded_hint, range(1, len(self.hints) + 1), self.hints)
        return "".join(parts)


@dataclass(repr=False)
class Hints(Card):
    """The hints asked for so far, out of all there are."""

    heading: str
    shown: tuple
    total: int

    def lines(self):
        """Return the hints as lines of text."""
        if not self.shown:
            yield f"💡 {self.heading} has no hints."
        for number, hint in enumerate(self.shown, 1):
            yield f"💡 Hint {number} of {self.total}: {hint}"

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
        """Return one line that gives nothing away."""
        yield f"Solution of {self.heading}: print(solution({self.call})) shows it."

    def body(self):
        """Return a closed box with the source in it."""
        summary = f"<summary>Solution · {html.escape(self.heading)}</summary>"
        source = f"<pre><code>{html.escape(self.source)}</code></pre>"
        return f"<details>{summary}{source}</details>"


@dataclass(repr=False)
class Progress(Card):
    """How many exercises pass: pairs (status, heading), chapter by chapter."""

    title: str
    entries: list

    def lines(self):
        """Return one line an exercise, and a bar."""
        for status, heading in self.entries:
            yield f"{ICONS[status]} {heading}: {WORDS[status]}"
        bar = "█" * round(20 * self._passed() / max(1, len(self.entries)))
        yield f"{bar:░<20} {self._sentence()}"

    def body(self):
        """Return the inside of the HTML card."""
        rows = "".join(
            f"<li>{ICONS[status]} {html.escape(heading)}: {WORDS[status]}</li>"
            for status, heading in self.entries
        )
        sentence = html.escape(self._sentence())
        bar = f'value="{self._passed()}" max="{max(1, len(self.entries))}"'
        progress = f'<progress {bar} aria-label="{sentence}"></progress>'
        return f"<ul>{rows}</ul>{progress} {sentence}"

    def _passed(self):
        return sum(status == "pass" for status, _ in self.entries)

    def _sentence(self):
        return f"{self.title}: {self._passed()} of {len(self.entries)} exercises passed"


def rich(text):
    """Escape text for HTML and set what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def _step(step):
    status, label = step
    word = {"pass": "passed", "fail": "failed", "open": "not tried yet"}[status]
    mark = f'<span role="img" aria-label="{word}">{MARKS[status]}</span>'
    return f'<li class="{status}">{mark} {rich(label)}</li>'


def _folded_hint(number, hint):
    return f"<details><summary>Hint {number}</summary>{rich(hint)}</details>"
