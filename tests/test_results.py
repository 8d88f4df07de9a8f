"""The page of results says what the benchmark measured."""

import csv
import datetime
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
COLUMNS = [
    "data",
    "protocol",
    "model",
    "seed",
    "cpu_seconds",
    "steps",
    "parameters",
    "training_pairs",
    "source_words",
    "target_words",
    "test_sentences",
    "bleu",
    "signature",
    "bleu_beam_4",
    "bleu_unknown_as_three",
    "bleu_all_references",
    "exact_match",
    "textbook_score",
    "unknown_words",
    "first_five",
    "bleu_training",
    "textbook_score_training",
    "textbook_score_four",
    "data_sha256",
    "machine",
    "threads",
    "torch",
    "python",
    "date",
]
KINDS = [("tatoeba", "held out"), ("multi30k", "held out"), ("tatoeba", "512 pairs")]
RECURRENT = ("fixed context", "attention")
MODELS = {"held out": (*RECURRENT, "Transformer"), "512 pairs": RECURRENT}
SCORES = (  # protocol, column, and the beginning of the row on the page
    ("512 pairs", "textbook_score_four", "512 pairs | four of them | textbook"),
    ("512 pairs", "textbook_score_training", "512 pairs | all of them | textbook"),
    ("512 pairs", "textbook_score", "512 pairs | 500 unseen | textbook"),
    ("512 pairs", "bleu_training", "512 pairs | all of them | BLEU"),
    ("512 pairs", "bleu", "512 pairs | 500 unseen | BLEU"),
    ("held out", "bleu_training", "3,884 pairs | 512 of them | BLEU"),
    ("held out", "textbook_score", "3,884 pairs | 500 unseen | textbook"),
    ("held out", "bleu", "3,884 pairs | 500 unseen | BLEU"),
)


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "benchmarks/translation.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def runs(rows, data, protocol, model):
    wanted = [data, protocol, model]
    return [row for row in rows if list(row.values())[:3] == wanted]


def median_and_range(rows, column, digits):
    """Write the median over the runs as the page does, and between what they lie."""
    values = sorted(float(row[column]) for row in rows)
    middle, low, high = statistics.median(values), values[0], values[-1]
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def line_of_a_model(rows, data, model):
    chosen = runs(rows, data, "held out", model)
    steps = statistics.median(int(row["steps"]) for row in chosen)
    exact = statistics.median(100 * float(row["exact_match"]) for row in chosen)
    name = {"tatoeba": "Tatoeba", "multi30k": "Multi30k"}[data]
    cells = [name, {"fixed context": "one vector"}.get(model, model)]
    cells += [median_and_range(chosen, column, 1) for column in ("bleu", "bleu_beam_4")]
    return f"| {' | '.join(cells)} | {exact:.0f} % | {steps:,.0f} |"


def line_of_a_score(rows, protocol, column, beginning):
    digits = 2 if column.startswith("textbook") else 1
    cells = [
        median_and_range(runs(rows, "tatoeba", protocol, model), column, digits)
        for model in RECURRENT
    ]
    return f"| {beginning} | {' | '.join(cells)} |"


def lines_of_examples(rows):
    models = MODELS["held out"]
    first = [runs(rows, "tatoeba", "held out", model)[0] for model in models]
    assert {row["seed"] for row in first} == {"0"}
    outputs = [row["first_five"].split(" | ") for row in first]
    lines = zip(*outputs, strict=True)
    return [" | ".join(f"`{output}`" for output in line) + " |" for line in lines]


def test_every_run_has_a_row_and_every_row_all_columns(rows):
    keys = [(row["data"], row["protocol"], row["model"], row["seed"]) for row in rows]
    assert sorted(keys) == sorted(
        (*kind, model, seed)
        for kind in KINDS
        for model in MODELS[kind[1]]
        for seed in "012"
    )
    for row in rows:
        assert list(row) == COLUMNS
        assert all(row.values()), row


def test_training_stopped_when_its_time_was_spent(rows):
    spent = [float(row["cpu_seconds"]) for row in rows if row["protocol"] == "held out"]
    assert all(96 <= seconds < 98 for seconds in spent)
    assert {row["threads"] for row in rows} == {"1"}


def test_all_runs_of_a_kind_saw_the_same_data_and_scored_it_alike(rows):
    for data, protocol in KINDS:
        of_a_kind = [row for row in rows if list(row.values())[:2] == [data, protocol]]
        for column in ("data_sha256", "training_pairs", "test_sentences", "signature"):
            assert len({row[column] for row in of_a_kind}) == 1, column
    assert {row["signature"] for row in rows} == {rows[0]["signature"]}
    assert rows[0]["signature"] in PAGE


@pytest.mark.parametrize(
    ("model", "aims"),
    [
        ("attention", {"tatoeba": 15, "multi30k": 34}),
        ("Transformer", {"tatoeba": 16, "multi30k": 34}),
    ],
)
def test_models_reach_what_was_aimed_for(rows, model, aims):
    for data, least in aims.items():
        chosen = runs(rows, data, "held out", model)
        assert statistics.median(float(row["bleu"]) for row in chosen) >= least


def test_attention_helps_with_captions_and_not_with_sentences_of_four_words(rows):
    def scores(data, model):
        return [float(row["bleu"]) for row in runs(rows, data, "held out", model)]

    one, attention = (scores("multi30k", model) for model in RECURRENT)
    assert round(statistics.median(attention) - statistics.median(one)) == 11
    assert "is worth eleven points" in " ".join(PAGE.split())
    assert min(attention) > max(one)
    one, attention = (scores("tatoeba", model) for model in RECURRENT)
    assert max(one) > min(attention)


def test_the_transformer_is_level_on_short_sentences_and_behind_on_captions(rows):
    def column(data, model, name):
        return [float(row[name]) for row in runs(rows, data, "held out", model)]

    attention, transformer = (
        column("tatoeba", model, "bleu") for model in ("attention", "Transformer")
    )
    assert max(attention) > min(transformer) and max(transformer) > min(attention)
    attention, transformer = (
        column("multi30k", model, "bleu") for model in ("attention", "Transformer")
    )
    assert max(transformer) < min(attention)
    for data in ("tatoeba", "multi30k"):
        attention, transformer = (
            column(data, model, "steps") for model in ("attention", "Transformer")
        )
        assert min(transformer) > max(attention)


def test_each_run_of_the_transformer_has_its_learning_curve(rows):
    with (ROOT / "benchmarks/translation_curves.csv").open(encoding="utf-8") as file:
        points = list(csv.DictReader(file))
    for data in ("tatoeba", "multi30k"):
        for run in runs(rows, data, "held out", "Transformer"):
            key = [data, "held out", "Transformer", run["seed"]]
            losses = [p["training_loss"] for p in points if [*p.values()][:4] == key]
            assert len(losses) == 20
            assert float(losses[-1]) < float(losses[0]) / 2


@pytest.mark.parametrize("model", MODELS["held out"])
@pytest.mark.parametrize("data", ["tatoeba", "multi30k"])
def test_the_page_has_the_scores_of_each_model(rows, data, model):
    assert line_of_a_model(rows, data, model) in PAGE.splitlines()


@pytest.mark.parametrize("score", SCORES, ids=lambda score: " ".join(score[:2]))
def test_the_page_has_each_score_of_both_protocols(rows, score):
    assert line_of_a_score(rows, *score) in PAGE.splitlines()


def test_the_page_shows_what_the_first_seed_wrote(rows):
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    shown = [line for line in lines if line.count("`") == 6]
    ends = lines_of_examples(rows)
    assert [line.endswith(end) for line, end in zip(shown, ends, strict=True)] == (
        [True] * 5
    )


def test_the_page_tells_on_what_and_when_it_was_measured(rows):
    text = " ".join(PAGE.split())
    for row in rows:
        date = datetime.date.fromisoformat(row["date"])
        when, torch = f"{date:%B %Y}", row["torch"].split("+")[0]
        assert (
            f"of {when}, from one thread of an {row['machine']} processor with torch "
            f"{torch}," in text
        )


def test_the_page_tells_what_other_ways_of_counting_give(rows):
    def median(data, column):
        chosen = runs(rows, data, "held out", "attention")
        return f"{statistics.median(float(row[column]) for row in chosen):.1f}"

    text, three = " ".join(PAGE.split()), "bleu_unknown_as_three"
    both = f"{median('tatoeba', three)} on Tatoeba, {median('multi30k', three)} on"
    assert both in text
    every, one = median("tatoeba", "bleu_all_references"), median("tatoeba", "bleu")
    assert f"attention's median is {every} in place of {one}." in text
