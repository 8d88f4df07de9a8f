"""Figures that a reader can move, on a page without a kernel and without a network.

Tensors and labels go in, a figure comes out. Only the text that is written in the page
needs a model, any small one of the library.
"""

from .architecture import show_architecture
from .attention import show_attention
from .generation import show_generation
from .induction import show_induction
from .kernel_regression import show_kernel_regression
from .learning import show_learning
from .model_heads import show_model_heads
from .objects import show_objects
from .patches import show_patch_attention
from .positions import show_positions
from .sampling import show_sampling
from .softmax import show_softmax
from .windows import show_windows
from .writing import show_writing

__all__ = [
    "show_architecture",
    "show_attention",
    "show_generation",
    "show_induction",
    "show_kernel_regression",
    "show_learning",
    "show_model_heads",
    "show_objects",
    "show_patch_attention",
    "show_positions",
    "show_sampling",
    "show_softmax",
    "show_windows",
    "show_writing",
]
