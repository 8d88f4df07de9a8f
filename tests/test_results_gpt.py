"""The page of results says what the benchmarks of GPTs measured."""

import csv
import math
import re
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NAMES = ("Llama", "GPT", "nanoGPT")
BUDGETS = ("60", "150", "300")


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def of(name, contender):
    return [row for row in read(name) if row["contender"] == contender]


def middle(contender, seconds="300", column="bits"):
    rows = [r for r in of("gpt_text.csv", contender) if r["seconds"] == seconds]
    return statistics.median(float(row[column]) for row in rows)


def test_all_were_granted_the_same_search_on_the_validation_text():
    keys = ("learning_rate", "variant")
    tried = [
        {tuple(row[key] for key in keys) for row in of("gpt_search.csv", name)}
        for name in NAMES
    ]
    assert len(tried[0]) == 6 and tried == [tried[0]] * 3
    for name in NAMES:
        best = min(of("gpt_search.csv", name), key=lambda row: float(row["bits_valid"]))
        for row in of("gpt_text.csv", name):
            assert [row[key] for key in keys] == [best[key] for key in keys]


def test_all_had_the_same_times_on_one_thread():
    rows = read("gpt_text.csv")
    done = {(row["contender"], row["seconds"], row["seed"]) for row in rows}
    assert done == {(n, at, seed) for n in NAMES for at in BUDGETS for seed in "012"}
    for row in rows:
        assert 0 <= float(row["cpu_seconds"]) - int(row["seconds"]) < 2
    assert {(row["threads"], row["processes"]) for row in rows} == {("1", "1")}


def test_the_page_says_who_is_ahead():
    for name in NAMES:
        bits = " | ".join(f"{middle(name, at):.2f}" for at in BUDGETS)
        label = f"{name}, our rewrite" if name == "nanoGPT" else f"this book's {name}"
        assert f"| {label} | {bits} |" in TEXT
    behind = f"is {middle('GPT') - middle('nanoGPT'):.2f} bits behind"
    assert f"chapter 12 builds it {behind} the rewrite after 300 seconds." in TEXT
    assert f"Its GPT {behind}." in TEXT
    ahead = middle("nanoGPT") - middle("Llama")
    assert (
        f"this book's Llama is {ahead:.2f} bits per character ahead of our rewrite of"
        in TEXT
    )


def test_every_run_of_the_llama_is_ahead_of_all_others():
    assert "**The Llama is ahead at each of the three, with every run.**" in TEXT
    for at in BUDGETS:
        rows = [row for row in read("gpt_text.csv") if row["seconds"] == at]
        ours = [float(row["bits"]) for row in rows if row["contender"] == "Llama"]
        rest = [float(row["bits"]) for row in rows if row["contender"] != "Llama"]
        assert max(ours) < min(rest)


def test_the_page_has_the_time_of_a_step():
    longer = {
        name: {
            f"{100 * (float(r['ratio']) - 1):.0f}" for r in of("gpt_steps.csv", name)
        }
        for name in NAMES[:2]
    }
    assert longer["GPT"] == {"9"} and "our GPT takes 9 percent longer" in TEXT
    ends = min(longer["Llama"], key=int), max(longer["Llama"], key=int)
    assert "one of our Llama {} to {} percent, at three sizes.".format(*ends) in TEXT


def test_the_page_has_what_the_search_chose():
    chosen = {
        name: {float(row["learning_rate"]) for row in of("gpt_text.csv", name)}
        for name in NAMES
    }
    rates = {float(row["learning_rate"]) for row in read("gpt_search.csv")}
    assert chosen["Llama"] == {min(rates)} and f"{min(rates)}, for our Llama" in TEXT
    assert chosen["GPT"] == chosen["nanoGPT"] == {max(rates)}
    assert f"the largest, {max(rates)}, for our GPT and for nanoGPT" in TEXT


def test_the_page_has_how_much_faster_a_cache_writes():
    for ours in of("gpt_writing.csv", "GPT"):
        turns = 1 / float(ours["ratio"])  # paired, measured alternately
        cells = [ours["characters"], ours["texts"], f"{turns:.2f}"]
        assert f"| {' | '.join(cells)} |" in TEXT


def test_the_page_has_what_the_gpu_said():
    def pair(column, digits):
        return [
            ", ".join(sorted(f"{float(row[column]):.{digits}f}" for row in found))
            for found in (of("gpt_gpu.csv", name) for name in NAMES[1:])
        ]

    ends = [text.replace(",", " and") for text in pair("bits_valid_end", 2)]
    assert "it was {} with ours and {} with nanoGPT, which".format(*ends) in TEXT
    best = [text.replace(",", " and") for text in pair("bits_valid", 2)]
    assert "loss is {} bits with ours and {} with nanoGPT.".format(*best) in TEXT
    steps = [text.replace(",", " and") for text in pair("best_step", 0)]
    steps = [re.sub(r"(\d)(\d{3})", r"\1,\2", text) for text in steps]
    assert steps[0] == "2,500 and 2,500"
    assert f"ours of step 2,500 and nanoGPT's of {steps[1]}." in TEXT
    ours, theirs = (text.replace(",", " and") for text in pair("bits_test", 2))
    assert theirs == "2.23 and 2.23"
    assert f"reached {ours} bits in two runs and the rewrite 2.23 both times." in TEXT


def test_the_rewrite_of_nanogpt_is_compared_with_the_number_that_its_readme_tells():
    assert f"1.4697 nats, which are {1.4697 / math.log(2):.2f} bits," in TEXT
    tenth = {
        f"{(float(row['bits_valid']) + float(row['bits_test'])) / 2:.2f}"
        for row in of("gpt_gpu.csv", "nanoGPT")
    }
    assert len(tenth) == 1 and f"has {tenth.pop()} there" in TEXT
