"""Make slides of a chapter: ``slides.py NOTEBOOK.ipynb SLIDES.html``.

nbconvert and reveal.js do the work. A slide begins at each heading; below it follow the
slides of its section. Questions and answers come one after the other, code above a
result is folded, and a figure fills a slide. A paragraph is on the slide with
its first sentence and whole in the speaker's notes. The file holds all that it needs.

The tags of cells say what only a reader of the page wants, and what is a question or an
answer.
"""

import base64
import importlib.util
import re
import sys
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from pieces import cut, question

sys.path.append(str(Path(__file__).parents[1] / "_ext"))
from formulas import font_of, mathml
from notebook_form import as_page

TEMPLATES = Path(__file__).parent / "templates"
ROOM = 17  # lines that fit on a slide
FIGURE = ROOM - 3  # a sentence may stand above a figure, and nothing below
OF_THE_READER = {"check", "claim", "remove-cell", "setup", "solution"}
TITLE = re.compile(r"# @title .*\n")
FIGURES = {"image/png", "image/svg+xml", "text/html"}
PLACE_OF_FONT = "FONT OF FORMULAS"  # in slides.css
REVEAL = ("reset.css", "reveal.css", "reveal.js")


class Deck(Preprocessor):
    """Cut the cells of a notebook into pieces, and deal these out to slides."""

    def preprocess(self, notebook, resources):
        """Return the notebook with one cell for each piece of a slide."""
        as_page(notebook, {})  # a slide links to papers themselves
        pieces = [piece for cell in notebook.cells for piece in pieces_of(cell)]
        deal(pieces)
        notebook.cells = pieces
        notebook.metadata.title = re.sub(r"^# ", "", pieces[0].source)
        return notebook, resources


class Formulas(IPythonRenderer):
    """Write Markdown as HTML, and formulas in it as MathML."""

    def block_math(self, body):
        """Set a formula that stands alone."""
        return mathml(body, display=True)

    def inline_math(self, body):
        """Set a formula in a line."""
        return mathml(body, display=False)


def pieces_of(cell):
    """Return the cells that stand on slides for a cell of the notebook."""
    tags = set(cell.metadata.get("tags", []))
    if cell.cell_type == "markdown":
        pieces = question(cell.source) if "predict" in tags else cut(cell.source)
        for piece in pieces:
            piece.metadata.waits = bool(tags & {"answer", "predict", "waits"})
        return pieces
    if OF_THE_READER & tags or _is_setup(cell):
        return []
    cell.source = TITLE.sub("", cell.source, count=1)
    cell.metadata.lines = _height(cell)
    cell.metadata.folded = bool(cell.outputs)
    cell.metadata.caption = _figure(cell).get("caption", "")
    cell.metadata.alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    return [cell]


def _is_setup(cell):
    return cell.id in ("setup", "progress")


def _figure(cell):
    return cell.metadata.get("mystnb", {}).get("figure", {})


def _height(cell):
    """Return about how many lines of text are as high as a code cell."""
    if any(FIGURES & set(output.get("data", {})) for output in cell.outputs):
        return FIGURE
    printed = "".join(
        output.get("text", "") + output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )
    shown = printed if cell.outputs else cell.source
    return 1 + 0.7 * len(shown.splitlines())


def deal(pieces):
    """Give each piece its place: on a new slide, below one, or after a click."""
    used = 0
    for piece in pieces:
        metadata = piece.metadata
        kind = metadata.get("slide")
        if kind is None:
            full = used > 0 and used + metadata.lines > ROOM
            kind = "subslide" if full else _follows(piece)
        if kind in ("slide", "subslide"):
            used = 0
        used = ROOM if metadata.lines == FIGURE else used + metadata.lines
        metadata.slideshow = {"slide_type": kind}


def _follows(piece):
    waits = any(map(piece.metadata.get, ("folded", "predict", "waits")))
    return "fragment" if waits else "-"


def main(notebook, target):
    """Write the slides of the file ``notebook`` into the file ``target``."""
    notebook = Path(notebook)
    target = Path(target)
    exporter = SlidesExporter(
        template_name="slides",
        extra_template_basedirs=[str(TEMPLATES)],
        preprocessors=[Deck],
        embed_images=True,
        exclude_anchor_links=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.register_filter("inline", inline)
    exporter.register_filter("markdown2html", as_html)
    where = {"name": notebook.stem, "path": str(notebook.parent)}  # of its pictures
    source = nbformat.read(notebook, as_version=4)
    text, _ = exporter.from_notebook_node(source, resources={"metadata": where})
    font = base64.b64encode(font_of([text])).decode()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text.replace(PLACE_OF_FONT, font), encoding="utf-8")


def as_html(source):
    """Return Markdown as HTML."""
    renderer = Formulas(escape=False, exclude_anchor_links=True)
    return MarkdownWithMath(renderer=renderer).render(source)


def inline(name):
    """Return the text of a file that the slides bring along, by its short name."""
    return places()[name].read_text(encoding="utf-8")


def places():
    """Map the names of the files that the slides bring along to where they are."""
    reveal = _package("sphinx_revealjs") / "_static" / "revealjs"
    files = {name: reveal / "dist" / name for name in REVEAL}
    files["notes.js"] = reveal / "plugin" / "notes" / "notes.js"
    own = TEMPLATES / "slides"
    return files | {path.name: path for path in own.glob("slides.*")}


def _package(name):
    return Path(importlib.util.find_spec(name).origin).parent


if __name__ == "__main__":
    main(*sys.argv[1:])
