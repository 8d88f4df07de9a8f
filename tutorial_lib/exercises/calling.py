"""Call a student's code: whatever happens becomes a value or a diagnosis.

Knows nothing of oracles and steps.
"""

import contextlib
import inspect

import torch
from torch import nn

from .compare import describe
from .exercise import Wrong
from .guard import SECONDS, TimeUp, quiet, time_limit
from .source import failing_line

LONGEST_MESSAGE = 400


def run(function, args, kwargs, *, answer, seconds, printed):
    """Return `function(*args, **kwargs)`, or raise Wrong that says why it has no value.

    answer: what the student wrote (`function` may be a module built from it); its own
        lines are pointed at. printed: takes what the call prints.
    Only a KeyboardInterrupt passes through.
    """
    _expect_signature(function, args, kwargs)
    seconds = SECONDS if seconds is None else seconds
    try:
        with quiet(printed), time_limit(seconds):
            return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except TimeUp as error:
        message = (
            f"Your code was still running after {seconds:g} s: does a loop never end?"
        )
        raise Wrong("time", message + _line(answer, error)) from None
    except BaseException as error:
        message = f"Your code raised {type(error).__name__}: {_text(error)}"
        called = f"\nIt was called with {_arguments(function, args, kwargs)}."
        raise Wrong("error", message + _line(answer, error) + called) from error


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
            f"The exercise calls it with {_arguments(None, args, kwargs)}, but yours "
            f"takes {signature}: {error}. Keep the first line as it was given.",
        ) from None


def _called(function):
    return function.forward if isinstance(function, nn.Module) else function


def _line(answer, error):
    line = failing_line(answer, error)
    return f"\n  {line}" if line else ""


def _text(error):
    try:
        text = str(error)
    except BaseException:
        return "(an error that cannot be printed)"
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"


def _arguments(function, args, kwargs):
    names = [None] * len(args)
    with contextlib.suppress(TypeError, ValueError):
        names = list(inspect.signature(_called(function)).bind(*args).arguments)
    named = [*zip(names, args, strict=False), *kwargs.items()]
    words = [f"{n} = {describe(v)}" if n else describe(v) for n, v in named]
    return ", ".join(words) or "no arguments"


def copied(value):
    """Return a copy in which every tensor, however deep, is a new one."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return value


def identical(kept, value):
    """Whether a value is still what its copy says: same shapes, bits and entries."""
    if torch.is_tensor(value):
        return _same_bits(kept, value)
    if isinstance(value, dict):
        same_keys = kept.keys() == value.keys()
        return same_keys and all(identical(kept[key], value[key]) for key in kept)
    if type(value) in (list, tuple):
        return len(kept) == len(value) and all(map(identical, kept, value))
    return True


def _same_bits(kept, value):
    if kept.shape != value.shape or kept.dtype != value.dtype:
        return False
    return bool(((kept == value) | ((kept != kept) & (value != value))).all())


def with_weights(module, reference):
    """Copy the reference's parameters into a module and return it, in eval mode.

    Raises Wrong("parameters") that lists what is expected and what is there.
    """
    yours, needed = _shapes(module), _shapes(reference)
    if yours != needed:
        raise Wrong(
            "parameters",
            f"The module should have the parameters {_listed(needed)}; "
            f"yours has {_listed(yours)}.",
        )
    module.load_state_dict(reference.state_dict())
    return module.eval()


def _shapes(module):
    return {name: tuple(weight.shape) for name, weight in module.state_dict().items()}


def _listed(shapes):
    return ", ".join(f"`{name}` {shape}" for name, shape in shapes.items()) or "none"
