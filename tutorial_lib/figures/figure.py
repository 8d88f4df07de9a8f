"""The figure of a page: live where JavaScript runs, a picture or a sentence elsewhere.

One HTML fragment holds the picture, the data and the code, so a figure needs no
kernel, no network and no other file. The same input gives the same bytes.

This module knows neither what a figure shows nor how its JavaScript draws it.
"""

import base64
import functools
import hashlib
import html
import io
import json
import pathlib
import re
import warnings

HERE = pathlib.Path(__file__).parent

# The book's theme lays a light box under every HTML output in dark mode; the figure
# follows the page's colours by itself.
UNBOX = (
    "<style>html[data-theme=dark] .bd-content div.cell_output "
    ".text_html:has([data-figure]){background:none!important;"
    "color:inherit!important;padding:0!important}</style>"
)
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
PNG_DPI = 100
PNG_COLOURS = 48


class Figure:
    """A figure with four faces: ``html``, ``png``, ``text`` and the pages it saves.

    ``sources`` name the JavaScript and CSS files besides base; the last one holds
    the function of that name that draws ``data``. ``text`` says in a sentence what
    the figure shows, and ``draw`` returns the picture as a matplotlib figure.
    """

    def __init__(self, sources, data, *, text, title, draw):
        self.sources = ("base", *sources)
        self.data = {**data, "text": text, "title": title}
        self.text = text
        self.title = title
        self.draw = draw

    @functools.cached_property
    def html(self):
        """Return the live figure, self-contained, with the picture as its fallback."""
        data, css = to_script(self.data), to_script(self._sources("css"))
        key = hashlib.sha256((self.sources[-1] + data).encode()).hexdigest()[:12]
        picture = base64.b64encode(self.png).decode()
        return (
            f'{UNBOX}<div data-figure="{key}" data-lm-suppress-shortcuts="true">'
            f'<img alt="{html.escape(self.text)}" style="max-width:100%" '
            f'src="data:image/png;base64,{picture}"></div>'
            f"<script>(() => {{\n{self._sources('js')}"
            f'start("{key}", {data}, {css}, {self.sources[-1]});\n}})();</script>'
        )

    @functools.cached_property
    def png(self):
        """Return the picture as PNG bytes in few colours, a quarter of the size."""
        from PIL import Image

        image = Image.open(io.BytesIO(self._render("png"))).convert("RGB")
        image = image.quantize(PNG_COLOURS, dither=Image.Dither.NONE)
        buffer = io.BytesIO()
        image.save(buffer, "png", optimize=True, dpi=(PNG_DPI, PNG_DPI))
        return buffer.getvalue()

    def save(self, path):
        """Write the live figure as a page (.html) or the picture (.png .pdf .svg)."""
        path = pathlib.Path(path)
        if path.suffix == ".html":
            title = html.escape(self.title or self.text)
            page = PAGE.format(title=title, figure=self.html)
            path.write_text(page, encoding="utf-8")
        elif path.suffix in (".png", ".pdf", ".svg"):
            path.write_bytes(self._render(path.suffix[1:]))
        else:
            raise ValueError(
                f"cannot save {path.name}: end its name in .html, .png, .pdf or .svg"
            )

    def _sources(self, suffix):
        return "".join(shipped(HERE / f"{name}.{suffix}") for name in self.sources)

    def _render(self, suffix):
        import matplotlib.style

        buffer = io.BytesIO()
        with matplotlib.style.context("default"), warnings.catch_warnings():
            # The live figure shows every script; the picture those its font has.
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            matplotlib.rcParams["svg.hashsalt"] = self.sources[-1]
            self.draw().savefig(buffer, format=suffix, dpi=PNG_DPI, bbox_inches="tight")
        return buffer.getvalue()

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/html": self.html,
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": self.text,
        }


def to_script(value):
    """Return ``value`` as JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


LITERAL = re.compile(r'("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)')


@functools.cache
def shipped(path):
    """Return JavaScript or CSS without its comments and the spaces it can spare.

    Whole-line comments, indentation, spaces at operators and line ends after an
    opening bracket, a comma or a semicolon go; literals stay. The source keeps to the
    rules that make this safe (stated in base.js).
    """
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    kept = "".join(f"{line}\n" for line in lines if line[:2] not in ("", "//", "/*"))
    parts = LITERAL.split(kept)
    parts[::2] = map(_squeeze, parts[::2])
    return "".join(parts)


def _squeeze(code):
    code = re.sub(r" ?([=<>*/?:,(){}&|]) ?", r"\1", code)
    code = re.sub(r"(?<=[\w)\]]) ([+-]) (?=[\w(\[.])", r"\1", code)
    return re.sub(r"([;{,(\[])\n", r"\1", code)
