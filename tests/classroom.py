"""The example chapter as a book of one chapter, and notebooks handed in for it."""

import json

from example_chapter.notebook import notebook as example_notebook
from exercise_chapters import Chapter

from tools.exports import without_solutions
from tools.notebooks import as_text, source_of
from tools.sheets import sheets

assert Chapter(99).exercises  # the example, which is now one of the book's
NAME = "99_example.ipynb"


def make_book(folder):
    """Write a book that consists of the example chapter; return its folder."""
    (folder / "notebooks").mkdir()
    content = json.loads(json.dumps(example_notebook()))
    for number, cell in enumerate(content["cells"]):
        cell["id"] = f"cell-{number}"
        cell["outputs"] = [
            {"name": "stdout", "output_type": "stream", "text": ["shown"]}
        ]
    heading = {"cell_type": "markdown", "id": "heading", "metadata": {}}
    content["cells"].append(heading | {"source": ["## Summary"]})
    content["cells"].append(content["cells"][0] | {"id": "after", "source": ["1 + 1"]})
    path = folder / "notebooks" / NAME
    path.write_text(as_text(content), encoding="utf-8")
    return folder


def handed_in(root, path, *, change=None, **answers):
    """Write a submission: solved but for the answers given by `first=…` and so on.

    ``change`` is called with the cells, which it may change.
    """
    [sheet] = sheets(root, "99")
    without_solutions(sheet)
    places = ("first", "second", "third", "fourth")
    for place, task in zip(places, sheet.tasks, strict=True):
        task.stub["source"] = answers.get(place, task.solved())
    if change:
        change(sheet.notebook["cells"])
    path.write_text(as_text(sheet.notebook), encoding="utf-8")
    return path


def cell_of(cells, text):
    """Return the first cell in whose source a text stands."""
    return next(cell for cell in cells if text in source_of(cell))
