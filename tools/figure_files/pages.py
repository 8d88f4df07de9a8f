"""Pages: live figures by themselves, and an index of all figures with their captions.

A page needs no other page, no script of ours and no internet. The same figures give
the same bytes.

This module knows only names, captions and files, not where these come from.
"""

import base64
import html
import re
from typing import NamedTuple

from tutorial_lib.plotting.colors import DARK, LIGHT

SCHEMES = {
    "light": ("light", LIGHT["paper"], LIGHT["ink"]),
    "dark": ("dark", DARK["paper"], DARK["ink"]),
    None: ("light dark", "Canvas", "CanvasText"),
}
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{scheme}">
<title>{title}</title>
<style>
body {{ background: {paper}; color: {ink}; font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1rem; }}
figure {{ margin: 0 0 2.5rem; }}
figcaption {{ margin-top: 0.5rem; }}
figure > a > img {{ background: {paper}; height: auto; max-width: 100%; }}
a {{ color: inherit; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
BOOKS_OWN_STYLE = re.compile(r"^<style>.*?</style>", re.DOTALL)


class Shown(NamedTuple):
    """A figure as the index shows it: its ``files`` are names, the picture first.

    ``preview`` is a PNG, for a picture that no page shows; None otherwise.
    """

    name: str
    caption: str
    alternative: str
    files: list
    preview: bytes | None


def live_page(fragment, *, name, chapter, caption, style):
    """Return a live figure, an HTML fragment, as a page of its own.

    ``style`` is light, dark, or None for that of the reader.
    """
    fragment = BOOKS_OWN_STYLE.sub("", fragment)
    body = (
        f"<figure>\n{fragment}\n<figcaption>{html.escape(caption)}</figcaption>\n"
        "</figure>"
    )
    return _page(f"{name} · {chapter}", body, style)


def index_page(sections, *, book, style):
    """Return the index of a folder of figures.

    ``sections`` lists chapters as ``(title, remarks, figures)``, where remarks are
    texts and ``figures`` are ``Shown``.
    """
    body = [f"<h1>Figures of <cite>{html.escape(book)}</cite></h1>"]
    for title, remarks, figures in sections:
        body.append(f"<section>\n<h2>{html.escape(title)}</h2>")
        body += [f"<p>{html.escape(remark)}</p>" for remark in remarks]
        body += [_figure(figure) for figure in figures]
        body.append("</section>")
    return _page(f"Figures of {book}", "\n".join(body), style)


def _page(title, body, style):
    scheme, paper, ink = SCHEMES[style]
    return PAGE.format(
        title=html.escape(title), body=body, scheme=scheme, paper=paper, ink=ink
    )


def _figure(figure):
    source = html.escape(figure.files[0])
    if figure.preview is not None:
        source = f"data:image/png;base64,{base64.b64encode(figure.preview).decode()}"
    links = ", ".join(f'<a href="{file}">{file}</a>' for file in figure.files)
    return (
        f'<figure id="{figure.name}">\n<a href="{figure.files[-1]}">'
        f'<img src="{source}" alt="{html.escape(figure.alternative)}"></a>\n'
        f"<figcaption>{as_html(figure.caption)}<br>{links}</figcaption>\n</figure>"
    )


def as_html(caption):
    """Return a caption, Markdown as the book writes it, as HTML."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).renderInline(caption)
