"""The diagram of the Transformer in a browser: every box leads to its code."""

import functools
import inspect
import re

import pytest
from architecture_code import CODE
from figures_in_browser import DRAWN, PHONE, architecture, press, width_of

from tutorial_figures.architecture import ABOUT
from tutorial_figures.diagram import WIDTH, transformer

BOXES = {box.name: box for box in transformer().boxes}
FRAMES = {name: box.frame for name, box in BOXES.items() if box.frame}
# Where the text of the code ends on the page, to the right and below.
ENDS = """() => {
  const range = document.createRange();
  const { shadowRoot } = document.querySelector("[data-figure]");
  range.selectNodeContents(shadowRoot.querySelector("pre code"));
  const boxes = [...range.getClientRects()];
  const farthest = (side) => Math.max(...boxes.map((box) => box[side]));
  return { right: farthest("right"), bottom: farthest("bottom") };
}"""
# The boxes that are pressed, what is told, and how many frames are chosen.
CHOSEN = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  const pressed = [...shadowRoot.querySelectorAll("[aria-pressed=true]")];
  return [
    pressed.map((box) => box.ariaLabel),
    shadowRoot.querySelector(".readout").innerText,
    shadowRoot.querySelectorAll(".frame[data-chosen]").length,
  ];
}"""
# How far the labels reach out of their boxes, and how large their letters are.
LABELS = """boxes => boxes.map((box) => [
  box.scrollWidth - box.clientWidth,
  box.scrollHeight - box.clientHeight,
  parseFloat(getComputedStyle(box).fontSize),
])"""


def code_of(name):
    """Return the source that the box of this name leads to."""
    return inspect.getsource(CODE[ABOUT[BOXES[name].about].part])


@pytest.fixture
def shown(shown):
    """Return a function that opens the figure's page."""
    return functools.partial(shown, architecture())


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def chosen(page):
    """Name the boxes that are pressed, framed or told of: one and the same."""
    names, told, frames = page.evaluate(CHOSEN)
    assert names == [told.split("\n")[0]]
    assert frames == (names[0] in FRAMES)
    return names[0]


def test_every_box_and_frame_leads_to_its_own_code_and_says_what_it_does(shown):
    page = shown()
    assert page.locator(".stage button").count() == len(BOXES)
    for name, box in BOXES.items():
        button(page, name).click()
        assert chosen(page) == name
        assert page.locator("pre").text_content() == code_of(name)
        about = ABOUT[box.about]
        code = CODE[about.part].__name__
        assert page.locator(".readout").text_content() == (
            f"{name}\n{about.does}\nin: {about.takes}\nout: {about.gives}\ncode: {code}"
        )
        assert page.get_by_role("region", name=f"source of {code}").is_visible()
    stage = page.locator(".stage").bounding_box()
    scale = stage["width"] / WIDTH
    for name, (x, y, _, height) in FRAMES.items():
        x, y = stage["x"] + scale * (x + 3), stage["y"] + scale * (y + height - 3)
        page.mouse.click(x, y)
        assert chosen(page) == name


def test_keys_open_boxes_follow_the_stream_and_change_towers(shown):
    page = shown()
    press(page, "Tab", "Tab", "Tab")
    assert chosen(page) == "Transformer"
    press(page, "Enter")
    assert chosen(page) == "encoder: embedding"
    press(page, "Tab", "Space")
    assert chosen(page) == "encoder: position"
    seen = []
    for key in ("Up", "Up", "Up", "Right", "Down", "Down", "Right", "Left", "Left"):
        press(page, f"Arrow{key}")
        assert button(page, chosen(page)).evaluate("box => box.matches(':focus')")
        seen.append(chosen(page))
    assert seen == [
        "encoder: self-attention",
        "encoder: add & norm after self-attention",
        "encoder: feed-forward",
        "decoder: cross-attention",
        "decoder: add & norm after causal self-attention",
        "decoder: causal self-attention",
        "decoder: mask of causal self-attention",
        "decoder: causal self-attention",
        "encoder: mask of self-attention",
    ]


def test_arrow_keys_reach_every_box_and_in_the_code_choose_nothing(shown):
    page = shown()
    reached = set()
    waiting = ["Transformer"]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"):
            button(page, name).focus()
            press(page, key)
            waiting.append(chosen(page))
    assert reached == set(BOXES)
    button(page, "decoder").click()
    page.locator("pre").focus()
    press(page, "ArrowDown")
    page.wait_for_function(
        "document.querySelector('[data-figure]').shadowRoot"
        ".querySelector('pre').scrollTop > 0"
    )
    assert chosen(page) == "decoder"


def assert_marked(page, name):
    """Check that the lines that matter are marked, and the first is in sight."""
    button(page, name).click()
    source = code_of(name).splitlines()
    marks = ABOUT[BOXES[name].about].marks
    pattern = re.compile("|".join(map(re.escape, marks)))
    marked = [i for i, line in enumerate(source) if pattern.search(line)]
    high = page.locator("pre code").bounding_box()["height"] / len(source)
    tops = page.locator("mark").evaluate_all("marks => marks.map(m => m.offsetTop)")
    assert tops == pytest.approx([high * i for i in marked], abs=2)
    first = page.locator("mark").first
    window = page.locator("pre").bounding_box()
    assert first.bounding_box()["height"] == pytest.approx(high, abs=1)
    assert 0 <= first.bounding_box()["y"] - window["y"] <= window["height"] - high


@pytest.mark.parametrize("options", [{}, PHONE], ids=["wide", "phone"])
def test_the_lines_that_matter_are_marked_and_the_code_is_whole(options, shown):
    page = shown(**options)
    for name in ("tied", "linear", "softmax", "decoder: cross-attention"):
        assert_marked(page, name)
    listing = page.locator("pre")
    button(page, "encoder: position").click()
    assert page.locator("mark").count() == 0
    assert listing.evaluate("pre => pre.scrollTop") == 0
    button(page, "decoder").click()
    listing.evaluate("pre => pre.scrollTo(9999, 9999)")
    assert listing.evaluate("pre => pre.scrollLeft > 0") == bool(options)
    for medium in ("screen", "print"):
        page.emulate_media(media=medium)
        window, end = listing.bounding_box(), page.evaluate(ENDS)
        assert window["x"] < end["right"] <= window["x"] + window["width"]
        assert window["y"] < end["bottom"] <= window["y"] + window["height"]


def test_what_is_told_stands_beside_the_diagram_and_the_code_below_both(shown):
    page = shown()
    parts = map(page.locator, (".stage", ".readout", "pre"))
    diagram, told, code = (part.bounding_box() for part in parts)
    assert diagram["x"] + diagram["width"] <= told["x"]
    assert diagram["y"] + diagram["height"] <= code["y"]
    assert told["y"] + told["height"] <= code["y"] and code["x"] < told["x"]


def test_on_a_phone_what_is_told_stays_in_sight(shown, axe_violations):
    page = shown(**PHONE)
    for scrolled in (0, 100, 200):
        page.evaluate("scrolled => scrollTo(0, scrolled)", scrolled)
        told = page.locator(".readout").bounding_box()
        assert told["y"] > 0 and told["y"] + told["height"] <= 501
    button(page, "decoder: cross-attention").tap()
    assert chosen(page) == "decoder: cross-attention"
    told = page.locator(".readout").bounding_box()
    assert told["y"] >= 0 and told["y"] + told["height"] <= 501
    for scheme in ("light", "dark"):  # a chosen box, and marks in the code
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "dark => !!document.querySelector('[data-dark]') === dark",
            arg=scheme == "dark",
        )
        assert axe_violations(page) == []


def test_labels_fit_their_boxes_and_stay_legible(shown):
    page = shown(viewport={"width": 1200, "height": 700})
    for width in (1200, 688, 400, 360):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate(DRAWN)
        labels = page.locator(".stage button").evaluate_all(LABELS)
        assert len(labels) == len(BOXES)
        for over, under, size in labels:
            assert over <= 1 and under <= 1 and 10 <= size <= 14
        assert width_of(page) <= width
