"""A Sphinx extension for the page of results: charts of what the benchmarks wrote.

The directive ``chart`` reads tables of ``benchmarks/`` when the book is built, so that
a chart cannot say anything else than they do. A chart is an SVG in the page's colors.
"""

import csv
import statistics
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WIDTH = 460
COLORS = (
    "var(--book-query, #1f62c8)",
    "var(--book-key, #c2410c)",
    "var(--book-value, #15803d)",
)
DATA = {"tatoeba": "everyday sentences (Tatoeba)", "multi30k": "captions (Multi30k)"}
MODELS = ("fixed context", "attention", "Transformer")
UNITS = ("words", "subwords")
CONTENDERS = {
    "Llama": "this book's Llama",
    "GPT": "this book's GPT",
    "nanoGPT": "nanoGPT (our rewrite)",
}


class Chart(SphinxDirective):
    """Draw one of the charts, ``{chart} translation``; the content is its caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the chart as a figure, or an error that names those there are."""
        [name] = self.arguments
        if name not in CHARTS:
            raise self.error(f"there is no chart {name}: choose of {', '.join(CHARTS)}")
        draw, table = CHARTS[name]
        path = Path(self.env.srcdir, "benchmarks", table)
        self.env.note_dependency(str(path))
        caption, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        figure = nodes.figure("", nodes.raw("", draw(read(path)), format="html"))
        figure += nodes.caption("", "", *caption)
        figure["ids"].append(f"figure-{name}")
        return [figure, *messages]


def read(path):
    """Return the rows of a table as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw_translation(rows):
    """Draw the median and the range of each model's BLEU, with a beam of 4."""
    parts = [legend(UNITS)]
    y = 46
    summary = []
    for data, title in DATA.items():
        parts.append(text(0, y, title, "head"))
        for model in MODELS:
            y += 26
            parts.append(text(0, y, model))
            for units, color, up in zip(UNITS, COLORS[:2], (-5, 5), strict=True):
                wanted = (data, units, model)
                scores = [
                    float(row["bleu_beam_4"]) for row in rows if of(row) == wanted
                ]
                middle = statistics.median(scores)
                ends = to_x(min(scores)), to_x(middle), to_x(max(scores))
                parts.append(span(*ends, y - 4 + up, color))
                summary.append(f"{title}, {model}, {units}: {middle:.1f}")
        y += 40
    y -= 14
    for score in range(20, 50, 5):
        x = to_x(score)
        parts.insert(0, f'<path class="rule" d="M{x} 30 V{y - 8}"/>')
        parts.append(text(x, y + 8, score, "tick"))
    parts.append(text(to_x(32.5), y + 26, "BLEU, with a beam of 4", "tick"))
    return svg("translation", y + 34, parts, "BLEU of three models", summary)


def of(row):
    """Return the kind of model that a row is about."""
    return row["data"], row["units"], row["model"]


def to_x(score):
    """Return where a score lies on the axis, from 18 to 46."""
    return round(110 + (score - 18) / 28 * (WIDTH - 120), 1)


def span(low, middle, high, y, color):
    """Draw a median as a dot and the range as a line with ends, at x and y."""
    ends = "".join(f"M{x} {y - 4.5} V{y + 4.5}" for x in (low, high))
    return (
        f'<path d="M{low} {y} H{high}{ends}" stroke="{color}" stroke-width="1.5"/>'
        f'<circle cx="{middle}" cy="{y}" r="2.8" fill="{color}"/>'
    )


def draw_gpt(rows):
    """Draw the bits per character after each budget of time, and their range."""
    parts, summary = [legend(CONTENDERS.values())], []
    names = zip(CONTENDERS.items(), COLORS, (-4, 0, 4), strict=True)
    for (name, label), color, aside in names:
        budgets = {}
        for row in rows:
            if row["contender"] == name:
                budgets.setdefault(int(row["seconds"]), []).append(float(row["bits"]))
        points = [
            (across(at) + aside, statistics.median(bits))
            for at, bits in sorted(budgets.items())
        ]
        line = " ".join(f"{x:.1f},{down(middle)}" for x, middle in points)
        parts.append(f'<polyline points="{line}" stroke="{color}" class="line"/>')
        for at, bits in budgets.items():
            x = round(across(at) + aside, 1)
            y = down(max(bits))
            low = down(min(bits))
            ends = f"M{x} {y} V{low}" + "".join(
                f"M{x - 5:.1f} {end} h10" for end in (y, low)
            )
            parts.append(f'<path d="{ends}" stroke="{color}" stroke-width="1.5"/>')
        summary += [f"{label} after {at} s: {statistics.median(budgets[at]):.2f}"
            for at in sorted(budgets)]  # fmt: skip
    for bits in (2.2, 2.4, 2.6, 2.8, 3.0):
        rule = f'<path class="rule" d="M60 {down(bits)} H{WIDTH - 10}"/>'
        parts[:0] = [rule, text(54, down(bits) + 5, bits, "end")]
    parts += [text(across(at), 264, at, "tick") for at in budgets]
    parts.append(text(across(165), 284, "seconds of CPU time", "tick"))
    parts.append(text(0, 40, "bits per character"))
    return svg("gpt", 292, parts, "Bits per character that three models reach", summary)


def across(seconds):
    """Return where a time lies on the axis, from 20 to 315 seconds."""
    return round(60 + (seconds - 20) / 295 * (WIDTH - 75), 1)


def down(bits):
    """Return where bits per character lie on the axis, from 2.2 to 3."""
    return round(58 + (3 - bits) / 0.8 * 185, 1)


def legend(names):
    """Draw the names with their colors."""
    parts = []
    x = 20 if len(names) > 2 else 110
    for name, color in zip(names, COLORS[: len(names)], strict=True):
        parts.append(f'<circle cx="{x}" cy="11" r="4.5" fill="{color}"/>')
        parts.append(text(x + 10, 16, name))
        x += 30 + 8 * len(name)
    return "".join(parts)


def text(x, y, words, kind="said"):
    """Write words; the kind says how, in book.css."""
    return f'<text class="{kind}" x="{x}" y="{y}">{words}</text>'


def svg(name, height, parts, title, summary):
    """Frame a chart; what it shows stands there in words, too."""
    return (
        f'<svg id="chart-{name}" class="diagram chart" role="img" '
        f'viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{title}</title>'
        f'<desc id="{name}-text">{"; ".join(summary)}.</desc>{"".join(parts)}</svg>'
    )


CHARTS = {
    "translation": (draw_translation, "translation.csv"),
    "gpt": (draw_gpt, "gpt_text.csv"),
}


def setup(app):
    """Register the directive."""
    app.add_directive("chart", Chart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
