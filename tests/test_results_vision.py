"""The page of results says what the benchmark of images measured."""

import csv
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NAMES = {
    "tutorial_lib": "ours",
    "torchvision": "torchvision's",
    "tutorial_lib, patches of 7": "ours, larger patches",
    "convolutions": "convolutional",
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
    speed = statistics.median(column(model, "images_per_second_training"))
    cells = [NAMES[model], f"{middle} ({low}–{high})", f"{100 * training:.0f}"]
    cells.append(f"{round(speed, -1):,.0f}")
    assert f"| {' | '.join(cells)} |" in PAGE.splitlines()
    (parameters,) = set(column(model, "parameters"))
    assert f"{parameters:,.0f}" in TEXT


def test_all_models_had_the_same_time_and_the_same_images():
    rows = read("vision.csv")
    assert all(96 <= float(row["cpu_seconds"]) < 98 for row in rows)
    for name in ("training_images", "test_images", "threads", "torch"):
        assert len({row[name] for row in rows}) == 1, name
    for seed in "012":  # which also chooses the images' order
        assert len({row["data_sha256"] for row in rows if row["seed"] == seed}) == 1
    assert (rows[0]["training_images"], rows[0]["test_images"]) == ("3000", "700")


def test_the_convolutional_network_is_ahead_by_what_the_page_says():
    ours, theirs, larger, convolutions = (column(name, "accuracy") for name in NAMES)
    assert min(convolutions) > max(ours + theirs + larger)
    before, after = (
        f"{100 * (statistics.median(convolutions) - statistics.median(found)):.0f}"
        for found in (ours, larger)
    )
    assert f"Transformer, by {before} points, and by {after} if its" in TEXT
    assert f"it is {after} points behind the convolutional network and no" in TEXT
    assert f"no longer {before}.**" in TEXT
    seen, once = (
        statistics.median(column(name, "images_per_second_training"))
        for name in ("tutorial_lib, patches of 7", "tutorial_lib")
    )
    assert 3 <= seen / once < 4 and "more than three times as many are seen" in TEXT


def test_small_patches_fit_the_training_images_less_and_large_ones_as_well():
    small, larger, convolutions = (
        column(name, "accuracy_training")
        for name in ("tutorial_lib", "tutorial_lib, patches of 7", "convolutions")
    )
    assert max(small) + 0.05 < min(convolutions)
    assert abs(statistics.median(larger) - statistics.median(convolutions)) < 0.015


def test_a_step_takes_at_most_a_tenth_longer_than_torchvision_s_and_the_page_says_so():
    rows = read("vision_steps.csv")
    rows = [row for row in rows if row["contender"] == "tutorial_lib"]
    ratios = [float(row["time_ratio"]) for row in rows]
    assert len(ratios) == 3 and max(ratios) <= 1.10
    said = f"takes {min(ratios):.2f} to {max(ratios):.2f} of the time of torchvision's"
    assert said in TEXT
