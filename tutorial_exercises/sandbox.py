"""Run a student's code so that the notebook is afterwards as it was before.

It cannot run for ever, fill the page, wait for the keyboard, end Python, or change the
random numbers of other cells.
"""

import contextlib
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from unittest import mock

import einops.einops
import torch

from tutorial_lib.randomness import undisturbed

from .exercise import Wrong
from .notebook import shell

ASKS = "Your code calls `input()`, but nobody types in a check: use the arguments."
LONGEST_PRINT = 500  # characters that are kept


class TimeUp(BaseException):
    """Stops a call that takes too long; no `except Exception` catches it."""


@contextlib.contextmanager
def sandbox():
    """Contain what the body prints, warns of, draws and asks for; give what it prints.

    Random state, the keyboard, PyTorch's default type of numbers and its modes of
    gradients and of autocast are those of a fresh session, whatever cells before have
    set. The folder and the default type are put back.
    """
    printed = Printed()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        undisturbed(),
        _put_back(),
        mock.patch("builtins.input", side_effect=Wrong(ASKS)),
        # IPython's own `quit()` would end the kernel after the cell.
        mock.patch.object(shell(), "ask_exit", sys.exit, create=True),
    ):
        warnings.simplefilter("ignore")
        yield printed


@contextlib.contextmanager
def _put_back():
    dtype, folder = torch.get_default_dtype(), os.getcwd()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        os.chdir(folder)
        _forget_recipes()


def _forget_recipes():
    """Clear einops' caches: a recipe made for 4.0 heads would serve 4, and fail."""
    for function in vars(einops.einops).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


class Printed(io.StringIO):
    """A text file that keeps the beginning and forgets the rest."""

    def write(self, text):
        """Keep the text while there is room."""
        super().write(text[: max(0, LONGEST_PRINT - self.tell())])
        return len(text)


def call_within(seconds, function, *arguments):
    """Call a function; raises TimeUp if it takes longer, where a signal can stop it."""
    _forget_recipes()
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        return function(*arguments)

    def stop(_signal, frame):
        calls = []
        for each, _ in traceback.walk_stack(frame):
            if each.f_code.co_filename.startswith("<frozen importlib"):
                # A first import is not the student's time.
                signal.setitimer(signal.ITIMER_REAL, seconds)
                return
            if each.f_code.co_filename == __file__:
                break
            calls.append(each)
        if not calls:  # the call has not begun, or has just ended
            return
        # A bare `except:` swallows this TimeUp, so the code's next line raises another.
        sys.settrace(stop_at_line)
        for each in calls:
            each.f_trace = stop_at_line
        raise TimeUp

    tracer = sys.gettrace()
    handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        return function(*arguments)
    finally:
        sys.settrace(tracer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def stop_at_line(frame, event, argument):
    """Raise TimeUp as soon as a line of code is run: a trace function of Python's."""
    if event == "line":
        raise TimeUp
    return stop_at_line
