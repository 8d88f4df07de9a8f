"""Plotting: the static figures of the book, one call each.

The functions for numbers take tensors and labels and return a matplotlib figure that a
notebook shows once. Rows are queries, columns are keys; weights share one color scale
from 0 to 1, scores one that is centered at 0. A figure is 4.6 inches wide at most: it
can be read on a phone. ``show_picture`` shows a drawing of an idea.
"""

from .charts import show_bars, show_curves
from .heatmaps import show_heatmaps
from .images import show_images
from .pictures import show_picture
