"""The front page as it is built: its model, its weights, and what is seen at once."""

import json
import shutil

import pytest
from built_pages import HTML, needs_pages
from figures_in_browser import readout, without_isolates

pytestmark = needs_pages
FRONT = HTML / "book" / "intro.html"
SCREEN = {"viewport": {"width": 1280, "height": 800}}
STILL = {"reduced_motion": "reduce"}
TEXT = """() => document.querySelector("[data-figure]").shadowRoot
  .querySelector(".text").textContent"""
LOADED = """() => performance.getEntriesByType("resource")
  .map(({ name }) => name).filter((name) => name.includes("weights"))"""


@pytest.fixture(scope="module")
def stored():
    file = HTML.parents[1] / "book/diagrams/writing.json"
    data = json.loads(file.read_text(encoding="utf-8"))["data"]
    return data["prompt"] + data["written"]


def wait_for_text(page, text):
    page.wait_for_function(f"text => ({TEXT})() === text", arg=text)


def test_as_a_file_it_writes_by_itself_what_was_stored(page_at, stored):
    page = page_at(FRONT, **SCREEN)
    page.locator(".text.writes").wait_for()
    wait_for_text(page, stored)
    page.get_by_role("button", name="Continue").wait_for()
    page.wait_for_timeout(400)
    assert page.evaluate(TEXT) == stored


def test_heads_are_seen_without_scrolling(page_at):
    page = page_at(FRONT, **SCREEN, **STILL)
    last = page.get_by_role("button", name="layer 3, head 3")
    box = last.bounding_box()
    assert box["y"] + box["height"] <= 800


def test_over_http_the_weights_are_fetched_when_something_is_asked(page_at, serve):
    page = page_at(f"{serve(HTML)}/book/intro.html", **SCREEN, **STILL)
    page.locator(".text").wait_for()
    page.wait_for_timeout(400)
    assert page.evaluate(LOADED) == []
    before = page.evaluate(TEXT)
    page.get_by_role("button", name="Next character").click()
    page.wait_for_function(f"before => ({TEXT})().length > before.length", arg=before)
    [file] = page.evaluate(LOADED)
    assert file.split("?")[0].endswith("_static/shakespeare_weights.js")
    page.get_by_role("button", name="Next character").click()
    page.wait_for_timeout(300)
    assert len(page.evaluate(LOADED)) == 1


def test_without_the_weights_it_shows_what_was_stored_and_says_why(
    browser, tmp_path, stored
):
    folder = tmp_path / "html"
    (folder / "book").mkdir(parents=True)
    shutil.copytree(HTML / "_static", folder / "_static")
    (folder / "_static" / "shakespeare_weights.js").unlink()
    shutil.copy(FRONT, folder / "book" / "intro.html")
    page = browser.new_page(**SCREEN)
    page.goto((folder / "book" / "intro.html").as_uri())
    page.locator(".readout", has_text="did not load").wait_for()
    assert page.evaluate(TEXT) == stored
    assert "_static/shakespeare_weights.js" in readout(page)
    page.close()


def test_it_is_told_in_words_and_a_switched_off_head_at_the_same_text(page_at, stored):
    page = page_at(FRONT, **SCREEN, **STILL)
    page.get_by_role("button", name="layer 0, head 0: previous character").click()
    page.locator(".next.compared").wait_for()
    assert page.evaluate(TEXT) == stored
    told = "without head 0.0 it has"
    page.locator(".heard", has_text=told).first.wait_for()
    heard = without_isolates(page.locator(".heard", has_text=told).text_content())
    assert "the likeliest is space, with probability 0.91" in heard
    assert "The loss on the line goes from 1.75 to 2.01." in heard


def test_on_a_phone_inputs_are_large_enough_not_to_zoom(page_at):
    phone = {"viewport": {"width": 400, "height": 800}, "has_touch": True}
    page = page_at(FRONT, **phone, **STILL)
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    for field in page.locator("[data-figure] :is(input, select)").all():
        assert field.evaluate(size) >= 16
    for button in page.locator("[data-figure] button").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 24
