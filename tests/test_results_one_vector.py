"""Chapter 5 says what the benchmark of one vector measured."""

import ast
import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONG = "2632"  # steps: 28 passes over 6,000 pairs


def rows(model, steps=LONG):
    """Return the runs of a model with so many steps, by their pairs."""
    with (ROOT / "benchmarks" / "one_vector.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["seed"] == "0"]
    chosen = [row for row in found if (row["model"], row["steps"]) == (model, steps)]
    return {int(row["pairs"]): row for row in chosen}


def values(cell_id):
    """Return what the cell of chapter 5 with this name sets, by name."""
    text = (ROOT / "notebooks" / "05_seq2seq.ipynb").read_text("utf-8")
    [cell] = [cell for cell in json.loads(text)["cells"] if cell["id"] == cell_id]
    found = {}
    for line in ast.parse("".join(cell["source"])).body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.List):
            found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def test_the_table_of_longer_training_is_that_of_the_runs():
    for pairs, passes, *shares in values("fits-run")["rows"]:
        steps = "658" if (pairs, passes) == (6000, 7) else LONG
        row = rows("one vector", steps)[pairs]
        both = [row[f"{part}, 2 clauses"] for part in ("seen", "unseen")]
        assert shares == [round(float(share), 2) for share in both]


def test_the_learning_curves_are_those_of_the_runs():
    shown = values("curves")
    for curve, model in (("one_vector", "one vector"), ("looks", "attention")):
        runs = rows(model)
        shares = [runs[pairs]["unseen, 2 clauses"] for pairs in shown["pairs"]]
        assert shown[curve] == [round(float(share), 2) for share in shares]
