"""Heatmaps: attention weights, or scores, as grids of colored cells.

A figure is as wide as a phone can show, so the words along the axes decide how many
panels stand in a row. Cells that a reader shall compare with may be framed; their label
says what they mean.
"""

import torch

from tutorial_lib.plotting.colors import LIGHT, ink_on, scale
from tutorial_lib.plotting.panels import LETTER, WIDTH, array, name_axes, open_panels

NUMBERED = 8  # so many rows and columns, at most, have numbers
RULED = 12  # and so many, lines between cells of nothing but 0 and 1
SMALLEST = 6.5  # points of a number
OUTLINE = 1.0  # points around a number
LARGEST = 0.5  # inches of a cell
NARROW = 0.17  # inches that a word below a panel needs
SLANTED = 0.21  # and a word that is turned
COLOR_BAR = 0.75  # inches
GAP = 0.12  # inches between panels
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
    hline=None,
    scores=False,
    write_zeros=True,
    label=None,
    xlabel="key",
    ylabel="query",
):
    """Show attention weights as heatmaps that share one color scale.

    ``weights`` is (row, column, query, key), (panel, query, key) or (query, key), with
    values from 0 to 1; with ``scores`` any values, white where they are 0. ``label``
    names the scale, which maps of nothing but 0 and 1 do not need; ``titles`` names the
    panels, row by row. Cells where the boolean ``mask``, which broadcasts to the
    weights, is False are hatched, and cells that are NaN are grey. Cells in
    ``outline``, a set of (query, key) for every panel or a boolean that broadcasts to
    the weights, are framed, and named by ``outline_label``; a line stands above the
    query ``hline``. Numbers stand where there is room, without ``write_zeros`` only
    those that are not 0, and an axis without name and labels has none. Raises
    ValueError for weights outside 0 to 1, and labels, titles, mask or outline that do
    not match the axes.
    """
    weights = _as_tensor(weights).detach().cpu().float()
    _check_heatmaps(weights, query_labels, key_labels, scores)
    grid = weights[(None,) * (4 - weights.ndim)]  # (row, column, query, key)
    if titles and len(titles) != grid.shape[:2].numel():
        raise ValueError(f"{len(titles)} titles for {grid.shape[:2].numel()} panels")
    allowed = torch.tensor(True) if mask is None else mask
    hidden = ~_expanded(allowed, grid.shape, "mask").flatten(0, 1)
    framed = as_cells(set() if outline is None else outline, grid.shape).flatten(0, 1)
    panels = grid.flatten(0, 1).masked_fill(hidden & scores, 0)
    has_bar = scores or not (panels.eq(0) | panels.eq(1)).all()
    layout = Layout(weights, query_labels, key_labels, has_bar)
    options = {"size": layout.size(titles), "layout": "compressed"}
    with open_panels(len(panels), layout.columns, **options) as (fig, axes):
        for i, ax in enumerate(axes):
            image = _draw_cells(ax, panels[i], hidden[i], _limits(panels, scores))
            draw_outline(ax, framed[i], size=layout.cell)
            layout.letter(ax, titles[i] if titles else "", xlabel, ylabel)
            if hline is not None:
                ax.axhline(hline - 0.5, color=LIGHT["ink"], lw=2)
        shown = panels.ne(0) | (~hidden & write_zeros)
        _write_numbers(axes, panels, hidden, shown, layout.cell)
        name_axes(axes, layout.columns, xlabel=xlabel, ylabel=ylabel)
        if has_bar:
            _add_bar(fig, axes, image, label, layout.columns > 1, panels)
        if framed.any():
            name_outlines(fig, outline_label)
    return fig


def _as_tensor(weights):
    try:
        return torch.as_tensor(weights)
    except (RuntimeError, TypeError, ValueError):
        raise ValueError(
            f"weights must be one tensor, got a {type(weights).__name__}: of recorded "
            "maps pass the heads of one sentence, such as maps['layers.0'][0]"
        ) from None


def _check_heatmaps(weights, query_labels, key_labels, scores):
    if not 2 <= weights.ndim <= 4:
        raise ValueError(
            "weights must be (row, column, query, key), (panel, query, key) or "
            f"(query, key), got {tuple(weights.shape)}"
        )
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


def _limits(panels, scores):
    """Return the ends of the scale: 0 to 1, or as far below 0 as above."""
    if not scores:
        return 0.0, 1.0
    most = max(panels[panels.isfinite()].abs().tolist(), default=0) or 1.0
    return -most, most


def _draw_cells(ax, cells, hidden, limits):
    """Draw colored cells, hatched where they are hidden, and return the image."""
    from matplotlib.patches import Rectangle

    low, high = limits
    colors = {"cmap": scale("scores" if low else "weights"), "vmin": low, "vmax": high}
    for i, j in hidden.nonzero().tolist():
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **HATCHED))
    if cells.eq(0).logical_or(cells.eq(1)).all() and max(cells.shape) <= RULED:
        _rule(ax, *cells.shape)
    return ax.imshow(array(cells), **colors, aspect="equal")


def _rule(ax, queries, keys):
    """Draw lines between the cells, so that neighbors of one color are told apart."""
    style = {"color": LIGHT["quiet"], "lw": 0.6}
    ax.hlines([i - 0.5 for i in range(1, queries)], -0.5, keys - 0.5, **style)
    ax.vlines([j - 0.5 for j in range(1, keys)], -0.5, queries - 0.5, **style)


def _write_numbers(axes, panels, hidden, shown, cell):
    """Write numbers where they fit; a hidden weight that is not 0 is seen, as a leak.

    Boxes in the color of the cell keep the hatching off them.
    """
    from matplotlib.patheffects import withStroke

    digits = 0 if panels.eq(panels.round()).all() else 2
    texts = [f"{number:.{digits}f}" for number in panels[shown].tolist()]
    texts = [text.replace("-", "−").replace("inf", "∞") for text in texts]
    letters = max(map(len, texts), default=0)
    room = 72 * cell / 0.62  # of a letter's width, as a share of its size
    if max(panels.shape[1:]) > NUMBERED or room / (letters + 0.3) < SMALLEST:
        return
    size = max(SMALLEST, min(10, room / (letters + 1)))
    images = [ax.images[0] for ax in axes]
    colors = [image.to_rgba(image.get_array()) for image in images]
    for (panel, query, key), text in zip(shown.nonzero().tolist(), texts, strict=True):
        color = colors[panel][query, key]
        ink, outline = ink_on(color)
        style = {"ha": "center", "va": "center", "fontsize": size, "color": ink}
        style["path_effects"] = [withStroke(linewidth=OUTLINE, foreground=outline)]
        if hidden[panel, query, key]:
            style["bbox"] = {"facecolor": color, "lw": 0, "pad": 1}
        axes[panel].text(key, query, text, **style)


def _add_bar(fig, axes, image, label, is_below, panels):
    from matplotlib.ticker import MaxNLocator

    style = {"pad": 0.02, "aspect": 24, "anchor": (0.0, 1.0)}
    style["shrink"] = 1.0 if is_below else min(1.0, 3.4 / fig.get_figheight())
    style["location"] = "bottom" if is_below else "right"
    label = label or ("score" if image.norm.vmin else "weight")
    bar = fig.colorbar(image, ax=axes, label=label, **style)
    bar.locator = MaxNLocator(4, steps=[1, 2, 5, 10])
    bar.outline.set_visible(False)
    if image.norm.vmin:  # of scores: white, and the colors that are there
        numbers = [0, *panels[panels.isfinite()].tolist()]
        if any(numbers):
            name = "xlim" if is_below else "ylim"
            bar.ax.set(**{name: (min(numbers), max(numbers))})


def as_cells(outline, shape):
    """Return a boolean tensor of ``shape`` (…, query, key), True in outlined cells.

    ``outline`` is a set of pairs (query, key), or a boolean tensor or array that
    broadcasts to ``shape``. Raises ValueError for a pair outside the map, values that
    are not boolean, and a shape that does not fit.
    """
    if isinstance(outline, (set, frozenset)):
        outline = _from_pairs(outline, *shape[-2:])
    return _expanded(outline, shape, "outline")


def _expanded(cells, shape, name):
    cells = torch.as_tensor(cells).detach().cpu()
    if cells.dtype != torch.bool:
        pairs = ", or a set of pairs (query, key)" if name == "outline" else ""
        raise ValueError(
            f"{name} must be boolean{pairs}, got "
            f"{str(cells.dtype).removeprefix('torch.')}"
        )
    try:
        return cells.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"{name} {tuple(cells.shape)} does not broadcast to the weights "
            f"(..., query, key) = {tuple(shape)}"
        ) from None


def draw_outline(ax, cells, *, size):
    """Frame the cells (query, key), ``size`` inches wide: black in white, on any."""
    for query, key in cells.nonzero().tolist():
        for frame in _frame(key, query, size):
            ax.add_patch(frame)


def name_outlines(fig, label):
    """Say below the figure what its frames mean."""
    square = {"handlelength": 1.2, "handleheight": 1.2, "frameon": False}
    frame = _frame(0, 0, 1)[-1]
    fig.legend([frame], [label], loc="outside lower center", **square)


def _from_pairs(pairs, queries, keys):
    cells = torch.zeros(queries, keys, dtype=torch.bool)
    for query, key in pairs:
        if not (0 <= query < queries and 0 <= key < keys):
            raise ValueError(
                f"outline ({query}, {key}) lies outside a map of {queries} queries × "
                f"{keys} keys: its pairs are (query, key), counted from 0"
            )
        cells[query, key] = True
    return cells


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


class Layout:
    """How panels (query, key) stand in ``rows`` and ``columns`` of ``cell`` inches.

    Panels not given as a grid (row, column, query, key) fill rows of three at most.
    """

    def __init__(self, weights, query_labels, key_labels, has_bar):
        labels = ([] if one is None else one for one in (query_labels, key_labels))
        self.query_labels, self.key_labels = ([*map(str, one)] for one in labels)
        *panels, self.queries, self.keys = weights.shape
        words = _inches(self.query_labels) + 0.4

        def margin(columns):
            return words + COLOR_BAR * (has_bar and columns == 1)

        def cell(columns):
            panel = (WIDTH - margin(columns)) / columns - GAP
            return min(LARGEST, panel / self.keys, WIDTH / self.queries)

        self.rows, self.columns = panels if len(panels) == 2 else (1, sum(panels) or 1)
        if len(panels) < 2:
            count = self.columns
            most = 2 if count == 4 else min(count, 3)
            fits = (c for c in range(most, 1, -1) if cell(c) >= self._needed())
            self.columns = next(fits, 1)
            self.rows = -(-count // self.columns)
        self.cell = cell(self.columns)
        self.margin = margin(self.columns)

    def _needed(self):
        """Return the inches that a cell needs for its word, or for being seen."""
        if not self.key_labels:
            return min(0.9 / self.keys, LARGEST)
        word = SLANTED if max(map(len, self.key_labels)) > 3 else NARROW
        return word * _share(self.key_labels)

    def size(self, titles):
        """Return the inches of the figure, rather too high: figures are trimmed."""
        lines = max((str(title).count("\n") + 1 for title in titles or []), default=0)
        words = 0.7 * _inches(self.key_labels) if self._turns() else 0.1
        height = self.rows * (self.cell * self.queries + 0.2 * lines + GAP)
        width = self.columns * (self.cell * self.keys + GAP)
        return width + self.margin, height + words + 1.2

    def letter(self, ax, title, xlabel, ylabel):
        """Write a panel's title, and labels or numbers along its axes."""
        ax.spines[:].set(visible=True, lw=0.5)
        ax.locator_params(integer=True, nbins=6)
        ax.tick_params(length=0 if self.query_labels or self.key_labels else 2)
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        if self.key_labels or not xlabel:
            style = turned if self._turns() else {}
            ax.set_xticks(**self._words(self.key_labels), **style)
        if self.query_labels or not ylabel:
            ax.set_yticks(**self._words(self.query_labels))
        fits = _inches(str(title).split("\n")) < self.cell * self.keys + GAP
        ax.set_title(title, fontsize=10 if fits else 8)

    def _words(self, labels):
        places = [i for i, label in enumerate(labels) if label]
        style = {"fontsize": min(10, 62 * self.cell / _share(labels))}
        return {"ticks": places, "labels": [labels[i] for i in places], **style}

    def _turns(self):
        return _inches(self.key_labels) > self.cell / _share(self.key_labels)


def _inches(labels):
    """Return the inches that the longest label takes, at 10 points."""
    return LETTER * max(map(len, labels), default=0)


def _share(labels):
    """Return the share of the cells that have a label."""
    return sum(map(bool, labels)) / len(labels) if any(labels) else 1.0
