"""The figure of a page: live where JavaScript runs, a picture or a sentence elsewhere.

One HTML fragment holds the picture, the data and the code, so a figure needs no
kernel, no network and no other file. The same input gives the same bytes.

Its colors are those of ``tutorial_lib.plotting.colors``: pictures use the light ones,
and pages carry both as variables of CSS, between which base.css and base.js change as
the page turns dark. Scales of color, where it stands for numbers, are in colors.js.
"""

import base64
import functools
import html
import pathlib
import warnings

from tutorial_lib.notebook import printable
from tutorial_lib.plotting.colors import DARK, LIGHT

from .fragment import fragment, module
from .inputs import as_text

ACCENT = LIGHT["accent"]
MARK = LIGHT["mark"]
QUERY = LIGHT["query"]
KEY = LIGHT["key"]
VALUE = LIGHT["value"]
PNG_DPI = 90
STYLE = [
    "default",
    {"text.parse_math": False},  # in labels "$" is a sign like any other
]

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<body style="font-family: system-ui, sans-serif; margin: 16px">
<main>{figure}</main>
</body>
</html>
"""


class Figure:
    """A figure with four faces: ``html``, ``png``, ``text`` and the pages it saves.

    ``name`` is that of the JavaScript function that draws ``data``, and of its .js and
    .css; ``shared`` are the .js it needs besides base.js. ``text`` says in a sentence
    what the figure shows, and ``draw(data)`` returns the picture, a matplotlib figure.
    """

    def __init__(self, name, data, *, text, title, draw, shared=()):
        self.name = name
        self.shared = shared
        self.title = "" if title is None else as_text(title)
        self.text = f"{self.title} · {text}" if title else text
        self.data = {**data, "title": self.title}
        self.draw = draw

    @functools.cached_property
    def html(self):
        """Return the live figure, self-contained, with the picture as its fallback."""
        return fragment(
            self.name,
            self.data,
            text=self.text,
            png=self.png,
            colors=(LIGHT, DARK),
            shared=self.shared,
        )

    @functools.cached_property
    def png(self):
        """Return the picture as PNG bytes, in few colors: a third of the size."""
        from tutorial_lib.plotting.figure import in_few_colors

        return in_few_colors(self.still("png"))

    def save(self, path):
        """Write the live figure as a page (.html) or as a module for other pages (.js).

        Endings of pictures (.png .pdf .svg) write the picture. Raises ValueError for
        any other ending.
        """
        path = pathlib.Path(path)
        if path.suffix == ".html":
            page = PAGE.format(title=html.escape(self.text), figure=self.html)
            path.write_text(page, encoding="utf-8")
        elif path.suffix == ".js":
            code = module(
                self.name,
                self.data,
                text=self.text,
                colors=(LIGHT, DARK),
                shared=self.shared,
            )
            path.write_text(code, encoding="utf-8")
        elif path.suffix in (".png", ".pdf", ".svg"):
            path.write_bytes(self.still(path.suffix[1:]))
        else:
            raise ValueError(
                f"cannot save {path.name}: end its name in .html, .js, .png, .pdf or "
                ".svg"
            )

    def still(self, format, *, dpi=PNG_DPI):
        """Return the picture as the bytes of a file, png, svg or pdf."""
        import matplotlib.style

        from tutorial_lib.plotting.figure import draw

        with matplotlib.style.context(STYLE), warnings.catch_warnings():
            # The live figure shows every script; the picture those its font has.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            picture = self.draw(self.data)
            picture.suptitle(self.title, fontsize=11)
            return draw(picture, format, dpi=dpi)

    def __repr__(self):
        return printable(self.text)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/html": self.html,
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": self.text,
        }


def canvas(width, height):
    """Return an empty matplotlib figure of some inches: a picture to draw on."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")
