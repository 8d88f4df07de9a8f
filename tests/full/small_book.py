"""A book of a few small pages, with all that a page can hold, for tests to build."""

import base64
import io
import shutil
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.form import FOLD
from tools.repository import write_repository
from tutorial_lib.notebook import folds

ROOT = Path(__file__).parents[2]
FORK = "https://github.com/you/fork"
LIGHT = {"image/png": {"needs_background": "light"}}  # a photograph
# Both kinds of pages in one process: what is imported for them takes as long as one.
BUILD = """
from jupyter_book.cli.main import main
for kind in [], ["--builder", "singlehtml", "--path-output", "out"]:
    main(["build", ".", "-n", "-W", "--keep-going", "-q", *kind], standalone_mode=False)
"""
CONTENTS = """format: jb-book
root: book/intro
parts:
  - caption: I
    numbered: true
    chapters:
      - file: notebooks/07_one
      - file: notebooks/08_two
  - caption: Excursions
    chapters:
      - file: notebooks/x_more
  - caption: Back matter
    chapters:
      - file: book/bibliography
      - file: book/terms
"""
TERMS = """term,page,also,section
RoPE,08,rotary embedding; rotary,A question
attention,07,,
"""
INTRO = """# The book

## The road

**Predict.** What?

:::{dropdown} What was folded
UNFOLDED
:::
"""
LONG_LINE = "long = " + " + ".join(f"number_{i}" for i in range(20))
FIRST = r"""# 7 · One

A first sentence that stands on the slide. A second one that is only told, see
[chapter 8](08_two.ipynb).

## A section

**Predict.** Is $\frac{1}{2}$ more than a third?
"""
SECOND = """# 8 · Two

[Cordonnier et al. (2020b)](https://arxiv.org/abs/1911.03584) and
[what waits](#fig-waiting).
"""
QUESTION = r"""**Predict.** What is $\frac{1}{2}$ of one?

- a third
- $\frac{2}{4}$
- nothing
"""
FOUND = "It is a half, which is FOUND here."
WIDE = rf"""Something wide.

$${" + ".join(f"number_{{{i}}}" for i in range(20))}\tag{{8.1}} $$

| {" | ".join(f"column {i}" for i in range(20))} |
{"|---" * 20}|
| {" | ".join("123456" for i in range(20))} |
"""
OTHER = """**Predict.** And the other?

- One of two.
- Two, which takes so many words that they do not stand in one line of a page, and even
  less in one of a phone.
"""
CARD = '<div class="exercise-card"><details><summary>Solution</summary>SECRET</details>'
LIVE = """<div data-figure="k">
<img alt="A picture" src="data:image/png;base64,{}"></div>
<script>document.querySelector("[data-figure=k]").attachShadow({{mode: "open"}})
.innerHTML = "<p>MOVING</p>"</script>"""
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}


def picture(color):
    """Return a PNG of two colors in base64."""
    from PIL import Image

    image, buffer = Image.new("RGB", (60, 40), "white"), io.BytesIO()
    image.paste(color, (10, 10, 40, 30))
    image.save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def about(name):
    """Return the metadata of a figure."""
    return {"figure": {"name": name}, "image": {"alt": "Two colors"}}


def caption(number, *tags):
    """Return the cell that stands below a figure."""
    return text(f"**Fig. {number}** What is *seen*.", "caption", *tags)


def text(source, *tags):
    return new_markdown_cell(source, metadata={"tags": [*tags]} if tags else {})


def cell(source, data=None, *tags, **metadata):
    outputs = [new_output("display_data", data)] if data else []
    metadata = metadata | ({"tags": [*tags]} if tags else {})
    return new_code_cell(source, outputs=outputs, metadata=metadata, execution_count=1)


def folded(printed):
    """Return an output as a notebook stores it behind a question."""
    page = folds.folded(f"<pre>{printed}</pre>")
    return {"text/plain": printed, "text/html": page}


def claim(phrase):
    source = f'# @title Checked\nwith claim("{phrase}"):\n    assert True'
    return cell(source, None, "claim", **FOLDED)


def first_form():
    """Return the cells of a small chapter."""
    return [
        text(FIRST),
        cell(LONG_LINE, {"text/plain": "True"}),
        cell("drawn = 1", {"image/png": picture("red")}, mystnb=about("fig-seen")),
        caption("7.1"),
        cell("folded = 1", {"text/plain": "six"}, "hide-input"),
        cell(
            "moving = 1",
            {"image/png": picture("blue"), "text/html": LIVE.format(picture("blue"))},
            mystnb=about("fig-moving"),
        ),
        caption("7.2"),
        cell("solution('1.1')", {"text/html": CARD + "</div>"}, "solution"),
    ]


def second_form():
    """Return the cells of a chapter in the second form."""
    waiting = {"image/png": picture("yellow")}
    photograph = cell(
        "# @title The picture\nshown = 1",
        {"image/png": picture("green")},
        "picture",
        mystnb=about("fig-photograph"),
        **FOLDED,
    )
    photograph["outputs"][0]["metadata"] = LIGHT
    return [
        text(SECOND),
        cell("# @title Setup\nimported = 1", None, "setup", **FOLDED),
        photograph,
        caption("8.1"),
        cell("core = 1", {"text/plain": "the core"}, "core"),
        text("## A question"),
        text(QUESTION, "predict", "right-2"),
        cell("# @title Answer: in numbers\nasked = 1", folded("COMPUTED"), "answer"),
        cell("drawn = 2", waiting, "answer", mystnb=about("fig-waiting")),
        text(
            FOLD.format("Caption", "**Fig. 8.2** What is *seen*."), "answer", "caption"
        ),
        text(FOLD.format("Answer", FOUND), "answer"),
        claim("a half & no more"),
        text(WIDE),
        cell("later = 3", {"text/plain": "PRINTED"}, "waits"),
        text(FOLD.format("Answer", "This is said LATER."), "waits"),
        text(OTHER, "predict", "right-1"),
        text("The other is ELSEWHERE.", "answer"),
        text("The end."),
        claim("there is an end"),
    ]


def write_notebook(path, *cells):
    lexer = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    nbformat.write(new_notebook(cells=list(cells), metadata=lexer), path)


def write_book(root):
    """Write the book into a folder, with an address of its own."""
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    for name in (
        "_config.yml",
        "pyproject.toml",
        "book/references.bib",
        "book/bibliography.md",
    ):
        shutil.copy(ROOT / name, root / name)
    shutil.copy(ROOT / "book/terms.md", root / "book/terms.md")
    (root / "book/terms.csv").write_text(TERMS)
    (root / "book/intro.md").write_text(INTRO)
    (root / "_toc.yml").write_text(CONTENTS)
    (root / "notebooks").mkdir()
    write_notebook(root / "notebooks/07_one.ipynb", *first_form())
    write_notebook(root / "notebooks/08_two.ipynb", *second_form())
    shown = cell("more = 1", {"image/png": picture("pink")}, mystnb=about("fig-more"))
    write_notebook(root / "notebooks/x_more.ipynb", text("# More"), shown, caption("1"))
    write_repository(root, FORK, "v3.0")
