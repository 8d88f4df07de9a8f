"""A Sphinx extension for the index: which page explains which term.

The table ``book/terms.csv`` has a row for each term: the term, the beginning of the
name of the file that explains it, and other spellings that people search for, with
semicolons between them. The directive ``index-of-terms`` lists the terms with links to
their pages. The book's own search puts the page of a term before all others, in every
spelling.
"""

import csv
import json
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

BEGIN, END = "Search.setIndex(", ")"  # around the index of the search


def setup(app):
    """Offer the directive, and connect what enters the terms."""
    app.add_directive("index-of-terms", IndexOfTerms)
    app.connect("build-finished", enter_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_terms(env):
    """Return the terms in alphabetical order, each as (term, page, all spellings).

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
            terms.append((row["term"], pages[0], [row["term"], *others]))
    return sorted(terms, key=lambda entry: entry[0].lower())


def table(env):
    """Return the path of the table."""
    return Path(env.srcdir, "book", "terms.csv")


def enter_terms(app, error):
    """Enter every spelling into the index of the search, as a main entry for its page.

    Sphinx would do so for what stands on the pages, but forgets it for those that it
    need not build again.
    """
    if error is None and app.builder.name == "html":
        file = Path(app.outdir, "searchindex.js")
        text = file.read_text(encoding="utf-8")
        index = json.loads(text.removeprefix(BEGIN).removesuffix(END))
        for _, page, spellings in read_terms(app.env):
            entry = [index["docnames"].index(page), "", True]  # page, place, is main
            index["indexentries"].update({each.lower(): [entry] for each in spellings})
        file.write_text(BEGIN + json.dumps(index) + END, encoding="utf-8")


class IndexOfTerms(SphinxDirective):
    """List all terms by their first letters, each with a link to its page."""

    def run(self):
        """Return a section for each letter."""
        self.env.note_dependency(str(table(self.env)))
        groups = groupby(read_terms(self.env), key=lambda entry: entry[0][0].upper())
        return [self.section(letter, terms) for letter, terms in groups]

    def section(self, letter, terms):
        """Return the section of a letter, with a line for each of its terms."""
        lines = nodes.bullet_list()
        for term, page, _ in terms:
            line = nodes.paragraph("", f"{term} ", self.link(page))
            lines += nodes.list_item("", line)
        title = nodes.title("", letter)
        about = {"ids": [f"letter-{letter.lower()}"], "classes": ["index-of-terms"]}
        return nodes.section("", title, lines, **about)

    def link(self, page):
        """Return a link to a page, in which Sphinx writes the page's title."""
        target = {"reftype": "doc", "refdomain": "std", "reftarget": f"/{page}"}
        about = {"refdoc": self.env.docname, "refexplicit": False, "refwarn": True}
        return addnodes.pending_xref("", nodes.inline(), **target, **about)
