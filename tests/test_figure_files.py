"""Figures as files: chosen by name, drawn in a kernel or taken as they are stored."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from tools.__main__ import main
from tools.figures import drawing_for, figures_of, prepare, settings_for
from tools.notebooks import chapters, read_notebook, source_of, write_notebook
from tutorial_lib.plotting import show_heatmaps
from tutorial_lib.plotting.figure import draw

BOOK = Path(__file__).parents[1]
PICTURE = io.BytesIO()
Image.new("P", (60, 20), 3).save(PICTURE, "png", dpi=(90, 90))
PIXEL = base64.b64encode(PICTURE.getvalue()).decode()
DRAW = "from matplotlib.figure import Figure\n\nfigure = Figure(figsize=(2, 1))\n"
LIVE = '<div data-figure="1"></div><script>"&"</script>'


def cell(name, source, *, figure=None, tags=(), data=None):
    """Make a code cell; ``data`` is what it stores."""
    caption = {"caption": "What *is* seen & said.", "name": figure}
    about = {"mystnb": {"figure": caption, "image": {"alt": 'A "line".'}}}
    shown = {"data": data, "metadata": {}, "output_type": "display_data"}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"tags": list(tags), **(about if figure else {})},
        "outputs": [shown] if data else [],
        "source": source.splitlines(keepends=True),
    }


def write_chapter(root, name, *cells):
    heading = {
        "cell_type": "markdown",
        "id": "h",
        "metadata": {},
        "source": ["# Title"],
    }
    kernel = {
        "kernelspec": {"name": "python3", "display_name": "", "language": "python"}
    }
    content = {"cells": [heading, *cells], "metadata": kernel}
    write_notebook(
        root / "notebooks" / f"{name}.ipynb",
        {**content, "nbformat": 4, "nbformat_minor": 5},
    )


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Make a book of two chapters, and work there."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_config.yml").write_text("title: Lines\n")
    (tmp_path / "pyproject.toml").write_text('version = "2.1"\n')
    stored = {"image/png": PIXEL, "text/plain": "<Figure>"}
    live = {"image/png": PIXEL, "text/html": LIVE, "text/plain": "It says “a”."}
    write_chapter(
        tmp_path,
        "01_lines",
        cell(
            "parameters",
            "seed = 0  # any\nname = 'a'",
            tags=["parameters"],
        ),
        cell("odds", "assert seed == 0, 'unlucky'", tags=["claim"]),
        cell(
            "line",
            f"{DRAW}figure.subplots().set_title(f'seed {{seed}}', gid='title')\nfigure",
            figure="fig-line",
            data=stored,
        ),
        cell("sum", "1 + 1"),
    )
    write_chapter(
        tmp_path,
        "02_fails",
        cell("early", f"{DRAW}figure", figure="fig-early", data=stored),
        cell("broken", "1 / 0\n"),
        cell("late", f"{DRAW}figure", figure="fig-late", data=stored),
        cell("live", "3", data=live),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(root):
    return {path: read_notebook(path) for path in chapters(root)}


# --- What there is


def test_every_figure_of_the_book_has_a_name_of_its_own():
    entries = [e for one in read(BOOK).items() for e in figures_of(*one)]
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names) > 90
    assert {entry.is_live for entry in entries} == {True, False}
    assert {"fig-alignment", "fig-architecture"} <= set(names)


def test_a_live_figure_of_an_excursion_is_named_after_it(root):
    live = cell("ask", "3", data={"text/html": LIVE, "text/plain": "It says “a”."})
    write_chapter(root, "x_cost", live)
    entries = [e for one in read(root).items() for e in figures_of(*one)]
    assert entries[-1].name == "fig-x-cost-ask"


@pytest.mark.parametrize("name", ["fig-lines", "line"])
def test_a_wrong_name_of_a_figure_brings_those_that_are_near(root, name, capsys):
    assert main(["figures", "--from-outputs", "--only", name]) == 1
    assert "did you mean fig-line" in capsys.readouterr().err


# --- Parameters


def test_a_setting_goes_to_the_chapters_that_have_the_parameter(root):
    settings = settings_for(read(root), ["seed=7", "name=5"])
    [path] = root.glob("notebooks/01*")
    assert settings == {path: {"seed": 7, "name": "5"}}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("sed=7", "has a parameter sed: they have name, seed"),
        ("seed=seven", "--set seed=seven does not fit: give something like 0"),
        ("seed=7.5", "does not fit"),
        ("seed=True", "does not fit"),
        ("seed", "does not fit"),
    ],
)
def test_a_setting_that_fits_no_chapter_says_what_would(root, setting, message):
    with pytest.raises(ValueError, match=message):
        settings_for(read(root), [setting])


# --- As they are stored


def test_stored_pictures_are_taken_as_they_are(root, capsys):
    assert main(["figures", "--from-outputs", "--out", "slides"]) == 0

    assert capsys.readouterr().out == "Wrote 4 figures into slides.\n"
    assert sorted(path.name for path in Path("slides").iterdir()) == [
        "fig-02-live.html",
        "fig-02-live.png",
        "fig-early.png",
        "fig-late.png",
        "fig-line.png",
    ]
    stored = Image.open(PICTURE).convert("RGB")
    there = Image.open("slides/fig-line.png")
    assert there.info["Copyright"] == "Lines 2.1 · Fig. 1.1 · CC BY 4.0"
    assert there.crop((0, 0, 60, 20)).tobytes() == stored.tobytes()
    assert there.width > 100 and 30 < there.height < 60  # the line is longer
    below = there.crop((0, 20, *there.size)).convert("L")
    assert len(below.getcolors()) > 10  # there are letters


@pytest.mark.parametrize(
    "option",
    ["--format=svg", "--format=pdf", "--dpi=90", "--style=dark", "--set=seed=7"],
)
def test_stored_pictures_cannot_be_had_otherwise(root, option, capsys):
    assert main(["figures", "--from-outputs", option, "--out", "slides"]) == 1
    assert "leave" in capsys.readouterr().err
    assert not Path("slides").exists()


def test_a_live_figure_becomes_a_page_with_title_language_and_caption(root):
    main(["figures", "--from-outputs", "--only", "fig-02-live", "--out", "slides"])
    page = Path("slides/fig-02-live.html").read_text()
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>fig-02-live</title>" in page
    credit = "<br><small>Lines 2.1 · Fig. 2.3 · CC BY 4.0</small>"
    assert f"<figcaption>It says “a”.{credit}</figcaption>" in page
    assert '<div data-figure="1"></div><script>"&"</script>' in page


# --- Drawn again


def test_a_run_follows_its_parameters_and_a_failure_loses_only_its_own(root, capsys):
    before = {path: path.read_bytes() for path in root.glob("notebooks/*")}
    options = ["--format", "svg", "--set", "seed=7", "--out", "slides"]

    assert main(["figures", *options]) == 1

    said = capsys.readouterr()
    assert "01_lines: the claim odds does not hold here" in said.out
    assert "02_fails: cell broken failed with ZeroDivisionError" in said.err
    assert "02_fails: not written: fig-late, fig-02-live" in said.err
    written = {path.name: path.read_text() for path in Path("slides").iterdir()}
    assert set(written) == {"fig-line.svg", "fig-early.svg"}
    assert "<!-- seed 7 -->" in written["fig-line.svg"]
    assert "<!-- Lines 2.1 · Fig. 1.1 · CC BY 4.0 -->" in written["fig-line.svg"]
    assert "<!-- Lines 2.1 · Fig. 2.1 · CC BY 4.0 -->" in written["fig-early.svg"]
    assert {path: path.read_bytes() for path in root.glob("notebooks/*")} == before


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_chapter_and_keeps_what_was_drawn_before(root, capsys):
    stop = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\n"
    last = cell("late", f"{stop}time.sleep(60)\n{DRAW}figure", figure="fig-late")
    first = cell("early", f"{DRAW}figure", figure="fig-early")
    write_chapter(root, "01_lines", first, last)

    assert main(["figures", "--format", "svg", "--out", "slides"]) == 1

    told = capsys.readouterr().err.splitlines()
    assert told[0] == "01_lines: stopped by Ctrl-C"
    assert told[1:] == ["01_lines: not written: fig-late", "02_fails: not begun"]
    written = {path.name for path in Path("slides").iterdir()}
    assert written == {"fig-early.svg"}


def test_a_run_ends_with_the_last_figure_and_stores_nothing_from_before(root):
    [path] = root.glob("notebooks/02*")
    drawing = ("svg", 300, "light")
    notebook = prepare(read_notebook(path), {"early": "mine"}, {}, drawing)
    assert [one["id"] for one in notebook["cells"]] == ["h", "hand-over-early", "early"]
    assert notebook["cells"][-1]["outputs"] == []


def test_parameters_follow_those_of_the_chapter(root):
    [path] = root.glob("notebooks/01*")
    drawing = ("svg", 300, "light")
    notebook = prepare(read_notebook(path), {"line": ""}, {"seed": 7}, drawing)
    _, parameters, injected, _, _, _ = notebook["cells"]
    assert parameters["id"] == "parameters"
    assert "seed = 7" in source_of(injected)


@pytest.mark.parametrize("format", ["svg", "pdf", "png"])
def test_the_same_figure_is_the_same_file(format):
    def file():  # of a heatmap, whose color bar has a clip path with an id in SVG
        figure = show_heatmaps([[0.0, 1.0], [0.5, 0.5]])
        return draw(figure, format, dpi=100, dark=True)

    assert (once := file()) == file()
    assert b"CreationDate" not in once and b"<dc:date>" not in once


@pytest.mark.parametrize(
    ("format", "data"),
    [("svg", b"<dc:rights>"), ("pdf", b"/Subject"), ("png", b"Copyright")],
)
def test_a_credit_stands_below_the_figure_and_in_the_file_and_is_gone(format, data):
    figure = show_heatmaps([[0.0, 1.0], [0.5, 0.5]])
    assert data in draw(figure, format, dpi=100, credit="by me")
    assert data not in draw(figure, format, dpi=100)
    assert figure.texts == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_credit_makes_a_picture_higher(dark):
    figure = show_heatmaps([[0.0, 1.0], [0.5, 0.5]])
    files = [draw(figure, "png", dpi=100, dark=dark, credit=c) for c in ("", "by me")]
    plain, credited = (Image.open(io.BytesIO(file)) for file in files)
    assert credited.width == plain.width
    assert 10 < credited.height - plain.height < 30
    files = [draw(figure, "png", dpi=100, dark=dark, credit=c) for c in (" ", "by me")]
    assert files[0] != files[1]  # the letters are seen


def test_an_interactive_figure_is_a_page_and_a_picture_in_the_format_asked_for(root):
    source = "from tutorial_figures import show_softmax\n\nshow_softmax([0.0, 1.0])"
    write_chapter(root, "01_lines", cell("ask", source, data={"text/html": LIVE}))
    main(["figures", "--chapter=1", "--format=svg", "--out=slides"])
    line = "Lines 2.1 · Fig. 1.1 · CC BY 4.0"
    assert f"<!-- {line} -->" in Path("slides/fig-01-ask.svg").read_text()
    assert f"<small>{line}</small>" in Path("slides/fig-01-ask.html").read_text()


def test_each_figure_of_a_run_has_its_own_number_and_an_excursion_s_its_name(root):
    title = {"cell_type": "markdown", "id": "t", "metadata": {}}
    cells = [cell(name, f"{DRAW}figure", figure=f"fig-{name}") for name in ("a", "b")]
    write_chapter(root, "x_cost", *cells)
    path = root / "notebooks" / "x_cost.ipynb"
    notebook = read_notebook(path)
    notebook["cells"][0] = title | {"source": ["# The cost: memory\n", "\n", "It…"]}
    write_notebook(path, notebook)
    main(["figures", "--chapter=x_cost", "--format=svg", "--out=slides"])
    for number, name in enumerate("ab", start=1):
        line = f"<!-- Lines 2.1 · The cost, Fig. {number} · CC BY 4.0 -->"
        assert line in Path(f"slides/fig-{name}.svg").read_text()


def test_an_option_left_open_has_its_default():
    assert drawing_for(False, []) == ("png", 300, "light")
    with pytest.raises(ValueError, match="leave it out to have them drawn with"):
        drawing_for(True, [], dpi=0)
