"""The page of the search as readers use it: keys, screen readers, phones, the dark."""

import re

import pytest
from built_pages import HTML, needs_pages

pytestmark = needs_pages
SEARCH = HTML / "search.html"
SIZES = [400, 1280]
EXCERPTS = "() => [...document.querySelectorAll('.excerpt')].map(e => e.textContent)"
MARKED = "() => [...document.querySelectorAll('mark')].map(mark => mark.textContent)"
WIDTH = "() => document.documentElement.scrollWidth"
# What stands around the sentences of a page: headings, code, links to other pages.
AROUND = """() => [...document.querySelectorAll(
  "h1, h2, h3, pre, nav, .toctree-wrapper")].map(part => part.textContent.trim())"""


@pytest.fixture
def searched(reload_at):
    """Return a function that types a query into the page of the search."""

    def search(query, **options):
        page = reload_at(SEARCH, reduced_motion="reduce", **options)
        page.keyboard.type(query)  # the field has the focus
        page.wait_for_function("() => document.querySelector('#search-results li')")
        return page

    return search


def results(page):
    return page.locator("#search-results > li")


def test_a_query_in_the_address_is_answered_without_a_server(page_at):
    page = page_at(SEARCH.as_uri() + "?q=causal+mask")
    results(page).first.wait_for()
    assert page.locator("#query").input_value() == "causal mask"


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_search_passes_axe_before_and_after_a_query(
    width, scheme, reload_at, axe_violations
):
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page = reload_at(SEARCH, reduced_motion="reduce", **size)
    assert axe_violations(page) == []
    page.keyboard.type("positional encoding")
    results(page).first.wait_for()
    assert axe_violations(page) == []
    assert page.evaluate(WIDTH) <= width


def test_what_is_found_is_told_with_its_number(searched):
    page = searched("layernrom")
    status = page.get_by_role("status").inner_text()
    assert re.fullmatch(
        r"\d+ pages for “layernorm”, since no page has “layernrom”", status
    )
    page.locator("#query").fill("xqzwv")
    page.get_by_text("No pages for “xqzwv”").wait_for()
    assert results(page).count() == 0


def test_keys_lead_from_the_field_to_the_results_and_to_the_rest(searched):
    page = searched("attention")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/notebooks/01_queries_keys_values.html*")
    page = searched("attention")
    before = results(page).count()
    page.get_by_role("button", name="Show more pages").press("Enter")
    assert results(page).count() > before
    assert results(page).nth(before).locator("a:focus").count() == 1


def test_an_excerpt_is_a_sentence_of_its_section_and_no_heading_or_code(
    searched, reload_at
):
    page = searched("why divide by sqrt d")
    [excerpt, *_] = page.evaluate(EXCERPTS)
    assert excerpt.endswith(".") and len(excerpt) <= 300
    assert "√d_k" in excerpt
    for query in ("causal mask", "masked_softmax", "kernel regression"):
        page = searched(query)
        excerpts = page.evaluate(EXCERPTS)
        links = page.locator("#search-results h2 a").evaluate_all(
            "links => links.map(link => link.href)"
        )
        for excerpt, link in [*zip(excerpts, links, strict=True)][:3]:
            around = reload_at(link.split("#")[0].removeprefix("file://"))
            assert excerpt not in around.evaluate(AROUND)


def test_marks_are_on_whole_words_also_for_one_letter(searched):
    page = searched("d")
    marks = page.evaluate(MARKED)
    assert marks and {"d"} & {*marks}
    assert [
        mark for mark in marks if not re.fullmatch(r"d|d_\w+|\w+_d", mark, re.I)
    ] == []


def test_a_hit_leads_to_its_section_and_marks_the_sentence_but_not_on_paper(searched):
    page = searched("look-ahead mask")
    link = results(page).first.locator("h2 a")
    assert "#the-causal-mask-hide-the-future:~:text=" in link.get_attribute("href")
    link.click()
    page.wait_for_url("**/notebooks/04_masks.html*")
    top = "() => document.querySelector('#the-causal-mask-hide-the-future')"
    box = page.evaluate_handle(top).bounding_box()
    assert -400 < box["y"] < 600
    assert page.locator("mark, .highlighted").count() == 0
    style = """() => {
      const {backgroundColor} = getComputedStyle(document.body, "::target-text");
      return backgroundColor;
    }"""
    assert page.evaluate(style) != "rgba(0, 0, 0, 0)"
    page.emulate_media(media="print")
    assert page.evaluate(style) == "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("width", SIZES)
def test_the_magnifier_leaves_room_for_the_query(width, reload_at):
    page = reload_at(
        HTML / "book/how_to_use.html", viewport={"width": width, "height": 800}
    )
    page.keyboard.press("Control+k")
    page.keyboard.type("mask")
    sign = page.locator("#pst-search-dialog i").bounding_box()
    field = page.locator("#pst-search-dialog input")
    padding = field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)")
    assert field.bounding_box()["x"] + padding >= sign["x"] + sign["width"]


def test_the_dialog_of_a_page_leads_to_its_results(page_at):
    page = page_at(HTML / "book/how_to_use.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("beam search")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=beam+search")
    results(page).first.wait_for()


RING = """button => {
  const {outlineStyle, outlineWidth} = getComputedStyle(button);
  return outlineStyle === "solid" && parseFloat(outlineWidth) >= 2;
}"""


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_button_of_the_header_shows_that_it_has_the_focus(
    width, scheme, reload_at
):
    page = reload_at(
        HTML / "notebooks/04_masks.html",
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
    )
    buttons = [
        one
        for one in page.locator(".header-article-items :is(button, a)").all()
        if one.is_visible()
    ]
    assert len(buttons) >= 4
    page.keyboard.press("Tab")  # now the browser shows the focus
    for button in buttons:
        button.focus()
        assert button.evaluate(RING), button.inner_html()
