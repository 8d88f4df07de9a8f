"""A Sphinx extension that keeps every page free of requests to other hosts, and light.

It refuses scripts that come from elsewhere, makes the pages work when they are opened
as files, and leaves out what the theme brings along and no page shows, as two thousand
icons. A page is shown before most scripts are there. Pictures from elsewhere are left
to the tests.
"""

import base64
import io
import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

FONT_PRELOAD = re.compile(r'<link rel="preload" as="font"[^>]*>')
# Scripts of Sphinx's own search, for which the theme asks on every page.
SEARCH = re.compile(
    r'<script src="[^"]*(searchtools|language_data|searchindex)\.js[^"]*"></script>\n?'
)
# Scripts that wait for the whole page anyway.
WAITING = re.compile(
    r'<script(?= (?:data-sd\S+ )?src="[^"]*_static/(?:clipboard|copybutton|design-tabs|'
    r"doctools|pictures|print|scroll|settings|scripts/sphinx-book-theme|"
    r"togglebutton)\b)"
)
OPTIONS = re.compile(r'<script src="[^"]*/documentation_options\.js[^"]*"></script>')
QUESTIONS = re.compile(r'<script(?= src="[^"]*_static/predict\.js)')
# Short style sheets, put into the book's own in this order. Thebe is not used.
SHORT = ("togglebutton.css", "copybutton.css", "mystnb.*.css", "sphinx-design.min.css")
SHORT_LINK = re.compile(
    r" *<link [^>]*_static/(?:togglebutton|copybutton|mystnb|sphinx-design|"
    r"sphinx-thebe)\.[^>]*>\n?"
)
# An icon is a sign in the style sheet; the theme's script would draw it once more.
DRAWN = re.compile(r"<script [^>]*_static/scripts/fontawesome\.js[^>]*></script>\n?")
SIGN = re.compile(r'(?:\.fa-[a-z0-9-]+:before,?)+\{content:"[^"]*"\}')
ICON = re.compile(r"\bfa-([a-z0-9-]+)")
BY_SCRIPT = {"spinner", "xmark"}  # icons that scripts put on a page
# The fonts of signs, and what in a style sheet names a sign.
FONT = re.compile(r"(@font-face\{[^}]*src:)url\(([^)]*)\.woff2\)[^}]*\}")
NAMED = re.compile(r'"\\(f[0-9a-f]{3})"|([\ue000-\uf8ff])')
# What the theme does to each box after every change of a page; scroll.js does it too.
MEASURED = "e.tabIndex=e.scrollWidth>e.clientWidth||e.scrollHeight>e.clientHeight?0:-1"
ELSEWHERE = re.compile(r"(https?:)?//")


def setup(app):
    """Connect the functions below to the build."""
    app.connect("html-page-context", keep_local_scripts, priority=900)
    app.connect("build-finished", join_styles)
    app.connect("build-finished", lighten_pages)
    app.connect("build-finished", let_nothing_wait)
    app.connect("build-finished", keep_icons_in_use)
    app.connect("build-finished", measure_once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_local_scripts(app, pagename, templatename, context, doctree):
    """Refuse scripts from elsewhere, and drop thebe's, which no page has a use for."""
    kept = []
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script) or "")
        body = getattr(script, "attributes", {}).get("body") or ""
        if ELSEWHERE.match(name):
            raise ExtensionError(f"{pagename} would fetch the script {name}")
        if "thebe" not in name and "THEBE" not in body:
            kept.append(script)
    context["script_files"] = kept


def join_styles(app, error):
    """Put the short style sheets before the book's own, into the same file."""
    if error is None and app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        book = Path(app.srcdir, "book", "_static", "book.css")
        sheets = [path for name in SHORT for path in sorted(static.glob(name))]
        text = "\n".join(path.read_text("utf-8") for path in (*sheets, book))
        (static / "book.css").write_text(text, "utf-8")


def lighten_pages(app, error):
    """Drop what pages ask for and do not use, or may not have when they are files.

    Older themes ask early for fonts that a browser refuses to a local file. What a page
    is shown without is asked for, but not waited for.
    """
    for page in Path(app.outdir).rglob("*.html") if error is None else ():
        text = page.read_text("utf-8")
        lighter = text
        for unused in (FONT_PRELOAD, SHORT_LINK, DRAWN, SEARCH):
            lighter = unused.sub("", lighter)
        lighter = WAITING.sub("<script defer", lighter)
        if lighter != text:
            page.write_text(lighter, "utf-8")


def let_nothing_wait(app, error):
    """Put a short script into the pages, and let the one of the questions wait.

    Scripts within a page call the first, so it cannot wait. The other has to hide
    answers before a page is seen, but on pages without a question it can.
    """
    if error is not None or app.builder.format != "html":
        return
    options = Path(app.outdir, "_static", "documentation_options.js")
    inline = f"<script>{options.read_text('utf-8').strip()}</script>"
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        lighter = OPTIONS.sub(lambda _: inline, text)
        if 'class="prediction' not in lighter:
            lighter = QUESTIONS.sub("<script defer", lighter)
        if lighter != text:
            page.write_text(lighter, "utf-8")


def keep_icons_in_use(app, error):
    """Keep of the theme's two thousand icons those that a page shows, as fonts.

    They stand in the style sheet, where a browser has them if the page is a file, too:
    8 kB in place of 156. The script that draws icons anew is not there (1.5 MB).
    """
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for script in static.glob("scripts/fontawesome.js*"):
        script.unlink()
    pages = Path(app.outdir).rglob("*.html")
    used = BY_SCRIPT.union(*(ICON.findall(page.read_text("utf-8")) for page in pages))

    def named(rule):
        return rule[0] if used.intersection(ICON.findall(rule[0])) else ""

    sheet = static / "styles" / "pydata-sphinx-theme.css"
    text = SIGN.sub(named, sheet.read_text("utf-8"))
    signs = [int(code, 16) if code else ord(sign) for code, sign in NAMED.findall(text)]

    def small(rule):
        font = TTFont((sheet.parent / rule[2]).with_suffix(".ttf"))
        font = cut_font(font, signs)
        font = base64.b64encode(font).decode()
        return f"{rule[1]}url(data:font/woff;base64,{font}) format('woff')}}"

    sheet.write_text(FONT.sub(small, text), "utf-8")


def measure_once(app, error):
    """Keep the theme from measuring boxes: it would lay out all that is folded."""
    if error is None and app.builder.format == "html":
        script = Path(app.outdir, "_static", "scripts", "pydata-sphinx-theme.js")
        text = script.read_text("utf-8")
        script.write_text(text.replace(MEASURED, ""), "utf-8")


def cut_font(font, signs):
    """Return a font in WOFF that has the signs alone."""
    options = subset.Options(flavor="woff", hinting=False)
    file = io.BytesIO()
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=signs)
    cutter.subset(font)
    subset.save_font(font, file, options)
    return file.getvalue()
