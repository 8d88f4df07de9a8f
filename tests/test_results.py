"""The page of results says what the benchmark of translation measured."""

import datetime
import importlib
import re
import statistics
import sys
from pathlib import Path

import pytest

from tutorial_lib.data import load_translation

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))
CHARTS = importlib.import_module("results_charts")
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
KINDS = [
    (data, units, model)
    for data in CHARTS.DATA
    for units in CHARTS.UNITS
    for model in CHARTS.MODELS
]


def read(name):
    return CHARTS.read(ROOT / "benchmarks" / name)


def column(kind, name="bleu_beam_4"):
    rows = [row for row in read("translation.csv") if CHARTS.of(row) == kind]
    assert sorted(row["seed"] for row in rows) == ["1", "2", "3"]
    return [float(row[name]) for row in rows]


def median(kind, name="bleu_beam_4"):
    return statistics.median(column(kind, name))


def overlap(one, other):
    one, other = column(one), column(other)
    return max(one) >= min(other) and max(other) >= min(one)


def test_what_of_tatoeba_s_test_is_training_data_is_on_the_page():
    folder = ROOT.parent / "shared" / "data"
    if not folder.exists():
        pytest.skip(f"needs copies of the data in {folder}")
    data = load_translation("tatoeba", first=5_000, folder=folder, held_out=750)
    test = data.test[:500]  # as benchmarks/translation.py splits it

    def words(sentence):
        return [token for token in sentence if any(map(str.isalnum, token))]

    sources = {pair.source for pair in data.train}
    targets = {pair.target for pair in data.train}
    assert not any(pair.source in sources for pair in test)
    spoken = [words(source) for source in sources]
    alike = sum(words(pair.source) in spoken for pair in test)
    copied = sum(pair.target in targets for pair in test)
    assert f"but {alike} are there with other punctuation" in TEXT
    assert f"of their French translations {copied} are there" in TEXT


def test_every_kind_was_searched_and_the_best_of_the_search_was_compared():
    search = read("translation_search.csv")
    assert {row["seed"] for row in search} == {"0"}
    for kind in KINDS:
        tried = [row for row in search if CHARTS.of(row) == kind]
        assert len(tried) == 6
        best = max(tried, key=lambda row: float(row["bleu_valid"]))
        for row in read("translation.csv"):
            if CHARTS.of(row) == kind:
                for setting in ("learning_rate", "dropout"):
                    assert row[setting] == best[setting]


def test_a_search_knows_no_test_score():
    names = read("translation_search.csv")[0]
    assert [name for name in names if "bleu" in name] == ["bleu_valid"]


def test_training_stopped_when_its_time_was_spent():
    for row in read("translation.csv") + read("translation_search.csv"):
        assert 96 <= float(row["cpu_seconds"]) < 98 and row["threads"] == "1"


def test_all_runs_on_some_data_saw_the_same_sentences_and_scored_them_alike():
    rows = read("translation.csv")
    for data in CHARTS.DATA:
        of_it = [row for row in rows if row["data"] == data]
        for name in ("data_sha256", "training_pairs", "test_sentences"):
            assert len({row[name] for row in of_it}) == 1, name
    assert {row["signature"] for row in rows} == {rows[0]["signature"]}
    assert rows[0]["signature"] in PAGE


@pytest.mark.parametrize(("data", "least"), [("tatoeba", 15), ("multi30k", 34)])
def test_attention_and_the_transformer_reach_what_was_aimed_for(data, least):
    for model in ("attention", "Transformer"):
        assert median((data, "words", model), "bleu") >= least


def test_attention_is_worth_what_the_page_says_on_captions_and_not_on_four_words():
    worth = [
        median(("multi30k", units, "attention"), score)
        - median(("multi30k", units, "fixed context"), score)
        for score in ("bleu_beam_4", "bleu_fresh")
        for units in CHARTS.UNITS
    ]
    words, subwords, *fresh = (f"{points:.0f}" for points in worth)
    assert f"worth {min(worth):.0f} to {max(worth):.0f} points of BLEU** to" in TEXT
    assert f"worth {words} points of BLEU with words" in TEXT
    assert f"and {subwords} with subword tokens," in TEXT
    assert "on a thousand other captions, {} and {}.".format(*fresh) in TEXT
    one, attention = (("multi30k", "words", model) for model in CHARTS.MODELS[:2])
    assert min(column(attention)) > max(column(one))
    fewer = 1 - median(attention, "steps") / median(one, "steps")
    assert abs(fewer - 1 / 4) < 0.02 and "a quarter fewer steps" in TEXT
    for units in CHARTS.UNITS:
        assert overlap(*(("tatoeba", units, model) for model in CHARTS.MODELS[:2]))
    best = max((kind for kind in KINDS if kind[0] == "tatoeba"), key=median)
    assert best == ("tatoeba", "subwords", "fixed context")
    assert f"of fixed context with subword tokens: {median(best):.1f}." in TEXT


def test_the_transformer_is_level_on_captions_and_ahead_on_tatoeba_in_words():
    attention, transformer = (("multi30k", "words", m) for m in CHARTS.MODELS[1:])
    assert overlap(attention, transformer)
    attention, transformer = (("tatoeba", "words", m) for m in CHARTS.MODELS[1:])
    one = "tatoeba", "words", "fixed context"
    assert min(column(transformer)) > max(column(attention) + column(one))
    ahead = [median(transformer) - median(kind) for kind in (one, attention)]
    said = "is {:.1f} points ahead of fixed context and {:.1f} ahead of attention,"
    assert said.format(*ahead) in TEXT
    assert f"the Transformer is {ahead[0]:.0f} points ahead," in TEXT
    one, _, transformer = (column(("tatoeba", "subwords", m)) for m in CHARTS.MODELS)
    assert max(one) > max(transformer)


def test_the_page_says_how_many_training_pairs_there_are():
    pairs = {row["data"]: int(row["training_pairs"]) for row in read("translation.csv")}
    assert f"**Tatoeba** is {pairs['tatoeba']:,} everyday" in TEXT
    assert f"of which {pairs['tatoeba']:,} are the training data" in TEXT
    assert round(pairs["multi30k"], -3) == 28_000 and "about 28,000 captions" in TEXT
    assert round(pairs["multi30k"] / pairs["tatoeba"]) == 8
    assert "there are eight times as many" in TEXT


def test_subwords_know_every_word_and_cost_what_the_page_says():
    for data, units, model in KINDS:
        unknown = column((data, units, model), "unknown")
        assert (max(unknown) == 0) == (units == "subwords")
    words, subwords = (
        [median(("multi30k", units, model)) for model in CHARTS.MODELS]
        for units in CHARTS.UNITS
    )
    lost = [round(a - b) for a, b in zip(words, subwords, strict=True)]
    assert (min(lost), max(lost)) == (3, 5)
    assert "with subword tokens score three to five points less" in TEXT


def test_the_captions_that_were_kept_out_put_the_models_into_the_same_order():
    for units in CHARTS.UNITS:
        for score in ("bleu_beam_4", "bleu_fresh"):
            one, attention, transformer = (
                median(("multi30k", units, model), score) for model in CHARTS.MODELS
            )
            assert one < transformer < attention


def test_the_page_shows_what_the_first_runs_wrote_of_two_captions():
    def first(units, model):
        [row] = [
            row
            for row in read("translation.csv")
            if CHARTS.of(row) == ("multi30k", units, model) and row["seed"] == "1"
        ]
        return row["first_five"].replace("<unk>", r"\<unk>").split(" | ")

    for model in CHARTS.MODELS:
        terrier, roof = (first("words", model)[place] for place in (1, 4))
        assert f"| {model} | {terrier} | {roof} |" in PAGE
    invented = re.search(r"becomes a \*(\w+)\*", TEXT)[1]
    assert invented in first("subwords", "Transformer")[1]


def test_the_page_says_which_rates_are_at_an_edge_and_what_lies_beyond():
    edges, largest = 0, []
    for kind in KINDS:
        tried = [
            row for row in read("translation_search.csv") if CHARTS.of(row) == kind
        ]
        best = max(tried, key=lambda row: float(row["bleu_valid"]))
        rates = {float(row["learning_rate"]) for row in tried}
        edges += (rate := float(best["learning_rate"])) in (min(rates), max(rates))
        if kind[0] == "multi30k" and rate == max(rates):
            largest.append((*kind, 2 * rate, best["dropout"], best["bleu_valid"]))
    assert edges == 9 and "nine of the twelve combinations" in TEXT
    beyond = {CHARTS.of(row): row for row in read("translation_beyond.csv")}
    lost = []
    for *kind, rate, dropout, score in largest:
        row = beyond.pop(tuple(kind))
        assert (float(row["learning_rate"]), row["dropout"]) == (rate, dropout)
        lost.append(float(score) - float(row["bleu_valid"]))
    assert beyond == {} and min(lost) > 0
    assert f"it costs {min(lost):.0f} to {max(lost):.0f} points of BLEU" in TEXT


def test_the_page_tells_on_what_and_when_it_was_measured():
    for row in read("translation.csv"):
        date = datetime.date.fromisoformat(row["date"])
        torch = row["torch"].split("+")[0]
        assert f"are of {date:%B %Y}, with torch {torch}." in TEXT
        assert f"each on one thread of an {row['machine']};" in TEXT


def test_a_chart_has_a_dot_for_each_kind_and_says_its_numbers():
    chart = CHARTS.draw_translation(read("translation.csv"))
    assert chart.count("<circle") == len(KINDS) + 2  # two in the legend
    for data, units, model in KINDS:
        said = (
            f"{CHARTS.DATA[data]}, {model}, {units}: {median((data, units, model)):.1f}"
        )
        assert said in chart


def test_no_mark_of_a_chart_lies_outside():
    for name, (draw, table) in CHARTS.CHARTS.items():
        chart = draw(read(table))
        xs = [float(x) for x in re.findall(r'(?:cx="|x="|M)([-\d.]+)', chart)]
        ys = [float(y) for y in re.findall(r'(?:cy="|y="|M[-\d.]+ )([-\d.]+)', chart)]
        height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', chart)[1])
        assert min(xs) >= 0 and max(xs) <= CHARTS.WIDTH, name
        assert min(ys) >= 0 and max(ys) <= height, name


def test_every_chart_of_the_page_has_a_caption_that_says_what_its_lines_are():
    captions = dict(re.findall(r"```\{chart\} (\w+)\n(.*?)\n```", PAGE, re.DOTALL))
    assert set(captions) == set(CHARTS.CHARTS)
    for caption in captions.values():
        assert "from the lowest to the highest." in " ".join(caption.split())
