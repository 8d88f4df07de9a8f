"""A Sphinx extension that reads the form of a notebook as the form of a page.

In a notebook all that a reader sees is Markdown: captions are cells below their
figures, answers are folded, formulas carry numbers, and citations lead to the papers
themselves. On a page a caption belongs to its figure, a question waits for the reader,
Sphinx counts figures and equations, and citations lead to the bibliography.
"""

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from chapter_form import source_of, tags_of
from pybtex.database import parse_file

BIBLIOGRAPHY = "../book/bibliography.md"
NUMBER = re.compile(r"\*\*Fig\. [\d.]+\*\* ")
DETAILS = re.compile(
    r"<details[^>]*><summary>.*?</summary>\s*(.*?)\s*</details>\s*", re.DOTALL
)
TAG = re.compile(r"\\tag\{([\d.]+)\}\s*\$\$")
LINK = re.compile(r"\]\((https?://[^\s()]+)\)")
ANSWER = re.compile(r"# @title Answer\b.*\n")  # of an aside it is the fold's name


def setup(app):
    """Connect the functions below to the build."""
    app.connect("source-read", read_notebook, priority=400)  # then cells are marked
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_notebook(app, page, source):
    """Change the text of a notebook that Sphinx has just read."""
    if app.env.doc2path(page).endswith(".ipynb"):
        notebook = json.loads(source[0])
        as_page(notebook, papers(Path(app.srcdir, "book", "references.bib")))
        source[0] = json.dumps(notebook)


@cache
def papers(bibliography):
    """Map the addresses of the papers in a BibTeX file to their keys."""
    entries = parse_file(bibliography).entries
    return {address_of(entry.fields): key for key, entry in entries.items()}


def address_of(fields):
    """Return where a paper is found, by its url, arXiv number or DOI, or ``""``."""
    if "eprint" in fields:
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url") or "https://doi.org/" + fields["doi"]


def as_page(notebook, keys):
    """Change a notebook in place; ``keys`` maps addresses of papers to their keys."""
    cells = notebook["cells"]
    for cell, behind in pairwise(cells):
        if is_caption(behind):
            about = cell["metadata"].setdefault("mystnb", {}).setdefault("figure", {})
            about["caption"] = caption_of(behind)
    notebook["cells"] = [cell for cell in cells if not is_caption(cell)]
    for cell in notebook["cells"]:
        text = source_of(cell)
        if cell["cell_type"] == "markdown":
            if {"answer", "waits"} & tags_of(cell):
                text = DETAILS.sub(r"\1", text)
            text = TAG.sub(lambda tag: f"$$ (eq-{tag[1].replace('.', '-')})", text)
            text = LINK.sub(lambda link: cited(link, keys), text)
        else:
            if "aside" not in tags_of(cell):
                text = ANSWER.sub("", text, count=1)
            if "explore(" in text:  # what it prints is a sentence, and may be wrapped
                cell["metadata"].setdefault("tags", []).append("explore")
            for output in cell["outputs"]:
                unfold(output)
        cell["source"] = text


def is_caption(cell):
    """Tell whether a cell is the caption of the figure above it."""
    return "caption" in tags_of(cell)


def caption_of(cell):
    """Return a caption without what a notebook shows besides."""
    text = DETAILS.sub(r"\1", source_of(cell))
    return NUMBER.sub("", text, count=1).strip()


def cited(link, keys):
    """Let a link to a paper lead to its entry in the bibliography."""
    key = keys.get(link[1])
    return f"]({BIBLIOGRAPHY}#{key})" if key else link[0]


def unfold(output):
    """Take the fold away from an output; on the page the question hides it."""
    data = output.get("data", {})
    folded = DETAILS.fullmatch("".join(data.get("text/html", "")))
    if folded and folded[1].startswith(("<img", "<pre>")):
        del data["text/html"]  # made from the picture or the text, which are there
        if set(data) == {"text/plain"} and output["output_type"] == "display_data":
            printed = {"output_type": "stream", "name": "stdout"}
            output.update(printed | {"text": data["text/plain"]})
    elif folded:
        data["text/html"] = folded[1]
