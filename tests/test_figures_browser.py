"""What every figure does after real mouse, key and touch events in a browser."""

import pytest
import torch
from architecture_code import CODE
from figures_in_browser import (
    FIGURES,
    PHONE,
    UNREPORTED,
    press,
    said,
    sampling,
    without_isolates,
)

from tutorial_figures import (
    show_architecture,
    show_attention,
    show_generation,
    show_kernel_regression,
    show_learning,
    show_patch_attention,
    show_positions,
    show_sampling,
    show_softmax,
)

CORNERS = [[0, 0], [1, 0], [0, 1]]
every_figure = pytest.mark.parametrize("show", FIGURES)


@every_figure
def test_a_figure_starts_and_hides_its_picture(show, shown):
    page = shown(show(title="A title"), pictured=True)
    assert said(page)
    assert page.get_by_text("A title", exact=True).is_visible()
    assert not page.locator("img").is_visible()


@every_figure
def test_without_javascript_the_picture_stands_with_its_sentence(show, shown):
    figure = show()
    picture = shown(figure, pictured=True, java_script_enabled=False).locator("img")
    assert picture.is_visible() and picture.bounding_box()["height"] > 100
    assert picture.get_attribute("alt") == figure.text


@every_figure
def test_a_figure_that_cannot_start_shows_its_picture(show, shown):
    broken = "Element.prototype.append = () => { throw 'broken'; };"
    page = shown(show(), pictured=True, script=UNREPORTED + broken)
    assert page.locator("img").is_visible()


@every_figure
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers_for_anybody(show, scheme, shown, barriers):
    page = shown(show(title="A title"), color_scheme=scheme)
    assert (page.locator("[data-dark]").count() == 1) == (scheme == "dark")
    assert barriers(page) == []


@every_figure
def test_controls_are_large_enough_to_hit(show, shown):
    page = shown(show(), **PHONE)
    for control in page.locator("button, select, input[type=range], label").all():
        if not control.is_visible():
            continue
        box = control.bounding_box()
        assert box["height"] >= 24 and box["width"] >= 24


@every_figure
def test_a_phone_needs_no_sideways_scrolling(show, shown):
    page = shown(show(title="A rather long title " * 4), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@every_figure
def test_a_figure_follows_the_page_into_the_dark_and_back(show, shown):
    page = shown(show())
    host = page.locator("[data-figure]")
    page.evaluate("document.body.style.cssText = 'background: #111; color: #eee'")
    page.wait_for_function("document.querySelector('[data-dark]')")
    page.evaluate("document.body.style.cssText = ''")
    page.wait_for_function("!document.querySelector('[data-dark]')")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.querySelector('[data-dark]')")
    assert host.evaluate("host => getComputedStyle(host).colorScheme") == "dark"


@every_figure
def test_the_same_figure_twice_on_a_page_runs_twice(show, page_at, tmp_path):
    (tmp_path / "two.html").write_text(
        f"<!doctype html><meta charset=utf-8>{show().html}<hr>{show().html}"
    )
    page = page_at(tmp_path / "two.html")
    page.locator(".readout").nth(1).wait_for()
    assert page.locator(".readout").count() == 2


@every_figure
def test_a_figure_runs_in_a_sandbox(show, page_at, tmp_path):
    show().save(tmp_path / "inner.html")
    frame = '<iframe sandbox="allow-scripts" src="inner.html" width=700 height=700>'
    (tmp_path / "outer.html").write_text(f"<!doctype html>{frame}")
    page = page_at(tmp_path / "outer.html")
    assert page.frame_locator("iframe").locator(".readout").inner_text()


@every_figure
def test_a_hidden_figure_draws_itself_when_it_appears(show, page_at, tmp_path):
    (tmp_path / "hidden.html").write_text(
        f"<!doctype html><meta charset=utf-8><main hidden>{show().html}</main>"
    )
    page = page_at(tmp_path / "hidden.html")
    page.locator("main").evaluate("main => main.hidden = false")
    page.locator(".readout", has_text=" ").wait_for()


@every_figure
def test_keys_pressed_in_a_figure_stay_there(show, shown):
    page = shown(show())
    page.evaluate("addEventListener('keydown', event => (window.heard = event.key))")
    page.locator("input, .stage button, [role=application]").first.focus()
    press(page, "ArrowRight", "d", "d")
    assert page.evaluate("window.heard") is None
    assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 1


@every_figure
def test_screen_readers_hear_the_last_of_many_sentences_only(show, shown):
    page = shown(show())
    live = page.locator("[aria-live=polite]")
    page.evaluate("window.told = []")
    live.evaluate(
        "node => new MutationObserver(() => window.told.push(node.textContent))"
        ".observe(node, {childList: true})"
    )
    moved = "[role=application], .track input, .stage button, [aria-label=top-p]"
    page.locator(f"{moved}, [aria-label*=training]").first.focus()
    press(page, *["ArrowLeft" if show is sampling else "ArrowRight"] * 5)
    page.wait_for_function("window.told.length")
    assert list(map(without_isolates, page.evaluate("window.told"))) == [said(page)]


@every_figure
def test_a_narrower_page_draws_the_figure_narrower(show, shown):
    page = shown(show())
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 420")


def test_hostile_text_is_shown_as_text(shown):
    hostile = "<img src=x onerror=window.hacked=1>"
    script = "</script><script>window.hacked=1</script>"
    names = {"names": (hostile, script), "title": f"{hostile} {script}"}
    for figure in (
        show_attention(torch.eye(2), [hostile, script], **names),
        show_softmax([1.0, 2.0], labels=[hostile, script], title=hostile),
        show_sampling([1.0, 2.0], [hostile, script], title=hostile),
        show_generation(
            torch.eye(2),
            torch.eye(2),
            [hostile, script],
            [hostile, script],
            title=hostile,
        ),
        show_kernel_regression([0, 1], [0, 1], title=f"{script} {hostile}"),
        show_learning(
            torch.eye(3), CORNERS, labels=[hostile, script, "c"], title=hostile
        ),
        show_positions(8, 4, title=f"{hostile} {script}"),
        show_patch_attention(torch.eye(5), torch.eye(4), title=f"{hostile} {script}"),
        show_architecture(CODE, title=f"{script} {hostile}"),
    ):
        page = shown(figure)
        press(page, *["Tab"] * 4, "ArrowDown", "ArrowRight")
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 1  # the picture
        assert page.locator("script").count() == 1
        assert hostile in page.locator("b").inner_text()
    page = shown(show_attention(torch.eye(2), [hostile, script]))
    page.locator("[role=application]").focus()
    press(page, "ArrowDown", "ArrowRight")
    assert f"«{hostile}» the weight 1.000" in said(page)
