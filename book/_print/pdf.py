"""Print the book, built as a single page, into a PDF: ``pdf.py FOLDER BOOK.pdf``.

Chromium does the printing, so that figures, formulas and links are those of the pages;
the outline is made of the headings. The style of paper is _static/print.css, and what
is unfolded there stands in _static/print.js. The same pages give the same bytes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import FLAGS, require_chromium
from bs4 import BeautifulSoup

OPTIONS = (
    "--headless",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
    "--virtual-time-budget=60000",  # milliseconds of the page's clock
)
ROOT = "book/intro"
SCREEN = ".headerlink, .bd-header-article, .bd-sidebar-primary, .bd-sidebar-secondary, "
SCREEN += "#jb-print-docs-body"
LOCAL = re.compile(
    r"^(?:\.\./)?(?P<document>(?:book|notebooks)/\w+)\.html(?P<place>#.*)?$"
)
PATIENCE = 540  # seconds
UNDATED = b"20000101000000"


def main(folder, target):
    """Print the book in ``folder``; end the program with a sentence if that fails."""
    chromium = require_chromium()
    folder = Path(folder)
    target = Path(target)
    page = folder / f"{ROOT}.html"
    bound = folder / "bound.html"  # Sphinx writes its links as if from here
    bound.write_text(bind(page.read_text(encoding="utf-8")), encoding="utf-8")
    pdf = print_page(chromium, bound.resolve())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(without_dates(pdf))


def bind(text):
    """Make one document of a page into which Sphinx has put all others.

    It begins with a title page and a list of contents. Chapters become the first level
    of headings, as they are on pages of their own, and the second of the outline, below
    their parts; links between pages lead to places in this one; and what is only wanted
    on a screen is gone, because the outline shows hidden headings, too.
    """
    page = BeautifulSoup(text, "html.parser")
    parts = page.select(".bd-sidebar-primary .caption")
    for part, chapters in zip(parts, page.select(".toctree-wrapper"), strict=False):
        chapters.insert(0, part.extract())
        part["aria-level"] = 1
        part["class"] = "part"
    for screen in page.select(SCREEN):
        screen.decompose()
    for place in page.select(".toctree-wrapper > span"):
        place.find_next_sibling("section").insert(0, place.extract())
    for heading in page.select(".toctree-wrapper :is(h2, h3, h4, h5, h6)"):
        level = int(heading.name[1])
        heading.name = f"h{level - 1}"
        heading["aria-level"] = level
    for link in page.select("article a[href]"):
        link["href"] = LOCAL.sub(_place, link["href"])
    title = page.article.h1.get_text()
    page.title.string = title
    front = page.new_tag("span", id="document-" + ROOT)
    parts = (title_page(page, title), contents(page), front)
    for place, part in enumerate(parts):
        page.article.insert(place, part)
    return str(page)


def title_page(page, title):
    """Return what stands on the first page: title, and what is at the foot of pages."""
    feet = page.select(".component-author, .extra_footer > p")
    whole = _tagged(page, "section", "title-page")
    whole.append(_tagged(page, "p", "title", title))
    whole.extend(foot.extract() for foot in feet)
    return whole


def contents(page):
    """Return the list of parts and chapters, which are links."""
    whole = _tagged(page, "nav", "contents")
    whole.append(_tagged(page, "p", "title", "Contents"))
    for part in page.select(".toctree-wrapper"):
        whole.append(_tagged(page, "p", "named", part.p.get_text()))
        for place in part.select(":scope > section > span:first-child"):
            title = place.parent.h1.get_text()
            link = _tagged(page, "a", "chapter", title)
            link["href"] = "#" + place["id"]
            whole.append(link)
    return whole


def _tagged(page, name, kind, text=""):
    tag = page.new_tag(name, attrs={"class": kind})
    tag.string = text
    return tag


def _place(address):
    return address["place"] or f"#document-{address['document']}"


def print_page(chromium, page):
    """Return the bytes of the PDF that Chromium makes of a page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "page.pdf"
        profile = f"--user-data-dir={folder}/profile"
        command = [chromium, *FLAGS, *OPTIONS, profile, f"--print-to-pdf={target}"]
        try:
            done = subprocess.run(
                [*command, page.as_uri()],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            sys.exit(f"{chromium} did not print in {PATIENCE} seconds: try again")
        if not target.is_file():
            sys.exit(f"{chromium} printed nothing: {done.stderr.strip()[-300:]}")
        return target.read_bytes()


def without_dates(pdf):
    """Set the date of a PDF to a fixed one, so that the same book is the same file."""
    return re.sub(rb"(?<=Date \(D:)\d{14}", UNDATED, pdf)


if __name__ == "__main__":
    main(*sys.argv[1:])
