"""Panels: the grid that every figure is drawn in, and the style they share."""

from contextlib import contextmanager

import torch

from tutorial_lib.plotting.colors import LIGHT

BLUE, ORANGE, GREY = LIGHT["accent"], "#c2410c", "#555555"
CYCLE = (BLUE, ORANGE, "#15803d", "#7e22ce", "#0e7490", "#a16207")
STYLE = {
    "figure.dpi": 110,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "text.parse_math": False,  # in labels "$" is a sign like any other
}


@contextmanager
def open_panels(rows, columns, *, size, sharey=False):
    """Open a grid of panels of ``size`` inches each, and close it for pyplot."""
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        fig, axes = plt.subplots(
            rows,
            columns,
            figsize=(size[0] * columns, size[1] * rows),
            sharey=sharey,
            squeeze=False,
            layout="compressed",
        )
        yield fig, axes
    for axis in (axis for ax in axes.flat for axis in (ax.xaxis, ax.yaxis)):
        if axis.get_scale() != "linear":
            axis.reset_ticks()  # made again as mathematics, for powers of ten are
    plt.close(fig)  # so that a notebook shows the figure once, where it is returned


def array(values):
    """Give matplotlib a plain float array, from a tensor on any device."""
    values = torch.as_tensor(values)
    return values.detach().cpu().float().numpy()
