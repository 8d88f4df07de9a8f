"""The page of results says what the benchmark of images measured."""

import csv
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
NAMES = {
    "tutorial_lib": "this book's Vision Transformer",
    "torchvision": "torchvision's Vision Transformer",
    "convolutions": "convolutional network",
}


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(model, name):
    rows = [row for row in read("vision.csv") if row["model"] == model]
    assert [row["seed"] for row in rows] == ["0", "1", "2"]
    return [float(row[name]) for row in rows]


@pytest.mark.parametrize("model", NAMES)
def test_the_page_has_the_scores_of_each_model(model):
    accuracies = sorted(column(model, "accuracy"))
    low, middle, high = (f"{100 * accuracy:.1f}" for accuracy in accuracies)
    training = statistics.median(column(model, "accuracy_training"))
    speeds = [
        f"{round(statistics.median(column(model, name)), -1):,.0f}"
        for name in ("images_per_second_training", "images_per_second")
    ]
    (parameters,) = set(column(model, "parameters"))
    cells = [NAMES[model], f"{parameters:,.0f}", f"{middle} % ({low}–{high})"]
    cells += [f"{100 * training:.0f} %", *speeds]
    assert f"| {' | '.join(cells)} |" in PAGE.splitlines()


def test_all_models_had_the_same_time_and_the_same_images():
    rows = read("vision.csv")
    assert all(96 <= float(row["cpu_seconds"]) < 98 for row in rows)
    for name in ("training_images", "test_images", "threads", "torch"):
        assert len({row[name] for row in rows}) == 1, name
    for seed in "012":  # which also chooses the images' order
        assert len({row["data_sha256"] for row in rows if row["seed"] == seed}) == 1
    assert (rows[0]["training_images"], rows[0]["test_images"]) == ("3000", "700")


def test_the_convolutional_network_is_ahead_by_what_the_page_says():
    ours, theirs, convolutions = (column(model, "accuracy") for model in NAMES)
    assert min(convolutions) > max(ours + theirs)
    ahead = 100 * (statistics.median(convolutions) - statistics.median(ours))
    assert f"{ahead:.0f} points ahead" in " ".join(PAGE.split())


def test_a_step_takes_at_most_a_tenth_longer_than_torchvision_s_and_the_page_says_so():
    rows = read("vision_steps.csv")
    rows = [row for row in rows if row["contender"] == "tutorial_lib"]
    ratios = [float(row["time_ratio"]) for row in rows]
    assert len(ratios) == 3 and max(ratios) <= 1.10
    assert f"{min(ratios):.2f} to {max(ratios):.2f} of its time" in " ".join(
        PAGE.split()
    )
