"""Chapter 5 says what the benchmark of one vector measured."""

import ast
import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONG = "2632"  # steps: 28 passes over 6,000 pairs
RATES = "0.0025", "0.005", "0.01", "0.02"


def rows(model, steps=LONG, seed="0", rate="0.005"):
    """Return the runs of a model with so many steps at a rate, by their pairs."""
    with (ROOT / "benchmarks" / "one_vector.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    wanted = {"model": model, "steps": steps, "seed": seed, "rate": rate}
    chosen = [row for row in found if wanted.items() <= row.items()]
    return {int(row["pairs"]): row for row in chosen}


def cell(cell_id):
    """Return the cell of chapter 5 with this name."""
    text = (ROOT / "notebooks" / "05_seq2seq.ipynb").read_text("utf-8")
    [found] = [found for found in json.loads(text)["cells"] if found["id"] == cell_id]
    return found


def values(cell_id):
    """Return the lists that the cell sets, by name."""
    found = {}
    for line in ast.parse("".join(cell(cell_id)["source"])).body:
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


def test_what_is_said_of_dropout_and_of_a_second_start_was_measured():
    def hundredths(model, pairs, seed="0"):
        return round(100 * float(rows(model, seed=seed)[pairs]["unseen, 2 clauses"]))

    few, many = (hundredths("one vector, dropout", pairs) for pairs in (6000, 24000))
    plain = hundredths("one vector", 6000)
    told = "".join(cell("cost-told")["source"])
    assert f"{few} right in place of {plain} with 6,000 pairs, and {many} with" in told
    again = hundredths("one vector", 24000, "1"), hundredths("attention", 1500, "1")
    caption = "".join(cell("curves-caption")["source"])
    assert f"got 0.{again[0]} with 24,000 pairs" in caption
    assert f"the other model 0.{again[1]} with 1,500" in caption


def test_the_best_rate_of_one_vector_is_that_of_the_runs():
    def share(model, pairs, rate):
        return float(rows(model, rate=rate)[pairs]["unseen, 2 clauses"])

    assert max(RATES, key=lambda rate: share("one vector", 24000, rate)) == "0.01"
    told = "".join(cell("cost-told")["source"])
    for model, pairs in (("one vector", 24000), ("attention", 1500)):
        assert f"both get {100 * share(model, pairs, '0.01'):.0f}" in told
