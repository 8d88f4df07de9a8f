"""Progress: a bar in a terminal or a notebook, which is gone when the work is done."""

import os
from contextlib import contextmanager


class Stopped(KeyboardInterrupt):
    """Ends a cell as Ctrl-C does, and says in one line how far the work came."""

    def _render_traceback_(self):
        return [str(self)]  # what IPython shows


@contextmanager
def progress_bar(total, *, unit="step", shown=True):
    """Open a bar of tqdm for ``total`` units, None if unknown, as a context manager.

    The environment variable ``TQDM_DISABLE`` hides it, as in the book's own notebooks.
    Raises Stopped where somebody interrupts what is counted.
    """
    from tqdm import auto, notebook

    kind = auto.tqdm
    if issubclass(kind, notebook.tqdm):
        kind = _leaves_no_trace(notebook.tqdm)
    is_hidden = not shown or os.environ.get("TQDM_DISABLE")  # tqdm.notebook ignores it
    bar = _counts_hidden(kind)(
        total=total,
        unit=unit,
        leave=False,
        delay=0.5,
        disable=True if is_hidden else None,  # None: also in a log file
    )
    with bar:
        try:
            yield bar
        except KeyboardInterrupt:
            done = f"{unit} {bar.n} of {bar.total or '?'}"
            raise Stopped(f"Stopped after {done}; run the cell again") from None


def _counts_hidden(bar):
    """Return a kind of bar that counts where it is not shown, which tqdm's do not."""

    class Bar(bar):
        def update(self, count=1):
            if self.disable:
                self.n += count
            return super().update(count)

    return Bar


def _leaves_no_trace(bar):
    """Return a notebook's bar whose output is emptied when it is closed.

    A closed widget would stay in the file, and be an error where it is opened again.
    """
    from IPython.display import display

    class Bar(bar):
        output = None

        def display(self, *arguments, check_delay=True, **options):
            if check_delay and not self.displayed:
                self.displayed = True
                self.output = display(self.container, display_id=True)
            super().display(*arguments, check_delay=check_delay, **options)

        def close(self):
            super().close()
            if self.output:
                self.output.update({}, raw=True)

    return Bar
