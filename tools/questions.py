"""Write the questions of the book for a learning platform, in Moodle's format GIFT.

Each **Predict** becomes a multiple-choice question, with the text of its answer as the
feedback. Moodle, Canvas and most others read the format:
docs.moodle.org/en/GIFT_format.
"""

import html
import re
from itertools import takewhile
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tools.files import write_whole
from tools.notebooks import chapters, read_notebook, short_name, source_of, tags_of

SPECIAL = re.compile(r"[\\~=#{}:]")
FOLD = re.compile(r"</?details>|<summary>.*?</summary>")
PARAGRAPH = re.compile(r"^<p>(.*)</p>\s*$", re.DOTALL)
PAGE_LINK = re.compile(r"\[([^\]]+)\]\((?!http)[^)]*\)")  # leads nowhere outside


def write_questions(root, path, *wanted):
    """Write the questions of all chapters, or those wanted; return how many there are.

    The folder of the file is made if it is not there. Raises ValueError if there is no
    such chapter, and OSError for a file that cannot be written.
    """
    texts = []
    for notebook in chapters(root, wanted):
        for asked in predictions(read_notebook(notebook)["cells"]):
            texts.append(question(short_name(notebook), *asked))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "\n".join(texts))
    return len(texts)


def predictions(cells):
    """Yield (name, question, options, number of the right one, feedback), as typed."""
    for place, cell in enumerate(cells):
        right = [tag for tag in tags_of(cell) if tag.startswith("right-")]
        if right:
            text = source_of(cell).removeprefix("**Predict.**")
            asked, *options = re.split(r"^- ", text, flags=re.MULTILINE)
            behind = takewhile(
                lambda cell: "answer" in tags_of(cell), cells[place + 1 :]
            )
            told = [
                source_of(cell)
                for cell in behind
                if cell["cell_type"] == "markdown" and "caption" not in tags_of(cell)
            ]
            number = int(right[0].removeprefix("right-"))
            yield cell["id"], asked, options, number, "\n\n".join(told)


def question(chapter, name, asked, options, right, feedback):
    """Return one question in GIFT."""
    lines = [f"::{chapter} {name}::[html]{gift(asked)}{{"]
    for number, option in enumerate(options, start=1):
        lines.append(f"{'=' if number == right else '~'}{gift(option)}")
    lines.append(f"####{gift(FOLD.sub('', feedback))}")
    return "\n".join([*lines, "}", ""])


def gift(markdown):
    """Return Markdown as HTML in one line, with what is special in GIFT escaped."""
    rendered = MARKDOWN.render(PAGE_LINK.sub(r"\1", markdown.strip())).strip()
    alone = PARAGRAPH.match(rendered)
    if alone and "<p>" not in alone[1]:
        rendered = alone[1]
    return SPECIAL.sub(r"\\\g<0>", " ".join(rendered.split()))


def _formula(text, options):
    """Return a formula between the marks by which MathJax finds it on a platform."""
    marks = ("$$", "$$") if options["display_mode"] else (r"\(", r"\)")
    return html.escape(text).join(marks)


MARKDOWN = MarkdownIt("commonmark").enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=_formula)
