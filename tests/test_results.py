"""The page of results takes its numbers and charts from the benchmarks' tables."""

import importlib
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
from docutils import nodes
from sphinx.testing.util import SphinxTestApp

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))
RESULTS = importlib.import_module("results")
CHARTS = importlib.import_module("results_charts")
PAGE = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
KNOWN = RESULTS.results(ROOT / "benchmarks")
TABLE = """model,score
ours,1.5
ours,4
ours,2.25
theirs,9
"""


def read(name):
    return RESULTS.read(ROOT / "benchmarks", name)


@pytest.fixture
def build(tmp_path):
    """Return a function that builds a page; it returns its text and the warnings."""
    (tmp_path / "conf.py").write_text("extensions = ['myst_parser', 'results']")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")

    def build_page(source):
        (tmp_path / "index.md").write_text(f"# Page\n\n{source}\n")
        app = SphinxTestApp(srcdir=tmp_path, buildername="dummy")
        app.build()
        paragraphs = app.env.get_doctree("index").findall(nodes.paragraph)
        app.cleanup()
        return next(paragraphs).astext(), app.warning.getvalue()

    return build_page


def test_a_page_writes_a_number_by_its_name(build):
    text, warnings = build("It is **{result}`gpt.Llama.300`** bits.")
    assert text == f"It is {KNOWN['gpt.Llama.300']} bits."
    assert warnings == ""


def test_an_unknown_number_is_a_warning_which_stops_the_book_s_build(build):
    _, warnings = build("It is {result}`gpt.Lama.300`.")
    assert "index.md:3: WARNING: there is no result 'gpt.Lama.300'" in warnings


def test_the_page_names_only_numbers_that_there_are():
    names = re.findall(r"\{result\}`(.*?)`", PAGE)
    assert len(names) > 50
    assert [name for name in names if name not in KNOWN] == []


def test_rows_are_chosen_by_their_values_and_columns_read_as_numbers(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    rows = RESULTS.read(tmp_path, "table.csv", model="ours")
    assert RESULTS.column(rows, "score") == [1.5, 4, 2.25]
    assert RESULTS.median(rows, "score") == 2.25
    assert RESULTS.in_range([1.5, 4, 2.25], ".1f") == "1.5 to 4.0"
    assert RESULTS.in_range([2.4, 1.6]) == "2"


def test_the_signature_of_bleu_is_the_one_of_the_runs():
    [signature] = {row["signature"] for row in read("translation.csv")}
    assert signature in PAGE


def test_no_mark_of_a_chart_lies_outside():
    for name, (draw, table) in CHARTS.CHARTS.items():
        chart = draw(read(table))
        xs = [float(x) for x in re.findall(r'(?:cx="|x="|M)([-\d.]+)', chart)]
        ys = [float(y) for y in re.findall(r'(?:cy="|y="|M[-\d.]+ )([-\d.]+)', chart)]
        height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', chart)[1])
        assert min(xs) >= 0 and max(xs) <= CHARTS.WIDTH, name
        assert min(ys) >= 0 and max(ys) <= height, name


def test_every_chart_stands_on_the_page_with_a_caption():
    captions = dict(re.findall(r"```\{chart\} (\w+)\n(.*?)\n```", PAGE, re.DOTALL))
    assert set(captions) == set(CHARTS.CHARTS)
    assert all(captions.values())
