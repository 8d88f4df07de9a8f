"""A Sphinx extension for the form of a chapter: what its cells' tags do on the page.

- ``setup``, ``picture``, ``aside``, ``claim``: the code is folded.
- ``predict``, ``answer``: a question, its options and its answer stand in one box, in
  which _static/predict.js lets the answer wait for the reader.
- ``waits``: what else gives an answer away waits for the question before it, wherever
  it stands: a text, or what code shows. The code itself is seen.

A figure with a photograph says so in its metadata and gets a class: in the dark the
style sheet turns all others. That an exercise's solution is used is said to those alone
who run the notebook.

Notebooks are marked when they are read as text, and their pages are changed when they
have been parsed: in between, comments keep where a question begins and ends, and the
metadata of a cell what belongs to it.
"""

import json
import re
from html import escape
from itertools import takewhile

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SUMMARIES = {
    "setup": "Setup: what this page imports",
    "picture": "How this picture is drawn",
    "aside": "{}",
    "claim": "✓ checked",
}
TITLE = re.compile(r"# @title .*\n*")
TITLED = {"aside": re.compile(r"# @title (\S.*)")}
TITLED["claim"] = re.compile(r"# @title Checked\nwith claim\(\s*\"([^\"]+)\"\s*\):")
ANSWERING = {"answer", "claim"}  # behind a question
RIGHT = re.compile(r"right-(\d+)")
BEGIN = re.compile(r"predict right-(\d+)")
END = "predict end"  # what comments say
WAITS = "waits"
USED = re.compile(r"Using the library's \w+ until yours passes its check\.\n")


def setup(app):
    """Connect the functions below to the build."""
    app.connect("source-read", mark_notebook)
    app.connect("doctree-read", shape_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- The notebook -----------------------------------------------------------------


def mark_notebook(app, page, source):
    """Mark what ``shape_page`` looks for; warn of a cell that breaks the form."""
    if not app.env.doc2path(page).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    cells = notebook["cells"]
    for cell in cells:
        mark_photographs(cell)
        leave_out_used(cell)
    try:
        mark(cells)
    except ValueError as fault:
        LOGGER.warning("%s", fault, location=page)
    source[0] = json.dumps(notebook)


def mark(cells):
    """Note how cells are folded, and put comments around questions and answers."""
    questions = predictions(cells)
    for cell in cells:
        mark_fold(cell)
    for cell in cells:
        if "waits" in tags_of(cell) and cell["cell_type"] == "code":
            cell["metadata"]["waits"] = True
    for place, right, answer in reversed(questions):
        cells.insert(answer[-1] + 1, comment(f"{place}-end", END))
        cells.insert(place, comment(f"{place}-begin", f"predict right-{right}"))
    for place, cell in reversed([*enumerate(cells)]):
        if "waits" in tags_of(cell) and cell["cell_type"] == "markdown":
            cells.insert(place + 1, comment(f"{cell['id']}-end", END))
            cells.insert(place, comment(f"{cell['id']}-begin", WAITS))


def comment(name, text):
    """Return a cell that is nothing on the page."""
    about = {"cell_type": "markdown", "id": f"predict-{name}", "metadata": {}}
    return about | {"source": f"% {text}"}


def predictions(cells):
    """List the questions: (place, number of the right option, places of the answer).

    Raises ValueError, which names the cell, where tags and cells do not fit.
    """
    questions = []
    answer_cells = set()
    for place, cell in enumerate(cells):
        if "predict" in tags_of(cell):
            behind = range(place + 1, len(cells))
            answer = [*takewhile(lambda i: tags_of(cells[i]) & ANSWERING, behind)]
            answered = any("answer" in tags_of(cells[i]) for i in answer)
            require(answered, cell, "a Predict needs cells tagged answer behind it")
            questions.append((place, right_option(cell), answer))
            answer_cells.update(answer)
        elif "answer" in tags_of(cell):
            require(place in answer_cells, cell, "an answer needs a Predict before it")
        if "waits" in tags_of(cell):
            require(questions, cell, "what waits needs a Predict before it")
            both = "answer" in tags_of(cell)
            require(not both, cell, "an answer waits anyway: it needs one of the tags")
        if {"answer", "waits"} & tags_of(cell):
            plain = "heading_open" not in blocks(cell)
            require(plain, cell, "an answer has no heading: let it end before")
    return questions


def right_option(cell):
    """Return the number, from 1, of the option that a question's tag calls right."""
    asked, given = blocks(cell)[:2], blocks(cell)[2:]
    options = given.count("list_item_open")
    require(
        source_of(cell).startswith("**Predict.**")
        and asked == ["paragraph_open", "bullet_list_open"]
        and given == ["list_item_open", "paragraph_open"] * options
        and 2 <= options <= 4,
        cell,
        "a Predict is a paragraph that begins with **Predict.**, then a list of two to "
        "four options, and nothing else",
    )
    numbers = [int(tag[1]) for tag in map(RIGHT.fullmatch, tags_of(cell)) if tag]
    fits = len(numbers) == 1 and 1 <= numbers[0] <= options
    require(fits, cell, f"one tag says what is right: right-1 to right-{options}")
    return numbers[0]


def mark_fold(cell):
    """Note in a cell's metadata under what summary its code is folded, if it is."""
    for tag in tags_of(cell) & SUMMARIES.keys():
        titled = TITLED[tag].match(source_of(cell)) if tag in TITLED else None
        needed = (
            "an aside begins with # @title and a phrase, a claim with # @title Checked "
            'and then: with claim("what is claimed"):'
        )
        require(titled or tag not in TITLED, cell, needed)
        phrase = titled[1].strip() if titled else ""
        cell["metadata"]["fold"] = SUMMARIES[tag].format(phrase)
        cell["source"] = TITLE.sub("", source_of(cell), count=1)


def mark_photographs(cell):
    """Give what a cell shows the class photograph where its metadata ask for light."""
    for output in cell.get("outputs", []):
        for about in output.get("metadata", {}).values():
            if isinstance(about, dict) and about.get("needs_background") == "light":
                image = (
                    cell["metadata"].setdefault("mystnb", {}).setdefault("image", {})
                )
                image["classes"] = "photograph"


def leave_out_used(cell):
    """Leave out what `use` says, as a page that does not run has no answer of yours."""
    kept = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            output["text"] = USED.sub("", "".join(output["text"]))
        if output.get("text", " "):
            kept.append(output)
    if cell["cell_type"] == "code":
        cell["outputs"] = kept


def require(fits, cell, needed):
    """Raise ValueError with the name of a cell if something does not fit."""
    if not fits:
        raise ValueError(f"cell {cell['id']}: {needed}")


def source_of(cell):
    """Return a cell's text, which a file may hold in one piece or line by line."""
    return "".join(cell["source"])


def tags_of(cell):
    """Return a cell's tags as a set."""
    return {*cell["metadata"].get("tags", [])}


def blocks(cell):
    """Name what a Markdown cell is built of, in order; nothing of another one."""
    text = source_of(cell) if cell["cell_type"] == "markdown" else ""
    tokens = MarkdownIt("commonmark").parse(text)
    return [t.type for t in tokens if t.nesting >= 0 and t.type != "inline"]


# --- The page ---------------------------------------------------------------------


def shape_page(app, doctree):
    """Fold code, and box questions."""
    for cell in [*doctree.findall(is_cell)]:
        about = cell["cell_metadata"]
        if "waits" in about:
            cell[:] = [part if is_code(part) else waiting(part) for part in cell]
        if "fold" in about:
            fold(cell, about["fold"])
    for comment in [*doctree.findall(nodes.comment)]:
        begin = BEGIN.fullmatch(comment.astext())
        if begin:
            box(comment, int(begin[1]))
        elif comment.astext() == WAITS:
            let_wait(comment)


def is_cell(node):
    """Tell whether a node is a code cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def is_code(part):
    """Tell whether a part of a code cell is its code, and not what it shows."""
    return part.get("nb_element") == "cell_code_source"


def fold(cell, summary):
    """Put a cell's code below its output, and there behind a summary."""
    code = cell.pop(0)
    begin = f'<details class="fold"><summary>{escape(summary)}</summary>'
    cell += [html(begin), code, html("</details>")]


def html(text):
    """Return a node that is this text on the page."""
    return nodes.raw("", text, format="html")


def box(comment, right):
    """Put a question and its answer into one box, in which what waits is marked."""
    section, start, inside = between(comment)
    question, options, *answer = inside
    options["classes"].append("options")
    options[right - 1]["classes"].append("right")
    asked = nodes.container("", question, options, classes=["question"])
    parts = [asked, *map(part_of_answer, answer)]
    whole = nodes.container("", *parts, classes=["prediction"])
    section[start : start + len(inside) + 2] = [whole]


def let_wait(comment):
    """Mark a text that waits for the question before it."""
    section, start, inside = between(comment)
    section[start : start + len(inside) + 2] = [*map(waiting, inside)]


def between(comment):
    """Return where a comment stands, and what is there between it and the next END."""
    section = comment.parent
    start = section.index(comment)
    inside = takewhile(lambda node: node.astext() != END, section[start + 1 :])
    return section, start, [*inside]


def part_of_answer(node):
    """Let a node wait, code and what it shows alike."""
    return nodes.container("", node, classes=["answer"])


def waiting(node):
    """Let a node wait for the question before it, in another place."""
    return nodes.container("", node, classes=["answer", "waits"])
