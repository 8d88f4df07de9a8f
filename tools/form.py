"""The form of a notebook that follows from its cells: numbers, and folds of answers.

Captions are Markdown cells tagged ``caption`` below their figures. They and the
equations carry the numbers that the pages show. Answers to questions are folded, and so
is what else gives them away.

This module does not know what is in a figure or an answer.
"""

import itertools
import re
from copy import deepcopy
from functools import partial
from pathlib import Path

from tools.notebooks import short_name, source_of, tags_of

CAPTION = re.compile(r"(?:\*\*Fig\. [\d.]*\*\* )?")
EQUATION = re.compile(r"\\tag\{[^}]*\}")
FOLD = "<details><summary>{}</summary>\n\n{}\n\n</details>"
FOLDED = re.compile(r"<details>.*?</summary>\s*(.*?)\s*</details>", re.DOTALL)
TITLE = "# @title Answer\n"


def shape(file, notebook):
    """Give the cells of a notebook, from a file of that name, their numbers and folds.

    Returns ``<id>: form`` for each cell that changed.
    """
    name = short_name(Path(file))
    chapter = f"{int(name)}." if name.isdigit() else ""
    figures, equations = itertools.count(1), itertools.count(1)
    changes = []
    for cell in notebook["cells"]:
        before, tags = deepcopy(cell), tags_of(cell)
        text = source_of(cell)
        if "caption" in tags:
            text = FOLDED.sub(r"\1", text)
            text = CAPTION.sub(f"**Fig. {chapter}{next(figures)}** ", text, count=1)
        if cell["cell_type"] == "markdown":
            text = EQUATION.sub(partial(numbered, chapter, equations), text)
        if "waits" in tags and cell["cell_type"] == "code":
            cell["metadata"].setdefault("jupyter", {})["outputs_hidden"] = True
        elif {"answer", "waits"} & {*tags}:
            text = folded(cell, text)
        if text != source_of(cell):
            cell["source"] = text.splitlines(keepends=True)
        if cell != before:
            changes.append(f"{cell['id']}: form")
    return changes


def numbered(chapter, numbers, tag):
    """Return an equation's tag with the next of the numbers."""
    return rf"\tag{{{chapter}{next(numbers)}}}"


def folded(cell, text):
    """Return an answer's text so that notebooks fold it; hide what is code."""
    if cell["cell_type"] == "markdown":
        summary = "Caption" if "caption" in tags_of(cell) else "Answer"
        return text if FOLDED.fullmatch(text) else FOLD.format(summary, text)
    cell["metadata"]["cellView"] = "form"
    cell["metadata"]["jupyter"] = {"source_hidden": True}
    return text if text.startswith("# @title") else TITLE + text
