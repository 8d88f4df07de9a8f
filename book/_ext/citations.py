"""A Sphinx extension for the bibliography: who and when, and a place for each entry.

Entries are called by author and year, and by a letter where that names two. A link such
as ``[Vaswani et al. (2017)](../book/bibliography.md#vaswani2017)`` leads to the entry
with that key.
"""

from collections import Counter

from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle


class AuthorYearLabels(BaseLabelStyle):
    """Call an entry "Koehn and Knowles (2017)", or "Cho et al. (2014b)"."""

    def format_labels(self, entries):
        """Yield the entries' labels, with letters in the order of the list."""
        names = [(authors(entry), entry.fields["year"]) for entry in entries]
        total = Counter(names)
        seen = Counter()
        for name in names:
            letter = "abcdefgh"[seen[name]] if total[name] > 1 else ""
            seen[name] += 1
            yield f"{name[0]} ({name[1]}{letter})"


def authors(entry):
    """Return the last name of an author, of two, or of the first of more."""
    people = [
        " ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names]))
        for person in entry.persons["author"]
    ]
    return " and ".join(people) if len(people) < 3 else f"{people[0]} et al."


class AuthorYear(Style):
    """A list by author, year and title, with these labels."""

    default_label_style = AuthorYearLabels


def setup(app):
    """Offer the style to the bibliography, and make its entries places to link to."""
    register_plugin("pybtex.style.formatting", "author_year", AuthorYear, force=True)
    app.connect("doctree-read", name_places)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def name_places(app, doctree):
    """Let links in Markdown find the entries on a page by their keys."""
    page = app.env.docname
    places = app.env.metadata[page].setdefault("myst_slugs", {})
    for where, bibliography in app.env.get_domain("cite").bibliographies.items():
        if where.docname == page:
            for key, entry in bibliography.citation_nodes.items():
                places[key] = (0, entry["ids"][0], key)
