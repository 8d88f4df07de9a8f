"""The pages that `make book` makes in _build/html; without any their tests skip."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"
MOVED = b"<p>This page has moved:"  # it leads on, and has nothing else
PAGES = sorted(
    page
    for page in HTML.rglob("*.html")
    if "_static" not in page.parts and MOVED not in page.read_bytes()
)
CHAPTERS = [page for page in PAGES if page.parent.name == "notebooks"]
READ = [page for page in PAGES if page.parent.name in ("book", "notebooks")]
SCREEN = {"width": 1280, "height": 900}
needs_pages = pytest.mark.skipif(not PAGES, reason="there are no pages: run make book")
OPEN = "() => document.querySelectorAll('.show').forEach(button => button.click())"
# Of elements that look the same, because they and all around them have the same tags,
# classes, styles and colors, the first is kept.
THIN = """parts => {
  const kinds = new Map(), kindOf = new Map(), first = new Set();
  for (const element of document.querySelectorAll("*")) {
    const {color, backgroundColor} = getComputedStyle(element);
    const look = [kindOf.get(element.parentElement), element.tagName,
      element.getAttribute("class"), element.getAttribute("style"),
      element.checkVisibility(), color, backgroundColor].join("|");
    if (!kinds.has(look)) first.add(element) && kinds.set(look, kinds.size);
    kindOf.set(element, kinds.get(look));
  }
  for (const element of [...document.querySelectorAll(parts)].reverse())
    if (!first.has(element) && !element.firstElementChild) element.remove();
}"""
CODE_AND_FORMULAS = "pre *, math, math *"


def each(pages):
    name = [str(page.relative_to(HTML).with_suffix("")) for page in pages]
    return pytest.mark.parametrize("page_file", pages, ids=name)
