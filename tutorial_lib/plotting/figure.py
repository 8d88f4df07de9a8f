"""A matplotlib figure that a notebook stores twice, and figures as files.

A file may carry a credit, below the figure and in the metadata. The same figure gives
the same bytes. A notebook that shows a figure stores a PNG on white paper, which every
front end shows, and one on dark paper, which pages take in the dark. Both have few
colors, which makes them a quarter of the size.

This module does not know what a figure shows.
"""

import base64
import io
from contextlib import contextmanager, nullcontext

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.dark import on_dark

DARK_PNG = "application/vnd.attention-book.dark+png"
DRAWN = 4096  # so many colors, at most, are in a figure without a photograph
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
CREDIT = {"png": "Copyright", "svg": "Rights", "pdf": "Subject"}  # in the metadata
CREDIT_SIZE, CREDIT_GAP = 7, 0.08  # points, inches below the figure


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


def draw(figure, format, *, dpi, dark=False, credit=""):
    """Return the bytes of any matplotlib figure as a file, trimmed.

    ``format`` is png, svg or pdf; with ``dark`` the paper is dark; ``credit`` stands
    below the figure and in the file's metadata.
    """
    figure.draw_without_rendering()  # which moves the panels to where they will stay
    buffer = io.BytesIO()
    about = UNDATED[format] | ({CREDIT[format]: credit} if credit else {})
    salted = matplotlib.rc_context({"svg.hashsalt": "tutorial_lib"})
    credited = _credited(figure, credit) if credit else nullcontext()
    with salted, credited, on_dark(figure) if dark else nullcontext():
        figure.savefig(
            buffer,
            format=format,
            dpi=dpi,
            bbox_inches="tight",
            facecolor=figure.get_facecolor(),
            metadata=about,
        )
    return buffer.getvalue()


@contextmanager
def _credited(figure, credit):
    """Put a small line below a matplotlib figure for as long as the context lasts."""
    inches = figure.get_tightbbox()
    line = figure.text(
        inches.x0,
        inches.y0 - CREDIT_GAP,
        credit,
        color=LIGHT["quiet"],
        parse_math=False,
        size=CREDIT_SIZE,
        transform=figure.dpi_scale_trans,
        verticalalignment="top",
    )
    try:
        yield
    finally:
        line.remove()


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
