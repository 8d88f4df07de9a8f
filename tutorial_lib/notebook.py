"""What is different in a notebook of the book: answers are folded, and claims are kind.

A question's answer waits behind a triangle, as on the page, though the cell that shows
it has run. What the text claims is asserted; where it does not hold because a reader
has changed something, the notebook says so and goes on.

This module does not know what is asked, nor what is claimed.
"""

import ast
import contextlib
import html
import io
import linecache
import os
import re
import textwrap
from contextlib import contextmanager

from tutorial_lib.widgets import VIEW

ANSWER = re.compile(r"# @title Answer\b")  # how a cell begins whose output is folded
SUMMARY = "<summary>What the code shows</summary>"
FOLDED = f'<details class="answer">{SUMMARY}\n{{}}\n</details>'
# JupyterLab tells its theme to style sheets alone, and photographs that they are some.
STYLE = """<style>
[data-jp-theme-light="false"]
:is(.jp-RenderedImage, .jp-RenderedSVG, details.answer)
> img:not(.jp-needs-light-background) {
  filter: invert(0.93) hue-rotate(180deg);
}
</style>"""


@contextmanager
def claim(sentence):
    """Prove ``sentence`` by what is asserted in a ``with`` block.

    Where it fails, a line says so and the notebook goes on, because a reader may have
    changed a parameter above or stopped a training. With the environment variable
    TUTORIAL_STRICT=1, as in the book's own tests, the error is raised.
    """
    try:
        yield
    except Exception as error:
        if os.environ.get("TUTORIAL_STRICT") == "1":
            raise
        why = "Something above was changed, or a training was stopped."
        where = error.__traceback__.tb_next  # in the block
        line = linecache.getline(where.tb_frame.f_code.co_filename, where.tb_lineno)
        if isinstance(error, NameError):
            why = f"Run the cells above it first; they define {error.name}."
        elif line.lstrip().startswith("assert"):
            why += f" What failed: {line.strip().removeprefix('assert ')}"
            why += _sides(line.strip(), where.tb_frame)
        said = f"Not as in the book: {sentence}. {why}"
        print(textwrap.fill(said, 80, break_long_words=False))


def _sides(line, frame):
    """Return what the sides of an asserted comparison are, but for what is written."""
    try:
        test = ast.parse(line).body[0].test
        names = [ast.unparse(side) for side in (test.left, *test.comparators)]
        values = [eval(name, frame.f_globals, frame.f_locals) for name in names]
    except Exception:  # no comparison, or not in one line
        return ""
    values = [f"{x:.4g}" if isinstance(x, float) else f"{x!r:.60}" for x in values]
    told = [f"{name} = {x}" for name, x in zip(names, values, strict=True) if name != x]
    return f" ({', '.join(told)})" if told else ""


def prepare_notebook():
    """Fold what answers show, and let pictures follow JupyterLab's dark theme.

    Does nothing outside IPython, and the same when it is called again.
    """
    from IPython import get_ipython
    from IPython.display import HTML, display

    if shell := get_ipython():
        shell.events.register("pre_run_cell", _begin)
        display(HTML(STYLE))


def unfolded(page):
    """Return the HTML of an output without the fold of an answer, if it has one."""
    begin, end = FOLDED.split("{}")
    return page.removeprefix(begin).removesuffix(end)


def _begin(info):
    """Fold what the cell shows that is about to run, if it is an answer."""
    if ANSWER.match(info.raw_cell or ""):
        from IPython import get_ipython

        events, folding = get_ipython().events, contextlib.ExitStack()
        folding.enter_context(_folding(get_ipython().display_formatter))

        def end(result):
            events.unregister("post_run_cell", end)
            folding.close()

        events.register("post_run_cell", end)


@contextmanager
def _folding(formatter):
    """Fold what is printed and shown, but for widgets such as bars of progress."""
    from IPython.display import display

    plain, printed = formatter.format, io.StringIO()

    def show_printed():
        if text := printed.getvalue():
            page = FOLDED.format(f"<pre>{html.escape(text)}</pre>")
            display({"text/plain": text, "text/html": page}, raw=True)
            printed.seek(0)
            printed.truncate()

    def folded(shown, *args, **options):
        show_printed()  # before what was shown after it
        data, metadata = plain(shown, *args, **options)
        if data and VIEW not in data:
            data = data | {"text/html": FOLDED.format(_as_html(data))}
        return data, metadata

    formatter.format = folded
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        formatter.format = plain
        show_printed()


def _as_html(data):
    """Return the richest form of an output as HTML."""
    if "text/html" in data:
        return data["text/html"]
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
    return f"<pre>{html.escape(data['text/plain'])}</pre>"
