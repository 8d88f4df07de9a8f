"""Every built page in a browser: errors, formulas, phones, axe in light and dark."""

import functools
import re

import pytest
from built_pages import (
    CODE_AND_FORMULAS,
    HTML,
    OPEN,
    PAGES,
    READ,
    SCREEN,
    THIN,
    each,
    needs_pages,
)

pytestmark = needs_pages
# Pages of code are all made alike, so the largest is looked at for the others.
CODE = [page for page in PAGES if "library" in page.relative_to(HTML).parts[:-1]]
ALIKE = set(sorted(CODE, key=lambda page: page.stat().st_size)[:-1])
NOT_FRONT = [page for page in PAGES if page.name != "index.html" and page not in ALIKE]
CONTRAST = "color-contrast"  # most of axe-core's time
LINKS = "link-in-text-block"  # the other rule that the dark can break
PHONE = {"width": 400, "height": 800}
# The narrowest that WCAG 2.2 asks for, in 1.4.10.
NARROW = {"width": 320, "height": 800}
ALL_BUT_FIGURES = "body :not([data-figure], [data-figure] *, main, article)"
IS_THEME = """theme => {
  const figures = [...document.querySelectorAll("[data-figure]")];
  return document.documentElement.dataset.theme === theme && figures.every((host) =>
    !host.shadowRoot || host.hasAttribute("data-dark") === (theme === "dark"));
}"""  # figures turn a moment after the page
UNSET_MATH = """() => {
  const formulas = [...document.querySelectorAll(".math")];
  const box = formula => formula.querySelector("math > *")?.getBoundingClientRect();
  return formulas.filter(one => one.checkVisibility() && !box(one)?.width)
    .map(formula => formula.textContent);
}"""
RAW_TEX = re.compile(r"\$\$|\\\(|\\\[|\\(frac|sum|sqrt|mathbf|operatorname)\b")
WIDTH = "() => document.documentElement.scrollWidth"
NEXT_FRAME = """() => new Promise(done =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""  # it knows its new size
CUT_CODE = """() => [...document.querySelectorAll(".cell_input pre")]
  .filter(code => code.scrollWidth > code.clientWidth + 2)
  .filter(code => !code.matches(".wide, details:not([open]) *"))
  .map(code => code.textContent)"""  # what scrolls says so
# Names of code that go on in the next line, which only texts and comments may.
BROKEN_NAMES = r"""() => {
  const broken = [];
  for (const line of document.querySelectorAll(".cell_input .line")) {
    const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (text.parentElement.closest(".c1, .s1, .s2, .sa, .sd")) continue;
      for (const name of text.data.matchAll(/\w+/g)) {
        const range = document.createRange();
        range.setStart(text, name.index);
        range.setEnd(text, name.index + name[0].length);
        const parts = [...range.getClientRects()].filter(part => part.width);
        if (parts.length > 1) broken.push(name[0]);
      }
    }
  }
  return broken;
}"""
CUT_SOLUTIONS = """() => [...document.querySelectorAll(".exercise-card details")]
  .map(fold => { fold.open = true; return fold.querySelector("pre:has(> code)"); })
  .filter(code => code && code.scrollWidth > code.clientWidth + 2)
  .map(code => code.textContent)"""
OFF_SCREEN = """() => {
  const end = part => part.getBoundingClientRect().right;
  const scrolls = part => !part.matches(".bd-article")
    && (/auto|scroll/.test(getComputedStyle(part).overflowX)
      && part.scrollWidth > part.clientWidth || scrolls(part.parentElement));
  const limit = part => Math.min(innerWidth, end(part.closest("div.math, td, body")),
    end(part.closest("p, li, body"))) + 1;
  return [...document.querySelectorAll(`.bd-article :is(
    button, figure, img, li, math, p, pre, summary, table, td)`)]
    .filter(part => end(part) > limit(part) && !scrolls(part))
    .map(part => `${part.tagName}: ${part.textContent}`);
}"""
PROSE = """() => {
  const article = document.querySelector("article, main").cloneNode(true);
  article.querySelectorAll("pre, code, math, script, style")
    .forEach(element => element.remove());
  return article.textContent;
}"""


@pytest.fixture(scope="module")
def visit(loaded, axe_violations):
    """Return a function that tells what is seen on a page, which it loads once."""

    @functools.cache
    def seen(page_file):
        still = "reduce"  # in mid-transition a color is neither the one nor the other
        page, problems = loaded(page_file, viewport=PHONE, reduced_motion=still)
        facts = on_a_phone(page)
        if page_file in READ:
            facts = facts | on_a_screen(page, axe_violations)
        return facts | {"problems": [*problems]}

    return seen


def on_a_phone(page):
    page.evaluate(OPEN)
    page.set_viewport_size(NARROW)
    page.evaluate(NEXT_FRAME)
    narrow = {"width": page.evaluate(WIDTH), "off screen": page.evaluate(OFF_SCREEN)}
    narrow = narrow | {"cut code": page.evaluate(CUT_CODE)}
    page.set_viewport_size(PHONE)
    page.evaluate(NEXT_FRAME)
    return {
        "narrow": narrow,
        "broken names": page.evaluate(BROKEN_NAMES),
        "off screen": page.evaluate(OFF_SCREEN),
        "unset formulas": page.evaluate(UNSET_MATH),
        "raw TeX": RAW_TEX.findall(page.evaluate(PROSE)),
        "width": page.evaluate(WIDTH),
    }


def on_a_screen(page, axe_violations):
    """Run axe, its rule of contrast last: of what looks the same at the first."""

    def turn(scheme):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_THEME, arg=scheme)

    page.set_viewport_size(SCREEN)
    turn("light")
    cut = page.evaluate(CUT_SOLUTIONS)
    page.evaluate(THIN, CODE_AND_FORMULAS)
    light = axe_violations(page, but=[CONTRAST])
    turn("dark")
    dark = axe_violations(page, only=[LINKS])
    page.evaluate(THIN, ALL_BUT_FIGURES)
    dark += axe_violations(page, only=[CONTRAST])
    turn("light")
    light += axe_violations(page, only=[CONTRAST])
    return {"light": light, "dark": dark, "cut solutions": cut}


@each(NOT_FRONT)
def test_a_page_loads_alone_and_without_errors(page_file, visit):
    assert visit(page_file)["problems"] == []


@each(NOT_FRONT)
def test_a_page_sets_its_formulas(page_file, visit):
    assert visit(page_file)["unset formulas"] == []
    assert visit(page_file)["raw TeX"] == []


@each(NOT_FRONT)
def test_a_page_fits_a_phone(page_file, visit):
    assert visit(page_file)["width"] <= 400
    assert visit(page_file)["off screen"] == []


@each(NOT_FRONT)
def test_a_page_breaks_no_name_of_its_code_on_a_phone(page_file, visit):
    assert visit(page_file)["broken names"] == []


@each([page for page in READ if page.parent.name == "notebooks"])
def test_solutions_are_seen_whole_on_a_wide_screen(page_file, visit):
    assert visit(page_file)["cut solutions"] == []


@each(NOT_FRONT)
def test_a_page_fits_the_narrowest_screen(page_file, visit):
    assert visit(page_file)["narrow"] == {
        "width": 320,
        "off screen": [],
        "cut code": [],
    }


@each(READ)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_passes_axe(page_file, scheme, visit):
    assert visit(page_file)[scheme] == []


def test_the_front_door_leads_to_the_introduction(page_at):
    page = page_at(HTML / "index.html")
    page.wait_for_url("**/book/intro.html")


@each(READ)
def test_without_javascript_the_text_and_the_pictures_are_there(page_file, reload_at):
    page = reload_at(page_file, java_script_enabled=False)
    assert page.locator("article h1").is_visible()
    assert page.evaluate(UNSET_MATH) == []
    for picture in page.locator("article img:not(.only-dark)").all():
        assert picture.is_visible()
        assert picture.bounding_box()["width"] > 50


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("stored", ["light", "dark", "auto", None])
def test_a_page_has_its_colors_before_the_theme_s_script_runs(system, stored, page_at):
    early = """document.addEventListener("readystatechange", () => {
        window.early ??= document.documentElement.dataset.theme;
    });"""
    if stored:
        early += f"localStorage.setItem('mode', '{stored}');"
    page = page_at(HTML / "book/how_to_use.html", script=early, color_scheme=system)
    expected = stored if stored in ("light", "dark") else system
    assert page.evaluate("early") == expected
    assert page.evaluate("document.documentElement.dataset.theme") == expected
