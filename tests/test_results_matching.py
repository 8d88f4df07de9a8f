"""Chapter 16 says what the benchmark of matching and fixed rules measured."""

import csv
import json
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RULES = "matching", "raster order"


def exact_matches(rule, steps):
    with (ROOT / "benchmarks" / "matching.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["rule"] == rule]
    rows = [row for row in rows if row["steps"] == str(steps)]
    assert sorted(row["seed"] for row in rows) == ["0", "1", "2"]
    return [float(row["exact match"]) for row in rows]


def told():
    text = (ROOT / "notebooks" / "16_windows_objects_transfer.ipynb").read_text("utf-8")
    [cell] = [one for one in json.loads(text)["cells"] if one["id"] == "order-ranges"]
    return "".join(cell["source"])


@pytest.mark.parametrize("rule", RULES)
def test_the_chapter_has_the_means_and_ranges_of_three_runs(rule):
    runs = exact_matches(rule, 400), exact_matches(rule, 1200)
    said = [f"{statistics.mean(r):.2f} ({min(r):.2f}–{max(r):.2f})" for r in runs]
    assert f"| {rule} | {said[0]} | {said[1]} |" in told()


def test_the_matching_is_ahead_in_every_run_until_raster_order_catches_up():
    short, long = ([exact_matches(rule, n) for rule in RULES] for n in (400, 1200))
    assert min(short[0]) > max(short[1])
    assert abs(statistics.mean(long[0]) - statistics.mean(long[1])) < 0.02
