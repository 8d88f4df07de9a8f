"""Drawing: boxes, arrows, words and small matrices on a sheet measured in inches.

A color is a name of the palette: "query" is blue, "key" orange and "value" green in
every picture; "ink", "quiet" and "line" are for the rest. A picture reads from top to
bottom: places are (x, y), with (0, 0) in the upper left corner.

This module does not know what a picture is about.
"""

import math
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.figure import Figure
from tutorial_lib.plotting.panels import LETTER, STYLE, WIDTH, array

LEFT = 0.78  # inches for the names of rows
HEIGHT = 0.34  # inches of a box
NEAR = 0.12  # inches between matrices that are multiplied
PALE = 0.12  # how opaque the inside of a box is, and what stands back
SIZE = 11  # points of a letter
SMALL = 9  # points of a letter beside cells
THICK = 8  # points of a line of weight 1
ROLES = {  # what has a color of its own where it is named
    **dict.fromkeys(("query", "queries", "attention", "decoder"), "query"),
    **dict.fromkeys(("key", "keys", "encoder", "added"), "key"),
    **dict.fromkeys(("values", "context", "FFN", "output", "outputs"), "value"),
}


class Box(NamedTuple):
    """A place on the paper, in inches: its middle, and its size."""

    x: float
    y: float
    width: float
    height: float

    def edge(self, across, down):
        """Return a place on the edge: (0, -1) is the middle of the upper one."""
        return self.x + across * self.width / 2, self.y + down * self.height / 2


class Picture:
    """A sheet as wide as every figure and ``height`` inches high.

    ``figure`` is what a notebook shows.
    """

    def __init__(self, height):
        with rc_context(STYLE):
            self.figure = Figure(figsize=(WIDTH, height))
        self.ax = self.figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
        self.ax.axis("off")

    def text(self, x, y, words, color="ink", *, size=SIZE, align="center", clear=False):
        """Write ``words``, their middle or their left or right end at (x, y).

        They are ``clear`` of lines below them if they have paper of their own. Returns
        matplotlib's text, which takes "$" for a sign like any other.
        """
        style = {"ha": align, "va": "center_baseline", "size": size, "zorder": 3}
        style["bbox"] = {"fc": LIGHT["paper"], "lw": 0, "pad": 1} if clear else None
        return self.ax.text(x, y, words, color=LIGHT[color], parse_math=False, **style)

    def names(self, words, *, x=0, size=SIZE):
        """Say at the left what stands at each height: ``words`` maps y to a name."""
        for y, name in words.items():
            color = ROLES.get(name.split(" ")[0], "quiet")
            self.text(x, y, name, color, size=size, align="left")

    def numbers(self, xs, y, weights, *, name="weights"):
        """Write weights side by side, each clear of the lines below it."""
        self.names({y: name})
        for x, weight in zip(xs, array(weights), strict=True):
            self.text(x, y, f"{weight:.2f}", size=10, clear=True)

    def box(self, x, y, words, color, *, width=None, height=HEIGHT, size=SIZE):
        """Write ``words`` into a rounded box around (x, y), and return its place."""
        place = Box(x, y, width or _inches(words, size) + 0.2, height)
        self._round(place, fc=LIGHT["paper"], lw=0, zorder=2)  # no line shows through
        pale = LIGHT[color], PALE
        self._round(place, fc=pale, ec=LIGHT[color], lw=1.4, zorder=2)
        self.text(x, y, words, size=size)
        return place

    def row(self, words, y, colors, *, name="", left=LEFT, right=WIDTH):
        """Write ``words`` into boxes side by side, and return their places.

        ``colors`` is one color, or one for each word. Letters get smaller where there
        is no room for them.
        """
        step = (right - left) / len(words)
        longest = max(words, key=len)
        size = min(SIZE, SIZE * (step - 0.16) / _inches(longest, SIZE))
        width = min(step - 0.08, _inches(longest, size) + 0.2)
        colors = [colors] * len(words) if isinstance(colors, str) else colors
        self.names({y: name})
        return [
            self.box(left + step * (i + 0.5), y, word, color, width=width, size=size)
            for i, (word, color) in enumerate(zip(words, colors, strict=True))
        ]

    def lane(self, y, height, color, *, left=LEFT, right=WIDTH):
        """Lay a pale band under all else."""
        place = Box((left + right) / 2, y, right - left, height)
        self._round(place, fc=(LIGHT[color], PALE), lw=0, zorder=0)

    def arrow(self, start, end, color, *, weight=None, curved=False):
        """Lead from a box or a place to another, as thick and strong as a ``weight``.

        Only without a weight it has a head. It is straight, or if ``curved`` upright at
        its ends, and a bow between places of the same height.
        """
        start, end = _facing(start, end), _facing(end, start)
        (x, y), (u, v) = start, end
        turn = (y + v) / 2 if y != v else y - 0.2 - 0.3 * abs(u - x)
        curve = Path([start, (x, turn), (u, turn), end], [1, 4, 4, 4])
        path = curve if curved else Path([start, end])
        thick, strong = (1.3, 1) if weight is None else (0.6 + THICK * weight, weight)
        style = {"color": LIGHT[color], "lw": thick, "alpha": 0.25 + 0.75 * strong}
        form = {"arrowstyle": "-|>" if weight is None else "-"}
        form |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
        form |= {"capstyle": "butt", "fill": weight is None}
        self.ax.add_patch(FancyArrowPatch(path=path, **style, **form, zorder=1))

    def fan(self, hub, others, color, weights, *, curved=False):
        """Join the ``hub`` to all ``others``, as thick as their weights, or one weight.

        Raises ValueError if there are neither one weight nor as many as others.
        """
        weights = np.broadcast_to(array(weights), len(others))
        for other, weight in zip(others, weights, strict=True):
            self.arrow(hub, other, color, weight=weight, curved=curved)

    def line(self, start, end, color):
        """Draw a thin line from a place to another."""
        self.ax.plot(*zip(start, end, strict=True), color=LIGHT[color], lw=1.3)

    def dot(self, x, y, color, *, sign=None):
        """Mark a place by a dot, or by a ring around a ``sign``, be it empty."""
        face = LIGHT[color] if sign is None else LIGHT["paper"]
        style = {"mfc": face, "mec": LIGHT[color], "mew": 2, "ms": 8, "zorder": 3}
        self.ax.plot(x, y, "o", **style)
        self.text(x, y, sign or "", color, size=8)

    def cells(self, x, y, numbers, color, *, side=0.22, chosen=None):
        """Draw a matrix (row, column) as cells, and return its place.

        Its upper left corner is at (x, y). The larger a number, or its distance from 0,
        the fuller its cell. Only the row ``chosen``, if any, is strong.
        """
        numbers = abs(array(numbers))
        for (i, j), number in np.ndenumerate(numbers / (numbers.max() or 1)):
            strong, hue = 1.0 if chosen in (None, i) else 0.35, LIGHT[color]
            style = {"fc": (hue, strong * number), "ec": (hue, strong)}
            corner = x + j * side, y + i * side
            self.ax.add_patch(Rectangle(corner, side, side, **style))
        height, width = (side * count for count in numbers.shape)
        return Box(x + width / 2, y + height / 2, width, height)

    def matrix(
        self, x, y, name, numbers, color, *, above=False, rows=(), columns=(), **style
    ):
        """Draw a named matrix below ``y`` or above it, and return where it ends.

        ``rows`` and ``columns`` are words beside its cells, and ``style`` what `cells`
        takes. Its shape stands at its name.
        """
        side = style["side"]
        top = y - side * len(numbers) if above else y
        place = self.cells(x, top, numbers, color, **style)
        for i, word in enumerate(rows):
            at = x - 0.06, top + side * (i + 0.5)
            self.text(*at, word, color, size=SMALL, align="right")
        for i, word in enumerate(columns):
            at = x + side * (i + 0.5), top - 0.06
            self.text(*at, word, color, size=SMALL).set(rotation=90, va="bottom")
        at = place.edge(0, 1)[1] + 0.17
        if above:
            at = top - 0.36 - room(columns)
        self.text(place.x, at, name, color)
        shape = f"({', '.join(map(str, numbers.shape))})"
        self.text(place.x, at + 0.2, shape, "quiet", size=SMALL)
        return x + place.width

    def image(self, place, image):
        """Show an image (3, height, width) with values from 0 to 1 at ``place``."""
        ax = self.inset(place, xticks=[], yticks=[])
        ax.imshow(array(image).transpose(1, 2, 0), aspect="auto")
        ax.spines[:].set(color=LIGHT["line"], lw=0.6, visible=True)

    def inset(self, place, **options):
        """Return axes of their own at ``place``, a Box."""
        x, y = place.edge(-1, 1)  # matplotlib counts upward
        high = self.figure.get_figheight()
        shares = x / WIDTH, 1 - y / high, place.width / WIDTH, place.height / high
        return self.figure.add_axes(shares, **options)

    def clock(self, place, hands, sector):
        """Draw a clock face with ``hands`` {letter: (angle, color)}, in radians.

        ``sector`` is (from, to, color): two angles and what fills the face between.
        """
        ax = self.inset(place, projection="polar")
        ax.set(theta_direction=-1, theta_zero_location="N", rlim=(0, 1))
        ax.set(xticks=[], yticks=[])
        ax.spines["polar"].set(color=LIGHT["line"], lw=1)
        begin, end, color = sector
        pale = LIGHT[color], 2 * PALE
        ax.bar(begin, 1, (end - begin) % math.tau, align="edge", color=pale)
        for letter, (angle, color) in hands.items():
            ax.plot([angle, angle], [0, 0.85], color=LIGHT[color], lw=3)
            style = {"ha": "center", "va": "center", "size": SIZE}
            ax.text(angle, 1.22, letter, color=LIGHT[color], **style)

    def _round(self, place, **style):
        form = f"round,pad=0,rounding_size={min(0.1, place.height / 2)}"
        size = place.width, place.height
        self.ax.add_patch(FancyBboxPatch(place.edge(-1, -1), *size, form, **style))


def _facing(one, other):
    """Return where a line to ``other`` leaves a box: above or below, or at a side."""
    if not isinstance(one, Box):
        return one
    x, y = other[:2]
    if y == one.y:
        return one.edge(math.copysign(1, x - one.x), 0)
    return one.edge(0, math.copysign(1, y - one.y))


def _inches(words, size):
    return LETTER * size / 10 * len(words)


def room(words):
    """Return how many inches the longest of small ``words`` beside cells needs."""
    return max((_inches(word, SMALL) for word in words), default=0)


def numbered(letter, number):
    """Return a letter with an index, such as h₁."""
    return letter + str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
