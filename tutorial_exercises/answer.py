"""A student's answer, called with care: whatever it does becomes a value or a sentence.

It cannot hang, flood the page, or change its inputs unseen.
"""

import contextlib
import io
import signal
import threading
import traceback

import torch
from torch import nn

from tutorial_lib.definitions import functions_of

from .compare import alike, describe, difference
from .exercise import Wrong

PRINTED = 500  # characters of what an answer prints that a card shows
NO_GRADIENT = (
    "No gradient reaches one of the inputs: a `.detach()`, `.item()`, `.tolist()`, "
    "`torch.tensor(…)` or `torch.no_grad()` cuts the graph, so nothing before this step "
    "could learn."
)
BAD_GRADIENT = (
    "A gradient is infinite or NaN, so training would break here. Is something divided "
    "by 0, and mended afterwards? Mend the divisor."
)
OVERWRITTEN = (
    "You overwrite numbers in place (`x[i] = …`, `x += …`) that the gradients still "
    "need. Make a new tensor: `torch.where`, `masked_fill`, a product."
)
CHANGED = (
    "Your code changed one of its inputs in place (`masked_fill_`, `x += …`, "
    "`x[m] = …`, `shuffle(x)`). Work on a copy: the caller needs the original."
)


class Answer:
    """What steps are given: called like the answer itself, and compared by `same`.

    After a call, ``output`` is what the answer returned.
    """

    def __init__(self, task, given):
        self.task, self.given, self.sizes = task, given, None
        self.inputs = self.output = self.error = None

    def build(self, *sizes):
        """Build the student's module, with the oracle's weights; calls then call it."""
        self.sizes, self.inputs, self.error = sizes, (), None
        self.reference = self.task.definition(*sizes).eval()
        try:
            self.module = self._built(self._run(self.given, sizes))
        except Wrong as wrong:
            self.error = error_text(wrong)
            raise
        return self.module

    def __call__(self, *inputs):
        """Call the answer with copies kept of its inputs; return its output."""
        self.inputs, self.output, self.error = copied(inputs), None, None
        if self.task.is_value:
            self.output = self.given
            return self.output
        function = self.given if self.sizes is None else self.module
        self.output = self._run(function, inputs)
        if self.output is None:
            raise Wrong("Your code returned None. Is there a `return` at the end?")
        if not alike(inputs, self.inputs, 0):
            raise Wrong(CHANGED)
        parts = self.task.axes
        is_tuple = isinstance(self.output, (tuple, list))
        if isinstance(parts, dict) and not (
            is_tuple and len(self.output) == len(parts)
        ):
            got = describe(self.output)
            raise Wrong(f"Expected `return {', '.join(parts)}`, got {got}.")
        return self.output

    def expected(self):
        """Return what the oracle gives for the inputs of the last call."""
        return self._of(self.task.definition)

    def same(self):
        """Return a sentence on how the last output differs from the oracle's, or ""."""
        task, expected = self.task, self.expected()
        if isinstance(task.axes, dict):
            for (name, axes), *pair in zip(task.axes.items(), self.output, expected):
                found = difference(*pair, task.tolerance, axes.split())
                if found:
                    return f"{name}: {found}"
            return ""
        axes, reveal = task.axes.split(), not task.is_value
        return difference(self.output, expected, task.tolerance, axes, reveal)

    def gradients(self, *tensors):
        """Return the gradients of the last output's sum; each must be there and finite."""
        try:
            total = self.output.sum()
            found = torch.autograd.grad(total, tensors, None, True, allow_unused=True)
        except RuntimeError as error:
            raise Wrong(
                OVERWRITTEN if "inplace" in str(error) else NO_GRADIENT
            ) from None
        if any(gradient is None for gradient in found):
            raise Wrong(NO_GRADIENT)
        if not all(gradient.isfinite().all() for gradient in found):
            raise Wrong(BAD_GRADIENT)
        return found

    def known_mistake(self):
        """Return the sentence of the mistake that does the same as the answer, or ""."""
        if self.inputs is None or self._does(self.task.definition):
            return ""
        mistakes = [known for known in self.task.known if known.sentence]
        if self.task.is_value and isinstance(self.given, dict):
            return self._known_entries(mistakes)
        return next((one.sentence for one in mistakes if self._does(one.answer)), "")

    def _known_entries(self, mistakes):
        """Return what is to say of each wrong entry of a dictionary, in one text."""
        said, right = {}, self.expected()
        for key in right:
            if alike(self.given.get(key), right[key], self.task.tolerance):
                continue
            found = f"Entry {key!r} is not right."
            for one in reversed(mistakes):
                if alike(self.given.get(key), one.answer[key], self.task.tolerance):
                    found = one.sentence
            said[found] = None
        return "\n".join(said)

    def _does(self, other):
        """Whether another answer gives this output, or raises this error."""
        try:
            output = self._of(other)
        except (Exception, TimeUp) as error:
            return self.error is not None and self.error == error_text(error)
        return self.error is None and alike(self.output, output, self.task.tolerance)

    def _of(self, other):
        """Return what another answer gives for the last inputs, a value itself."""
        if self.task.is_value:
            return other() if other is self.task.definition else other
        if self.sizes is not None:
            is_oracle = other is self.task.definition
            other = self.reference if is_oracle else self._built(other(*self.sizes))
        with time_limit(self.task.seconds):
            return other(*copied(self.inputs))

    def _built(self, module):
        """Return a module, in eval mode, with the reference's weights."""
        if not isinstance(module, nn.Module):
            raise Wrong(f"Expected a subclass of nn.Module, got {describe(module)}.")
        right = self.reference.state_dict()
        yours, needed = (
            {name: tuple(weight.shape) for name, weight in weights.items()}
            for weights in (module.state_dict(), right)
        )
        wrong = [
            f"`{name}` is {yours.get(name, 'missing')}, expected {needed.get(name, 'none')}"
            for name in {**needed, **yours}
            if yours.get(name) != needed.get(name)
        ]
        if wrong:
            raise Wrong(f"Compare your module's parameters: {'; '.join(wrong[:4])}.")
        module.load_state_dict(right)
        return module.eval()

    def _run(self, function, inputs):
        """Call a function; whatever it raises becomes a sentence, but for Ctrl-C."""
        try:
            with time_limit(self.task.seconds):
                return function(*inputs)
        except KeyboardInterrupt:
            raise
        except TimeUp as error:
            said = f"Your code was still running after {self.task.seconds:g} s: does a "
            said += f"loop never end, or does it wait?{self._line(error)}"
        except BaseException as error:
            self.error = error_text(error)
            given = ", ".join(map(describe, inputs)) or "nothing"
            said = f"Your code raised {self.error}{self._line(error)}"
            said += f"\nIt was called with {given}."
        raise Wrong(said)

    def _line(self, error):
        """Return the student's own line under an error, as text, or ""."""
        files = {function.__code__.co_filename for function in functions_of(self.given)}
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if frame.filename in files]
        return (
            f"\n  line {mine[-1].lineno} of the cell: `{mine[-1].line}`" if mine else ""
        )


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
    return f"{type(error).__name__}: {error}"[:400]


class TimeUp(BaseException):
    """Stops a call that takes too long; no `except Exception` catches it."""


class Printed(io.StringIO):
    """A text file that keeps the beginning and forgets the rest."""

    def write(self, text):
        """Keep the text while there is room."""
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeUp in the body after so many seconds, where a signal can do it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        yield
        return

    def ring(_signal, frame):
        while frame:  # a first import is not the student's time
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
            frame = frame.f_back
        raise TimeUp

    handler = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
