"""The page of results, and chapter 12, say what the benchmarks of GPTs measured."""

import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
LINES = PAGE.splitlines()
NAMES = {"tutorial_lib": "this book's GPT", "nanoGPT": "nanoGPT"}


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def of(name, contender):
    return [row for row in read(name) if row["contender"] == contender]


def test_both_were_granted_the_same_search_on_the_validation_text():
    ours, theirs = (of("gpt_search.csv", name) for name in NAMES)
    assert len(ours) == len(theirs) == 6
    keys = ("learning_rate", "variant", "context", "d_model")
    for name, rows in zip(NAMES, (ours, theirs), strict=True):
        best = min(rows, key=lambda row: float(row["bits_valid"]))
        for row in of("gpt_text.csv", name):
            assert [row[key] for key in keys] == [best[key] for key in keys]


def test_all_had_the_same_time_on_one_thread():
    rows = read("gpt_text.csv")
    assert all(300 <= float(row["cpu_seconds"]) < 302 for row in rows)
    assert {(row["threads"], row["processes"]) for row in rows} == {("1", "1")}
    assert len({row["parameters"] for row in rows}) == 1


def test_the_page_has_the_bits_on_the_way():
    for name, label in NAMES.items():
        rows = [row for row in of("gpt_text.csv", name) if row["seed"] == "0"]
        cells = [label, *(f"{float(row['bits']):.2f}" for row in rows)]
        assert [int(row["seconds"]) for row in rows] == [30, 60, 120, 180, 240, 300]
        assert f"| {' | '.join(cells)} | {int(rows[0]['steps']):,} |" in LINES


def test_the_page_has_the_time_of_a_step():
    rows = of("gpt_steps.csv", "tutorial_lib")
    assert len(rows) == 3
    for ours, theirs in zip(rows, of("gpt_steps.csv", "nanoGPT"), strict=True):
        cells = [ours[key] for key in ("d_model", "context", "batch")]
        cells += [f"{float(row['milliseconds']):.0f}" for row in (ours, theirs)]
        assert f"| {' | '.join(cells)} | {float(ours['ratio']):.2f} |" in LINES


def test_the_page_has_the_characters_per_second():
    ways = ("tutorial_lib", "tutorial_lib, no cache", "nanoGPT")
    for rows in zip(*(of("gpt_writing.csv", way) for way in ways), strict=True):
        cells = [rows[0]["texts"], rows[0]["characters"]]
        cells += [f"{float(row['characters_per_second']):,.0f}" for row in rows]
        assert f"| {' | '.join(cells)} |" in LINES


def test_chapter_12_compares_with_the_five_runs_that_were_stored():
    rows = read("half_a_minute.csv")
    text = (ROOT / "notebooks" / "12_decoding_and_gpt.ipynb").read_text("utf-8")
    [cell] = [cell for cell in json.loads(text)["cells"] if cell["id"] == "own"]
    source = "".join(cell["source"])
    assert len(rows) == 5 and {row["threads"] for row in rows} == {"1"}
    for row in rows:
        assert f'"{row["run"]}": {float(row["perplexity"]):.2f},' in source
