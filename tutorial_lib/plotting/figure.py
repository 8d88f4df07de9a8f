"""A matplotlib figure that a notebook stores twice, and figures as files.

The same figure gives the same bytes. A notebook that shows a figure stores a PNG on
white paper, which every front end shows, and one on dark paper, which pages take in the
dark. Both have few colors, which makes them a quarter of the size.

This module does not know what a figure shows.
"""

import base64
import io
from contextlib import nullcontext

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from tutorial_lib.plotting.dark import on_dark

DARK_PNG = "application/vnd.attention-book.dark+png"
DRAWN = 4096  # so many colors, at most, are in a figure without a photograph
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Figure(matplotlib.figure.Figure):
    """A figure that pyplot does not know: whoever returns it shows it, once."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        FigureCanvasAgg(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        shown = {"image/png": False, DARK_PNG: True}
        return {kind: self._stored(dark) for kind, dark in shown.items()}

    def _stored(self, dark):
        png = draw(self, "png", dpi=self.dpi, dark=dark)
        return base64.b64encode(in_few_colors(png)).decode()


def draw(figure, format, *, dpi, dark=False):
    """Return the bytes of any matplotlib figure as a file, trimmed.

    ``format`` is png, svg or pdf; with ``dark`` the paper is dark.
    """
    figure.draw_without_rendering()  # which moves the panels to where they will stay
    buffer = io.BytesIO()
    salted = matplotlib.rc_context({"svg.hashsalt": "tutorial_lib"})
    with salted, on_dark(figure) if dark else nullcontext():
        figure.savefig(
            buffer,
            format=format,
            dpi=dpi,
            bbox_inches="tight",
            facecolor=figure.get_facecolor(),
            metadata=UNDATED[format],
        )
    return buffer.getvalue()


def in_few_colors(png):
    """Return the bytes of a PNG in 128 colors, or 256 if there is a photograph in it.

    The paper, which is the color of the first pixel, stays exactly as it is.
    """
    image = Image.open(io.BytesIO(png))
    full = image.convert("RGB")
    count = 128 if full.getcolors(DRAWN) else 256
    few = full.quantize(count, Image.Quantize.MAXCOVERAGE, kmeans=2)
    place, palette = 3 * few.getpixel((0, 0)), few.getpalette()
    few.putpalette([*palette[:place], *full.getpixel((0, 0)), *palette[place + 3 :]])
    buffer = io.BytesIO()
    few.save(buffer, "png", optimize=True, dpi=image.info["dpi"])
    return buffer.getvalue()
