"""The example chapter as a book of one chapter."""

import json

from example_chapter.notebook import notebook as example_notebook
from exercise_chapters import Chapter

from tools.notebooks import as_text

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
