"""Watch what torch computes inside a block: which functions, and how large results.

Nothing here knows what an exercise is.
"""

import torch
from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    """Note the names of the torch functions called, and the size of the largest result.

    ``names`` is a set of strings, ``largest`` a number of entries.
    """

    def __init__(self):
        super().__init__()
        self.names, self.largest = set(), 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        self.names.add(getattr(function, "__name__", ""))
        if torch.is_tensor(result):
            self.largest = max(self.largest, result.numel())
        return result
