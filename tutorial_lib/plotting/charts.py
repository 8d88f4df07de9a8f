"""Charts: curves, bars, scores in the plane, and images."""

import math
from itertools import cycle

import torch

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.panels import (
    BLUE,
    CYCLE,
    GREY,
    LETTER,
    WIDTH,
    add_legend,
    array,
    name_axes,
    open_panels,
)

FEW = 16  # so many points of a curve are marked
NEAT = [1, 2, 2.5, 5, 10]  # steps between numbers, and ten times these
LEVELS = range(-8, 9)  # scores that get a line
ARROW = {"arrowprops": {"arrowstyle": "-|>", "color": LIGHT["query"], "lw": 2}}
BESIDE = {"xytext": (6, 6), "textcoords": "offset points", "weight": "bold"}
SMALL = {"textcoords": "offset points", "fontsize": 8}
BELOW = SMALL | {"xytext": (-3, -3), "ha": "right", "va": "top"}
ABOVE = SMALL | {"xytext": (3, 3), "ha": "left", "va": "bottom"}
FAR = 3.5  # decades from 1, where numbers are powers of ten
NUMBER = 0.3  # inches that a bar's number needs


def show_curves(
    x,
    curves,
    *,
    points=None,
    points_label="data",
    marks=None,
    xlabel="",
    ylabel="",
    xscale="linear",
    yscale="linear",
):
    """Show labeled curves over ``x``, in one panel or in several.

    ``curves`` maps a label to values (x,); a curve whose label starts with "true" is
    dashed. A dictionary of such dictionaries makes one panel each, titled by its key;
    a label has the same color in all. ``points`` is a pair (x, y) scattered into every
    panel under ``points_label``; ``marks`` maps a label to the place of a vertical
    line. The scales are matplotlib's: linear, log or symlog. Raises ValueError if there
    is no curve.
    """
    if not curves:
        raise ValueError("there is no curve to show: map a label to values (x,)")
    nested = isinstance(next(iter(curves.values())), dict)
    panels = curves if nested else {"": curves}
    columns = _columns(len(panels))
    rows = -(-len(panels) // columns)
    size = (WIDTH, 1.6 * rows + 0.6 if nested else 2.9)
    colors = _colors(panels.values())
    with open_panels(len(panels), columns, size=size, sharey=True) as (fig, axes):
        for ax, (title, lines) in zip(axes, panels.items(), strict=True):
            if points is not None:
                ax.scatter(*points, s=14, color=GREY, alpha=0.6, label=points_label)
            _draw_lines(ax, array(x), lines, colors)
            _draw_marks(ax, marks or {})
            ax.set(title=title, xscale=xscale, yscale=yscale)
            _number(ax.xaxis, xscale, array(x), (WIDTH - 0.6) / columns)
            _number(ax.yaxis, yscale)
        name_axes(axes, columns, xlabel=xlabel, ylabel=ylabel)
        named = {}
        for ax in axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                named.setdefault(label, handle)
        if len(named) > 1:
            add_legend(fig, list(named.values()), list(named))
    return fig


def _columns(panels):
    """Lay panels out in rows of at most three, four of them as a square."""
    return 2 if panels == 4 else min(panels, 3)


def _colors(panels):
    labels = dict.fromkeys(label for lines in panels for label in lines)
    return dict(zip(labels, cycle(CYCLE), strict=False))


def _draw_lines(ax, x, lines, colors):
    for label, y in lines.items():
        line = {"color": colors[label], "marker": "o" if len(x) <= FEW else "", "ms": 3}
        if label.startswith("true"):
            line = {"color": GREY, "ls": "--"}
        ax.plot(x, array(y), label=label, **line)


def _draw_marks(ax, marks):
    for style, (label, place) in zip((":", "-.", "--"), marks.items(), strict=False):
        ax.axvline(place, color=GREY, ls=style, label=label)


def _number(axis, scale, places=None, inches=0):
    """Put numbers that can be read on an axis: the ``places`` if they are few."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

    if scale == "linear" and places is not None:
        style = {"integer": (places == places.round()).all(), "steps": NEAT}
        axis.set_major_locator(MaxNLocator(int(inches / 0.6) + 1, **style))
    if scale != "log":
        return
    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    steps = (1,) if decades > 3 else (1, 3) if decades > 1.2 else (1, 2, 5)
    locator = LogLocator(subs=steps)
    if places is not None and len(places) <= 8:
        needed = LETTER * (2 + max(len(_in_full(place, 0)) for place in places))
        thin = math.ceil(len(places) * needed / inches)
        locator = FixedLocator(places[::-thin][::-1])
    axis.set_major_locator(locator)
    is_far = decades > 3 and max(abs(math.log10(low)), abs(math.log10(high))) > FAR
    axis.set_major_formatter(_as_power if is_far else _in_full)
    axis.set_minor_locator(NullLocator())


def _in_full(value, _):
    """Write 0.03 and 1,024, but a power of ten far from 1 as one."""
    power = math.log10(value)
    if abs(power) > FAR and abs(power - round(power)) < 1e-6:
        return _as_power(value, _)
    return f"{value:,g}"


def _as_power(value, _):
    return f"$10^{{{math.log10(value):.0f}}}$"


def show_paths(
    paths,
    *,
    settings=None,
    points=None,
    points_label="data",
    xlabel="",
    ylabel="",
):
    """Show what two numbers do together, as one path for each of several knobs.

    ``paths`` maps a label to a pair (x, y) of as many values, one for each setting;
    ``settings`` maps some of these labels to what stands beside the dots, below the
    path for the first and above it for the others. ``points`` is a pair (x, y) of what
    they are compared with, under ``points_label``. Raises ValueError if there is no
    path.
    """
    if not paths:
        raise ValueError("there is no path to show: map a label to a pair (x, y)")
    named = list(settings or {})
    with open_panels(1, 1, size=(WIDTH, 3.1)) as (fig, [ax]):
        for (label, path), color in zip(paths.items(), cycle(CYCLE), strict=False):
            x, y = map(array, path)
            ax.plot(x, y, label=label, color=color, marker="o", ms=3)
            if label in named:
                side = BELOW if label == named[0] else ABOVE
                for said, *place in zip(settings[label], x, y, strict=True):
                    ax.annotate(str(said), place, color=color, **side)
        if points is not None:
            ax.scatter(*map(array, points), s=40, color=GREY, label=points_label)
        ax.margins(y=0.1)  # for what stands beside the outermost dots
        name_axes([ax], 1, xlabel=xlabel, ylabel=ylabel)
        add_legend(fig, *ax.get_legend_handles_labels())
    return fig


def show_bars(bars, labels, *, marks=None, xlabel="", ylabel="weight"):
    """Show one bar chart for each title in ``bars``, all on one scale.

    ``bars`` maps a title to values (bar,); ``labels`` names the bars. Where there is
    room, a bar carries its value, rounded to two decimals. ``marks`` maps a label to
    what bars are compared with: a number, or values (bar,). Raises ValueError if there
    are not as many values as labels.
    """
    _check_bars(bars, len(labels))
    words = [str(label) for label in labels]
    fit = int((WIDTH - 0.6) / (NUMBER * len(words) + 0.2))
    columns = next((c for c in range(fit, 1, -1) if len(bars) % c == 0), 1)
    rows, pitch = -(-len(bars) // columns), (WIDTH - 0.6) / columns / len(words)
    turned = {} if _longest(words) < pitch else {"rotation": 40, "ha": "right"}
    size = (WIDTH, 1.1 * rows + 1.4 if rows > 1 else 2.6)
    with open_panels(len(bars), columns, size=size, sharey=True) as (fig, axes):
        for ax, (title, values) in zip(axes, bars.items(), strict=True):
            drawn = ax.bar(range(len(words)), array(values), color=BLUE, width=0.7)
            if pitch >= NUMBER:
                ax.bar_label(drawn, fmt="%.2f", padding=2, fontsize=8)
            ax.set_xticks(range(len(words)), words, **turned)
            ax.set_title(title)
            ax.margins(y=0.2)
            handles = [
                _draw_levels(ax, level, len(words), color)
                for color, level in zip(CYCLE[1:], (marks or {}).values(), strict=False)
            ]
        name_axes(axes, columns, xlabel=xlabel, ylabel=ylabel)
        if marks:
            add_legend(fig, handles, list(marks))
    return fig


def _check_bars(bars, labels):
    for title, values in bars.items():
        if len(values) != labels:
            counts = f"{len(values)} bars for {labels} labels"
            raise ValueError(f"{counts} in {title!r}: each bar needs one")


def _longest(words):
    """Return the inches that the longest line of the words takes."""
    lines = [line for word in words for line in word.splitlines()]
    return LETTER * (max(map(len, lines), default=0) + 1)


def _draw_levels(ax, levels, bars, color):
    """Draw a level across each bar, and return what a legend shows of it."""
    levels = array(levels) + [0.0] * bars
    ends = [[i - 0.42 for i in range(bars)], [i + 0.42 for i in range(bars)]]
    return ax.hlines(levels, *ends, color=color, lw=1.8, ls=(0, (2, 1)))


def show_levels(scores, query, keys, labels):
    """Draw which score a key would get in each place of the plane, and the weights.

    ``scores`` maps a title to a function of queries (1, 2) and points (point, 2) that
    returns scores (1, point): one panel each, with a line for every whole score. The
    ``query`` (1, 2) is an arrow; the ``keys`` (key, 2) are dots with their labels and
    weights. Raises ValueError if there are not as many labels as keys.
    """
    if len(labels) != len(keys):
        counts = f"{len(labels)} labels for {len(keys)} keys"
        raise ValueError(f"{counts}: each needs its own")
    ends = torch.cat([query, keys])
    (low, bottom), (high, top) = ends.amin(dim=0) - 1, ends.amax(dim=0) + 1
    across, up = torch.linspace(low, high, 121), torch.linspace(bottom, top, 121)
    points = torch.cartesian_prod(across, up)
    size = (WIDTH, len(scores) * (WIDTH * float((top - bottom) / (high - low)) + 0.4))
    with open_panels(len(scores), 1, size=size) as (fig, axes):
        for ax, (title, score) in zip(axes, scores.items(), strict=True):
            levels = array(score(query, points)).reshape(121, 121).T
            lines = ax.contour(array(across), array(up), levels, LEVELS)
            lines.set(array=None, edgecolor=LIGHT["line"], linewidth=0.8)
            ax.annotate("", *array(torch.stack([query[0], 0 * query[0]])), **ARROW)
            ax.scatter(*array(keys.T), color=LIGHT["key"], zorder=3)
            weights = score(query, keys).softmax(dim=-1)[0]
            for place, label, weight in zip(keys, labels, weights, strict=True):
                ax.annotate(f"{label} {weight:.2f}", array(place), **BESIDE)
            ax.set(title=title, aspect="equal", xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
    return fig


def show_images(images, *, titles=None, columns=None):
    """Show images in rows of ``columns``, each in a frame.

    An image is grey, (height, width), dark on white and all on one scale, or colored,
    (channel, height, width), red, green and blue from 0 to 1. Raises ValueError for
    images of another shape, and if there is none.
    """
    images = [array(image) for image in images]
    _check_images(images)
    columns = min(columns or (4 if titles else 8), len(images))
    grey = [image for image in images if image.ndim == 2] or [array([0.0, 1.0])]
    limits = min(image.min() for image in grey), max(image.max() for image in grey)
    side = min(WIDTH / columns, 2.3)
    rows = -(-len(images) // columns)
    size = side * columns, rows * (side + (0.3 if titles else 0.05))
    options = {"size": size, "layout": "compressed"}
    with open_panels(len(images), columns, **options) as (fig, axes):
        for i, (ax, image) in enumerate(zip(axes, images, strict=True)):
            colored = image.ndim == 3
            scale = dict(zip(("vmin", "vmax"), limits, strict=True))
            ax.imshow(image.transpose(1, 2, 0) if colored else image, "Greys", **scale)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=True, lw=0.6)
            ax.set_title(titles[i] if titles else "", fontsize=9)
    return fig


def _check_images(images):
    if not images:
        raise ValueError("there is no image to show")
    for shape in (image.shape for image in images):
        if len(shape) != 2 and (len(shape) != 3 or shape[0] != 3):
            raise ValueError(
                f"an image is (height, width) or (3, height, width), got {shape}"
            )
