"""The built pages, as files and in a real browser.

They are read from _build/html, which `make book` makes; without it these tests are
skipped.
"""

import functools
import html
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

from tools.figures import figures_of
from tools.notebooks import read_notebook
from tools.repository import read_repository

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"
PAGES = sorted(page for page in HTML.rglob("*.html") if "_static" not in page.parts)
CHAPTERS = [page for page in PAGES if page.parent.name == "notebooks"]
# Pages of code are all made alike, so the largest is looked at for the others.
CODE = [page for page in PAGES if "library" in page.relative_to(HTML).parts[:-1]]
ALIKE = set(sorted(CODE, key=lambda page: page.stat().st_size)[:-1])
NOT_FRONT = [page for page in PAGES if page.name != "index.html" and page not in ALIKE]
READ = [page for page in PAGES if page.parent.name in ("book", "notebooks")]
CONTRAST = "color-contrast"  # most of axe-core's time
LINKS = "link-in-text-block"  # the other rule that the dark can break
PHONE, SCREEN = {"width": 400, "height": 800}, {"width": 1280, "height": 900}
NARROW = {
    "width": 320,
    "height": 800,
}  # the narrowest that WCAG 2.2 asks for, in 1.4.10
# Of elements that look the same, because they and all around them have the same tags,
# classes, styles and colors, the first is kept.
THIN = """parts => {
  const kinds = new Map(), kindOf = new Map(), first = new Set();
  for (const element of document.querySelectorAll("*")) {
    const {color, backgroundColor} = getComputedStyle(element);
    const look = [kindOf.get(element.parentElement), element.tagName,
      element.getAttribute("class"), element.getAttribute("style"),
      element.checkVisibility(), color, backgroundColor].join("|");
    if (!kinds.has(look)) first.add(element) && kinds.set(look, kinds.size);
    kindOf.set(element, kinds.get(look));
  }
  for (const element of [...document.querySelectorAll(parts)].reverse())
    if (!first.has(element) && !element.firstElementChild) element.remove();
}"""
CODE_AND_FORMULAS = "pre *, math, math *"
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
OPEN = "() => document.querySelectorAll('.show').forEach(button => button.click())"
WIDTH = "() => document.documentElement.scrollWidth"
NEXT_FRAME = """() => new Promise(done =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""  # it knows its new size
CUT_CODE = """() => [...document.querySelectorAll(".cell_input pre")]
  .filter(code => code.scrollWidth > code.clientWidth + 2)
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

pytestmark = pytest.mark.skipif(not PAGES, reason="there are no pages: run make book")


def each(pages):
    name = [str(page.relative_to(HTML).with_suffix("")) for page in pages]
    return pytest.mark.parametrize("page_file", pages, ids=name)


class Links(HTMLParser):
    """What a page points to, and the places in it that can be pointed at."""

    def __init__(self, page_file):
        super().__init__()
        self.targets, self.sources, self.places = [], [], set()
        self.feed(page_file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        if attributes.get("src"):
            self.sources.append(attributes["src"])
        if tag in ("a", "link") and attributes.get("href"):
            kept = self.targets if tag == "a" else self.sources
            kept.append(attributes["href"])


@functools.cache
def links_of(page_file):
    return Links(page_file)


def is_broken(page_file, target):
    """Tell whether a local target names no file, or no place in its file."""
    address = urlsplit(target)
    if address.scheme or address.netloc:
        return False
    file = page_file.parent / unquote(address.path) if address.path else page_file
    if not file.is_file():
        return True
    if not address.fragment or file.suffix != ".html":
        return False
    return unquote(address.fragment) not in links_of(file).places


# --- As files ---------------------------------------------------------------------


@each(READ)
def test_a_page_has_its_own_title_and_the_book_s(page_file):
    [title] = re.findall(r"<title>(.*?)</title>", page_file.read_text(), re.DOTALL)
    own, book = html.unescape(title).strip().split(" — ")
    assert own != book == "Attention, Made Visible"


@each(READ)
def test_a_page_tells_a_search_engine_what_it_begins_with(page_file):
    text = page_file.read_text(encoding="utf-8")
    [told] = re.findall(r'<meta name="description" content="([^"]*)">', text)
    assert 40 < len(html.unescape(told)) <= 162
    assert f'<meta property="og:description" content="{told}">' in text
    assert '<meta property="og:title"' in text


@each(PAGES)
def test_every_local_link_leads_somewhere(page_file):
    links = links_of(page_file)
    targets = {*links.targets, *links.sources}
    assert sorted(target for target in targets if is_broken(page_file, target)) == []


def test_the_library_leads_to_the_code_of_every_name():
    links = links_of(HTML / "book" / "library.html").targets
    code = "../library/tutorial_lib/attention.html"
    assert f"{code}#MultiHeadAttention" in links and f"{code}#_split" not in links
    page = (HTML / "library" / "tutorial_lib" / "attention.html").read_text(
        encoding="utf-8"
    )
    [shown] = re.findall(r'<div id="masked_softmax">(.*?)</pre>', page, re.DOTALL)
    text = html.unescape(re.sub("<[^>]+>", "", shown)).strip()
    assert text in (ROOT / "tutorial_lib" / "attention.py").read_text(encoding="utf-8")
    assert text.startswith("def masked_softmax(")


@each(READ)
def test_a_page_is_light(page_file):
    limit = 400_000 if page_file.stem == "intro" else 350_000  # with a model in it
    assert page_file.stat().st_size <= limit
    is_search = page_file.stem == "search"
    assert ("searchindex.js" in page_file.read_text("utf-8")) == is_search


def test_of_the_theme_s_icons_those_are_kept_that_a_page_shows():
    font = (HTML / "_static/styles/pydata-sphinx-theme.css").read_text("utf-8")
    fonts = re.findall(r"@font-face\{[^}]*src:url\((.*?)\)", font)
    assert all(src.startswith("data:font/woff;base64,") for src in fonts)
    assert len(fonts) == 3 and sum(map(len, fonts)) < 30_000
    assert not list((HTML / "_static/scripts").glob("fontawesome*"))
    page = (HTML / "book" / "intro.html").read_text("utf-8")
    assert "fontawesome" not in page
    shown = {*re.findall(r"fa-solid fa-([a-z-]+)", page)} - {"lg"}
    assert {"bars", "moon"} < shown
    signs = re.findall(r"\.fa-([a-z-]+):before", font)
    assert shown <= {*signs} and len(signs) < 100


def test_the_theme_does_not_measure_what_is_folded():
    script = (HTML / "_static/scripts/pydata-sphinx-theme.js").read_text("utf-8")
    assert "querySelectorAll" in script and "scrollWidth" not in script


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


@each(READ)
def test_a_page_waits_for_few_files_and_has_no_empty_heads(page_file):
    text = page_file.read_text(encoding="utf-8")
    sheets = re.findall(r"<link [^>]*rel=\"stylesheet\"[^>]*>", text)
    waits = [sheet for sheet in sheets if 'media="print"' not in sheet]
    waits += re.findall(r"<script (?!defer\b)[^>]*src=", text)
    assert 2 <= len(waits) <= 8
    assert not re.search(r"<th\b[^>]*>\s*(<p>\s*</p>)?\s*</th>", text)


@each(PAGES)
def test_a_page_names_no_script_style_or_picture_of_another_host(page_file):
    elsewhere = [source for source in links_of(page_file).sources if "//" in source]
    assert [source for source in elsewhere if not source.startswith("data:")] == []


@each(READ)
def test_a_page_with_its_pictures_is_below_one_and_a_half_megabytes(page_file):
    sources = [urlsplit(source) for source in links_of(page_file).sources]
    pictures = {page_file.parent / s.path for s in sources if "_images" in s.path}
    weight = sum(file.stat().st_size for file in {page_file, *pictures})
    assert weight < 1_500_000


@each(READ)
def test_every_picture_has_an_alternative_text(page_file):
    pictures = re.findall(r"<img\b[^>]*>", page_file.read_text(encoding="utf-8"))
    assert [
        image[:80] for image in pictures if not re.search(r'alt="[^"]', image)
    ] == []


@each(CHAPTERS)
def test_a_chapter_links_to_colab_once_there_is_an_address(page_file):
    address, _ = read_repository(ROOT)
    place = address.replace("github.com", "colab.research.google.com/github")
    link = rf"{place}/blob/[\w./-]+/notebooks/{page_file.stem}\.ipynb"
    assert bool(re.search(link, page_file.read_text())) == bool(address)
    assert ("colab.research.google.com" in page_file.read_text()) == bool(address)


def test_every_chapter_of_the_contents_is_built_and_on_the_road():
    road = (ROOT / "book" / "diagrams" / "road.svg").read_text()
    written = re.findall(r'<a href="\.\./notebooks/(\w+)\.html">', road)
    contents = re.findall(r"file: notebooks/(\w+)", (ROOT / "_toc.yml").read_text())
    assert [name for name in contents if name[0] != "x"] == written  # no excursions
    assert sorted(contents) == [page.stem for page in CHAPTERS]


@each(CHAPTERS)
def test_a_figure_that_leaves_the_book_keeps_the_number_of_the_page(page_file):
    path = ROOT / "notebooks" / f"{page_file.stem}.ipynb"
    exported = figures_of(path, read_notebook(path))
    labels = [one.label.rpartition(", ")[2] for one in exported]
    shown = r'caption-number">(Fig. [\d.]+) '
    assert labels == re.findall(shown, page_file.read_text(encoding="utf-8"))


def test_the_diagram_of_attention_is_right():
    diagram = ElementTree.parse(ROOT / "book" / "diagrams" / "attention.svg")

    def numbers(name):
        [element] = diagram.findall(f".//*[@id='attention-{name}']")
        return [float(number) for number in " ".join(element.itertext()).split()]

    exponentials = [math.exp(score) for score in numbers("scores")]
    weights = [exponential / sum(exponentials) for exponential in exponentials]
    assert [round(weight, 2) for weight in weights] == numbers("weights")
    answer = sum(w * v for w, v in zip(weights, numbers("values"), strict=True))
    assert [round(answer, 1)] == numbers("answer")


# --- In a browser -----------------------------------------------------------------


@pytest.fixture(scope="module")
def visit(loaded, barriers):
    """Return a function that tells what is seen on a page, which it loads once."""

    @functools.cache
    def seen(page_file):
        still = "reduce"  # in mid-transition a color is neither the one nor the other
        page, problems = loaded(page_file, viewport=PHONE, reduced_motion=still)
        facts = on_a_phone(page)
        if page_file in READ:
            facts |= on_a_screen(page, barriers)
        return facts | {"problems": [*problems]}

    return seen


def on_a_phone(page):
    page.evaluate(OPEN)
    page.set_viewport_size(NARROW)
    page.evaluate(NEXT_FRAME)
    narrow = {"width": page.evaluate(WIDTH), "off screen": page.evaluate(OFF_SCREEN)}
    narrow |= {"cut code": page.evaluate(CUT_CODE)}
    page.set_viewport_size(PHONE)
    page.evaluate(NEXT_FRAME)
    return {
        "narrow": narrow,
        "off screen": page.evaluate(OFF_SCREEN),
        "unset formulas": page.evaluate(UNSET_MATH),
        "raw TeX": RAW_TEX.findall(page.evaluate(PROSE)),
        "width": page.evaluate(WIDTH),
    }


def on_a_screen(page, barriers):
    """Look for barriers, at the colors last: of what looks the same at the first."""

    def turn(scheme):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_THEME, arg=scheme)

    page.set_viewport_size(SCREEN)
    turn("light")
    page.evaluate(THIN, CODE_AND_FORMULAS)
    light = barriers(page, but=[CONTRAST])
    turn("dark")
    dark = barriers(page, only=[LINKS])
    page.evaluate(THIN, ALL_BUT_FIGURES)
    dark += barriers(page, only=[CONTRAST])
    turn("light")
    return {"light": light + barriers(page, only=[CONTRAST]), "dark": dark}


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
def test_a_page_fits_the_narrowest_screen(page_file, visit):
    assert visit(page_file)["narrow"] == {
        "width": 320,
        "off screen": [],
        "cut code": [],
    }


@each(READ)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_no_barriers(page_file, scheme, visit):
    assert visit(page_file)[scheme] == []


def test_the_front_door_leads_to_the_introduction(page_at):
    page = page_at(HTML / "index.html")
    page.wait_for_url("**/book/intro.html")


@each(READ)
def test_without_javascript_the_text_and_the_pictures_are_there(page_file, reload_at):
    page = reload_at(page_file, java_script_enabled=False)
    assert page.locator("article h1").is_visible()
    assert page.evaluate(UNSET_MATH) == []
    for picture in page.locator("article img").all():
        assert picture.is_visible()
        assert picture.bounding_box()["width"] > 50


def test_the_search_finds_a_word_without_a_server(page_at):
    no_excerpts = "window.fetch = () => new Promise(() => {})"  # not from a file
    address = (HTML / "search.html").as_uri() + "?q=attention"
    page = page_at(address, script=no_excerpts)
    page.wait_for_selector("#search-results li a")


# --- The extension ---------------------------------------------------------------


def test_a_script_from_elsewhere_stops_the_build(monkeypatch):
    errors = pytest.importorskip("sphinx.errors")
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import offline_assets

    def keep(*scripts):
        context = {"script_files": list(scripts)}
        offline_assets.keep_local_scripts(None, "page", "", context, None)
        return context["script_files"]

    assert keep("_static/print.js", "_static/sphinx-thebe.js") == ["_static/print.js"]
    with pytest.raises(
        errors.ExtensionError, match="page would fetch the script //cdn"
    ):
        keep("//cdn.example.com/script.js")
