"""A Sphinx extension that lets the code of a cell be wrapped on a phone.

Each line is an element that knows how far it is set in, so that the style sheet can
let it go on below, deeper than it began. Besides at spaces it may end behind an opening
bracket, and before the point of a call that follows another one: within no name.
"""

import html
import re

CELL = re.compile(
    r'(<div class="highlight-ipython3 notranslate"><div class="highlight"><pre>)'
    r"(.*?)(</pre>)",
    re.DOTALL,
)
TAG = re.compile(r"<[^>]*>")
BEHIND_OPENING = re.compile(r'(<span class="p">[^<]*[(\[{]</span>)')
BEFORE_CALL = re.compile(r'(?<=[)\]]</span>)(?=<span class="o">\.</span>)')


def setup(app):
    """Connect the function below to the build."""
    app.connect("html-page-context", mark_lines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mark_lines(app, pagename, templatename, context, doctree):
    """Mark the lines of all cells of a page."""
    if "body" in context:
        context["body"] = CELL.sub(marked, context["body"])


def marked(cell):
    """Return a cell's code with each of its lines in an element."""
    begin, code, end = cell.groups()
    lines = code.removesuffix("\n").split("\n")
    return "".join([begin, *map(line_of, lines), end])


def line_of(code):
    """Return a line of code, with its depth, and with the places where it may end."""
    text = html.unescape(TAG.sub("", code))
    depth = len(text) - len(text.lstrip(" "))
    code = BEFORE_CALL.sub("<wbr>", BEHIND_OPENING.sub(r"\1<wbr>", code))
    return f'<span class="line" style="--depth:{depth}">{code}\n</span>'
