"""Outlines: a frame around the cells of a heatmap that a reader shall compare with.

Nothing here knows what the outlined cells mean: their label says it.
"""

import torch


def as_cells(outline, shape):
    """Return a boolean tensor of ``shape`` (…, query, key), True in outlined cells.

    ``outline`` is a set of pairs (query, key), or a boolean tensor or array that
    broadcasts to ``shape``. Raises ValueError for a pair outside the map, values that
    are not boolean, and a shape that does not fit.
    """
    if isinstance(outline, (set, frozenset)):
        return _from_pairs(outline, shape)
    cells = torch.as_tensor(outline).detach().cpu()
    if cells.dtype != torch.bool:
        raise ValueError(
            "outline must be boolean, or a set of pairs (query, key), got "
            f"{str(cells.dtype).removeprefix('torch.')}"
        )
    try:
        return cells.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"outline {tuple(cells.shape)} must broadcast to {tuple(shape)}, of which "
            "the last two are query and key"
        ) from None


def draw_outline(ax, cells, *, size):
    """Frame the cells (query, key), ``size`` inches wide: black in white, on any."""
    for query, key in cells.nonzero().tolist():
        ax.add_patch(_frame(key, query, size))


def add_legend(fig, label):
    """Say below the figure what its frames mean."""
    square = {"handlelength": 1.2, "handleheight": 1.2, "frameon": False}
    fig.legend([_frame(0, 0, 1)], [label], loc="outside lower center", **square)


def _from_pairs(pairs, shape):
    queries, keys = shape[-2:]
    cells = torch.zeros(queries, keys, dtype=torch.bool)
    for query, key in sorted(pairs):
        if not (0 <= query < queries and 0 <= key < keys):
            raise ValueError(
                f"outline ({query}, {key}) lies outside a map of {queries} queries × "
                f"{keys} keys: its pairs are (query, key), counted from 0"
            )
        cells[query, key] = True
    return cells.expand(shape)


def _frame(x, y, size):
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    points = 72 * size
    line = min(1.2, points / 10)
    halo = withStroke(linewidth=2.5 * line, foreground="white")
    inset = 1.25 * line / points  # the halo ends where the cell does
    side = 1 - 2 * inset
    corner = x - side / 2, y - side / 2
    style = {"fill": False, "edgecolor": "black", "linewidth": line, "snap": False}
    return Rectangle(corner, side, side, path_effects=[halo], **style)
