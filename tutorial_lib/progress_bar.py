"""Progress: one line that tells how far a long loop is, and is gone when it ends.

A terminal shows the line on its error stream, a notebook below the cell. Nothing is
shown where nobody looks: in a log file, or where the environment variable
``TQDM_DISABLE`` is set, as it is while the book's own notebooks are run.

This module does not know what is being counted.
"""

import os
import sys


def progress_bar(total, *, unit="step", done=0, shown=True):
    """Open a progress bar with the remaining time, as a context manager.

    ``total`` is the number of units, None if it is not known, and ``done`` says how
    many of them were done before. Returns a ``tqdm.tqdm``: count with ``update()``,
    add a word with ``set_postfix_str(text, refresh=False)``.
    """
    from tqdm import tqdm

    line = _NotebookLine() if _in_notebook() else None
    shown = shown and not os.environ.get("TQDM_DISABLE")
    return tqdm(
        total=total,
        initial=done,
        unit=unit,
        leave=False,
        delay=0.5,  # seconds: what is over by then needs no bar
        miniters=1,  # look at the clock at every update, and start no thread for it
        file=line,
        disable=(None if line is None else False) if shown else True,
    )


def _in_notebook():
    """Tell whether this code runs in the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


class _NotebookLine:
    """A file of one line, below a notebook's cell, that ends up empty."""

    encoding = "utf-8"

    def __init__(self):
        self.handle = None

    def write(self, text):
        if not text.startswith("\r"):
            return  # a move between lines: here there is but one
        content = {"text/plain": text.strip()}
        if self.handle is not None:
            self.handle.update(content, raw=True)
        elif text.strip():
            from IPython.display import display

            self.handle = display(content, raw=True, display_id=True)

    def flush(self):
        pass
