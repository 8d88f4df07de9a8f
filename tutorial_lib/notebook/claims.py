"""Claims: what the text says is asserted, and kind to readers who change something."""

import linecache
import os
import textwrap
from contextlib import contextmanager

from tutorial_lib.installed import MissingModelError
from tutorial_lib.notebook.console import printable


@contextmanager
def claim(sentence):
    """Prove ``sentence`` by what is asserted in a ``with`` block.

    Where it fails, a line says so and the notebook goes on, because a reader may have
    changed a parameter above or stopped a training. With the environment variable
    TUTORIAL_STRICT=1, as in the book's own tests, the error is raised; so is, always,
    that a pretrained model is missing.
    """
    try:
        yield
    except MissingModelError:
        raise  # not the reader's doing: the cell says what is missing
    except Exception as error:
        if os.environ.get("TUTORIAL_STRICT") == "1":
            raise
        text = f"Not as in the book: {sentence}. {_reason(error)}"
        print(printable(textwrap.fill(text, 80, break_long_words=False)))


def _reason(error):
    """Say in a sentence or two why an assertion may have failed, and which."""
    if isinstance(error, NameError):
        return f"Run the cells above it first; they define {error.name}."
    reason = "Something above was changed, or a training was stopped."
    where = error.__traceback__.tb_next  # in the block
    line = linecache.getline(where.tb_frame.f_code.co_filename, where.tb_lineno).strip()
    if line.startswith("assert"):
        reason += f" What failed: {line.removeprefix('assert ')}"
    return reason
