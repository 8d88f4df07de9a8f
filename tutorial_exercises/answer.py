"""A student's answer, called with care: whatever it does becomes a value or a sentence.

It cannot run for ever, flood the page, or change its inputs unseen.
"""

import contextlib
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
    "`torch.tensor(…)` or `torch.no_grad()` cuts the graph, so nothing before this "
    "step could learn."
)
BAD_GRADIENT = (
    "A gradient is infinite or NaN, so training would break here. Is something divided "
    "by 0, and mended afterwards? Mend the divisor."
)
OVERWRITTEN = (
    "You overwrite numbers in place (`x[i] = …`, `x += …`) that the gradients still "
    "need. Make a new tensor: `torch.where`, `masked_fill`, a product."
)


class Answer:
    """What steps are given: called like the answer itself, and compared by `same`.

    After a call, ``output`` is what the answer returned.
    """

    def __init__(self, task, given):
        self.task, self.given, self.module = task, given, None
        self.inputs = self.output = self.error = None

    def build(self, *sizes):
        """Build the student's module, with the oracle's weights; return it.

        From then on a call calls the module, which is in eval mode.
        """
        self.sizes, self.inputs = sizes, ()
        self.reference = self.task.definition(*sizes).eval()
        self.module = self._called(lambda: self._weighted(self.given(*sizes)))
        return self.module

    def __call__(self, *inputs):
        """Call the answer and return its output; copies of its inputs are kept."""
        if self.task.is_value:
            self.inputs, self.output = (), self.given
            return self.output
        self.inputs, self.output = copied(inputs), None
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
        return self._output_of(self.task.definition)

    def same(self):
        """Return a sentence on how the last output differs from the oracle's, or ""."""
        task, expected = self.task, self.expected()
        if not isinstance(task.axes, dict):
            axes = task.axes.split()
            return difference(
                self.output, expected, task.tolerance, axes, not task.is_value
            )
        parts = zip(task.axes.items(), self.output, expected, strict=True)
        for (name, axes), got, right in parts:
            found = difference(got, right, task.tolerance, axes.split())
            if found:
                return f"{name}: {found}"
        return ""

    def gradients(self, *tensors):
        """Return the gradients of the last output's sum.

        Raises Wrong where one is missing or not finite.
        """
        try:
            found = torch.autograd.grad(
                self.output.sum(), tensors, retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            is_overwritten = "inplace" in str(error)
            raise Wrong(OVERWRITTEN if is_overwritten else NO_GRADIENT) from None
        if any(gradient is None for gradient in found):
            raise Wrong(NO_GRADIENT)
        if not all(gradient.isfinite().all() for gradient in found):
            raise Wrong(BAD_GRADIENT)
        return found

    def known_mistake(self):
        """Return the sentence of a mistake that does the same as the answer, or ""."""
        if self.inputs is None or self._does(self.task.definition):
            return ""
        try:
            mistakes = [known for known in self.task.known if known.sentence]
        except Exception:  # the author's fault is no business of the student's
            return ""
        if isinstance(self.given, dict) and isinstance(self.expected(), dict):
            return self._known_entries(mistakes)
        return next((one.sentence for one in mistakes if self._does(one.answer)), "")

    def _known_entries(self, mistakes):
        """Return what to say of each wrong entry of a dictionary."""
        right, said = self.expected(), []
        for key in right:
            got = self.given.get(key)
            if not alike(got, right[key], self.task.tolerance):
                same = [
                    known.sentence
                    for known in mistakes
                    if alike(got, known.answer[key], self.task.tolerance)
                ]
                said.append(same[0] if same else f"Entry {key!r} is not right.")
        return "\n".join(dict.fromkeys(said))

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
        if self.module is not None or self.task.is_class:
            build = self._weighted
            other = self.reference if is_oracle else build(other(*self.sizes))
        with time_limit(self.task.seconds):
            return other(*copied(self.inputs))

    def _weighted(self, module):
        """Return a module, in eval mode, with the reference's weights."""
        if not isinstance(module, nn.Module):
            raise Wrong(f"Expected a subclass of nn.Module, got {describe(module)}.")
        yours, right = module.state_dict(), self.reference.state_dict()
        shapes = [
            {name: tuple(weight.shape) for name, weight in weights.items()}
            for weights in (yours, right)
        ]
        wrong = [
            f"`{name}` is {shapes[0].get(name, 'missing')}, expected "
            f"{shapes[1].get(name, 'none')}"
            for name in {**right, **yours}
            if shapes[0].get(name) != shapes[1].get(name)
        ]
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
        except TimeUp as error:
            said = f"Your code was still running after {self.task.seconds:g} s: does a "
            said += f"loop never end, or does it wait?{self._line_of(error)}"
        except Wrong as error:
            self.error, said = error_text(error), str(error)
        except BaseException as error:
            self.error = error_text(error)
            said = f"Your code raised {self.error}{self._line_of(error)}"
            if self.inputs:
                given = ", ".join(map(describe, self.inputs))
                said += f"\nIt was called with {given}."
        raise Wrong(said)

    def _line_of(self, error):
        """Return the student's own line under an error, as text, or ""."""
        files = {function.__code__.co_filename for function in functions_of(self.given)}
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if frame.filename in files]
        if not mine:
            return ""
        return f"\n  line {mine[-1].lineno} of the cell: `{mine[-1].line}`"


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
        importing = frame
        while importing:  # a first import is not the student's time
            if importing.f_code.co_filename.startswith("<frozen importlib"):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                return
            importing = importing.f_back
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
