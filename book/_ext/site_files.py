"""A Sphinx extension for what a site has besides its pages, and what pages say of it.

The root of the site, ``index.html``, leads to the front page and tells search engines
what it is. Where no page is, ``404.html`` is shown, and the old addresses of renamed
pages lead to the new ones. Once the site has an address (``baseurl`` in the
configuration file, and nowhere else), pages name their own and the front page's
picture, and ``sitemap.xml`` lists them. Without one, none of this is made up. The
directive ``about-book`` says how the book may be used, whom to name, and its source.
"""

import html
import shutil
from pathlib import Path
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PICTURE = "book/diagrams/writing.png"  # of the front page
STORED = "_static/front_page.png"
SIZE = 1200, 630
LICENSE = "https://creativecommons.org/licenses/by/4.0/"
ALT = (
    "A small Transformer writes in the style of Shakespeare; 16 rows show its attention"
)
DESCRIPTION = (
    "A free, interactive book in which you build attention in PyTorch, from queries "
    "and keys to GPT."
)
MOVED = {  # pages that were renamed
    "notebooks/15_where_it_looks": "15_attention_maps",
    "notebooks/16_windows_objects_transfer": "16_swin",
    "notebooks/x_drafts": "x_speculative_decoding",
    "notebooks/x_kernel_widths": "x_bandwidth",
    "notebooks/x_places": "x_positions_beyond_text",
}
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
"""
ROOT_PAGE = """{head}<meta http-equiv="refresh" content="0; url={front}">
<meta name="description" content="{description}">
<meta property="og:type" content="website">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{description}">
{address}</head>
<body><p><a href="{front}">{title}</a></p></body>
</html>
"""
MOVED_PAGE = """{head}<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="1; url={new}">
<script>location.replace("{new}" + location.search + location.hash)</script>
</head>
<body><p>This page has moved: <a href="{new}">{new}</a></p></body>
</html>
"""
# A server shows it at any address, so it asks for no other file.
MISSING_PAGE = """{head}<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<style>body {{ font: 1.1rem/1.6 system-ui, sans-serif; margin: 4rem auto;
max-width: 34rem; padding: 0 1rem; }}</style>
</head>
<body><main><h1>There is no such page</h1>
<p>It may have moved. <a href="{front}">The front page</a> lists the chapters, and
the <a href="{index}">index</a> leads from each term to the page that explains it.</p>
</main>
</body>
</html>
"""


class AboutBook(SphinxDirective):
    """Say how the book may be used, whom to name and where its source is."""

    def run(self):
        """Return the sentences, of what the configuration file says."""
        config = self.env.config
        options = config.html_theme_options
        return [nodes.raw("", about(config.author, options), format="html")]


def about(author, options):
    """Return a paragraph of HTML about the licenses, the author and the source."""
    source = "Each chapter can be downloaded as a notebook at its top."
    address = options.get("repository_url")
    if address:
        source = (
            f'Its source is <a href="{html.escape(address)}">a public repository</a>.'
        )
    return (
        f'<p>Text and figures are under <a href="{LICENSE}">CC BY 4.0</a>, code under '
        "the MIT license: you may use, change and share both if you name "
        f"“{html.escape(author)}”. {source}</p>"
    )


def setup(app):
    """Offer the directive, and connect the functions below to the build."""
    app.add_directive("about-book", AboutBook)
    app.connect("html-page-context", name_address)
    app.connect("build-finished", write_files, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def name_address(app, pagename, templatename, context, doctree):
    """Give a page its address and the front page's picture, if the site has one."""
    address = base_of(app.config)
    own = f"{address}{pagename}.html"
    context["metatags"] = context.get("metatags", "") + picture_tags(address, own)


def base_of(config):
    """Return the site's address with a slash at its end, or "" without one."""
    address = config.html_baseurl or ""
    return f"{address.rstrip('/')}/" if address else ""


def picture_tags(address, own):
    """Return what links to a page show, or "" where the site has no address."""
    if not address:
        return ""
    width, height = SIZE
    tags = {
        "og:url": own,
        "og:image": address + STORED,
        "og:image:width": width,
        "og:image:height": height,
        "og:image:alt": ALT,
    }
    return "".join(
        f'<meta property="{name}" content="{html.escape(str(text))}">\n'
        for name, text in tags.items()
    )


def root_page(title, front, address):
    """Return the page at the root, which leads to the front page."""
    links = ""
    if address:
        own = html.escape(address + front)
        links = f'<link rel="canonical" href="{own}">\n'
        links += picture_tags(address, address + front)
    title = html.escape(title)
    return ROOT_PAGE.format(
        head=HEAD.format(title=title),
        title=title,
        front=front,
        description=html.escape(DESCRIPTION),
        address=links,
    )


def missing_page(title, front, index, address):
    """Return the page that is shown where none is."""
    head = HEAD.format(title=f"There is no such page — {html.escape(title)}")
    return MISSING_PAGE.format(
        head=head,
        front=html.escape(address + front),
        index=html.escape(address + index),
    )


def sitemap(address, pages):
    """Return a sitemap of pages, by their addresses within the site."""
    lines = [
        f"<url><loc>{escape(address + page)}</loc></url>" for page in sorted(pages)
    ]
    listed = "\n".join(lines)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{listed}\n</urlset>\n"
    )


def write_files(app, error):
    """Write the files of the site that are no pages of the book."""
    if error is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    address = base_of(app.config)
    title = app.config.html_title or app.config.project
    front = f"{app.config.root_doc}.html"
    pages = {"index.html": root_page(title, front, address)}
    pages["404.html"] = missing_page(title, front, "book/terms.html", address)
    if address:
        found = [f"{name}.html" for name in app.env.found_docs]
        pages["sitemap.xml"] = sitemap(address, found)
        shutil.copy(Path(app.srcdir, PICTURE), out / STORED)
    for old, new in MOVED.items():
        head = HEAD.format(title=html.escape(title))
        pages[f"{old}.html"] = MOVED_PAGE.format(head=head, new=f"{new}.html")
    for name, text in pages.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text, "utf-8")
