"""The excursion on Llama says what the benchmark of its changes measured."""

import csv
import statistics
from pathlib import Path

from tools.notebooks import code_cells, read_notebook, source_of

ROOT = Path(__file__).parents[1]
PAGE = read_notebook(ROOT / "notebooks" / "x_llama.ipynb")
CHANGES = ("GPT-2", "RMSNorm, no biases", "SwiGLU", "RoPE", "GQA")


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def of(name, change):
    return [row for row in read(name) if row["change"] == change]


def text():
    [cell] = [cell for cell in PAGE["cells"] if cell["id"] == "changes"]
    return source_of(cell)


def test_all_had_the_same_time_on_one_thread_and_a_choice_of_learning_rates():
    rows = read("llama.csv")
    assert {row["threads"] for row in rows} == {"1"}
    assert all(60 <= float(row["cpu_seconds"]) < 61 for row in rows)
    for change in CHANGES:
        tried = of("llama_search.csv", change)
        assert len(tried) == 5
        rates = sorted(float(row["learning_rate"]) for row in tried)
        best = min(tried, key=lambda row: float(row["nats_valid"]))["learning_rate"]
        assert rates[0] < float(best) < rates[-1]
        trained = of("llama.csv", change)
        assert [row["seed"] for row in trained] == ["0", "1", "2"]
        assert {row["learning_rate"] for row in trained} == {best}


def test_the_table_of_the_page_is_what_was_measured():
    for change in CHANGES:
        rows = of("llama.csv", change)
        losses = ", ".join(f"{float(row['nats_valid']):.2f}" for row in rows)
        steps = statistics.median_low(int(row["steps"]) for row in rows)
        [parameters] = {f"{int(row['parameters']):,}" for row in rows}
        [kept] = {f"{int(row['cache_bytes_per_token']):,}" for row in rows}
        line = f" | {losses} | {steps:,} | {parameters} | {kept} |"
        assert f"{change}{line}" in text(), change


def test_the_page_says_which_changes_lower_the_loss():
    losses = {
        change: [round(float(row["nats_valid"]), 2) for row in of("llama.csv", change)]
        for change in CHANGES
    }
    without = [loss for change in CHANGES[:3] for loss in losses[change]]
    assert {*losses["RoPE"]} == {1.76, 1.77} and min(without) == 1.81
    assert "it is 1.76 or 1.77" in text() and "comes below 1.81" in text()
    assert max(losses["GQA"]) <= min(losses["RoPE"]) + 0.01
    assert min(losses["RMSNorm, no biases"] + losses["SwiGLU"]) > min(losses["GPT-2"])
    steps = {
        change: statistics.median(int(row["steps"]) for row in of("llama.csv", change))
        for change in CHANGES
    }
    assert steps["RMSNorm, no biases"] < steps["GPT-2"]
    assert steps["RoPE"] < steps["SwiGLU"]


def test_the_stored_page_ran_the_published_model():
    cells = {cell["id"]: cell for cell in code_cells(PAGE)}
    shown = str(cells["load"]["outputs"] + cells["story"]["outputs"])
    assert "random" not in shown, (
        "download stories260K, then: make notebooks CH=x_llama"
    )
    assert "Lily and Tom went to the park. They saw a big pond." in shown
