"""Run somebody else's code without letting it hang, flood, or leave traces behind.

Nothing here knows what an exercise is.
"""

import contextlib
import ctypes
import io
import random
import signal
import sys
import threading
import warnings

import torch

SECONDS = 5.0  # how long one call of an answer may take
AGAIN = 0.2  # how soon the call is stopped again if a bare `except:` swallowed the stop
PRINTED_LINES, PRINTED_CHARACTERS = 5, 500


class TimeUp(BaseException):
    """Stops a call that takes too long; no `except Exception` catches it."""


class Printed(io.TextIOBase):
    """A text file that keeps the first few lines and forgets the rest."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        """Keep `text` while there is room."""
        self.text += text[: max(0, PRINTED_CHARACTERS - len(self.text))]
        return len(text)

    def lines(self):
        """Return the first lines, with a mark where something was left out."""
        lines = self.text.splitlines()
        more = len(lines) > PRINTED_LINES or len(self.text) == PRINTED_CHARACTERS
        return lines[:PRINTED_LINES] + ["…"] * more


@contextlib.contextmanager
def quiet(printed):
    """Send everything printed, on either stream, to `printed`; drop warnings."""
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def undisturbed():
    """Compute with torch's usual settings, then put every global state back."""
    numpy = sys.modules.get("numpy")
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    states = random.getstate(), torch.get_rng_state()
    numpy_state = numpy and numpy.random.get_state()
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(dtype)
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        if numpy:
            numpy.random.set_state(numpy_state)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)


def seed(number):
    """Seed the three generators an answer may draw from (but no accelerator's)."""
    random.seed(number)
    torch.default_generator.manual_seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


def time_limit(seconds):
    """Return a context that raises TimeUp in its body after so many seconds.

    In the main thread of Linux and macOS a signal does it, which also ends waits such
    as `time.sleep`; elsewhere a second thread does it, between two Python instructions.
    """
    main = threading.current_thread() is threading.main_thread()
    by_signal = main and hasattr(signal, "setitimer")
    return _alarm(seconds) if by_signal else _watched(seconds)


@contextlib.contextmanager
def _alarm(seconds):
    def ring(_signal, _frame):
        raise TimeUp

    handler = signal.signal(signal.SIGALRM, ring) or signal.SIG_DFL
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)

    def stop():
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)

    yield from _stopping(stop)


@contextlib.contextmanager
def _watched(seconds):
    thread, done = threading.get_ident(), threading.Event()

    def watch():
        pause = seconds
        while not done.wait(pause):
            _raise_in(thread, ctypes.py_object(TimeUp))
            pause = AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()

    def stop():
        done.set()
        watcher.join()
        _raise_in(thread, None)  # one that was sent but has not arrived yet

    yield from _stopping(stop)


def _raise_in(thread, exception):
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)


def _stopping(stop):
    """Yield once, then call `stop`, again if a last TimeUp arrives meanwhile."""
    try:
        try:
            yield
        finally:
            stop()
    except TimeUp:
        stop()
        raise
