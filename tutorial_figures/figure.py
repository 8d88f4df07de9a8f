"""The figure of a page: live where JavaScript runs, a picture or a sentence elsewhere.

One HTML fragment holds the picture, the data and the code, so a figure needs no
kernel, no network and no other file. The same input gives the same bytes.

Its colors are those of ``tutorial_lib.plotting.colors``: pictures use the light ones,
and pages carry both as variables of CSS, between which base.css and base.js change as
the page turns dark. Scales of color, where it stands for numbers, are in colors.js.
"""

import base64
import functools
import hashlib
import html
import json
import pathlib
import warnings

from tutorial_lib.plotting.colors import DARK, LIGHT

from .inputs import as_text

HERE = pathlib.Path(__file__).parent
ACCENT, MARK = LIGHT["accent"], LIGHT["mark"]
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
        self.scripts = ("base.js", *shared, f"{name}.js")
        self.title = "" if title is None else as_text(title)
        self.text = f"{self.title} · {text}" if title else text
        self.data = {**data, "title": self.title}
        self.draw = draw

    @functools.cached_property
    def html(self):
        """Return the live figure, self-contained, with the picture as its fallback."""
        data = _json(self.data)
        css = _json(self._style())
        key = hashlib.sha256((self.name + data).encode()).hexdigest()[:12]
        picture = base64.b64encode(self.png).decode()
        return (
            f'<div data-figure="{key}" data-lm-suppress-shortcuts="true">'
            f'<img alt="{html.escape(self.text)}" style="max-width:100%" '
            f'src="data:image/png;base64,{picture}"></div>'
            f"<script>(() => {{\n{''.join(map(shipped, self.scripts))}"
            f'start("{key}", {data}, {css}, {self.name});\n}})();</script>'
        )

    @functools.cached_property
    def png(self):
        """Return the picture as PNG bytes, in few colors: a third of the size."""
        from tutorial_lib.plotting.figure import in_few_colors

        return in_few_colors(self.still("png"))

    def save(self, path):
        """Write the live figure as a page (.html) or the picture (.png .pdf .svg).

        Raises ValueError for any other ending.
        """
        path = pathlib.Path(path)
        if path.suffix == ".html":
            page = PAGE.format(title=html.escape(self.text), figure=self.html)
            path.write_text(page, encoding="utf-8")
        elif path.suffix in (".png", ".pdf", ".svg"):
            path.write_bytes(self.still(path.suffix[1:]))
        else:
            raise ValueError(
                f"cannot save {path.name}: end its name in .html, .png, .pdf or .svg"
            )

    def still(self, format, *, dpi=PNG_DPI, dark=False, credit=""):
        """Return the picture as the bytes of a file, png, svg or pdf, with a credit."""
        import matplotlib.style

        from tutorial_lib.plotting.figure import draw

        with matplotlib.style.context(STYLE), warnings.catch_warnings():
            # The live figure shows every script; the picture those its font has.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            picture = self.draw(self.data)
            picture.suptitle(self.title, fontsize=11)
            return draw(picture, format, dpi=dpi, dark=dark, credit=credit)

    def _style(self):
        return palette() + shipped("base.css") + shipped(f"{self.name}.css")

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/html": self.html,
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": self.text,
        }


@functools.cache
def shipped(name):
    """Return the file ``name`` (.js or .css) as pages carry it: without comments.

    Those fill whole lines, and no literal of JavaScript goes over several.
    """
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    kept = (line for line in lines if line.strip()[:2] not in ("", "//", "/*"))
    return "".join(f"{line}\n" for line in kept)


def canvas(width, height):
    """Return an empty matplotlib figure of some inches: a picture to draw on."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")


def palette():
    """Return the colors as variables of CSS, on light pages and on dark ones."""
    rules = ""
    for host, colors in ((":host", LIGHT), (":host([data-dark])", DARK)):
        variables = "".join(f"  --{name}: {color};\n" for name, color in colors.items())
        rules += f"{host} {{\n{variables}}}\n"
    return rules


def _json(value):
    """Return ``value`` as JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
