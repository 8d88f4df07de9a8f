"""Pictures: a few things to draw an idea with, on paper measured in inches.

Words in boxes, arrows as thick as a weight, lanes, dots, bells, clock faces, patches,
and small vectors and matrices as cells. A color is a name of the palette: "query" is
blue, "key" orange and "value" green in every picture; "ink" and "quiet" are for the
rest.

This module does not know what a picture is about.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.panels import LETTER, STYLE, array

HEIGHT = 0.34  # inches of a box
PALE = 0.12  # how opaque the inside of a box is, and what stands back
SIZE = 11  # points of a letter
THICK = 8  # points of a line of weight 1


class Box(NamedTuple):
    """A place on the paper, in inches: its middle, and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self):
        """Return the middle of the upper edge."""
        return self.x, self.y - self.height / 2

    @property
    def bottom(self):
        """Return the middle of the lower edge."""
        return self.x, self.y + self.height / 2

    @property
    def left(self):
        """Return the middle of the left edge."""
        return self.x - self.width / 2, self.y

    @property
    def right(self):
        """Return the middle of the right edge."""
        return self.x + self.width / 2, self.y


class Picture:
    """A sheet of ``width`` × ``height`` inches; (0, 0) is its upper left corner.

    ``figure`` is what a notebook shows.
    """

    def __init__(self, width, height):
        import matplotlib as mpl

        from tutorial_lib.plotting.figure import Figure

        with mpl.rc_context(STYLE):
            self.figure = Figure(figsize=(width, height))
        self.width, self.height = width, height
        self.ax = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.ax.axis("off")

    def text(
        self, x, y, words, *, color="ink", size=SIZE, align="center", clear=False,
        math=False
    ):  # fmt: skip
        """Write ``words``, their middle or their left or right end at (x, y).

        They are ``clear`` of lines below them if they have paper of their own, and a
        formula in TeX's signs with ``math``.
        """
        style = {"ha": align, "va": "center_baseline", "size": size, "zorder": 3}
        style["bbox"] = {"fc": LIGHT["paper"], "lw": 0, "pad": 1} if clear else None
        self.ax.text(x, y, words, color=LIGHT[color], parse_math=math, **style)

    def box(
        self, x, y, words, color, *, width=None, height=HEIGHT, size=SIZE, math=False
    ):
        """Write ``words`` into a rounded box around (x, y), and return its place."""
        pale = LIGHT[color], PALE
        place = Box(x, y, width or _inches(words, size) + 0.2, height)
        self._round(place, fc=LIGHT["paper"], lw=0, zorder=2)  # no line shows through
        self._round(place, fc=pale, ec=LIGHT[color], lw=1.4, zorder=2)
        self.text(x, y, words, size=size, math=math)
        return place

    def row(self, words, y, colors, *, left, right):
        """Write ``words`` into boxes side by side, and return their places.

        ``colors`` is one color, or one for each word. Letters get smaller where there
        is no room for them.
        """
        step = (right - left) / len(words)
        longest = max(words, key=len)
        size = min(SIZE, SIZE * (step - 0.16) / _inches(longest, SIZE))
        width = min(step - 0.08, _inches(longest, size) + 0.2)
        colors = [colors] * len(words) if isinstance(colors, str) else colors
        return [
            self.box(left + step * (i + 0.5), y, word, color, width=width, size=size)
            for i, (word, color) in enumerate(zip(words, colors, strict=True))
        ]

    def lane(self, place, color, name=""):
        """Lay a pale band under all else at ``place``, a Box, its name at its left."""
        self._round(place, fc=(LIGHT[color], PALE), lw=0, zorder=0)
        self.text(place.left[0] + 0.1, place.y, name, align="left")

    def arrow(self, start, end, color, *, weight=None, straight=False):
        """Lead from a place (x, y) to another, as thick and strong as a ``weight``.

        Only without a weight it has a head. Unless it is ``straight``, it leaves and
        arrives upright, and goes over in a bow between places of the same height.
        """
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        (x, y), (u, v) = start, end
        turn = (y + v) / 2 if y != v else y - 0.2 - 0.3 * abs(u - x)
        curve = Path([start, (x, turn), (u, turn), end], [1, 4, 4, 4])
        path = Path([start, end]) if straight else curve
        thick, strong = (1.3, 1) if weight is None else (0.6 + THICK * weight, weight)
        style = {"color": LIGHT[color], "lw": thick, "alpha": 0.25 + 0.75 * strong}
        form = {"arrowstyle": "-|>" if weight is None else "-"}
        form |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
        form |= {"capstyle": "butt", "fill": weight is None}
        self.ax.add_patch(FancyArrowPatch(path=path, **style, **form, zorder=1))

    def line(self, start, end, color):
        """Draw a thin line from a place (x, y) to another."""
        self._line(start, end, LIGHT[color], 1.3)

    def dot(self, x, y, color, *, hollow=False):
        """Mark a place; a ``hollow`` mark is a ring."""
        face = LIGHT["paper"] if hollow else LIGHT[color]
        style = {"mfc": face, "mec": LIGHT[color], "mew": 2, "ms": 8, "zorder": 3}
        self.ax.plot(x, y, "o", **style)

    def bell(self, foot, width, height):
        """Stand a pale bell over its ``foot`` (x, y): a Gaussian of this ``width``."""
        x, y = foot
        across = np.linspace(-3, 3, 121)
        up = y - height * np.exp(-(across**2) / 2)
        style = {"color": LIGHT["query"], "zorder": 0}
        self.ax.fill_between(x + width * across, y, up, alpha=PALE, lw=0, **style)
        self.ax.plot(x + width * across, up, lw=1.3, **style)

    def clock(self, x, y, radius, hands):
        """Draw a clock face; ``hands`` maps words to (degrees past twelve, color)."""
        from matplotlib.patches import Circle

        self.ax.add_patch(Circle((x, y), radius, fill=False, ec=LIGHT["line"], lw=1))

        def at(degrees, share):
            turned = math.radians(degrees)
            away = share * radius
            return x + away * math.sin(turned), y - away * math.cos(turned)

        for hour in range(0, 360, 30):
            self._line(at(hour, 0.93), at(hour, 1), LIGHT["line"], 1)
        for words, (degrees, color) in hands.items():
            self._line((x, y), at(degrees, 0.85), LIGHT[color], 3)
            side = math.sin(math.radians(degrees))
            align = "center" if abs(side) < 0.5 else "left" if side > 0 else "right"
            self.text(*at(degrees, 1.15), words, color=color, align=align)

    def sector(self, x, y, radius, start, width, color):
        """Fill the part of a clock face that lies ``width`` degrees past ``start``."""
        from matplotlib.patches import Wedge

        ends = start - 90, start - 90 + width  # matplotlib counts from three o'clock
        style = {"fc": (LIGHT[color], 2 * PALE), "lw": 0, "zorder": 0}
        self.ax.add_patch(Wedge((x, y), radius, *ends, **style))

    def patches(self, place, image, rows):
        """Cut an image into ``rows`` × ``rows`` patches; return their places, in order.

        The image is (height, width), dark on white, or (channel, height, width) with
        values from 0 to 1; it fills ``place``, a Box, with gaps between the patches.
        """
        image = array(image)
        limits = {"vmin": image.min(), "vmax": image.max(), "cmap": "Greys"}
        high, wide = (size // rows for size in image.shape[-2:])
        step, places = place.width / rows, []
        for i, j in itertools.product(range(rows), repeat=2):
            x, y = place.left[0] + step * (j + 0.5), place.top[1] + step * (i + 0.5)
            places.append(Box(x, y, 0.88 * step, 0.88 * step))
            part = image[..., i * high : (i + 1) * high, j * wide : (j + 1) * wide]
            self._image(places[-1], part, limits)
        return places

    def _image(self, place, image, limits):
        from_left, from_below = place.left[0], self.height - place.bottom[1]
        corner = from_left / self.width, from_below / self.height
        size = place.width / self.width, place.height / self.height
        ax = self.figure.add_axes((*corner, *size), xticks=[], yticks=[])
        ax.imshow(image.transpose(1, 2, 0) if image.ndim == 3 else image, **limits)
        ax.set_aspect("auto")
        ax.spines[:].set(color=LIGHT["line"], lw=0.6, visible=True)

    def cells(self, x, y, numbers, color, *, side=0.22, chosen=None):
        """Draw a vector, or a matrix (row, column), as cells; return its place.

        Its upper left corner is at (x, y). The larger a number, or its distance from 0,
        the fuller its cell. Only the row ``chosen``, if any, is strong.
        """
        from matplotlib.patches import Rectangle

        numbers = abs(array(numbers))
        numbers = numbers.reshape(-1, numbers.shape[-1])
        rows, columns = numbers.shape
        for (i, j), number in np.ndenumerate(numbers / (numbers.max() or 1)):
            strong, hue = 1.0 if chosen in (None, i) else 0.35, LIGHT[color]
            style = {"fc": (hue, strong * number), "ec": (hue, strong)}
            corner = x + j * side, y + i * side
            self.ax.add_patch(Rectangle(corner, side, side, **style))
        width, height = columns * side, rows * side
        return Box(x + width / 2, y + height / 2, width, height)

    def _line(self, start, end, color, width):
        self.ax.plot(*zip(start, end, strict=True), color=color, lw=width)

    def _round(self, place, *, fc, **style):
        from matplotlib.patches import FancyBboxPatch

        corner = place.left[0], place.top[1]
        radius = min(0.1, place.height / 2)
        form = f"round,pad=0,rounding_size={radius}"
        size = place.width, place.height
        self.ax.add_patch(FancyBboxPatch(corner, *size, form, fc=fc, **style))


def _inches(words, size):
    return LETTER * size / 10 * len(words)
