"""A chapter that quotes another's results quotes what stands there."""

import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def cells_of(name):
    [path] = NOTEBOOKS.glob(f"{name}_*.ipynb")
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_chapter_11_quotes_the_exact_matches_of_chapter_6():
    [table] = [cell for cell in cells_of("06") if cell["id"] == "compare-table"]
    printed = "".join(table["outputs"][0]["data"]["text/plain"])
    rows = re.findall(r"^[123] +\S+ +(\S+)", printed, re.MULTILINE)
    [told] = [cell for cell in cells_of("11") if cell["id"] == "accuracy-told"]
    assert len(rows) == 3
    assert "got {}, {} and {}".format(*rows) in "".join(told["source"])
