"""Plotting: the static figures of the book, one call each.

Every function takes tensors and labels and returns a matplotlib figure that a notebook
shows once, on white paper and on dark. Rows are queries, columns are keys; weights
share one color scale from 0 to 1, scores one that is centered at 0. A figure is 4.6
inches wide at most: it can be read on a phone. The pictures that open the chapters
stand in ``plotting.pictures``.

Nothing here knows a model or a data set.
"""

from .charts import show_bars, show_curves
from .heatmaps import show_heatmaps
from .images import show_images
