"""The page of results says what the benchmarks of GPTs measured."""

import csv
import math
import re
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NAMES = {"tutorial_lib": "this book's GPT", "nanoGPT": "nanoGPT"}


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def of(name, contender):
    return [row for row in read(name) if row["contender"] == contender]


def middle(name, contender, column):
    rows = [row for row in of(name, contender) if row.get("seconds", "300") == "300"]
    return statistics.median(float(row[column]) for row in rows)


def test_both_were_granted_the_same_search_on_the_validation_text():
    ours, theirs = (of("gpt_search.csv", name) for name in NAMES)
    assert len(ours) == len(theirs) == 12
    keys = ("learning_rate", "variant", "d_model")
    for name, rows in zip(NAMES, (ours, theirs), strict=True):
        best = min(rows, key=lambda row: float(row["bits_valid"]))
        for row in of("gpt_text.csv", name):
            assert [row[key] for key in keys] == [best[key] for key in keys]
        assert best["d_model"] == "96"


def test_all_had_the_same_time_on_one_thread():
    rows = read("gpt_text.csv")
    assert {row["seed"] for row in rows} == {"0", "1", "2"}
    assert all(300 <= float(row["cpu_seconds"]) < 302 for row in rows)
    assert {(row["threads"], row["processes"]) for row in rows} == {("1", "1")}


def test_the_page_says_who_is_ahead_and_in_how_many_steps():
    ours, theirs = (middle("gpt_text.csv", name, "bits") for name in NAMES)
    ahead = f"by {ours - theirs:.3f} bits ({theirs:.3f} against {ours:.3f})."
    assert f"nanoGPT is ahead, at the end {ahead}**" in TEXT
    behind = f"GPT is {100 * (ours / theirs - 1):.0f} percent behind nanoGPT**"
    assert behind in TEXT
    assert "**From the first minute on nanoGPT is ahead" in TEXT
    for seconds in ("30", "60", "120", "180", "240", "300"):
        ours, theirs = (
            statistics.median(
                float(row["bits"])
                for row in of("gpt_text.csv", name)
                if row["seconds"] == seconds
            )
            for name in NAMES
        )
        assert (theirs < ours) == (seconds != "30")
    ours, theirs = (middle("gpt_text.csv", name, "steps") for name in NAMES)
    assert (
        f"takes {theirs:,.0f} steps in the time in which ours takes {ours:,.0f}."
        in TEXT
    )


def test_the_page_has_the_time_of_a_step():
    ratios = [float(row["ratio"]) for row in of("gpt_steps.csv", "tutorial_lib")]
    assert len(ratios) == 3
    low, high = (f"{100 * (some(ratios) - 1):.0f}" for some in (min, max))
    assert f"A training step of ours takes {low} to {high} percent longer" in TEXT


def test_the_page_says_that_our_learning_rate_is_the_largest_tried():
    tried = of("gpt_search.csv", "tutorial_lib")
    rates = {float(row["learning_rate"]) for row in tried}
    chosen = {float(row["learning_rate"]) for row in of("gpt_text.csv", "tutorial_lib")}
    assert chosen == {max(rates)} and f"largest learning rate, {max(rates)}," in TEXT
    best, second = sorted(tried, key=lambda row: float(row["bits_valid"]))[:2]
    said = f"{best['bits_valid']} bits against {second['bits_valid']} at "
    said += f"{second['learning_rate']} with the squared ReLU"
    assert second["variant"] == "second" and said in TEXT


def test_the_page_has_how_much_faster_a_cache_writes():
    found = zip(*(of("gpt_writing.csv", name) for name in NAMES), strict=True)
    for ours, theirs in found:
        assert theirs["contender"] == "nanoGPT"
        turns = 1 / float(ours["ratio"])  # paired, in turns
        cells = [ours["characters"], ours["texts"], f"{turns:.2f}"]
        assert f"| {' | '.join(cells)} |" in TEXT


def test_the_page_has_what_the_gpu_said():
    def pair(column, digits):
        return [
            ", ".join(sorted(f"{float(row[column]):.{digits}f}" for row in found))
            for found in (of("gpt_gpu.csv", name) for name in NAMES)
        ]

    ends = [text.replace(",", " and") for text in pair("bits_valid_end", 2)]
    assert "it cost ours {} and nanoGPT {}:".format(*ends) in TEXT
    best = [text.replace(",", " and") for text in pair("bits_valid", 2)]
    assert "costs {} bits with ours and {} with nanoGPT,".format(*best) in TEXT
    steps = [text.replace(",", " and") for text in pair("best_step", 0)]
    steps = [re.sub(r"(\d)(\d{3})", r"\1,\2", text) for text in steps]
    assert steps[0] == "2,500 and 2,500"
    assert f"ours of step 2,500 and nanoGPT's of {steps[1]}." in TEXT
    bits, seconds = pair("bits_test", 2), pair("seconds", 0)
    assert f"| bits per character, two runs | {bits[0]} | {bits[1]} |" in TEXT
    assert f"| seconds of training | {seconds[0]} | {seconds[1]} |" in TEXT
    for texts, row in (("1", "one text"), ("64", "64 texts at once")):
        ours, bare, theirs = (
            f"{int(one['characters_per_second']):,}"
            for one in read("gpt_gpu_writing.csv")
            if one["texts"] == texts
        )
        line = f"| characters a second, {row} | {ours} | {theirs} | "
        assert f"{line}| the same, without the cache | {bare} | |" in TEXT
    ours, theirs = ([float(row["seconds"]) for row in of("gpt_gpu.csv", name)]
        for name in NAMES)  # fmt: skip
    longer = {f"{a / b:.1f}" for a, b in zip(ours, theirs, strict=True)}
    assert longer == {"1.7"} and "ours takes 1.7 times as long" in TEXT


def test_the_rewrite_of_nanogpt_is_compared_with_the_number_that_its_readme_tells():
    assert f"1.4697 nats, which are {1.4697 / math.log(2):.2f} bits," in TEXT
    tenth = {
        f"{(float(row['bits_valid']) + float(row['bits_test'])) / 2:.2f}"
        for row in of("gpt_gpu.csv", "nanoGPT")
    }
    assert len(tenth) == 1 and f"has {tenth.pop()} there" in TEXT
