"""The page of results says what the benchmark of images measured."""

import csv
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NAMES = {
    "tutorial_lib": "patches of 4 × 4 pixels",
    "tutorial_lib, patches of 7": "patches of 7 × 7",
    "convolutions": "convolutional",
}
RATE, HALF = "0.004", "0.002"
SAID = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def read(name):
    with (ROOT / "benchmarks" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(model, name, rate=RATE):
    kind = model, rate
    rows = [r for r in read("vision.csv") if (r["model"], r["learning_rate"]) == kind]
    assert sorted(row["seed"] for row in rows) == ["0", "1", "2"]
    return [float(row[name]) for row in rows]


def median(model, name, rate=RATE):
    return statistics.median(column(model, name, rate))


@pytest.mark.parametrize("model", NAMES)
def test_the_page_has_the_scores_of_each_model(model):
    training, speed = (
        median(model, name)
        for name in ("accuracy_training", "images_per_second_training")
    )
    cells = [NAMES[model], f"{100 * median(model, 'accuracy'):.1f}"]
    cells += [f"{100 * training:.0f}", f"{round(speed, -1):,.0f}"]
    assert f"| {' | '.join(cells)} |" in PAGE.splitlines()
    low, _, high = (f"{100 * score:.1f}" for score in sorted(column(model, "accuracy")))
    assert f"{low} to {high}" in TEXT
    (parameters,) = set(column(model, "parameters"))
    assert f"{parameters:,.0f}" in TEXT


def test_at_half_the_rate_small_patches_and_torchvision_have_what_the_page_says():
    ours, theirs = (
        f"{100 * median(name, 'accuracy', HALF):.1f}"
        for name in ("tutorial_lib", "torchvision")
    )
    assert f"the small patches reached {ours}, and torchvision's" in TEXT
    assert f"Transformer {theirs}." in TEXT
    less = median("tutorial_lib", "epochs", HALF) / median("tutorial_lib", "epochs")
    assert 0.6 < less < 0.8 and "about 0.7 times as many images" in TEXT
    assert {column("torchvision", "parameters", HALF)[0]} == {
        column(name, "parameters")[0] for name in NAMES if name != "convolutions"
    }


def test_all_models_had_the_same_time_and_the_same_images():
    rows = read("vision.csv")
    assert all(96 <= float(row["cpu_seconds"]) < 98 for row in rows)
    for name in ("training_images", "test_images", "threads", "torch"):
        assert len({row[name] for row in rows}) == 1, name
    for seed in "012":  # which also chooses the images' order
        assert len({row["data_sha256"] for row in rows if row["seed"] == seed}) == 1
    assert (rows[0]["training_images"], rows[0]["test_images"]) == ("3000", "700")


def test_the_convolutional_network_is_ahead_by_what_the_page_says():
    small, larger, convolutions = (column(name, "accuracy") for name in NAMES)
    assert min(convolutions) > max(small + larger)
    before, after = (
        SAID[int(100 * (statistics.median(convolutions) - statistics.median(found)))]
        for found in (small, larger)
    )
    assert f"Transformer is over {before} points behind the" in TEXT
    assert f"with patches of 7 × 7 over {after}.**" in TEXT
    few, many = SAID.index(after), SAID.index(before)
    assert f"{few} to {many} points more accurate than the Vision Transformer**" in TEXT
    seen, once = (
        median(name, "images_per_second_training")
        for name in ("tutorial_lib, patches of 7", "tutorial_lib")
    )
    assert 2 < seen / once < 3 and "more than twice as many images are seen" in TEXT


def test_small_patches_fit_the_training_images_less():
    small, larger, convolutions = (
        column(name, "accuracy_training")
        for name in ("tutorial_lib", "tutorial_lib, patches of 7", "convolutions")
    )
    assert max(small) + 0.03 < min(larger + convolutions)
    assert "With small ones even the training images are fitted less." in TEXT


def test_a_step_takes_at_most_a_tenth_longer_than_torchvision_s_and_the_page_says_so():
    rows = read("vision_steps.csv")
    rows = [row for row in rows if row["contender"] == "tutorial_lib"]
    ratios = [float(row["time_ratio"]) for row in rows]
    assert len(ratios) == 3 and max(ratios) <= 1.10
    said = f"takes {min(ratios):.2f} to {max(ratios):.2f} of the time of torchvision's"
    assert said in TEXT
