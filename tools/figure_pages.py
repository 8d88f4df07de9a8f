"""Pages: a live figure by itself, which needs no other page and no internet.

The same figure gives the same bytes. This module does not know where it comes from.
"""

from html import escape

from tutorial_lib.plotting.colors import DARK, LIGHT

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{style}">
<title>{title}</title>
<style>
body {{ background: {paper}; color: {ink}; font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1rem; }}
figure {{ margin: 0; }}
</style>
<main>
<figure>
{fragment}
<figcaption>{caption}<br><small>{credit}</small></figcaption>
</figure>
</main>
</html>
"""


def live_page(fragment, title, caption, credit, style):
    """Return a live figure, an HTML fragment, as a page, light or dark."""
    colors = DARK if style == "dark" else LIGHT
    return PAGE.format(
        fragment=fragment,
        title=escape(title),
        caption=escape(caption),
        credit=escape(credit),
        style=style,
        paper=colors["paper"],
        ink=colors["ink"],
    )
