"""The catalogue: which chapters and figures there are, by their names.

A static figure has the name and the caption that the book gives it, in the metadata of
its cell. A live one is known by what its cell shows; its name is made of the number
of the chapter, or an excursion's name, and the name of the cell.

This module does not know how a figure is drawn, and it runs nothing.
"""

import difflib
from pathlib import Path
from typing import NamedTuple

from tools.notebooks import (
    chapters,
    read_notebook,
    short_name,
    source_of,
)

LIVE = "data-figure="  # what the HTML of every live figure carries


class Chapter(NamedTuple):
    """A chapter: its notebook, and the path it was read from."""

    path: Path
    notebook: dict

    @property
    def title(self):
        """Return the chapter's heading, for example ``6 · Learning to align``."""
        text = "".join(source_of(cell) + "\n" for cell in self.notebook["cells"])
        headings = (line for line in text.splitlines() if line.startswith("# "))
        return next(headings, f"# {self.path.stem}").removeprefix("# ")


class Entry(NamedTuple):
    """A figure: ``cell`` names the cell that shows it, ``outputs`` are the cell's."""

    name: str
    cell: str
    is_live: bool
    caption: str
    alternative: str
    outputs: list


def read_chapters(root, wanted=()):
    """Return the chapters under ``root``: all, or those ``wanted`` (see `chapters`)."""
    return [Chapter(path, read_notebook(path)) for path in chapters(root, wanted)]


def figures_of(chapter):
    """List the figures of a chapter, stored or just run, as ``Entry``."""
    found = []
    for cell in chapter.notebook["cells"]:
        about = cell["metadata"].get("mystnb", {})
        figure, outputs = about.get("figure", {}), cell.get("outputs", [])
        if "name" in figure:
            described = figure.get("caption", ""), about.get("image", {}).get("alt", "")
            found.append(Entry(figure["name"], cell["id"], False, *described, outputs))
        elif LIVE in shown(outputs, "text/html"):
            place = short_name(chapter.path).replace("_", "-")
            name = f"fig-{place}-{cell['id']}"
            said = shown(outputs, "text/plain")
            found.append(Entry(name, cell["id"], True, said, said, outputs))
    return found


def shown(outputs, kind):
    """Return the first content of a MIME type among a cell's outputs, or ``""``."""
    contents = (output.get("data", {}).get(kind) for output in outputs)
    return "".join(next(filter(None, contents), ""))


def choose(chapters, names=()):
    """Map the path of each chapter to the names of its figures that are wanted.

    No ``names`` means all of them. A chapter without any is left out. Raises
    ValueError, with names that are nearly the same, for one that does not exist.
    """
    there = {
        chapter.path: [e.name for e in figures_of(chapter)] for chapter in chapters
    }
    known = [name for found in there.values() for name in found]
    for name in names:
        if name not in known:
            raise ValueError(_unknown(name, known))
    chosen = {
        path: [name for name in found if not names or name in names]
        for path, found in there.items()
    }
    return {path: found for path, found in chosen.items() if found}


def _unknown(name, known):
    near = [found for found in known if name.removeprefix("fig-") in found]
    near = near[:5] or difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    meant = ", ".join(near or known)
    return f"no figure of these chapters is called {name}: did you mean {meant}?"
