"""The built pages as files: links, titles, weight, pictures; two of them by axe."""

import functools
import html
import math
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from built_pages import (
    CHAPTERS,
    CODE_AND_FORMULAS,
    HTML,
    OPEN,
    PAGES,
    READ,
    ROOT,
    SCREEN,
    THIN,
    each,
    needs_pages,
)

from tools.repository import read_repository

pytestmark = needs_pages


class Links(HTMLParser):
    """What a page points to, and the places in it that can be pointed at."""

    def __init__(self, page_file):
        super().__init__()
        self.targets = []
        self.sources = []
        self.places = set()
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
    assert page_file.stat().st_size <= 350_000
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


# --- In a browser ------------------------------------------------------------------

TRIED = ("intro", "07_self_attention")


@each([page for page in READ if page.stem in TRIED])
def test_a_page_loads_without_errors_and_axe_has_nothing_to_say(
    page_file, reload_at, axe_violations
):
    page = reload_at(page_file, viewport=SCREEN, reduced_motion="reduce")
    page.evaluate(OPEN)
    page.evaluate(THIN, CODE_AND_FORMULAS)
    assert axe_violations(page) == []


# Rules of axe-core that are no part of WCAG, and were broken by the theme's frame.
FRAME_RULES = ("label-content-name-mismatch", "region")


def test_the_frame_of_a_page_has_names_and_landmarks(reload_at, axe_violations):
    page = reload_at(HTML / "book/notation.html", viewport=SCREEN)
    assert axe_violations(page, only=FRAME_RULES) == []


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


def test_a_line_of_code_knows_its_depth_and_may_end_behind_a_bracket(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    import code_lines

    line = (
        '        <span class="n">x</span><span class="p">(</span>'
        '<span class="n">y</span><span class="p">)</span>'
        '<span class="o">.</span><span class="n">z</span>'
    )
    assert code_lines.line_of(line) == (
        '<span class="line" style="--depth:8">        <span class="n">x</span>'
        '<span class="p">(</span><wbr><span class="n">y</span><span class="p">)</span>'
        '<wbr><span class="o">.</span><span class="n">z</span>\n</span>'
    )
