"""What every figure does in a browser: the rules that hold for all of them.

One page of a figure is tried by one rule after the other. All that fail are named.
"""

import pytest
import torch
from architecture_code import CODE
from figures_in_browser import (
    FIGURES,
    UNREPORTED,
    every_figure,
    move_by_keys,
    press,
    press_in_stage,
    said,
    softmax,
    stop_clock,
    without_isolates,
    without_picture,
    write_page,
)
from playwright.sync_api import Error

import tutorial_figures as figures

LONG = "A rather long title " * 4
CONTROLS = "button, select, input, [tabindex='0']"
REACHED = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  (window.reached ??= new Set()).add(shadowRoot.activeElement);
}"""
UNREACHED = """controls => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  return [...shadowRoot.querySelectorAll(controls)]
    .filter((node) => node.checkVisibility() && !node.disabled && !reached.has(node))
    .map((node) => node.ariaLabel || node.textContent || node.outerHTML);
}"""
LISTEN = """() => {
  [window.told, window.heard] = [[], []];
  addEventListener("keydown", (event) => heard.push(event.key));
  const { shadowRoot } = document.querySelector("[data-figure]");
  const live = shadowRoot.querySelector("[aria-live=polite]");
  const tell = () => told.push(live.textContent);
  new MutationObserver(tell).observe(live, { childList: true });
}"""
HIDDEN_BELOW = """host => {  // in a box that scrolls, as JupyterLab's outputs do
  const box = host.parentElement;
  box.style.cssText = "overflow: auto; position: relative";
  const hidden = box.scrollHeight - box.clientHeight;
  box.style.cssText = "";
  return hidden;
}"""
NAMELESS = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  const named = shadowRoot.querySelectorAll("[role=application], [role=group]");
  return [...named].filter((node) => !node.ariaLabel).map((node) => node.outerHTML);
}"""


def it_says_what_it_shows_in_place_of_its_picture(page, name, barriers):
    assert said(page)
    assert page.get_by_text(LONG.strip(), exact=True).is_visible()
    assert not page.locator("img").is_visible()
    assert page.evaluate(NAMELESS) == []


def no_barriers_in_the_light(page, name, barriers):
    assert page.locator("[data-dark]").count() == 0
    assert barriers(page) == []


def tab_reaches_every_control(page, name, barriers):
    for _ in range(page.locator(CONTROLS).count() + 1):
        page.keyboard.press("Tab")
        page.evaluate(REACHED)
    assert page.evaluate(UNREACHED, CONTROLS) == []
    for stage in page.locator("[role=application]").all():  # which Tab leaves again
        stage.focus()
        page.keyboard.press("Tab")
        assert not stage.evaluate("stage => stage.matches(':focus')")


def keys_stay_in_it_and_the_last_sentence_is_told(page, name, barriers):
    stop_clock(page)
    page.evaluate(LISTEN)
    before = said(page)
    move_by_keys(page, name, times=5)
    press(page, "d", "d")
    page.clock.run_for(700)
    assert page.evaluate("heard") == []
    assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 1
    assert said(page) != before
    assert list(map(without_isolates, page.evaluate("told"))) == [said(page)]


def what_it_tells_makes_no_box_scroll(page, name, barriers):
    assert page.locator("[data-figure]").evaluate(HIDDEN_BELOW) <= 0


def it_turns_dark_with_its_page(page, name, barriers):
    for style, dark in (("background: #111; color: #eee", 1), ("", 0)):
        page.evaluate("style => { document.body.style.cssText = style }", style)
        page.clock.run_for(100)
        assert page.locator("[data-dark]").count() == dark
    page.emulate_media(color_scheme="dark")
    page.clock.resume()
    page.wait_for_function("document.querySelector('[data-dark]')")
    host = page.locator("[data-figure]")
    assert host.evaluate("host => getComputedStyle(host).colorScheme") == "dark"


def no_barriers_in_the_dark(page, name, barriers):
    assert barriers(page) == []


def it_fits_a_phone_with_controls_for_a_finger(page, name, barriers):
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 400")
    for control in page.locator("button, select, input[type=range], label").all():
        if control.is_visible():
            box = control.bounding_box()
            assert box["height"] >= 24 and box["width"] >= 24, control.inner_text()


RULES = (
    it_says_what_it_shows_in_place_of_its_picture,
    no_barriers_in_the_light,
    tab_reaches_every_control,
    keys_stay_in_it_and_the_last_sentence_is_told,
    what_it_tells_makes_no_box_scroll,
    it_turns_dark_with_its_page,
    no_barriers_in_the_dark,
    it_fits_a_phone_with_controls_for_a_finger,
)


@every_figure
def test_a_figure_keeps_the_rules_of_all(name, shown, barriers):
    page, faults = shown(FIGURES[name](title=LONG)), []
    page.set_default_timeout(5000)
    for rule in RULES:
        try:
            rule(page, name, barriers)
        except (AssertionError, Error) as fault:
            faults.append(f"{rule.__name__}: {fault}")
    assert not faults, "\n".join(faults)


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
        assert f"“{HOSTILE}” the weight" in said(page).replace(SCRIPT, HOSTILE)
