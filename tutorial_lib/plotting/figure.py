"""A matplotlib figure as a notebook stores it, and as a file.

The same figure gives the same bytes, on white paper. On dark pages a style sheet turns
light and dark around and keeps the hues; it leaves alone what shows a photograph, which
says so in its metadata as JupyterLab expects it.
"""

import base64
import io

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from tutorial_lib.plotting.colors import turns_dark

DRAWN = 4096  # so many colors, at most, are in a figure without a photograph
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


class Figure(matplotlib.figure.Figure):
    """A figure that pyplot does not know: whoever returns it shows it, once."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        FigureCanvasAgg(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        png = in_few_colors(draw(self, "png", dpi=self.dpi))
        data = {"image/png": base64.b64encode(png).decode()}
        if any(ax.images and not turns_dark(ax) for ax in self.axes):
            return data, {"image/png": {"needs_background": "light"}}
        return data


def draw(figure, format, *, dpi):
    """Return the bytes of any matplotlib figure as a file: png, svg or pdf, trimmed."""
    figure.draw_without_rendering()  # which moves the panels to where they will stay
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "tutorial_lib"}):
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
    palette = few.getpalette()
    place = 3 * few.getpixel((0, 0))
    palette[place : place + 3] = full.getpixel((0, 0))
    few.putpalette(palette)
    buffer = io.BytesIO()
    few.save(buffer, "png", optimize=True, dpi=image.info["dpi"])
    return buffer.getvalue()
