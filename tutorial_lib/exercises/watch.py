"""Watch what torch computes inside a block: which functions, and how large results.

Nothing here knows what an exercise is.
"""

import torch
from torch.overrides import TorchFunctionMode


class Watch(TorchFunctionMode):
    """Note the torch functions called, and how large their results are.

    ``sizes`` maps the name of each function to the entries of its largest result, and
    ``largest`` is the most of all.
    """

    def __init__(self):
        super().__init__()
        self.sizes = {}

    @property
    def largest(self):
        """How many entries the largest result has."""
        return max(self.sizes.values(), default=0)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        size = result.numel() if torch.is_tensor(result) else 0
        self.sizes[name] = max(size, self.sizes.get(name, 0))
        return result
