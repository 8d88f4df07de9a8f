"""Windows on a grid of tokens: what a token attends to, and its receptive field.

The sizes of a grid and of its windows go in.
"""

import numpy as np

from .figure import ACCENT, MARK, Figure, canvas

MOST, LAYERS = 8, 4  # tokens on a side that a phone shows; layers to choose from


def show_windows(side=8, size=4, *, token=(3, 3), layers=2, shifted=True, title=None):
    """Show the receptive field of one ``token`` (row, column) of a grid.

    The grid has ``side`` × ``side`` tokens and windows of ``size`` × ``size``. Every
    other layer moves its windows by half their size if it is ``shifted``. A reader
    chooses the token, 1 to 4 ``layers``, and the grid after the cyclic shift. Raises
    ValueError for sizes that do not fit, more than 8 on a side, and a token or a number
    of layers that is not there.
    """
    if not 0 < side <= MOST or size < 2 or size % 2 or side % size:
        raise ValueError(
            f"an even size must divide a side of at most {MOST}: got {size} and {side}"
        )
    place = [int(number) for number in token]
    if len(place) != 2 or not all(0 <= number < side for number in place):
        raise ValueError(f"token must be a row and a column below {side}, got {token}")
    if not 1 <= layers <= LAYERS:
        raise ValueError(f"layers must be 1 to {LAYERS}, got {layers}")
    shown = {"layers": int(layers), "shifted": bool(shifted), "rolled": False}
    data = {"side": side, "size": size, "most": LAYERS, "place": place, "shown": shown}
    return Figure("windows", data, text=_sentence(data), title=title, draw=_draw)


def _shift(data, layer):
    return data["size"] // 2 if data["shown"]["shifted"] and layer % 2 == 0 else 0


def _window(data, layer):
    """Return the number of its window for each row, or column, of the grid."""
    return (np.arange(data["side"]) - _shift(data, layer)) // data["size"]


def _reach(data, number, last):
    """Return the rows, or columns, that one of them depends on down to ``last``."""
    seen = np.array([number])
    for layer in range(data["shown"]["layers"], last - 1, -1):
        window = _window(data, layer)
        seen = np.flatnonzero(np.isin(window, window[seen]))
    return seen


def _tokens_within_reach(data, last):
    row, column = data["place"]
    return len(_reach(data, row, last)) * len(_reach(data, column, last))


def _sentence(data):
    layers = data["shown"]["layers"]
    attended = _tokens_within_reach(data, layers)
    field = _tokens_within_reach(data, 1)
    kind = "shifted" if _shift(data, layers) else "regular"
    row, column = data["place"]
    plural = "s" * (attended > 1)
    return (
        f"Token ({row}, {column}) attends to {attended} token{plural} in the last "
        f"layer, whose windows are {kind}. After {layers} layer{'s' * (layers > 1)} "
        f"its receptive field has {field} of {data['side'] ** 2} tokens."
    )


def _draw(data):
    from matplotlib.patches import Rectangle

    side = data["side"]
    layers = data["shown"]["layers"]
    fig = canvas(3.6, 3.6)
    ax = fig.subplots()
    for last, strength in ((1, 0.25), (layers, 0.6)):
        rows, columns = (_reach(data, number, last) for number in data["place"])
        for row in rows:
            for column in columns:
                corner = column - 0.5, row - 0.5
                fill = {"facecolor": ACCENT, "alpha": strength, "linewidth": 0}
                ax.add_patch(Rectangle(corner, 1, 1, **fill))
    for border in np.flatnonzero(np.diff(_window(data, layers))) + 0.5:
        ax.axhline(border, color=MARK, linewidth=2)
        ax.axvline(border, color=MARK, linewidth=2)
    corner = data["place"][1] - 0.5, data["place"][0] - 0.5
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=MARK, linewidth=3))
    ends = -0.5, side - 0.5
    ax.set(xlim=ends, ylim=ends[::-1], aspect="equal", xlabel="column", ylabel="row")
    return fig
