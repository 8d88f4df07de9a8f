"""A Sphinx extension for the index: which page explains which term.

The table ``book/terms.csv`` has a row for each term: the term, the beginning of the
name of the file that explains it, other spellings that people search for, with
semicolons between them, and, where it could be mistaken, the beginning of the heading
of the section. The directive ``index-of-terms`` lists the terms with links to their
pages. The book's own search puts that section before all others, in every spelling,
and lets the links lead to it (book_search.py).
"""

import csv
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective


class Term(NamedTuple):
    """A row of the table: all spellings, the whole name of the page, the section."""

    spellings: list
    page: str
    section: str


def setup(app):
    """Offer the directive."""
    app.add_directive("index-of-terms", IndexOfTerms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_terms(env):
    """Return the terms in alphabetical order.

    Raises ExtensionError where not exactly one page has a name that begins as given.
    """
    terms = []
    with table(env).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["page"]
            pages = [p for p in env.found_docs if p.split("/")[-1].startswith(name)]
            if len(pages) != 1:
                problem = f"of {row['term']}: {len(pages)} pages begin with {name!r}"
                raise ExtensionError(f"book/terms.csv has no page {problem}")
            others = filter(None, row["also"].split("; "))
            spellings = [row["term"], *others]
            terms.append(Term(spellings, pages[0], row["section"] or ""))
    return sorted(terms, key=lambda term: term.spellings[0].lower())


def table(env):
    """Return the path of the table."""
    return Path(env.srcdir, "book", "terms.csv")


def first_letter(term):
    """Return the letter under which a term is listed."""
    return term.spellings[0][0].upper()


class IndexOfTerms(SphinxDirective):
    """List all terms by their first letters, each with a link to its page."""

    def run(self):
        """Return a section for each letter."""
        self.env.note_dependency(str(table(self.env)))
        groups = groupby(read_terms(self.env), key=first_letter)
        return [self.section(letter, terms) for letter, terms in groups]

    def section(self, letter, terms):
        """Return the section of a letter, with a line for each of its terms."""
        lines = nodes.bullet_list()
        for term in terms:
            name = f"{term.spellings[0]} "
            line = nodes.paragraph("", name, self.link(term.page), term=term)
            lines += nodes.list_item("", line)
        title = nodes.title("", letter)
        about = {"ids": [f"letter-{letter.lower()}"], "classes": ["index-of-terms"]}
        return nodes.section("", title, lines, **about)

    def link(self, page):
        """Return a link to a page, in which Sphinx writes the page's title."""
        target = {"reftype": "doc", "refdomain": "std", "reftarget": f"/{page}"}
        about = {"refdoc": self.env.docname, "refexplicit": False, "refwarn": True}
        return addnodes.pending_xref("", nodes.inline(), **target, **about)
