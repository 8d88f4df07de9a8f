"""What every figure does in a browser: the rules that hold for all of them.

One page of a figure is tried by one rule after the other. All that fail are named.
"""

from figures_in_browser import (
    FIGURES,
    every_figure,
    move_by_keys,
    press,
    readout,
    stop_clock,
    without_isolates,
)
from playwright.sync_api import Error

LONG = "A rather long title " * 4
# Of buttons between which arrow keys go, one is a stop of the Tab key.
CONTROLS = "button:not([tabindex='-1']), select, input, [tabindex='0']"
REACHED = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  window.reached = new Set();
  shadowRoot.addEventListener("focusin", (event) => reached.add(event.target));
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

TOO_SMALL = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  const parts = shadowRoot.querySelectorAll("button, select, input[type=range], label");
  return [...parts].filter((node) => {
    const { width, height } = node.getBoundingClientRect();
    return node.checkVisibility() && width && height && (width < 24 || height < 24);
  }).map((node) => node.outerHTML);
}"""


def it_says_what_it_shows_in_place_of_its_picture(page, name, axe_violations):
    assert readout(page)
    assert page.get_by_text(LONG.strip(), exact=True).is_visible()
    assert not page.locator("img").is_visible()
    assert page.evaluate(NAMELESS) == []


def axe_passes_in_the_light(page, name, axe_violations):
    assert page.locator("[data-dark]").count() == 0
    assert axe_violations(page) == []


def tab_reaches_every_control(page, name, axe_violations):
    page.evaluate(REACHED)
    for _ in range(page.locator(CONTROLS).count() + 1):
        page.keyboard.press("Tab")
    assert page.evaluate(UNREACHED, CONTROLS) == []
    for stage in page.locator("[role=application]").all():  # which Tab leaves again
        stage.focus()
        page.keyboard.press("Tab")
        assert not stage.evaluate("stage => stage.matches(':focus')")


def keys_stay_in_it_and_the_last_sentence_is_told(page, name, axe_violations):
    stop_clock(page)
    page.evaluate(LISTEN)
    before = readout(page)
    move_by_keys(page, name, times=5)
    press(page, "d", "d")
    page.clock.run_for(700)
    assert page.evaluate("heard") == []
    assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 1
    assert readout(page) != before
    assert list(map(without_isolates, page.evaluate("told"))) == [readout(page)]


def what_it_tells_makes_no_box_scroll(page, name, axe_violations):
    assert page.locator("[data-figure]").evaluate(HIDDEN_BELOW) <= 0


def it_turns_dark_with_its_page(page, name, axe_violations):
    for style, dark in (("background: #111; color: #eee", 1), ("", 0)):
        page.evaluate("style => { document.body.style.cssText = style }", style)
        page.clock.run_for(100)
        assert page.locator("[data-dark]").count() == dark
    page.emulate_media(color_scheme="dark")
    page.clock.resume()
    page.wait_for_function("document.querySelector('[data-dark]')")
    host = page.locator("[data-figure]")
    assert host.evaluate("host => getComputedStyle(host).colorScheme") == "dark"


def axe_finds_contrast_in_the_dark(page, name, axe_violations):
    assert axe_violations(page, only=["color-contrast"]) == []


def it_fits_a_phone_with_controls_for_a_finger(page, name, axe_violations):
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 400")
    assert page.evaluate(TOO_SMALL) == []


RULES = (
    it_says_what_it_shows_in_place_of_its_picture,
    axe_passes_in_the_light,
    tab_reaches_every_control,
    keys_stay_in_it_and_the_last_sentence_is_told,
    what_it_tells_makes_no_box_scroll,
    it_turns_dark_with_its_page,
    axe_finds_contrast_in_the_dark,
    it_fits_a_phone_with_controls_for_a_finger,
)


@every_figure
def test_a_figure_keeps_the_rules_of_all(name, shown, axe_violations):
    page = shown(FIGURES[name](title=LONG))
    faults = []
    page.set_default_timeout(5000)
    for rule in RULES:
        try:
            rule(page, name, axe_violations)
        except (AssertionError, Error) as fault:
            faults.append(f"{rule.__name__}: {fault}")
    assert not faults, "\n".join(faults)
