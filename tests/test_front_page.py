"""The model of the front page: what is told of it, and what it is."""

import csv
import importlib
import sys
from pathlib import Path

import pytest

from tutorial_figures import show_writing
from tutorial_figures.writing import packed

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "book" / "_ext")]
front_page = importlib.import_module("front_page")
live_figure = importlib.import_module("live_figure")


@pytest.fixture(scope="module")
def data():
    return front_page.stored_data()


@pytest.fixture(scope="module")
def model(data):
    return front_page.stored_model(data)


def test_the_stored_figure_is_what_the_library_makes_of_its_model(data, model):
    figure = show_writing(model, data["words"], data["prompt"], length=128)
    assert figure.data["written"] == data["written"]
    assert packed(model)[0] == data["spec"]


def test_the_build_makes_the_html_that_the_library_makes(data, model):
    figure = show_writing(model, data["words"], data["prompt"], length=128)
    figure.data = data  # whose probabilities may differ in the last digit
    built = live_figure.html_of(front_page.STORED, ROOT)
    assert built.split("<script>")[1] == figure.html.split("<script>")[1]


def test_what_the_page_tells_of_the_model_is_so(data, model):
    page = (ROOT / "book/intro.md").read_text(encoding="utf-8")
    number = sum(weight.numel() for weight in model.parameters())
    assert f"{round(number, -3):,} parameters" in page
    assert "four layers of four attention heads" in page
    assert (len(model.layers), data["sizes"]["num_heads"]) == (4, 4)
    with (ROOT / "benchmarks/front_page.csv").open(encoding="utf-8") as file:
        [row] = [row for row in csv.DictReader(file) if row["part"] == "page"]
    assert row["seconds"] == "720" and "for twelve minutes" in page
    assert 1.4 < float(row["test"]) < 1.75
