"""Numbers of things: what may be one, and a sentence for what may not."""

import inspect
from functools import wraps
from numbers import Integral

import torch

# Of models and of attention layers.
SIZES = ("vocab_size", "d_model", "num_heads", "num_kv_heads", "num_layers", "d_ff")
SIZES += ("max_tokens", "num_classes", "image_size", "patch_size", "window_size")


def number_in(value):
    """Return the number in a tensor without axes; anything else stays as it is."""
    is_number = isinstance(value, torch.Tensor) and not value.ndim
    return value.item() if is_number else value


def check_counts(*, least=1, **counts):
    """Raise ValueError for a number of things, given by name, that cannot be one.

    It must be a whole number of at least ``least``, 0 or 1; None asks for nothing.
    """
    kind = "a positive whole number" if least else "a whole number, 0 or more"
    for name, given in counts.items():
        count = number_in(given)
        is_whole = isinstance(count, Integral) and not isinstance(count, bool)
        if count is not None and not (is_whole and count >= least):
            raise ValueError(f"{name} must be {kind}, got {count!r}")


def refuse_odd_sizes(*kinds):
    """Let classes of models raise ValueError for a size that is no number of things.

    They get numbers of Python, not those of numpy and torch. So their own text, which
    pages show, has nothing of it.
    """
    for kind in kinds:
        kind.__init__ = _checking(kind.__init__)


def _checking(build):
    parameters = inspect.signature(build)

    @wraps(build)
    def check_and_build(*args, **kwargs):
        given = parameters.bind(*args, **kwargs)
        sizes = {
            name: given.arguments[name] for name in SIZES if name in given.arguments
        }
        check_counts(**sizes)
        given.arguments.update({name: int(size) for name, size in sizes.items()})
        build(*given.args, **given.kwargs)

    return check_and_build
