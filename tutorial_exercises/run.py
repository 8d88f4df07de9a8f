"""Call a student's code: whatever happens becomes a value or a diagnosis.

It cannot hang, flood the page, or leave settings of torch behind.

Nothing here knows of oracles and steps.
"""

import contextlib
import ctypes
import inspect
import io
import itertools
import numbers
import signal
import threading
import warnings

import torch
from torch import nn

from .compare import describe
from .exercise import Wrong
from .unwritten import failing_line

SECONDS = 5.0  # how long one call of an answer may take
AGAIN = 0.2  # how soon the call is stopped again if a bare `except:` swallowed the stop
INCESSANT = 5e-5  # and if it swallows them all: until one falls into the `except:`
OWN = __file__, contextlib.__file__  # where a stop must not fall
PRINTED_LINES, PRINTED_CHARACTERS = 5, 500
LONGEST_MESSAGE = 400


def run(function, args, kwargs, *, answer, seconds=None):
    """Return `function(*args, **kwargs)`, or raise Wrong that says why it has no value.

    answer: what the student wrote (`function` may be a module built from it); its own
    lines are pointed at. seconds: how long the call may take, or None.
    Nothing but a KeyboardInterrupt passes through.
    """
    _expect_signature(function, args, kwargs)
    seconds = SECONDS if seconds is None else seconds
    try:
        with time_limit(seconds):
            return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except TimeUp as error:
        message = f"Your code was still running after {seconds:g} s: does a loop never "
        raise Wrong("time", f"{message}end?{_line(answer, error)}") from None
    except BaseException as error:
        message = f"Your code raised {type(error).__name__}: {error_text(error)}"
        called = f"\nIt was called with {_arguments(function, args, kwargs)}."
        raise Wrong("error", message + _line(answer, error) + called) from None


def error_text(error):
    """Return an error's text, cut where it is very long."""
    try:
        text = str(error)
    except Exception:
        return "(an error that cannot be printed)"
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"


def _expect_signature(function, args, kwargs):
    try:
        signature = inspect.signature(_called(function))
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise Wrong(
            "signature",
            f"The exercise calls your code with {_arguments(None, args, kwargs)}, but "
            f"it takes {signature}: {error}. Keep the first line as it was given.",
        ) from None


def _called(function):
    return function.forward if isinstance(function, nn.Module) else function


def _line(answer, error):
    line = failing_line(answer, error)
    return f"\n  {line}" if line else ""


def _arguments(function, args, kwargs):
    names = []
    with contextlib.suppress(TypeError, ValueError):
        names = inspect.signature(_called(function)).bind_partial(*args).arguments
    names = [*names, *[""] * (len(args) - len(names))]
    named = [*zip(names, args, strict=True), *kwargs.items()]
    return ", ".join(_argument(name, value) for name, value in named) or "no arguments"


def _argument(name, value):
    words = describe(value)
    if torch.is_tensor(value):
        return f"{name or 'a tensor'} of shape {words.partition(' of shape ')[2]}"
    return f"{name} = {words}" if name else words


def copied(value):
    """Return a copy in which every tensor, however deep, is a new one."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, set) else value


def identical(kept, value):
    """Whether a value is still what its copy says: same shapes, bits and entries."""
    if torch.is_tensor(value):
        return _same_tensor(kept, value)
    if isinstance(value, dict):
        same_keys = kept.keys() == value.keys()
        return same_keys and all(identical(kept[key], value[key]) for key in kept)
    if type(value) in (list, tuple):
        return len(kept) == len(value) and all(map(identical, kept, value))
    plain = isinstance(value, (str, numbers.Number, set))
    return kept is value or (plain and kept == value)


def _same_tensor(kept, value):
    if kept.shape != value.shape or kept.dtype != value.dtype:
        return False
    both_nan = (kept != kept) & (value != value)
    return bool(((kept == value) | both_nan).all())


def with_weights(module, reference):
    """Copy the reference's parameters into a module and return it, in eval mode.

    Raises Wrong("parameters") that lists the parameters that differ.
    """
    yours, needed = _shapes(module), _shapes(reference)
    found = [
        _listed("It lacks", [f"`{n}` {needed[n]}" for n in needed if n not in yours]),
        _listed("It should not have", [f"`{n}`" for n in yours if n not in needed]),
        _listed("", [_resized(n, yours, needed) for n in needed if n in yours]),
    ]
    if any(found):
        sentences = " ".join(filter(None, found))
        raise Wrong("parameters", f"Compare your module's parameters. {sentences}")
    module.load_state_dict(reference.state_dict())
    return module.eval()


def _shapes(module):
    return {name: tuple(weight.shape) for name, weight in module.state_dict().items()}


def _resized(name, yours, needed):
    if yours[name] == needed[name]:
        return ""
    return f"`{name}` is {yours[name]} and should be {needed[name]}"


def _listed(verb, parts, most=4):
    """Return a sentence that lists the first few parts that are not empty, or ""."""
    parts = [part for part in parts if part]
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return f"{verb} {', '.join(parts[:most])}{more}.".lstrip() if parts else ""


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
def usual_settings():
    """Compute with torch's usual settings, then put those back that were."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)


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
    pauses = itertools.chain([AGAIN], itertools.repeat(INCESSANT))

    def ring(_signal, frame):
        if frame.f_code.co_filename in OWN:
            return  # the call has not begun, or has just ended
        pause = next(pauses)
        signal.setitimer(signal.ITIMER_REAL, pause, pause)
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
