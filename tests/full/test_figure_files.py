"""Figures as files: chosen by name, stored pictures or drawn by the chapters."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from tools.__main__ import main
from tools.figures import figures_of, prepare
from tools.notebooks import chapters, read_notebook, write_notebook
from tutorial_lib.plotting import show_heatmaps
from tutorial_lib.plotting.figure import draw

BOOK = Path(__file__).parents[2]
PICTURE = io.BytesIO()
Image.new("P", (60, 20), 3).save(PICTURE, "png", dpi=(90, 90))
STORED = base64.b64encode(PICTURE.getvalue()).decode()
DRAW = "from matplotlib.figure import Figure\n\nfigure = Figure(figsize=(2, 1))\n"
LIVE = '<div data-figure="1"></div><script>"&"</script>'


def cell(name, source, *, figure=None, data=None):
    """Make a code cell; ``data`` is what it stores."""
    metadata = {"mystnb": {"figure": {"name": figure}}} if figure else {}
    shown = {"data": data, "metadata": {}, "output_type": "display_data"}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata,
        "outputs": [shown] if data else [],
        "source": source.splitlines(keepends=True),
    }


def write_chapter(root, name, *cells):
    kernel = {"name": "python3", "display_name": "", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}}
    path = root / "notebooks" / f"{name}.ipynb"
    write_notebook(path, {**notebook, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Make a book of two chapters, the second of which fails, and work there."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_config.yml").touch()
    stored = {"image/png": STORED, "text/plain": "<Figure>"}
    live = {"image/png": STORED, "text/html": LIVE, "text/plain": "A sentence."}
    softmax = "from tutorial_figures import show_softmax\n\nshow_softmax([0.0, 1.0])"
    write_chapter(
        tmp_path,
        "01_lines",
        cell("line", f"{DRAW}figure", figure="fig-line", data=stored),
        cell("ask", softmax, data=live),
        cell("never-run", "1 / 0"),
    )
    write_chapter(
        tmp_path,
        "02_fails",
        cell("early", f"{DRAW}figure", figure="fig-early", data=stored),
        cell("broken", "1 / 0\n"),
        cell("late", f"{DRAW}figure", figure="fig-late", data=stored),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written():
    return {path.name for path in Path("slides").iterdir()}


def test_every_figure_of_the_book_has_a_name_of_its_own():
    names = []
    for path in chapters(BOOK):
        names += [figure.name for figure in figures_of(path, read_notebook(path))]
    assert len(set(names)) == len(names) > 50


def test_a_live_figure_of_an_excursion_is_named_after_it(root):
    live = cell("ask", "3", data={"text/html": LIVE})
    write_chapter(root, "x_cost", live)
    [path] = chapters(root, ["x_cost"])
    [figure] = figures_of(path, read_notebook(path))
    assert figure.name == "fig-x-cost-ask"


@pytest.mark.parametrize("name", ["fig-lines", "line"])
def test_a_wrong_name_of_a_figure_brings_those_that_are_near(root, name, capsys):
    assert main(["figures", "--only", name]) == 1
    assert "did you mean fig-line" in capsys.readouterr().err


def test_png_files_are_the_pictures_that_are_stored(root, capsys):
    assert main(["figures", "--out", "slides"]) == 0
    assert capsys.readouterr().out == "Wrote 4 figures into slides.\n"
    assert written() == {
        "fig-01-ask.html",
        "fig-01-ask.png",
        "fig-early.png",
        "fig-late.png",
        "fig-line.png",
    }
    assert Path("slides/fig-line.png").read_bytes() == PICTURE.getvalue()


def test_a_live_figure_becomes_a_page_with_title_and_language(root):
    main(["figures", "--only", "fig-01-ask", "--out", "slides"])
    page = Path("slides/fig-01-ask.html").read_text()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>fig-01-ask</title>" in page
    assert '<div data-figure="1"></div><script>"&"</script>' in page


def test_a_chapter_is_run_as_far_as_its_figures_and_a_failure_loses_only_its_own(
    root, capsys
):
    before = {path: path.read_bytes() for path in root.glob("notebooks/*")}

    assert main(["figures", "--format", "svg", "--out", "slides"]) == 1

    [failure] = capsys.readouterr().err.splitlines()
    assert failure.startswith("02_fails: cell broken failed with ZeroDivisionError")
    assert written() == {
        "fig-01-ask.html",
        "fig-01-ask.svg",
        "fig-early.svg",
        "fig-line.svg",
    }
    assert "<svg" in Path("slides/fig-line.svg").read_text()
    assert "data-figure=" in Path("slides/fig-01-ask.html").read_text()
    assert {path: path.read_bytes() for path in root.glob("notebooks/*")} == before


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_chapter_and_keeps_what_was_drawn_before(root, capsys):
    stop = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\n"
    last = cell("late", f"{stop}time.sleep(60)\n{DRAW}figure", figure="fig-late")
    first = cell("early", f"{DRAW}figure", figure="fig-early")
    write_chapter(root, "01_lines", first, last)

    assert main(["figures", "--format", "svg", "--out", "slides"]) == 1

    assert capsys.readouterr().err == "01_lines: stopped by Ctrl-C\n"
    assert written() == {"fig-early.svg"}


def test_a_figure_with_menus_on_its_page_is_drawn_once(root):
    explored = (
        "from tutorial_lib.notebook import explore\n"
        f"{DRAW}calls = []\n"
        "def line(size=1):\n    calls.append(size)\n    return figure\n"
        'explore(line, size=(1, 9), on_page={"size": [1, 5]})\n'
        "assert calls == [1]"
    )
    write_chapter(root, "01_lines", cell("try-it", explored, figure="fig-try"))

    command = ["figures", "--chapter", "1", "--format", "pdf", "--out", "slides"]
    assert main(command) == 0
    assert written() == {"fig-try.pdf"}
    assert Path("slides/fig-try.pdf").read_bytes().startswith(b"%PDF")


def test_a_run_ends_with_the_last_figure_and_stores_nothing_from_before(root):
    [path] = root.glob("notebooks/02*")
    notebook = prepare(path, read_notebook(path), ["fig-early"], "svg")
    assert [one["id"] for one in notebook["cells"]] == ["hand-over", "early"]
    assert notebook["cells"][-1]["outputs"] == []


@pytest.mark.parametrize("format", ["svg", "pdf", "png"])
def test_the_same_figure_is_the_same_file(format):
    def file():  # of a heatmap, whose color bar has a clip path with an id in SVG
        figure = show_heatmaps([[0.0, 1.0], [0.5, 0.5]])
        return draw(figure, format, dpi=100)

    once = file()
    assert once == file()
    assert b"CreationDate" not in once
    assert b"<dc:date>" not in once
