"""Interactive Nadaraya–Watson regression: query, bandwidth, kernel and points.

Points go in. The figure's JavaScript states the kernels
of ``tutorial_lib.kernels`` a second time; a test holds the two equal.
"""

import math

import numpy as np
import torch

from tutorial_lib import kernels
from tutorial_lib.attention import nadaraya_watson

from .figure import KEY, QUERY, VALUE, Figure, canvas
from .inputs import as_array, as_number, as_positive, rounded
from .softmax import entropy

MOST_POINTS = 500


def show_kernel_regression(x, y, *, query=None, bandwidth=None, truth=None, title=None):
    """Show the kernel regression of points that a reader can move, draw and remove.

    ``x`` and ``y`` are (key,), the keys and their values; ``query`` (default: the
    median of ``x``) and ``bandwidth`` (default: a tenth of their range) in the unit of
    ``x``; ``truth`` is a function from a tensor of x to one of y, drawn dashed. A
    reader also chooses the kernel, which is Gaussian at first. Where no point lies
    within the bandwidth the curve has a gap. Raises ValueError for points that do not
    fit together, fewer than 2 or more than 500. Nadaraya (1964), Watson (1964).
    """
    x, y = as_array(x, "x"), as_array(y, "y")
    _check_points(x, y)
    digits = _digits(np.ptp(x))
    query = as_number(np.median(x) if query is None else query, "query")
    bandwidth = np.ptp(x) / 10 if bandwidth is None else bandwidth
    bandwidth = as_positive(bandwidth, "bandwidth")
    query = round(query, digits)
    bandwidth = float(f"{bandwidth:.3g}")
    shown = {"query": query, "bandwidth": bandwidth, "kernel": "gaussian"}
    points = list(zip(rounded(x), rounded(y), strict=True))
    truth = [] if truth is None else _curve(x, truth)
    data = {"points": points, "shown": shown, "truth": truth}
    data.update(_frame(points, truth, query))
    text = _sentence(data)
    return Figure("kernel_regression", data, text=text, title=title, draw=_draw)


def _check_points(x, y):
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"x and y must be two vectors of one length, got {x.shape} and {y.shape}"
        )
    if not 2 <= len(x) <= MOST_POINTS:
        raise ValueError(f"{len(x)} points: pass 2 to {MOST_POINTS}")
    if x.min() == x.max():
        raise ValueError(f"all points lie at x = {x[0]:g}: pass at least two places")


def _digits(span):
    """Return how many decimals tell apart a hundred places within ``span``."""
    return max(0, 2 - math.floor(math.log10(span)))


def _curve(x, truth):
    places = torch.linspace(x.min(), x.max(), 101, dtype=torch.float64)
    heights = as_array(truth(places), "values of truth")
    return list(zip(rounded(places), rounded(heights), strict=True))


def _frame(points, truth, query):
    """Return the edges of the plot, and the decimals for its places and heights."""
    x = np.array([x for x, _ in points] + [query])
    y = np.array([y for _, y in points + truth])
    across = 0.04 * np.ptp(x)
    up = 0.08 * (np.ptp(y) or 1)
    low, high = rounded([x.min() - across, x.max() + across])
    bottom, top = rounded([y.min() - up, y.max() + up])
    digits = _digits(high - low), _digits(top - bottom)
    return {"low": low, "high": high, "bottom": bottom, "top": top, "digits": digits}


def _regress(queries, data):
    """Return the estimates, NaN where no key is near, and the weights, 0 there."""
    keys, values = torch.tensor(data["points"]).T
    queries = torch.tensor(queries).float()
    kernel = kernels.gaussian(data["shown"]["bandwidth"])
    estimates, weights = nadaraya_watson(queries, keys, values, kernel)
    return estimates.numpy(), weights.nan_to_num(0).numpy()


def _sentence(data):
    shown = data["shown"]
    digits = data["digits"]
    query = f"{shown['query']:.{digits[0]}f}"
    bandwidth = f"{shown['bandwidth']:g}"
    [estimate], [weights] = _regress([shown["query"]], data)
    start = f"Kernel regression of {len(weights)} points"
    start = f"{start}, gaussian kernel of bandwidth {bandwidth}"
    if math.isnan(estimate):
        return f"{start}. At the query {query} no point lies within the bandwidth."
    return (
        f"{start}. At the query {query} the estimate is {estimate:.{digits[1]}f}, as "
        f"if {math.exp(entropy(weights)):.1f} of them shared the weight equally."
    )


def _draw(data):
    fig = canvas(6.4, 3.9)
    ax, bars = fig.subplots(2, sharex=True, height_ratios=[3, 1])
    _draw_curves(ax, data)
    x, y = np.transpose(data["points"])
    query = data["shown"]["query"]
    [weights] = _regress([query], data)[1]
    share = weights / (weights.max() or 1)
    dots = {"c": VALUE, "alpha": 0.4 + 0.6 * share, "linewidths": 0}
    ax.scatter(x, y, s=14 + 40 * share, **dots)
    ax.legend(
        frameon=False, fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    bars.vlines(x, 0, weights, color=QUERY, linewidth=3)
    bars.set(ylim=(0, weights.max() or 1), ylabel="weight")
    bars.set_xlabel("key x", color=KEY)
    ax.set_ylabel("value y", color=VALUE)
    for axes in (ax, bars):
        axes.axvline(query, color=QUERY, linewidth=1)
        axes.spines[["top", "right"]].set_visible(False)
    return fig


def _draw_curves(ax, data):
    low = data["low"]
    high = data["high"]
    query = data["shown"]["query"]
    queries = np.linspace(low, high, 481)
    if data["truth"]:
        ax.plot(*np.transpose(data["truth"]), "--", color="0.5", label="truth")
    ax.plot(queries, _regress(queries, data)[0], color=VALUE, lw=2, label="estimate")
    ax.set(xlim=(low, high), ylim=(data["bottom"], data["top"]))
    height = 0.3 * (data["top"] - data["bottom"])
    distances = torch.tensor(queries - query)
    near = height * kernels.gaussian(data["shown"]["bandwidth"])(distances).numpy()
    shade = {"color": QUERY, "alpha": 0.15, "linewidth": 0, "label": "kernel"}
    ax.fill_between(queries, data["bottom"], data["bottom"] + near, **shade)
