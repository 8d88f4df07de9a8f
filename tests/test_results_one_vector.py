"""Chapter 5 says what the benchmark of fixed-length contexts and attention measured."""

import ast
import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
CURVES = {
    "context_128": "fixed context",
    "context_256": "fixed context 256, dropout",
    "attention": "attention",
}


def measured(model):
    """Return the model's exact match on two unseen clauses, by its training pairs."""
    with (ROOT / "benchmarks" / "one_vector.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    wanted = {"model": model, "steps": "2632", "seed": "0", "learning_rate": "0.005"}
    chosen = [row for row in found if wanted.items() <= row.items()]
    return {
        int(row["pairs"]): round(float(row["unseen, 2 clauses"]), 2) for row in chosen
    }


def cell(cell_id):
    """Return the source of the cell of chapter 5 with this name."""
    text = (ROOT / "notebooks" / "05_seq2seq.ipynb").read_text("utf-8")
    [found] = [found for found in json.loads(text)["cells"] if found["id"] == cell_id]
    return "".join(found["source"])


def values(cell_id):
    """Return the lists that the cell sets, by name."""
    found = {}
    for line in ast.parse(cell(cell_id)).body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.List):
            found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def test_the_learning_curves_are_those_of_the_runs():
    shown = values("curves")
    for curve, model in CURVES.items():
        runs = measured(model)
        assert shown[curve] == [runs[pairs] for pairs in shown["training_pairs"]]


def test_what_is_said_of_the_curves_was_measured():
    told = cell("curves-told")
    fixed = measured("fixed context")
    assert f"It is {fixed[24000]}, so" in told and f"reaches {fixed[6000]};" in told
    dropped = measured("fixed context, dropout")[6000]
    assert f"with dropout as regularization, {dropped:.2f}." in told
    few = measured("attention")[1500]
    assert f"gets {few} with 1,500 pairs" in told
    larger = measured("fixed context 256, dropout")
    assert larger[6000] < few <= larger[12000]
    assert "needs 12,000 pairs for that" in told
