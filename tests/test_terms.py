"""Whoever types a term is led to the page that explains it.

``book/terms.csv`` says which page that is. The search is the built book's own, in
_build/html, which `make book` makes; where it is not built that test is skipped.
"""

import csv
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
SEARCH = ROOT / "_build" / "html" / "search.html"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# A file may not fetch the excerpts; and results come at once, not five milliseconds
# after each other.
QUICKLY = """
window.fetch = () => new Promise(() => {});
const {setTimeout} = window;
window.setTimeout = (act, wait) => wait === 5 ? act() : setTimeout(act, wait);
"""
IS_READY = "() => typeof Search === 'object' && Search.hasIndex()"
FIND = """queries => queries.map(query => {
  document.getElementById("search-results").replaceChildren();
  Search.performSearch(query);
  const links = [...document.querySelectorAll("#search-results li a")];
  return links.slice(0, 3).map(link => link.getAttribute("href"));
})"""


def read_terms():
    """List each spelling of each term with the beginning of its page's name."""
    with (ROOT / "book" / "terms.csv").open(encoding="utf-8", newline="") as file:
        return [
            ([row["term"], *filter(None, row["also"].split("; "))], row["page"])
            for row in csv.DictReader(file)
        ]


TERMS = read_terms()


def plain(text):
    """Return a text without markup, and with spaces for all that joins two words."""
    return re.sub(r"[-–_\s]+", " ", re.sub(r"[*`$]", "", text)).lower()


def test_no_spelling_stands_twice():
    counts = Counter(each.lower() for spellings, _ in TERMS for each in spellings)
    assert [each for each, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_page_names_the_terms_that_it_explains(path):
    cells = nbformat.read(path, as_version=4).cells
    text = plain("\n".join(c.source for c in cells if c.cell_type == "markdown"))
    terms = [spellings for spellings, page in TERMS if path.stem.startswith(page)]
    assert terms
    unnamed = []
    for spellings in terms:
        if not any(plain(each) in text for each in spellings):
            unnamed.append(spellings[0])
    assert unnamed == []


@pytest.mark.skipif(not SEARCH.exists(), reason="there are no pages: run make book")
def test_the_search_finds_the_page_of_every_term_among_the_first_three(page_at):
    page = page_at(SEARCH, script=QUICKLY)
    page.wait_for_function(IS_READY)
    asked = [(each, name) for spellings, name in TERMS for each in spellings]
    results = page.evaluate(FIND, [query for query, _ in asked])
    missed = {}
    for (query, name), links in zip(asked, results, strict=True):
        if not any(link.split("/")[-1].startswith(name) for link in links):
            missed[query] = links
    assert missed == {}
