"""A Sphinx extension for live figures that no notebook stores, and for heavy ones.

The directive ``live-figure`` makes one of the data in a JSON file, which a benchmark
wrote, and of the scripts and styles of ``tutorial_figures``. Weights of a model stay in
a script of their own in _static, which the figure loads when it first computes.

In a notebook a figure stands alone, with all its data. On a page, the weights of a
figure that asks for them by ``loadWeights`` (tutorial_figures/weights.js) move into
such a script, too, which is loaded when the figure comes into view.
"""

import base64
import hashlib
import importlib.util
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

SCRIPT = re.compile(r"<script>\(\(\) => \{\n.*?</script>", re.DOTALL)
NAME = re.compile(r", (\w+)\);\s*\}\)\(\);</script>$")
WEIGHTS = re.compile(r'"weights":"([A-Za-z0-9+/=]+)"')


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


def move_weights(app, error):
    """Move the weights of figures out of the pages, into scripts in _static."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        static = "../" * (len(page.relative_to(folder).parts) - 1) + "_static"
        lighter, weights = without_weights(text, static)
        if not weights:
            continue
        fragment = load(Path(app.srcdir) / "tutorial_figures" / "fragment.py")
        for name in weights:
            script = fragment.weights_script(name, weights[name])
            (folder / "_static" / f"{name}.js").write_text(script, encoding="utf-8")
        page.write_text(lighter, encoding="utf-8")


def without_weights(text, static):
    """Return a page without the weights of its figures, and these weights by a name.

    The figure finds them in a script of this name in the folder at the address
    ``static``. The name is that of the figure and of what it holds, so that no old
    script is used.
    """
    moved = {}

    def lighten(script):
        found = WEIGHTS.search(script[0])
        if found is None or "function loadWeights(" not in script[0]:
            return script[0]
        weights = found[1]
        version = hashlib.sha256(weights.encode()).hexdigest()[:8]
        name = f"{NAME.search(script[0])[1]}_{version}"
        moved[name] = weights
        address = f'"weightsFile":"{static}/{name}.js"'
        return script[0].replace(found[0], address, 1)

    return SCRIPT.sub(lighten, text), moved


def setup(app):
    """Offer the directive, and move weights when the pages are written."""
    app.add_directive("live-figure", LiveFigure)
    app.connect("build-finished", move_weights)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
