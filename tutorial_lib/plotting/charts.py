"""Charts: curves, points and bars."""

import math
from itertools import cycle
from numbers import Number

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

TINT = 0.15  # how opaque the paper is between the ends of a range
FEW = 16  # so many points of a curve are marked
NEAT = [1, 2, 2.5, 5, 10]  # steps between numbers, and ten times these
DOTS = {"s": 20, "color": GREY, "alpha": 0.6}
DASHES = (":", "-.", "--")  # of vertical lines
NUMBER = 0.3  # inches that a bar's number needs
SLANTED = 0.27  # inches from bar to bar that slanted words need, one above the other


def show_curves(
    x=None,
    curves=None,
    *,
    dashed=None,
    points=None,
    vlines=None,
    ranges=None,
    xlabel="",
    ylabel="",
    xscale="linear",
    yscale="linear",
):
    """Show labeled curves over ``x``, in one panel or in several.

    ``curves`` maps a label to values (x,), or without ``x`` to a pair (x, y). A
    dictionary of such dictionaries makes one panel each, titled by its key; a label has
    the same color in all. ``dashed`` maps a label to what the curves of every panel are
    compared with, a curve or one number, drawn dashed and gray. ``points`` maps one to
    a pair (x, y) scattered into every panel, and ``vlines`` to the x of a vertical
    line. ``ranges`` maps one to its lowest and its highest values (x,), between which
    the paper is tinted. The scales are matplotlib's: linear, log or symlog. A list as
    ``xlabel`` names the x of each panel, which then has a range of its own.
    Raises ValueError if there is no curve.
    """
    if not curves:
        raise ValueError("there is no curve to show: map a label to values (x,)")
    nested = isinstance(next(iter(curves.values())), dict)
    panels = curves if nested else {"": curves}
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    size = (WIDTH, 1.6 * -(-len(panels) // columns) + 0.6 if nested else 2.9)
    labels = dict.fromkeys(label for lines in panels.values() for label in lines)
    colors = dict(zip(labels, cycle(CYCLE), strict=False))
    x = None if x is None else array(x)
    share = {"sharex": x is None and isinstance(xlabel, str), "sharey": True}
    with open_panels(len(panels), columns, size=size, **share) as (fig, axes):
        for ax, (title, lines) in zip(axes, panels.items(), strict=True):
            _draw_points(ax, points or {})
            _tint_ranges(ax, x, ranges or {}, colors)
            _draw_lines(ax, x, lines, colors)
            _draw_dashed(ax, x, dashed or {})
            for style, (label, at) in zip(cycle(DASHES), (vlines or {}).items()):
                ax.axvline(at, color=GREY, ls=style, label=label)
            ax.set(title=title, xscale=xscale, yscale=yscale)
            if x is not None:
                _number_x(ax, x, (WIDTH - 0.6) / columns)
            _number_in_full(ax.yaxis)
        name_axes(axes, columns, xlabel=xlabel, ylabel=ylabel)
        add_legend(fig, axes, least=2)
    return fig


def _draw_points(ax, points):
    for label, pair in points.items():
        ax.scatter(*map(array, pair), label=label, **DOTS)


def _tint_ranges(ax, x, ranges, colors):
    for label, (low, high) in ranges.items():
        tint = {"color": colors[label], "alpha": TINT, "lw": 0}
        ax.fill_between(x, array(low), array(high), **tint)


def _draw_lines(ax, x, lines, colors):
    """Draw lines, with a marker at each point where there are few."""
    for label, line in lines.items():
        across, up = map(array, line if x is None else (x, line))
        style = {"color": colors[label], "marker": "o", "ms": 3}
        if len(across) > FEW:
            del style["marker"]
        ax.plot(across, up, label=label, **style)


def _draw_dashed(ax, x, dashed):
    for label, line in dashed.items():
        style = {"label": label, "color": GREY, "ls": "--"}
        if getattr(line, "ndim", 0 if isinstance(line, Number) else 1) == 0:
            ax.axhline(line, **style)
        else:
            ax.plot(*map(array, line if x is None else (x, line)), **style)


def _number_x(ax, x, inches):
    """Put numbers that can be read on an axis: on a log scale those of few ``x``."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    if ax.get_xscale() == "linear":
        style = {"integer": (x == x.round()).all(), "steps": NEAT}
        ax.xaxis.set_major_locator(MaxNLocator(int(inches / 0.6) + 1, **style))
    elif len(x) <= FEW // 2:
        needed = LETTER * (2 + max(len(f"{number:,g}") for number in x))
        thin = math.ceil(len(x) * needed / inches)
        _number_in_full(ax.xaxis, FixedLocator(x[::-thin][::-1]))


def _number_in_full(axis, locator=None):
    """Write 30 and 1,024, not powers of ten: at some places, or on a few decades."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    subs = (1, 3) if high / low > 20 else (1, 2, 5)
    if axis.get_scale() == "log" and (locator or high / low < 1000):
        axis.set_major_locator(locator or LogLocator(subs=subs))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_locator(NullLocator())


def show_bars(bars, labels, *, baselines=None, marked=None, ylabel="weight"):
    """Show one bar chart for each title in ``bars``, all on one scale.

    ``bars`` maps a title to values (bar,); ``labels`` names the bars. Where there is
    room, a bar carries its value, rounded to two decimals. ``baselines`` maps a label
    to what bars are compared with: a number, or values (bar,). ``marked`` maps one to
    booleans (bar,): the bars where they are True are drawn hatched, and named by it.
    """
    words = [str(label) for label in labels]
    for title, values in bars.items():
        if len(values) != len(words):
            raise ValueError(f"{len(values)} values for {len(words)} bars in {title!r}")
    fit = int((WIDTH - 0.6) / (NUMBER * len(words) + 0.2))
    columns = next((c for c in range(fit, 1, -1) if len(bars) % c == 0), 1)
    rows = -(-len(bars) // columns)
    pitch = (WIDTH - 0.6) / columns / len(words)  # inches from bar to bar
    longest = LETTER * (max(map(len, "\n".join(words).split("\n"))) + 1)
    if longest < pitch:
        turned = {}
    elif pitch > SLANTED:
        turned = {"rotation": 40, "ha": "right"}
    else:
        turned = {"rotation": 90}
    size = (WIDTH, 1.1 * rows + 1.4 if rows > 1 else 2.6)
    with open_panels(len(bars), columns, size=size, sharey=True) as (fig, axes):
        for ax, (title, values) in zip(axes, bars.items(), strict=True):
            drawn = ax.bar(range(len(words)), array(values), color=BLUE, width=0.7)
            if pitch >= NUMBER:
                ax.bar_label(drawn, fmt="%.2f", padding=2, fontsize=8)
            ax.set_xticks(range(len(words)), words, **turned)
            ax.set_title(title)
            ax.margins(y=0.2)
            _mark_bars(drawn, marked or {})
            _draw_baselines(ax, baselines or {}, len(words))
        name_axes(axes, columns, xlabel="", ylabel=ylabel)
        add_legend(fig, axes, least=1)
    return fig


def _mark_bars(drawn, marked):
    """Hatch bars, in another color; the first of them gives the legend its name."""
    for label, flags in marked.items():
        chosen = [bar for bar, flag in zip(drawn, flags, strict=True) if flag]
        for bar in chosen:
            bar.set(facecolor="none", edgecolor=CYCLE[1], hatch="////")
        for bar in chosen[:1]:
            bar.set_label(label)


def _draw_baselines(ax, baselines, bars):
    """Draw a level across each bar."""
    ends = [[i - 0.42 for i in range(bars)], [i + 0.42 for i in range(bars)]]
    for color, (label, level) in zip(cycle(CYCLE[1:]), baselines.items()):
        style = {"color": color, "lw": 1.8, "ls": (0, (2, 1)), "label": label}
        ax.hlines(array(level) + [0.0] * bars, *ends, **style)
