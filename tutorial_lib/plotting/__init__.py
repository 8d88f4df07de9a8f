"""Plotting: the static figures of the book, one call each.

Every function takes tensors and labels and returns a matplotlib figure that a notebook
shows once, on white paper and on dark. Rows are queries, columns are keys; weights
share one color scale from 0 to 1, scores one that is centered at 0. A figure is 4.6
inches wide at most: it can be read on a phone.

Nothing here knows a model or a data set.
"""

from tutorial_lib.plotting.blocks import show_block
from tutorial_lib.plotting.charts import (
    show_bars,
    show_curves,
    show_images,
    show_levels,
    show_paths,
)
from tutorial_lib.plotting.clocks import show_turning
from tutorial_lib.plotting.halves import show_halves
from tutorial_lib.plotting.heatmaps import show_heatmaps
from tutorial_lib.plotting.ideas import (
    show_asking,
    show_heads,
    show_kernel,
    show_lookup,
    show_masks,
    show_scaled_dot_product,
    show_self_attention,
    show_unrolled,
    show_writing,
)
from tutorial_lib.plotting.looks import (
    show_looks,
    show_question,
    show_vision_transformer,
)
from tutorial_lib.plotting.translator import show_looking_back

__all__ = [
    "show_asking",
    "show_bars",
    "show_block",
    "show_curves",
    "show_halves",
    "show_heads",
    "show_heatmaps",
    "show_images",
    "show_kernel",
    "show_levels",
    "show_looking_back",
    "show_looks",
    "show_lookup",
    "show_masks",
    "show_paths",
    "show_question",
    "show_scaled_dot_product",
    "show_self_attention",
    "show_turning",
    "show_unrolled",
    "show_vision_transformer",
    "show_writing",
]
