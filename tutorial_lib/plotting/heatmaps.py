"""Heatmaps: attention weights, or scores, as grids of colored cells.

Cells that a reader shall compare with may be framed. Nothing here knows what framed
cells mean: their label says it.
"""

import torch

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.layout import lay_out
from tutorial_lib.plotting.panels import array, name_axes, open_panels
from tutorial_lib.plotting.scales import ink_numbers, scale

NUMBERED = 8  # so many rows and columns, at most, have numbers
SMALLEST = 6.5  # points of a number
HATCHED = {"ec": "#8b929b", "fill": False, "hatch": "////", "lw": 0}


def show_heatmaps(
    weights,
    *,
    query_labels=None,
    key_labels=None,
    titles=None,
    mask=None,
    outline=None,
    outline_label="gold link",
    rule=None,
    scores=False,
    label=None,
    xlabel="key",
    ylabel="query",
):
    """Show attention weights as heatmaps that share one color scale.

    ``weights`` is (row, column, query, key), (panel, query, key) or (query, key), with
    values from 0 to 1; with ``scores`` any values, on a scale centered at 0. ``label``
    names the scale, which maps of nothing but 0 and 1 do not need; ``titles`` names the
    panels, row by row. Cells where the boolean ``mask``, which broadcasts to the
    weights, is False are hatched, and cells that are NaN are grey. Cells in
    ``outline``, a set of (query, key) for every panel or a boolean that broadcasts to
    the weights, are framed, and named by ``outline_label``. A line parts what stands
    above the query ``rule`` from the rest. Numbers stand where there
    is room, and an axis without name and labels has none. Raises ValueError for weights
    outside 0 to 1, and labels, mask or outline that do not match the axes.
    """
    weights = torch.as_tensor(weights).detach().cpu().float()
    grid = _grid(weights)
    _check_heatmaps(grid, query_labels, key_labels, scores)
    hidden = _hidden(mask, grid)
    framed = as_cells(set() if outline is None else outline, grid.shape).flatten(0, 1)
    panels = grid.flatten(0, 1).masked_fill(hidden & scores, 0)
    has_bar = scores or not (panels.eq(0) | panels.eq(1)).all()
    form = {"is_given": weights.ndim == 4, "has_bar": has_bar}
    layout = lay_out(grid.shape, query_labels, key_labels, **form)
    options = {"size": layout.size(titles), "layout": "compressed"}
    with open_panels(len(panels), layout.columns, **options) as (fig, axes):
        for i, ax in enumerate(axes):
            image = _draw_cells(ax, panels[i], _limits(panels, scores))
            _hatch(ax, hidden[i])
            _part(ax, rule)
            draw_outline(ax, framed[i], size=layout.cell)
            layout.letter(ax, titles[i] if titles else "", xlabel, ylabel)
        _write_numbers(axes, panels, hidden, layout.cell)
        name_axes(axes, layout.columns, xlabel=xlabel, ylabel=ylabel)
        if has_bar:
            _add_bar(fig, axes, image, label, layout.columns > 1)
        if framed.any():
            add_legend(fig, outline_label)
    return fig


def _grid(weights):
    if not 2 <= weights.ndim <= 4:
        raise ValueError(
            "weights must be (row, column, query, key), (panel, query, key) or "
            f"(query, key), got {tuple(weights.shape)}"
        )
    return weights.reshape((1,) * (4 - weights.ndim) + weights.shape)


def _check_heatmaps(weights, query_labels, key_labels, scores):
    if not scores and (weights.lt(0) | weights.gt(1 + 1e-4)).any():
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


def _hidden(mask, grid):
    hidden = torch.tensor(False) if mask is None else ~mask
    return hidden.expand(grid.shape).flatten(0, 1)


def _limits(panels, scores):
    """Return the ends of the scale: 0 to 1, or as far below 0 as above."""
    if not scores:
        return 0.0, 1.0
    seen = panels[panels.isfinite()].abs()
    most = seen.max().item() if len(seen) else 0.0
    return (-most, most) if most else (-1.0, 1.0)


def _draw_cells(ax, cells, limits):
    low, high = limits
    colors = {"cmap": scale("scores" if low else "weights"), "vmin": low, "vmax": high}
    return ax.imshow(array(cells), **colors, aspect="equal")


def _hatch(ax, hidden):
    from matplotlib.patches import Rectangle

    for i, j in hidden.nonzero().tolist():
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **HATCHED))


def _part(ax, rule):
    if rule is not None:
        ax.axhline(rule - 0.5, color=LIGHT["ink"], lw=2)


def _write_numbers(axes, panels, hidden, cell):
    """Write numbers where they fit; a hidden weight that is not 0 is seen, as a leak.

    Boxes keep the hatching off them.
    """
    digits = 0 if panels.eq(panels.round()).all() else 2
    shown = ~(hidden & panels.eq(0))
    texts = [_short(number, digits) for number in panels[shown].tolist()]
    size = min(8, 72 * cell / (0.62 * (max(map(len, texts), default=0) + 0.3)))
    if max(panels.shape[1:]) > NUMBERED or size < SMALLEST:
        return
    for (panel, query, key), text in zip(shown.nonzero().tolist(), texts, strict=True):
        style = {"ha": "center", "va": "center", "fontsize": size}
        if hidden[panel, query, key]:
            style["bbox"] = {"lw": 0, "pad": 1}
        axes[panel].text(key, query, text, **style)
    for ax in axes:
        ink_numbers(ax)


def _short(number, digits):
    text = f"{number:.{digits}f}".replace("-", "−")
    return text.replace("inf", "∞").replace("nan", "NaN")


def _add_bar(fig, axes, image, label, is_below):
    from matplotlib.ticker import MaxNLocator

    style = {"pad": 0.02, "aspect": 24, "anchor": (0.0, 1.0)}
    style["shrink"] = 1.0 if is_below else min(1.0, 3.4 / fig.get_figheight())
    style["location"] = "bottom" if is_below else "right"
    label = label or ("score" if image.norm.vmin else "weight")
    bar = fig.colorbar(image, ax=axes, label=label, **style)
    bar.locator = MaxNLocator(4, steps=[1, 2, 5, 10])
    bar.outline.set_visible(False)


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
        for frame in _frame(key, query, size):
            ax.add_patch(frame)


def add_legend(fig, label):
    """Say below the figure what its frames mean."""
    square = {"handlelength": 1.2, "handleheight": 1.2, "frameon": False}
    frame = _frame(0, 0, 1)[-1]
    fig.legend([frame], [label], loc="outside lower center", **square)


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
    """Return a white frame and a black one on it."""
    from matplotlib.patches import Rectangle

    points = 72 * size
    line = min(1.2, points / 10)
    inset = 1.25 * line / points  # the white ends where the cell does
    side = 1 - 2 * inset
    corner = x - side / 2, y - side / 2
    style = {"fill": False, "snap": False}
    lines = (("white", 2.5 * line), ("black", line))
    return [Rectangle(corner, side, side, ec=ec, lw=lw, **style) for ec, lw in lines]
