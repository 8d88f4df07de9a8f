"""Figures in pages of others: in frames, twice, without JavaScript, hostile text."""

import pytest
import torch
from architecture_code import CODE
from figures_in_browser import (
    FIGURES,
    UNREPORTED,
    every_figure,
    press,
    press_in_stage,
    readout,
    softmax,
    without_picture,
    write_page,
)

import tutorial_figures as figures


@every_figure
def test_a_figure_runs_in_a_sandbox_twice_and_once_it_is_shown(
    name, reload_at, tmp_path
):
    figure = without_picture(FIGURES[name]())
    figure.save(tmp_path / "inner.html")
    frame = '<iframe sandbox="allow-scripts" src="inner.html" width=700 height=700>'
    body = f"{frame}</iframe><main hidden>{figure.html}</main>{figure.html * 2}"
    page = reload_at(write_page(tmp_path / "copies.html", body))
    assert page.frame_locator("iframe").locator(".readout").inner_text()
    copies = page.locator("[data-figure]")
    copies.last.scroll_into_view_if_needed()  # a figure out of sight does not start
    page.locator(".readout", has_text=" ").nth(1).wait_for()
    page.locator("main").evaluate("main => main.hidden = false")
    copies.first.scroll_into_view_if_needed()
    page.locator(".readout", has_text=" ").nth(2).wait_for()
    assert page.locator(".readout").count() == 3


@every_figure
def test_a_figure_is_imported_as_a_module_by_a_page(name, page_at, tmp_path, serve):
    FIGURES[name]().save(tmp_path / "figure.js")
    body = """<div id="here"></div><script type="module">
    import figure from "./figure.js";
    window.takeAway = await figure.render({ el: document.getElementById("here") });
    </script>"""
    write_page(tmp_path / "bare.html", body)
    page = page_at(f"{serve(tmp_path)}/bare.html")
    page.wait_for_function("Boolean(window.takeAway)")
    assert readout(page)
    page.evaluate("takeAway()")
    assert page.locator("#here > *").count() == 0


def test_a_figure_keeps_its_colors_wherever_it_stands_where_a_system_replaces_all(
    page_at, tmp_path
):
    FIGURES["softmax"]().save(tmp_path / "figure.html")
    page = page_at(tmp_path / "figure.html", forced_colors="active")
    adjust = "part => getComputedStyle(part).forcedColorAdjust"
    assert page.locator(".readout").evaluate(adjust) == "none"


def test_without_javascript_the_picture_stands_with_its_sentence(shown):
    page = shown(softmax(), pictured=True, java_script_enabled=False)
    picture = page.locator("img")
    assert picture.is_visible() and picture.bounding_box()["height"] > 100
    assert picture.get_attribute("alt") == softmax().text


def test_a_figure_that_cannot_start_shows_its_picture(shown):
    broken = "Element.prototype.append = () => { throw 'broken'; };"
    page = shown(softmax(), pictured=True, script=UNREPORTED + broken)
    assert page.locator("img").is_visible()


HOSTILE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "</script><script>window.hacked=1</script>"
PAIR, CORNERS = [HOSTILE, SCRIPT], [[0, 0], [1, 0], [0, 1]]
EYE = torch.eye(2)


@pytest.mark.parametrize(
    "figure",
    [
        figures.show_attention(EYE, PAIR, names=PAIR, title=HOSTILE),
        figures.show_softmax([1.0, 2.0], labels=PAIR, title=HOSTILE),
        figures.show_sampling([1.0, 2.0], PAIR, prompt=SCRIPT, title=HOSTILE),
        figures.show_generation(EYE, EYE, PAIR, PAIR, title=HOSTILE),
        figures.show_learning(
            torch.eye(3), CORNERS, labels=[*PAIR, "c"], title=HOSTILE
        ),
        figures.show_patch_attention(
            EYE, torch.ones(1, 2), questions=PAIR, title=HOSTILE
        ),
        figures.show_architecture(CODE, title=HOSTILE),
    ],
    ids=lambda figure: figure.name,
)
def test_hostile_text_is_shown_as_text(figure, shown):
    page = shown(figure)
    press(page, *["Tab"] * 4, "ArrowDown", "ArrowRight")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 1  # the picture
    assert page.locator("script").count() == 1
    assert HOSTILE in page.locator("b").inner_text()
    if figure.name == "attention":
        press_in_stage(page, "ArrowDown", "ArrowRight")
        assert f"“{HOSTILE}” the weight" in readout(page).replace(SCRIPT, HOSTILE)


@every_figure
def test_a_picture_is_drawn_the_same_again(name):
    assert FIGURES[name]().png == FIGURES[name].__wrapped__().png
