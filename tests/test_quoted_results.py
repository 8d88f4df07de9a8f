"""A chapter that quotes another's results quotes what stands there."""

import re
from pathlib import Path

from tools.notebooks import chapters, read_notebook, source_of

ROOT = Path(__file__).parents[1]


def cell_of(chapter, name):
    [path] = chapters(ROOT, [chapter])
    [cell] = [one for one in read_notebook(path)["cells"] if one["id"] == name]
    return cell


def test_chapter_11_quotes_the_exact_matches_of_chapter_6():
    printed = cell_of("06", "compare-table")["outputs"][0]["data"]["text/plain"]
    rows = re.findall(r"^[123] +\S+ +(\S+)", "".join(printed), re.MULTILINE)
    assert len(rows) == 3
    said = "got {}, {} and {}".format(*rows)
    assert said in source_of(cell_of("11", "accuracy-told"))
