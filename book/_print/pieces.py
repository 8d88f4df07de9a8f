"""Cut Markdown into the pieces of slides.

A heading begins a slide. A paragraph gives its first sentence to the slide, and itself
to the speaker's notes; questions, exercises, lists, tables and formulas stay whole.
"""

import re

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat.v4 import new_markdown_cell

LETTERS = 78  # that fit on a line
LABEL = re.compile(r"(\$\$)\s*\([\w-]+\)\s*$")
LOCAL_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:)[^)\s]*\)")
FORMULA = re.compile(r"\$[^$]+\$")
SENTENCE_END = re.compile(r"[.!?][*_)”]*(?=\s+[^\sa-z])")
ABBREVIATED = ("et al.", "Fig.", "e.g.", "i.e.")


def cut(source):
    """Return a Markdown cell for each block of ``source``, with what is known of it.

    The metadata hold ``lines``, its height; ``slide``, if it begins one; and
    ``predict`` for a question to the reader.
    """
    parser = (
        MarkdownIt("commonmark")
        .enable("table")
        .use(dollarmath_plugin, allow_labels=True)
    )
    lines = source.split("\n")
    cells = []
    for token in parser.parse(source):
        if token.level == 0 and token.map and token.nesting >= 0:
            text = "\n".join(lines[slice(*token.map)]).strip()
            whole = any(cell.source.startswith("### Exercise") for cell in cells)
            cells += _pieces(token, text, whole)
    return cells


def question(source):
    """Return the one cell of a question and its options, as ``cut`` returns cells."""
    text = LOCAL_LINK.sub(r"\1", source)
    return [_cell(text, predict=True, lines=_lines(text) + 2)]


def _pieces(token, text, whole):
    text = LOCAL_LINK.sub(r"\1", LABEL.sub(r"\1", text))
    if token.type == "heading_open":
        slide = "slide" if token.tag in ("h1", "h2") else "subslide"
        return [_cell(text, slide=slide, lines=2)]
    if token.type != "paragraph_open":
        return [_cell(text, lines=_lines(text) + 1)]
    if text.startswith("**Predict.**"):
        return question(text)
    short = text if whole else first_sentence(text)
    notes = [_cell(text, slide="notes", lines=0)] if short != text else []
    return [_cell(short, lines=_lines(short) + 0.7), *notes]


def first_sentence(text):
    """Return the first sentence of a paragraph; no formula, bold or code is cut.

    A first sentence of a few words brings the second along.
    """
    masked = FORMULA.sub(lambda formula: "x" * len(formula.group()), text)
    for end in SENTENCE_END.finditer(masked):
        before = text[: end.end()]
        is_whole = not any(before.count(mark) % 2 for mark in ("**", "`"))
        if len(before) >= 40 and is_whole and not before.endswith(ABBREVIATED):
            return before
    return text


def _cell(text, **metadata):
    return new_markdown_cell(text, metadata=metadata)


def _lines(text):
    return sum(1 + len(line) // LETTERS for line in _joined(text))


def _joined(text):
    """Join the lines of a paragraph; those of lists, tables and formulas stay."""
    if re.match(r"[-*|]|\d+\.|\$\$|```", text):
        return text.split("\n")
    return [text.replace("\n", " ")]
