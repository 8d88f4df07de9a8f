"""Progress: a bar in a terminal or a notebook, which is gone when the work is done.

This module does not know what is being counted.
"""

import os


def progress_bar(total, *, unit="step", shown=True):
    """Open a bar of tqdm for ``total`` units, None if unknown, as a context manager.

    The environment variable ``TQDM_DISABLE`` hides it, as in the book's own notebooks.
    """
    from tqdm.auto import tqdm

    hidden = not shown or os.environ.get("TQDM_DISABLE")  # tqdm.notebook ignores it
    options = {"disable": True if hidden else None}  # None: also in a log file
    return tqdm(total=total, unit=unit, leave=False, delay=0.5, **options)
