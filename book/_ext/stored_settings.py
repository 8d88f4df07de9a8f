"""A Sphinx extension for pictures of *Try it* that answer without a kernel.

`explore` draws a few settings when a notebook runs, and stores them in the metadata of
its picture. Here they become a script beside the page, which _static/settings.js loads
at the first touch of a menu. It is a script and no data, because a page that is a file
may read no other file.
"""

import hashlib
import json
import re
from html import escape
from pathlib import Path

from chapter_form import is_cell
from docutils import nodes

INLINE = re.compile(
    r'<script type="application/json" data-settings="(\w+)">(.*?)</script>', re.DOTALL
)


def setup(app):
    """Connect the functions below to the build."""
    app.connect("source-read", take_settings, priority=450)
    app.connect("doctree-read", offer_settings, priority=300)  # before cells are shaped
    app.connect("build-finished", move_settings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def take_settings(app, page, source):
    """Move what `explore` stored from the metadata of outputs into those of cells."""
    if not app.env.doc2path(page).endswith(".ipynb"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            stored = output.get("metadata", {}).pop("settings", None)
            if stored:
                cell["metadata"]["settings"] = stored
    source[0] = json.dumps(notebook)


def offer_settings(app, doctree):
    """Put the place of the menus above a picture, with what they choose from."""
    for cell in [*doctree.findall(is_cell)]:
        stored = cell["cell_metadata"].get("settings")
        if stored:
            cell[-1].insert(0, nodes.raw("", place_of(stored), format="html"))


def place_of(stored):
    """Return the place of the menus as HTML, and the drawn settings in a script."""
    drawn = as_json(stored["drawn"])
    name = f"settings_{hashlib.sha256(drawn.encode()).hexdigest()[:8]}"
    controls = escape(as_json(stored["controls"]))
    return (
        f'<div class="settings" data-file="{name}" data-controls="{controls}"></div>'
        f'<script type="application/json" data-settings="{name}">{drawn}</script>'
    )


def as_json(value):
    """Return ``value`` as JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def move_settings(app, error):
    """Move drawn settings out of the pages, into scripts in _static."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found = INLINE.findall(text)
        if not found:
            continue
        for name, drawn in found:
            script = f'(window.tutorialSettings ??= {{}})["{name}"] =\n  {drawn};\n'
            (folder / "_static" / f"{name}.js").write_text(script, encoding="utf-8")
        page.write_text(INLINE.sub("", text), encoding="utf-8")
