"""A Sphinx extension for live figures that no notebook stores.

The directive ``live-figure`` makes one of the data in a JSON file, which a benchmark
wrote, and of the scripts and styles of ``tutorial_figures``. Weights of a model stay in
a script of their own in _static, which the figure loads when it first computes.
"""

import base64
import hashlib
import importlib.util
import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class LiveFigure(SphinxDirective):
    """Show a figure: ``{live-figure} diagrams/writing.json``, beside the page."""

    required_arguments = 1

    def run(self):
        """Return the figure as HTML, or an error that names the missing file."""
        relative, path = self.env.relfn2path(self.arguments[0])
        if not Path(path).is_file():
            raise self.error(f"there is no {relative} to make a figure of")
        root = Path(self.env.srcdir)
        scripts = root / "tutorial_figures"
        static = "../" * self.env.docname.count("/") + "_static"
        for file in (path, *scripts.glob("*.js"), *scripts.glob("*.css")):
            self.env.note_dependency(str(file))
        return [nodes.raw("", html_of(path, root, static), format="html")]


def html_of(path, root, static):
    """Return the figure whose data are in the file at ``path`` as HTML.

    ``static`` is the address of the folder _static, seen from the page.
    """
    fragment = load(root / "tutorial_figures" / "fragment.py").fragment
    colors = load(root / "tutorial_lib" / "plotting" / "colors.py")
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    name = stored["weights_file"]
    weights = (root / "book" / "_static" / name).read_bytes()
    version = hashlib.sha256(weights).hexdigest()[:8]  # so that no old file is used
    return fragment(
        stored["name"],
        stored["data"] | {"weightsFile": f"{static}/{name}?v={version}"},
        text=stored["text"],
        png=base64.b64decode(stored["png"]),
        colors=(colors.LIGHT, colors.DARK),
        shared=stored["shared"],
    )


def load(path):
    """Return a module by its file, because its package would import torch."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def setup(app):
    """Offer the directive."""
    app.add_directive("live-figure", LiveFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
