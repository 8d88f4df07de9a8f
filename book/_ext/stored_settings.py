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
    app.connect("html-page-context", move_settings)
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


def move_settings(app, pagename, templatename, context, doctree):
    """Move drawn settings out of a page, into scripts in _static."""
    static = Path(app.outdir, "_static")

    def write(found):
        name, drawn = found.groups()
        script = f'(window.tutorialSettings ??= {{}})["{name}"] =\n  {drawn};\n'
        static.mkdir(exist_ok=True)
        (static / f"{name}.js").write_text(script, encoding="utf-8")
        return ""

    if app.builder.format == "html" and "body" in context:
        context["body"] = INLINE.sub(write, context["body"])
