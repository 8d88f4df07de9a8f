"""A student's answer, called with care: whatever it does becomes a value or a sentence.

It cannot run for ever, flood the page, or change its inputs unseen.
"""

import contextlib
import inspect
import io
import itertools
import signal
import threading
import traceback

import torch
from torch import nn

from tutorial_lib.definitions import functions_of

from .compare import alike, describe, difference
from .exercise import Wrong

CHANGED = (
    "Your code changed one of its inputs in place (`masked_fill_`, `x += …`, "
    "`x[m] = …`, `shuffle(x)`). Work on a copy: the caller needs the original."
)
NO_GRADIENT = (
    "No gradient reaches one of the inputs: a `.detach()`, `.item()`, `.tolist()`, "
    "`torch.tensor(…)` or `torch.no_grad()` cuts the graph before it."
)
BAD_GRADIENT = (
    "A gradient is infinite or NaN, so training would break here. Is something divided "
    "by 0, and mended afterwards? Mend the divisor."
)
OVERWRITTEN = (
    "You overwrite numbers in place (`x[i] = …`, `x += …`) that the gradients still "
    "need. Make a new tensor: `torch.where`, `masked_fill`, a product."
)
TOO_LONG = "Your code was still running after {:g} s: does a loop never end?"
ENDS_PYTHON = "Your code ends Python (`quit`, `exit`). To end a function, `return`."
ASKS = "Your code calls `input()`, but nobody types in a check: use the arguments."


class Answer:
    """A student's answer: a step calls it, and compares its last ``output``."""

    def __init__(self, task, given):
        self.task, self.given, self.module = task, given, None
        self.inputs = self.output = self.error = None

    def build(self, *sizes):
        """Build the student's module, with the oracle's weights, for later calls."""
        self.sizes = sizes
        self.inputs = ()
        self.reference = self.task.definition(*sizes).eval()
        self.module = self._called(lambda: self._weighted(self.given(*sizes)))
        return self.module

    def __call__(self, *inputs):
        """Call the answer and return its output; copies of its inputs are kept."""
        if self.task.is_value:
            self.inputs = ()
            self.output = self.given
            return self.output
        self.inputs = copied(inputs)
        self.output = None
        self.output = self._called(lambda: (self.module or self.given)(*inputs))
        if self.output is None:
            raise Wrong("Your code returned None. Is there a `return` at the end?")
        if not alike(inputs, self.inputs, 0):
            raise Wrong(CHANGED)
        parts = self.task.axes
        returned = self.output if isinstance(self.output, (tuple, list)) else ()
        if isinstance(parts, dict) and len(returned) != len(parts):
            names, got = ", ".join(parts), describe(self.output)
            raise Wrong(f"Expected `return {names}`, got {got}.")
        return self.output

    def expected(self):
        """Return what the oracle gives for the inputs of the last call."""
        try:
            return self._output_of(self.task.definition)
        except (Exception, TimeUp) as error:
            said = f"the oracle raises {error_text(error)}"
            raise self.task.fault(f"{said}. Mend it.") from error

    def same(self):
        """Return a sentence on how the last output differs from the oracle's, or ""."""
        task = self.task
        got = self.output
        right = self.expected()
        if not isinstance(task.axes, dict):
            axes = task.axes.split()
            reveal = not task.is_value
            return difference(got, right, task.tolerance, axes, reveal)
        for (name, axes), *pair in zip(task.axes.items(), got, right, strict=True):
            found = difference(*pair, task.tolerance, axes.split())
            if found:
                return f"{name}: {found}"
        return ""

    def gradients(self, *tensors):
        """Return the gradients of the last output's sum: all must be finite."""
        try:
            found = torch.autograd.grad(self.output.sum(), tensors, retain_graph=True)
        except RuntimeError as error:
            said = OVERWRITTEN if "inplace" in str(error) else NO_GRADIENT
            raise Wrong(said) from None
        if not all(gradient.isfinite().all() for gradient in found):
            raise Wrong(BAD_GRADIENT)
        return found

    def known_mistake(self):
        """Return the sentence of a mistake that does the same as the answer, or ""."""
        if self.inputs is None or self._does(self.task.definition):
            return ""
        mistakes = [known for known in self.task.known if known.sentence]
        right = self.expected() if isinstance(self.given, dict) else None
        if not isinstance(right, dict) or right.keys() != self.given.keys():
            same = (one.sentence for one in mistakes if self._does(one.answer))
            return next(same, "")
        told = []
        near = self.task.tolerance  # a sentence for each wrong entry
        for key, got in self.given.items():
            if not alike(got, right[key], near):
                same = [one for one in mistakes if alike(got, one.answer[key], near)]
                told += [one.sentence for one in same[:1]]
        return "\n".join(dict.fromkeys(told))

    def _does(self, other):
        """Whether another answer gives the last output, or raises the last error."""
        try:
            output = self._output_of(other)
        except (Exception, TimeUp) as error:
            return self.error == error_text(error)
        return self.error is None and alike(self.output, output, self.task.tolerance)

    def _output_of(self, other):
        """Return what another answer gives for the last inputs."""
        is_oracle = other is self.task.definition
        if self.task.is_value:
            return other() if is_oracle else other
        if self.task.is_class:
            other = self.reference if is_oracle else self._weighted(other(*self.sizes))
        with time_limit(self.task.seconds):
            return other(*copied(self.inputs))

    def _weighted(self, module):
        """Return a module, in eval mode, with the reference's weights."""
        if not isinstance(module, nn.Module):
            raise Wrong(f"Expected a subclass of nn.Module, got {describe(module)}.")
        yours, right = module.state_dict(), self.reference.state_dict()
        wrong = []
        for name in right | yours:
            got, wanted = describe(yours.get(name)), describe(right.get(name))
            if got != wanted:
                wrong.append(f"`{name}` is {got}, expected {wanted}")
        if wrong:
            raise Wrong(f"Compare your module's parameters: {'; '.join(wrong[:4])}.")
        module.load_state_dict(right)
        return module.eval()

    def _called(self, call):
        """Return what a call returns; what it raises becomes Wrong, but for Ctrl-C."""
        self.error = None
        try:
            with time_limit(self.task.seconds):
                return call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.error = error_text(error)
            too_long = TOO_LONG.format(self.task.seconds)
            known = {TimeUp: too_long, SystemExit: ENDS_PYTHON, Wrong: error}
            said = known.get(type(error), f"Your code raised {self.error}")
            said = f"{said}{self._line_of(error)}"
            if type(error) not in known and self.inputs:
                called = self.reference.forward if self.module else self.task.solution
                names = inspect.signature(called).parameters
                given = zip(names, map(describe, self.inputs), strict=False)
                said += f"\nIt was called with {', '.join(map(' = '.join, given))}."
        raise Wrong(said)

    def _line_of(self, error):
        """Return the student's own line under an error, as text, or ""."""
        files = {function.__code__.co_filename for function in functions_of(self.given)}
        frames = traceback.extract_tb(error.__traceback__)
        mine = [one for one in frames if one.filename in files and one.line]
        lines = [f"\n  line {one.lineno} of the cell: `{one.line}`" for one in mine]
        return lines[-1] if lines else ""


def copied(value):
    """Return a copy in which every tensor, however deep, is a new one."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, set) else value


def error_text(error):
    """Return the name and the text of an error, cut where it is very long."""
    try:
        return f"{type(error).__name__}: {error}"[:400]
    except Exception:
        return f"{type(error).__name__} (it cannot be printed)"


class TimeUp(BaseException):
    """Stops a call that takes too long; no `except Exception` catches it."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeUp in the body after so many seconds, where a signal can do it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        yield
        return

    # A bare `except:` swallows the first, and then one of very many.
    pauses = itertools.chain([0.2], itertools.repeat(5e-5))

    def ring(_signal, frame):
        if frame.f_code.co_filename in (__file__, contextlib.__file__):
            return  # the call has not begun, or has just ended
        files = [one.f_code.co_filename for one, _ in traceback.walk_stack(frame)]
        if any(file.startswith("<frozen importlib") for file in files):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return  # a first import is not the student's time
        pause = next(pauses)
        signal.setitimer(signal.ITIMER_REAL, pause, pause)
        raise TimeUp

    handler = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


class Printed(io.StringIO):
    """A text file that keeps the beginning, 500 characters, and forgets the rest."""

    def write(self, text):
        """Keep the text while there is room."""
        super().write(text[: max(0, 500 - self.tell())])
        return len(text)
