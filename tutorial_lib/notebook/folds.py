"""Folds: what the code of an answer shows waits behind a triangle, as on the page.

The cell has run all the same. Whatever it displays goes through IPython's formatter,
which is replaced while an answer runs; what it prints is kept, and displayed, too. The
metadata of cells would not do: JupyterLab opens hidden outputs when a cell is run, and
Colab and VS Code have no such thing.
"""

import html
import io
import re
import sys
from contextlib import ExitStack, redirect_stdout
from unittest.mock import patch

from tutorial_lib.notebook.missing import go_on_without_models
from tutorial_lib.notebook.widgets import VIEW

ANSWER = re.compile(r"# @title Answer\b")  # how a cell begins whose output is folded
BEGIN = '<details class="answer"><summary>What the code shows</summary>\n'
END = "\n</details>"
# JupyterLab tells its theme to style sheets alone, and photographs that they are some.
STYLE = """<style>
[data-jp-theme-light="false"]
:is(.jp-RenderedImage, .jp-RenderedSVG, details.answer)
> img:not(.jp-needs-light-background) {
  filter: invert(0.93) hue-rotate(180deg);
}
</style>"""


def prepare_notebook():
    """Fold what answers show, and let pictures follow JupyterLab's dark theme.

    A cell whose pretrained model is missing says so, and the notebook goes on. Does
    nothing outside IPython, and the same when it is called again.
    """
    if "IPython" not in sys.modules:
        return

    from IPython import get_ipython
    from IPython.display import HTML, display

    shell = get_ipython()
    if shell is not None:
        shell.events.register("pre_run_cell", _begin)
        go_on_without_models(shell)
        display(HTML(STYLE))


def folded(page):
    """Return the HTML of an output, folded."""
    return f"{BEGIN}{page}{END}"


def unfolded(page):
    """Return the HTML of an output without the fold of an answer, if it has one."""
    return page.removeprefix(BEGIN).removesuffix(END)


def _begin(info):
    """Fold what the cell shows that is about to run, if it is an answer."""
    from IPython import get_ipython

    if not ANSWER.match(info.raw_cell or ""):
        return
    shell = get_ipython()
    answer = _Answer(shell.display_formatter.format)
    stack = ExitStack()
    stack.callback(answer.show_printed)
    stack.enter_context(patch.object(shell.display_formatter, "format", answer.format))
    stack.enter_context(redirect_stdout(answer.printed))

    def end(result):
        shell.events.unregister("post_run_cell", end)
        stack.close()

    shell.events.register("post_run_cell", end)


class _Answer:
    """What an answer shows and prints while it runs."""

    def __init__(self, plain_format):
        self.plain_format = plain_format
        self.printed = io.StringIO()

    def format(self, shown, *args, **options):
        """Format as IPython does, and fold it, unless it is a widget."""
        self.show_printed()  # before what was shown after it
        data, metadata = self.plain_format(shown, *args, **options)
        if data and VIEW not in data:
            data = {**data, "text/html": folded(_as_html(data))}
        return data, metadata

    def show_printed(self):
        """Display what was printed, folded."""
        from IPython.display import display

        text = self.printed.getvalue()
        if text:
            self.printed.seek(0)
            self.printed.truncate()
            page = folded(f"<pre>{html.escape(text)}</pre>")
            display({"text/plain": text, "text/html": page}, raw=True)


def _as_html(data):
    """Return the richest form of an output as HTML."""
    if "text/html" in data:
        return data["text/html"]
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
    return f"<pre>{html.escape(data['text/plain'])}</pre>"
