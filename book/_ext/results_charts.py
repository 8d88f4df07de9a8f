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
COLORS = ("var(--book-query, #1f62c8)", "var(--book-key, #c2410c)")
DATA = {"tatoeba": "everyday sentences (Tatoeba)", "multi30k": "captions (Multi30k)"}
MODELS = ("one vector", "attention", "Transformer")
UNITS = ("words", "pieces")
CONTENDERS = {"Llama": "our Llama", "GPT": "our GPT", "nanoGPT": "nanoGPT"}
GPT_COLORS = ("var(--book-value, #15803d)", *COLORS)
BUDGETS = (60, 150, 300)  # seconds of a training


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
        said, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        figure = nodes.figure("", nodes.raw("", draw(read(path)), format="html"))
        figure += nodes.caption("", "", *said)
        figure["ids"].append(f"figure-{name}")
        return [figure, *messages]


def read(path):
    """Return the rows of a table as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw_translation(rows):
    """Draw the median and the range of each model's BLEU, with a beam of 4."""
    parts, y, said = [legend(UNITS)], 46, []
    for data, title in DATA.items():
        parts.append(text(0, y, title, "head"))
        for model in MODELS:
            y += 26
            parts.append(text(0, y, model))
            for units, color, up in zip(UNITS, COLORS, (-5, 5), strict=True):
                found = (data, units, model)
                scores = [float(row["bleu_beam_4"]) for row in rows if of(row) == found]
                middle = statistics.median(scores)
                ends = place(min(scores)), place(middle), place(max(scores))
                parts.append(span(*ends, y - 4 + up, color))
                said.append(f"{title}, {model}, {units}: {middle:.1f}")
        y += 40
    y -= 14
    for score in range(20, 50, 5):
        x = place(score)
        parts.insert(0, f'<path class="rule" d="M{x} 30 V{y - 8}"/>')
        parts.append(text(x, y + 8, score, "tick"))
    parts.append(text(place(32.5), y + 26, "BLEU, with a beam of 4", "tick"))
    return svg("translation", y + 34, parts, "BLEU of three models", said)


def of(row):
    """Return the kind of model that a row is about."""
    return row["data"], row["units"], row["model"]


def place(score):
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
    """Draw the bits per character after trainings of 60, 150 and 300 seconds."""
    parts, said = [legend(CONTENDERS.values(), GPT_COLORS, x=60)], []
    names = zip(CONTENDERS.items(), GPT_COLORS, (-4, 4, 0), strict=True)
    for (name, label), color, aside in names:
        scores = {}
        for row in rows:
            if row["contender"] == name:
                scores.setdefault(int(row["seconds"]), []).append(float(row["bits"]))
        points = []
        for seconds, bits in sorted(scores.items()):
            x, middle = round(across(seconds) + aside, 1), statistics.median(bits)
            points.append(f"{x},{down(middle)}")
            parts.append(upright(x, down(max(bits)), down(min(bits)), color))
            said.append(f"{label} after {seconds} s: {middle:.2f}")
        line = " ".join(points)
        parts.append(f'<polyline points="{line}" stroke="{color}" class="line"/>')
    for bits in (2.2, 2.3, 2.4, 2.5, 2.6, 2.7):
        rule = f'<path class="rule" d="M60 {down(bits)} H{WIDTH - 10}"/>'
        parts[:0] = [rule, text(54, down(bits) + 5, bits, "end")]
    parts += [text(across(seconds), 264, seconds, "tick") for seconds in BUDGETS]
    parts.append(text(across(165), 284, "seconds of processor time", "tick"))
    parts.append(text(0, 40, "bits per character"))
    return svg("gpt", 292, parts, "Bits per character of three language models", said)


def upright(x, high, low, color):
    """Draw a range as a line with ends."""
    ends = "".join(f"M{x - 5:.1f} {y} h10" for y in (high, low))
    return f'<path d="M{x} {high} V{low}{ends}" stroke="{color}" stroke-width="1.5"/>'


def across(seconds):
    """Return where a time lies on the axis, from 20 to 305 seconds."""
    return round(60 + (seconds - 20) / 285 * (WIDTH - 75), 1)


def down(bits):
    """Return where bits per character lie on the axis, from 2.2 to 2.7."""
    return round(58 + (2.7 - bits) / 0.5 * 185, 1)


def legend(names, colors=COLORS, x=110):
    """Draw the names with their colors."""
    parts = []
    for name, color in zip(names, colors, strict=True):
        parts.append(f'<circle cx="{x}" cy="11" r="4.5" fill="{color}"/>')
        parts.append(text(x + 10, 16, name))
        x += 30 + 8 * len(name)
    return "".join(parts)


def text(x, y, words, kind="said"):
    """Write words; the kind says how, in book.css."""
    return f'<text class="{kind}" x="{x}" y="{y}">{words}</text>'


def svg(name, height, parts, title, said):
    """Frame a chart; what it shows is also said in words."""
    return (
        f'<svg id="chart-{name}" class="diagram chart" role="img" '
        f'viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{title}</title>'
        f'<desc id="{name}-text">{"; ".join(said)}.</desc>{"".join(parts)}</svg>'
    )


CHARTS = {
    "translation": (draw_translation, "translation.csv"),
    "gpt": (draw_gpt, "gpt_text.csv"),
}


def setup(app):
    """Register the directive."""
    app.add_directive("chart", Chart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
