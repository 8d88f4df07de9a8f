"""Heatmaps: attention weights, or scores, as grids of colored cells.

Cells that a reader shall compare with may be framed. Nothing here knows what framed
cells mean: their label says it.
"""

import torch

from tutorial_lib.plotting.panels import array, open_panels


def show_heatmaps(
    weights,
    *,
    query_labels=None,
    key_labels=None,
    titles=None,
    mask=None,
    outline=None,
    outline_label="gold link",
    scores=False,
    xlabel="key",
    ylabel="query",
):
    """Show attention weights as a grid of heatmaps that share one color scale.

    ``weights`` is (row, column, query, key), (column, query, key) or (query, key), with
    values from 0 to 1; with ``scores`` any values, on a scale centered at 0. ``titles``
    names the panels, row by row. Cells where the boolean ``mask``, which broadcasts to
    the weights, is False are hatched. Cells in ``outline``, a set of (query, key) for
    every panel or a boolean that broadcasts to the weights, are framed, and named by
    ``outline_label``. Small maps show their numbers. Raises ValueError for weights
    outside 0 to 1, and labels, mask or outline that do not match the axes.
    """
    weights = _grid(weights)
    _check_heatmaps(weights, query_labels, key_labels, scores)
    rows, columns = weights.shape[:2]
    panels = weights.flatten(0, 1)
    limit = (weights.abs().max().item() or 1.0) if scores else 1.0
    hidden = torch.zeros_like(panels).bool() if mask is None else _hidden(mask, weights)
    framed = as_cells(set() if outline is None else outline, weights.shape)
    cell = _cell_size(weights.shape)
    size = _panel_size(cell, weights.shape, query_labels, key_labels, titles)
    with open_panels(rows, columns, size=size) as (fig, axes):
        for i, ax in enumerate(axes.flat):
            cells = _without(panels[i], hidden[i], scores)
            image = _draw_cells(ax, cells, limit, scores)
            _write_numbers(ax, cells, image, hidden[i])
            _hatch(ax, hidden[i])
            draw_outline(ax, framed.flatten(0, 1)[i], size=cell)
            _label_cells(ax, query_labels, key_labels)
            ax.set(title=titles[i] if titles else "", xlabel=xlabel, ylabel=ylabel)
            ax.label_outer(remove_inner_ticks=True)
        fig.colorbar(image, ax=axes, label="score" if scores else "weight", pad=0.02)
        if framed.any():
            add_legend(fig, outline_label)
    return fig


def _grid(weights):
    weights = torch.as_tensor(weights).detach().cpu().float()
    if not 2 <= weights.ndim <= 4:
        raise ValueError(
            "weights must be (row, column, query, key), (column, query, key) or "
            f"(query, key), got {tuple(weights.shape)}"
        )
    return weights.reshape((1,) * (4 - weights.ndim) + weights.shape)


def _check_heatmaps(weights, query_labels, key_labels, scores):
    if not scores and not (weights.min() >= 0 and weights.max() <= 1 + 1e-4):
        raise ValueError(
            f"weights must lie in 0 to 1, got {weights.min():.3g} to "
            f"{weights.max():.3g}: pass scores=True for scores"
        )
    for name, labels, size in (
        ("query", query_labels, weights.shape[-2]),
        ("key", key_labels, weights.shape[-1]),
    ):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{len(labels)} {name}_labels for {size} {name} positions")


def _cell_size(shape):
    _, columns, queries, keys = shape
    return min(0.55, 4.2 / max(queries, keys), 6.4 / columns / keys)


def _panel_size(cell, shape, query_labels, key_labels, titles):
    _, columns, queries, keys = shape
    longest = max((len(str(label)) for label in query_labels or [""]), default=0)
    width = max(cell * keys + (0.09 * longest + 0.7) / columns, 1.2)
    height = max(cell * queries, 0.8) + (0.75 if key_labels else 0.5)
    return width, height + (0.25 if titles else 0)


def _hidden(mask, weights):
    return (~mask).expand(weights.shape).flatten(0, 1)


def _draw_cells(ax, cells, limit, scores):
    lowest, colors = (-limit, "RdBu_r") if scores else (0, "Blues")
    return ax.imshow(array(cells), cmap=colors, vmin=lowest, vmax=limit, aspect="equal")


def _write_numbers(ax, cells, image, hatched):
    from matplotlib.patheffects import withStroke

    if max(cells.shape) > 8:
        return
    for i, j in cells.isfinite().nonzero().tolist():
        value = cells[i, j].item()
        color = "white" if abs(value) > 0.6 * image.norm.vmax else "black"
        place = {"ha": "center", "va": "center", "fontsize": 8}
        number = ax.text(j, i, f"{value:.2f}", color=color, **place)
        if hatched[i, j]:  # the cell's own color keeps the hatching off the number
            clear = withStroke(linewidth=3, foreground=image.to_rgba(value))
            number.set_path_effects([clear])


def _without(cells, hidden, scores):
    """Blank the hidden cells, except a weight that is not 0: that leak must show."""
    return cells.masked_fill(hidden & (cells.eq(0) | scores), torch.nan)


def _hatch(ax, hidden):
    from matplotlib.patches import Rectangle

    for i, j in hidden.nonzero().tolist():
        style = {"fill": False, "edgecolor": "#999999", "hatch": "////", "lw": 0}
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **style))


def _label_cells(ax, query_labels, key_labels):
    ax.spines[:].set_visible(False)
    ax.locator_params(integer=True, nbins=6)
    if query_labels is not None:
        ax.set_yticks(range(len(query_labels)), query_labels)
    if key_labels is not None:
        longest = max(len(str(label)) for label in key_labels)
        turned = {"rotation": 45, "ha": "right"} if longest > 3 else {}
        ax.set_xticks(range(len(key_labels)), key_labels, **turned)
    ax.tick_params(length=0 if query_labels or key_labels else 2)


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
