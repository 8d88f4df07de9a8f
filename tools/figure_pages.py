"""Pages: live figures by themselves, and an index of all figures with their captions.

A page needs no other page, no script of ours and no internet. The same figures give
the same bytes. This module knows names, captions and files, not where they come from.
"""

from html import escape

from tutorial_lib.plotting.colors import DARK, LIGHT

SCHEMES = {
    "light": ("light", LIGHT["paper"], LIGHT["ink"]),
    "dark": ("dark", DARK["paper"], DARK["ink"]),
    None: ("light dark", "Canvas", "CanvasText"),  # that of the reader
}
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{scheme}">
<title>{title}</title>
<style>
body {{ background: {paper}; color: {ink}; font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1rem; }}
figure {{ margin: 0 0 2.5rem; }}
figure > a > img {{ background: {paper}; height: auto; max-width: 100%; }}
a {{ color: inherit; }}
</style>
<main>
{body}
</main>
</html>
"""


def live_page(fragment, title, caption, style):
    """Return a live figure, an HTML fragment, as a page of its own."""
    caption = f"<figcaption>{escape(caption)}</figcaption>"
    return _page(title, f"<figure>\n{fragment}\n{caption}\n</figure>", style)


def index_page(book, sections, style):
    """Return the index of a folder of figures.

    ``sections`` lists chapters as pairs: the title, and what ``entry`` returned.
    """
    body = [f"<h1>Figures of <cite>{escape(book)}</cite></h1>"]
    for title, entries in sections:
        body += [f"<section>\n<h2>{escape(title)}</h2>", *entries, "</section>"]
    return _page(f"Figures of {book}", "\n".join(body), style)


def entry(figure, files, preview):
    """Return how the index shows a figure: ``files`` are names, the picture first.

    ``preview`` is a PNG, as base64, for a picture that no page shows.
    """
    from markdown_it import MarkdownIt

    caption = MarkdownIt("commonmark", {"html": False}).renderInline(figure.caption)
    source = f"data:image/png;base64,{preview}" if preview else files[0]
    links = ", ".join(f'<a href="{file}">{file}</a>' for file in files)
    return (
        f'<figure id="{figure.name}">\n<a href="{files[-1]}">'
        f'<img src="{source}" alt="{escape(figure.alternative)}"></a>\n'
        f"<figcaption>{caption}<br>{links}</figcaption>\n</figure>"
    )


def _page(title, body, style):
    scheme, paper, ink = SCHEMES[style]
    title = escape(title)
    return PAGE.format(title=title, body=body, scheme=scheme, paper=paper, ink=ink)
