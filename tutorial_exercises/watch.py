"""Watch what an answer does in PyTorch, for demands on how a result is reached."""

import torch
from torch._C._functorch import get_unwrapped, is_batchedtensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary


class Watch(TorchFunctionMode):
    """Note the torch functions called inside `with Watch() as seen:`.

    ``seen.sizes`` holds the number of entries of the largest tensor that each returned,
    by the function's name; ``seen.held`` is the most entries held at one time, where
    views hold nothing of their own.
    """

    def __init__(self):
        super().__init__()
        self.sizes = {}
        self.held = 0
        self.alive = WeakIdKeyDictionary()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function and look at what it returns."""
        result = returned = function(*args, **(kwargs or {}))
        while torch.is_tensor(result) and is_batchedtensor(result):
            result = get_unwrapped(result)  # with the axis that torch.vmap hides
        if torch.is_tensor(result):
            name = getattr(function, "__name__", "")
            size = result.numel()
            self.sizes[name] = max(size, self.sizes.get(name, 0))
            self.alive[returned] = 0 if result._is_view() else size
            self.held = max(self.held, sum(self.alive.values()))
        return returned
