"""Call a student's code: whatever happens becomes a value or a diagnosis.

Knows nothing of oracles and steps.
"""

import contextlib
import inspect
import numbers

import torch
from torch import nn

from . import guard
from .compare import describe
from .exercise import Wrong
from .source import failing_line

LONGEST_MESSAGE = 400


def run(function, args, kwargs, *, answer, seconds=None):
    """Return `function(*args, **kwargs)`, or raise Wrong that says why it has no value.

    answer: what the student wrote (`function` may be a module built from it); its own
    lines are pointed at. seconds: how long the call may take, or None.
    Nothing but a KeyboardInterrupt passes through.
    """
    _expect_signature(function, args, kwargs)
    seconds = guard.SECONDS if seconds is None else seconds
    try:
        with guard.time_limit(seconds):
            return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except guard.TimeUp as error:
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
    missing, foreign = needed.items() - yours.items(), yours.items() - needed.items()
    if missing or foreign:
        lacks = f"Your module lacks {_listed(missing)}. " if missing else ""
        extra = f"It should not have {_listed(foreign)}." if foreign else ""
        raise Wrong("parameters", f"Compare the parameters. {lacks}{extra}".strip())
    module.load_state_dict(reference.state_dict())
    return module.eval()


def _shapes(module):
    return {name: tuple(weight.shape) for name, weight in module.state_dict().items()}


def _listed(shapes):
    return ", ".join(f"`{name}` {shape}" for name, shape in sorted(shapes))
