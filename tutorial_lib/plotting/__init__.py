"""Plotting: the static figures of the book, one call each.

Every function takes tensors and labels and returns a matplotlib figure that a
notebook shows once. Rows are queries, columns are keys; weights share one color
scale from 0 to 1, scores one that is centered at 0.

Nothing here knows a model or a data set.
"""

from tutorial_lib.plotting.charts import (
    show_bars,
    show_curves,
    show_images,
    show_lookup,
    show_losses,
    show_unrolled,
)
from tutorial_lib.plotting.heatmaps import show_heatmaps

__all__ = [
    "show_bars",
    "show_curves",
    "show_heatmaps",
    "show_images",
    "show_lookup",
    "show_losses",
    "show_unrolled",
]
