"""Chapter 5 says what the benchmark of fixed-length contexts and attention measured."""

import ast
import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
CURVES = {"fixed_context": "fixed context", "attention": "attention"}


def measured(model, part="unseen"):
    """Return the model's exact match on two clauses, by its training pairs."""
    with (ROOT / "benchmarks" / "one_vector.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    wanted = {"model": model, "steps": "2632", "seed": "0", "learning_rate": "0.005"}
    chosen = [row for row in found if wanted.items() <= row.items()]
    return {
        int(row["pairs"]): round(float(row[f"{part}, 2 clauses"]), 2) for row in chosen
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
    fixed = measured("fixed context")
    seen = measured("fixed context", part="seen")[6000]
    assert f"It is {seen:.2f}: of the first 1,000" in cell("capacity-told")
    assert f"the same model gets {fixed[6000]}." in cell("curves-intro")
    told = cell("curves-told")
    few = measured("attention")[1500]
    assert f"reaches {fixed[24000]}; attention gets {few} with 1,500." in told
    assert fixed[24000] < few
