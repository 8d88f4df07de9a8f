"""Nadaraya–Watson regression to move: the query, the width, the kernel, the points.

This module knows no data: points go in. The figure's JavaScript states the kernels of
``tutorial_lib.kernels`` a second time; a test holds the two equal.
"""

import numpy as np
import torch

from tutorial_lib import kernels
from tutorial_lib.attention import nadaraya_watson

from .figure import Figure
from .inputs import as_array, as_number, as_positive, rounded

KERNELS = ("gaussian", "boxcar", "epanechnikov", "triangular", "constant")
MOST_POINTS = 500


def show_kernel_regression(
    x, y, *, query=None, width=None, kernel="gaussian", truth=None, title=None
):
    """Show the kernel regression of points that a reader can move, draw and remove.

    ``x`` and ``y`` are (key,), the keys and their values; ``query`` (default: the
    median of ``x``) and ``width`` (default: a tenth of their range) in the unit of
    ``x``; ``kernel`` names a kernel of ``tutorial_lib.kernels``; ``truth`` is a
    function from a tensor of x to one of y, drawn dashed. Where no point lies within
    the width the curve has a gap. Raises ValueError for points that do not fit
    together, fewer than 2 or more than 500. Nadaraya (1964), Watson (1964).
    """
    x, y = as_array(x, "x"), as_array(y, "y")
    _check_points(x, y)
    if kernel not in KERNELS:
        raise ValueError(
            f"kernel {kernel!r} does not exist: choose {', '.join(KERNELS)}"
        )
    span = x.max() - x.min()
    query = as_number(np.median(x) if query is None else query, "query")
    width = as_positive(span / 10 if width is None else width, "width")
    x, y, (query, width) = rounded(x), rounded(y), rounded([query, width])
    low, high = rounded([min(x) - 0.04 * span, max(x) + 0.04 * span])
    grid = torch.linspace(low, high, 121, dtype=torch.float64)
    truth = [] if truth is None else _curve(torch.linspace(min(x), max(x), 101), truth)
    heights = y + [height for _, height in truth]
    margin = 0.08 * (max(heights) - min(heights) or 1)
    bottom, top = rounded([min(heights) - margin, max(heights) + margin])
    data = {
        "x": x,
        "y": y,
        "shown": {"query": query, "width": width, "kernel": kernel},
        "truth": truth,
        "frame": {"low": low, "high": high, "bottom": bottom, "top": top},
    }
    similarity = (
        kernels.constant() if kernel == "constant" else getattr(kernels, kernel)(width)
    )

    def estimate(queries):
        keys, values = torch.tensor(x).double(), torch.tensor(y).double()
        return nadaraya_watson(queries, keys, values, similarity)

    estimates, weights = estimate(torch.tensor([query]).double())
    return Figure(
        ("sliders", "kernel_regression"),
        data,
        text=_sentence(data, float(estimates[0]), weights[0].numpy()),
        title=title,
        draw=lambda: _draw(data, grid, *estimate(grid), weights[0].numpy()),
    )


def _check_points(x, y):
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"x and y must be two vectors of one length, got {x.shape} and {y.shape}"
        )
    if not 2 <= len(x) <= MOST_POINTS:
        raise ValueError(f"{len(x)} points: pass 2 to {MOST_POINTS}")
    if x.min() == x.max():
        raise ValueError(f"all points lie at x = {x[0]:g}: pass at least two places")


def _curve(places, truth):
    heights = as_array(truth(places), "values of truth")
    return list(map(list, zip(rounded(places), rounded(heights), strict=True)))


def _sentence(data, estimate, weights):
    query, width, kernel = (
        data["shown"][name] for name in ("query", "width", "kernel")
    )
    start = f"Kernel regression of {len(weights)} points with a {kernel} kernel"
    start += "" if kernel == "constant" else f" of width {width:g}"
    if weights.max() == 0:
        return f"{start}: at the query {query:g} no point lies within the width."
    return (
        f"{start}: at the query {query:g} the estimate is {estimate:.2f}; the "
        f"effective number of points, 1/Σw², is {1 / (weights**2).sum():.1f}."
    )


def _draw(data, grid, estimates, grid_weights, weights):
    from matplotlib.figure import Figure as Canvas

    fig = Canvas(figsize=(6.4, 3.9), layout="constrained")
    ax, bars = fig.subplots(2, sharex=True, height_ratios=[3, 1])
    x, y = np.array(data["x"]), np.array(data["y"])
    estimates = np.where(grid_weights.sum(-1) > 0, estimates, np.nan)
    share = weights / max(weights.max(), 1e-9)
    ax.scatter(x, y, s=14 + 40 * share, c="0.2", alpha=0.3 + 0.7 * share, linewidths=0)
    ax.plot(grid, estimates, color="#1f62c8", linewidth=2)
    if data["truth"]:
        ax.plot(*zip(*data["truth"], strict=True), color="0.5", linestyle="--")
    bars.vlines(x, 0, weights, color="#b4390a", linewidth=3)
    bars.set_ylim(0, None)
    bars.set_ylabel("weight")
    for axes in (ax, bars):
        axes.axvline(data["shown"]["query"], color="#b4390a", linewidth=1)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
