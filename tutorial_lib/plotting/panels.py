"""Panels: the grid that every figure is drawn in, and the style they share.

A figure is at most ``WIDTH`` inches wide, so that its letters can be read on a phone.
"""

from contextlib import contextmanager

import torch

from tutorial_lib.plotting.colors import CURVES, LIGHT

WIDTH = 4.6  # inches
LETTER = 0.085  # inches that a letter takes, at 10 points
BLUE = LIGHT["query"]
INK = LIGHT["ink"]
GREY = LIGHT["quiet"]
CYCLE = (BLUE, LIGHT["key"], LIGHT["value"], *(light for light, _ in CURVES))
INKED = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
STYLE = {
    **dict.fromkeys(INKED, INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), LIGHT["line"]),
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
def open_panels(count, columns, *, size, layout="constrained", **share):
    """Open ``count`` panels in rows of ``columns``, on ``size`` inches for all.

    ``share`` goes to `subplots`. Yields the figure and its axes as a list, row by row.
    """
    import matplotlib as mpl

    from tutorial_lib.plotting.figure import Figure

    with mpl.rc_context(STYLE):
        fig = Figure(figsize=size, layout=layout)
        grid = fig.subplots(-(-count // columns), columns, squeeze=False, **share)
        for ax in grid.flat[count:]:
            ax.remove()
        yield fig, list(grid.flat[:count])
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)):
        if axis.get_scale() != "linear":
            axis.reset_ticks()  # made again as mathematics, for powers of ten are


def name_axes(axes, columns, *, xlabel, ylabel):
    """Put numbers at the outer panels, and an axis' name at the middle one of three.

    A list as ``xlabel`` has a name for each panel.
    """
    rows = -(-len(axes) // columns)
    for i, ax in enumerate(axes):
        row, column = divmod(i, columns)
        lowest = i + columns >= len(axes)
        first = column == 0
        ax.tick_params(labelbottom=lowest, labelleft=first)
        if not isinstance(xlabel, str):
            ax.set_xlabel(xlabel[i])
        elif lowest and (columns % 2 == 0 or column == columns // 2):
            ax.set_xlabel(xlabel)
        if first and (rows % 2 == 0 or row == rows // 2):
            ax.set_ylabel(ylabel)


def add_legend(fig, axes, *, least):
    """Name above all panels what has a label in any, if there are ``least`` names."""
    named = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if len(named) < least:
        return
    inches = [LETTER * (len(label) + 5) for label in named]
    columns = len(named) if sum(inches) < WIDTH else int(WIDTH / max(inches)) or 1
    rows = -(-len(named) // columns)
    style = {"handlelength": 1.4, "columnspacing": 1.2, "borderaxespad": 0.2}
    style["ncols"] = -(-len(named) // rows)  # rows of the same length
    fig.legend(named.values(), named, loc="outside upper left", **style)
    fig.set_figheight(fig.get_figheight() + 0.2 * (rows - 1))


def array(values):
    """Give matplotlib a plain float array, from a tensor on any device."""
    values = torch.as_tensor(values)
    return values.detach().cpu().float().numpy()
