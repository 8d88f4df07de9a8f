"""A Sphinx extension that keeps every page free of requests to other hosts.

It copies MathJax next to the pages, refuses scripts that come from elsewhere, and makes
the pages work when they are opened as files. It does not know what a page holds: a
picture from elsewhere is found by the tests.
"""

import importlib.util
import re
import shutil
from pathlib import Path

from sphinx.errors import ExtensionError

# 2 MB of MathJax's 24 MB: one output format, its fonts, and the TeX extensions that
# are loaded on demand.
MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")
FONT_PRELOAD = re.compile(r'<link rel="preload" as="font"[^>]*>')
ELSEWHERE = re.compile(r"(https?:)?//")


def setup(app):
    """Connect the functions below to the build."""
    app.connect("html-page-context", keep_local_scripts, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", drop_font_preloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_local_scripts(app, pagename, templatename, context, doctree):
    """Drop thebe, whose script is declared twice, and refuse scripts from elsewhere."""
    kept = []
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script) or "")
        body = getattr(script, "attributes", {}).get("body") or ""
        if ELSEWHERE.match(name):
            raise ExtensionError(f"{pagename} would fetch the script {name}")
        if "thebe" not in name and "THEBE" not in body:
            kept.append(script)
    context["script_files"] = kept


def copy_mathjax(app, error):
    """Copy the parts of MathJax that the pages use into the built book."""
    if error is not None or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for part in MATHJAX:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / part).is_dir() else shutil.copy2
        if not (target / part).exists():
            copy(source / part, target / part)


def drop_font_preloads(app, error):
    """Drop what older themes ask for early and a browser refuses to a local file."""
    for page in Path(app.outdir).rglob("*.html") if error is None else ():
        text = page.read_text(encoding="utf-8")
        if FONT_PRELOAD.search(text):
            page.write_text(FONT_PRELOAD.sub("", text), encoding="utf-8")
