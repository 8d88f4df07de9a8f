"""The frame of the book, its pages, the book on paper, and its slides.

A small book is built once. Its pages are read and used in a real Chromium, which also
prints the book; the PDF is read back; and slides are made of its notebooks.
"""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import opened
from nbformat.v4 import new_notebook
from small_book import (
    BUILD,
    FORK,
    FOUND,
    LONG_LINE,
    QUESTION,
    second_form,
    write_book,
)

pypdf = pytest.importorskip("pypdf")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("sphinx_revealjs")

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "book" / "_print"
HINT = """element => {
  const {content, visibility} = getComputedStyle(element, "::after");
  return [content, visibility];
}"""
COLAB = "https://colab.research.google.com/github/you/fork/blob/v3.0/notebooks/"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Write a small book; return its folder."""
    root = tmp_path_factory.mktemp("book")
    write_book(root)
    return root


@pytest.fixture(scope="module")
def built(book):
    """Build the book, as pages and as one page; return its folder."""
    subprocess.run([sys.executable, "-c", BUILD], cwd=book, check=True)
    return book


@pytest.fixture(scope="module")
def pages(built):
    """Return the text of the built pages by name."""
    files = (built / "_build/html").rglob("*.html")
    return {file.stem: file.read_text(encoding="utf-8") for file in files}


@pytest.fixture(scope="module")
def printed(chromium, built):
    """Print the book; return a reader of the PDF."""
    made = [sys.executable, TOOLS / "pdf.py", "out/_build/singlehtml", "book.pdf"]
    subprocess.run(made, cwd=built, check=True)
    return pypdf.PdfReader(built / "book.pdf")


@pytest.fixture(scope="module")
def text(printed):
    return "\n".join(page.extract_text() for page in printed.pages)


def version():
    """Return the version of the book that is here."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.*)"', project, re.M)[1]


def bare(text):
    return re.sub(r"\s", "", text)


# --- The frame ------------------------------------------------------------------


def test_buttons_lead_to_the_repository_once_it_has_an_address(pages):
    assert f'href="{COLAB}07_one.ipynb"' in pages["07_one"]
    assert f'href="{FORK}"' in pages["intro"]


def test_every_page_says_which_version_it_is(pages):
    shown = [
        re.findall(r"Version \d+\.\d+\.\d+", pages[name])
        for name in ("intro", "07_one")
    ]
    assert shown == [[f"Version {version()}"]] * 2


def test_figures_carry_the_number_in_their_file_s_name_and_headings_none(pages):
    assert 'class="caption-number">Fig. 7.1 ' in pages["07_one"]
    assert 'class="caption-number">Fig. 1 ' in pages["x_more"]  # an excursion has none
    assert "section-number" not in pages["07_one"]
    assert not re.search(r'class="toctree-l1[^>]*><a [^>]*>\s*\d+\. ', pages["intro"])


def test_questions_to_the_reader_are_marked(pages):
    assert '<p class="predict"><strong>Predict.</strong> What?</p>' in pages["intro"]


def test_a_citation_leads_to_its_entry_which_is_called_by_author_and_year(pages):
    assert 'href="../book/bibliography.html#cordonnier2020"' in pages["08_two"]
    entries = re.findall(
        r'id="(\w+)">\s*<span class="label"><span[^>]*>\[</span>(.*?)<span',
        pages["bibliography"],
    )
    names = dict(entries)
    assert names["vaswani2017"] == "Vaswani et al. (2017)"
    assert names["koehn2017"] == "Koehn and Knowles (2017)"
    assert names["velickovic2018"] == "Veličković et al. (2018)"
    assert names["cordonnier2020collaborate"] == "Cordonnier et al. (2020a)"
    assert names["cordonnier2020"] == "Cordonnier et al. (2020b)"
    assert len({*names.values()}) == len(names) > 30


# --- The index ------------------------------------------------------------------


def test_the_index_leads_from_each_term_to_its_section_under_a_letter(pages):
    line = r'<li><p>([^<]*) <a[^>]* href="([^"]+)"><span[^>]*>([^<]*)</span>'
    lines = re.findall(line, pages["terms"])
    one, two = "../notebooks/07_one.html", "../notebooks/08_two.html#a-question"
    assert lines == [("attention", one, "7 · One"), ("RoPE", two, "8 · Two")]
    assert re.findall(r"<h2>(\w)<", pages["terms"]) == ["A", "R"]


def search_index(built):
    """Return the pages in the index of the search by their addresses."""
    text = (built / "_build/html/_static/search_index.js").read_text(encoding="utf-8")
    pages = json.loads(text.split("const searchPages = ")[1].strip().removesuffix(";"))
    return {page["url"]: page["sections"] for page in pages}


def test_the_search_knows_the_section_of_a_term_in_every_spelling(built):
    pages = search_index(built)
    assert "book/terms.html" not in pages
    [one, *_] = pages["notebooks/07_one.html"]
    assert one["terms"] == [["attention"]] and one["id"] == ""
    _, asked = pages["notebooks/08_two.html"]
    assert asked["terms"] == [["RoPE", "rotary embedding", "rotary"]]
    assert [asked["id"], asked["title"]] == ["a-question", "A question"]


def test_the_search_hides_questions_and_what_waits_behind_them(built):
    _, asked = search_index(built)["notebooks/08_two.html"]
    assert FOUND in asked["hidden"] and FOUND not in asked["sentences"]
    assert "The end." in asked["sentences"]
    shown = " ".join(asked["sentences"])
    assert not re.search(r"COMPUTED|ELSEWHERE|core|third|imported|@title", shown)


def test_a_page_that_is_not_built_again_stays_in_the_index(built):
    before = search_index(built)
    path = built / "book/intro.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nA sentence that is NEW.\n")
    build = BUILD.replace(', ["--builder", "singlehtml", "--path-output", "out"]', ",")
    subprocess.run([sys.executable, "-c", build], cwd=built, check=True)
    after = search_index(built)
    assert "A sentence that is NEW." in after["book/intro.html"][-1]["sentences"]
    del before["book/intro.html"], after["book/intro.html"]
    assert after == before


@pytest.mark.parametrize("name", ["09", "0"])
def test_a_term_without_a_page_or_with_several_stops_the_build(
    tmp_path, monkeypatch, name
):
    monkeypatch.syspath_prepend(ROOT / "book" / "_ext")
    maker = importlib.import_module("index_of_terms")
    (tmp_path / "book").mkdir()
    (tmp_path / "book/terms.csv").write_text(f"term,page,also,section\nRoPE,{name},,\n")
    env = SimpleNamespace(srcdir=tmp_path, found_docs={"a/07_one", "a/08_two"})
    with pytest.raises(Exception, match=r"of RoPE: [02] pages begin with '09?'"):
        maker.read_terms(env)


# --- A chapter in a browser -------------------------------------------------------

NAME = "Predict. What is"
SEEN = "() => document.querySelector('article').innerText"
IN_SIGHT = """element => {
  const {top, bottom} = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}"""
PHONE = {"viewport": {"width": 400, "height": 800}, "has_touch": True}
# A browser without hidden=until-found.
WITHOUT_FINDING = """
const {setAttribute} = Element.prototype;
Element.prototype.setAttribute = function (name, value) {
  setAttribute.call(this, name, name === "hidden" ? "" : value);
};"""


@pytest.fixture
def chapter_at(built, reload_at, page_at):
    """Return a function that opens the chapter in the second form, at a place in it.

    Only a page that ``remembers`` finds again what it has stored.
    """

    def open_chapter(place="", *, remembers=False, **options):
        file = built / "_build/html/notebooks/08_two.html"
        open_page = page_at if remembers else reload_at
        return open_page(file.as_uri() + place, **options)

    return open_chapter


def option(page, start):
    return page.get_by_role("group", name=NAME).get_by_role("button", name=start)


def verdict(page):
    return page.get_by_role("status").first.inner_text()


def is_open(page):
    """Tell whether the first answer is there, as a whole, or not at all."""
    seen = page.evaluate(SEEN)
    parts = ["asked = 1" in seen, "COMPUTED" in seen, "FOUND" in seen]
    parts += ["PRINTED" in seen, "said LATER" in seen]
    parts.append(page.locator("#fig-waiting img").is_visible())
    assert len({*parts}) == 1
    return parts[0]


def test_before_a_choice_the_question_is_there_and_not_the_answer_nor_its_code(
    chapter_at,
):
    page = chapter_at()
    assert not is_open(page)
    assert "asked = 1" not in page.evaluate(SEEN)
    for name in ("a third", r"\frac{2}{4}", "nothing"):
        assert option(page, name).is_enabled()
    assert verdict(page) == ""  # a place that is there before anything is said in it


def test_what_waits_below_leads_back_to_its_question_until_it_is_answered(chapter_at):
    page = chapter_at()
    assert "later = 3" in page.evaluate(SEEN)
    back = page.get_by_role("link", name="Waits for your answer above")
    assert back.count() == 1
    back.click()
    question = page.locator("p.predict").first.element_handle()
    page.wait_for_function(IN_SIGHT, arg=question)
    option(page, "nothing").click()
    assert back.count() == 0


def test_a_wrong_choice_by_mouse_says_and_marks_what_is_right_and_counts(chapter_at):
    page = chapter_at()
    option(page, "nothing").click()
    assert verdict(page).startswith("Not this time. The right answer is:")
    assert page.get_by_role("status").first.locator("math").count() == 1
    assert is_open(page)
    page.locator(".options").first.locator(".right").click(force=True)
    marks = page.locator(".options").first.locator(".told").all_inner_texts()
    assert marks == ["✓ right", "✗ your choice"]
    assert "ELSEWHERE" not in page.evaluate(SEEN)  # the other question's


def test_a_right_choice_by_touch_is_said_to_be_right(chapter_at):
    page = chapter_at(**PHONE)
    page.locator(".options").nth(1).get_by_role("button").first.tap()
    assert page.get_by_role("status").nth(1).inner_text() == "Right: One of two."
    assert "ELSEWHERE" in page.evaluate(SEEN)
    assert not is_open(page)
    assert page.locator(".told").all_inner_texts() == ["✓ right"]


def test_a_choice_by_keyboard_keeps_its_place(chapter_at):
    page = chapter_at()
    option(page, "a third").focus()
    page.keyboard.press("Tab")  # past the formula's option, and not into the formula
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert is_open(page)
    focused = page.locator(":focus")
    assert focused.inner_text().startswith("nothing")
    assert focused.get_attribute("aria-pressed") == "true"
    assert page.locator(".options").first.locator("[aria-disabled=true]").count() == 3


def test_in_firefox_a_choice_and_a_link_open_the_answer(built, firefox):
    file = built / "_build/html/notebooks/08_two.html"
    for act in (
        lambda page: option(page, "nothing").press("Enter"),
        lambda page: page.get_by_role("link", name="what waits").click(),
    ):
        problems = []
        with opened(firefox, file, problems) as page:
            assert not is_open(page)
            act(page)
            page.wait_for_function("() => !document.querySelector('.answer').hidden")
            assert is_open(page)
        assert problems == []


def test_who_does_not_guess_is_shown_the_answer_and_taken_to_it(chapter_at):
    page = chapter_at()
    page.get_by_role("button", name="Show the answer").first.focus()
    page.keyboard.press("Space")
    assert is_open(page)
    assert verdict(page).startswith("The right answer is:")
    assert page.locator(".told").all_inner_texts() == ["✓ right"]
    assert page.locator(":focus").get_attribute("role") == "status"


def test_all_answers_stay_open_from_page_to_page_until_questions_are_asked_again(
    chapter_at,
):
    page = chapter_at(remembers=True)
    page.get_by_role("button", name="Show all answers").nth(1).press("Enter")
    assert is_open(page) and "ELSEWHERE" in page.evaluate(SEEN)
    assert page.locator(":focus").inner_text() == "The right answer is: One of two."
    page.reload()
    page.get_by_role("button", name="Ask me again").first.wait_for()
    assert is_open(page) and "ELSEWHERE" in page.evaluate(SEEN)
    assert page.get_by_role("button", name="Show").count() == 0
    page.get_by_role("button", name="Ask me again").first.click()
    page.get_by_role("button", name="Show the answer").first.wait_for()
    assert not is_open(page)


@pytest.mark.parametrize("script", [None, WITHOUT_FINDING], ids=["new", "old"])
def test_a_link_to_what_waits_opens_it(chapter_at, script):
    page = chapter_at(script=script)
    page.get_by_role("link", name="what waits").click()
    page.wait_for_function("() => document.querySelector('#fig-waiting:target')")
    assert is_open(page)
    assert page.locator("#fig-waiting").evaluate(IN_SIGHT)


@pytest.mark.parametrize("script", [None, WITHOUT_FINDING], ids=["new", "old"])
def test_an_address_of_what_waits_opens_it(chapter_at, script):
    page = chapter_at("#fig-waiting", script=script)
    assert is_open(page)
    assert page.locator("#fig-waiting").evaluate(IN_SIGHT)


def test_what_is_found_in_the_page_opens_all_of_its_answer(chapter_at):
    page = chapter_at("#:~:text=which is FOUND here")
    page.wait_for_function("() => !document.querySelector('.answer').hidden")
    assert is_open(page)
    assert "ELSEWHERE" not in page.evaluate(SEEN)


def test_without_javascript_all_is_open_and_options_are_a_list(chapter_at):
    page = chapter_at(java_script_enabled=False)
    assert page.get_by_text("FOUND").is_visible()
    assert page.get_by_text("COMPUTED").is_visible()
    assert page.locator("#fig-waiting img").is_visible()
    assert page.locator("ul.options > li").count() == 5
    assert page.get_by_role("button", name="Show").count() == 0


def test_on_paper_all_is_open_but_what_is_checked(chapter_at):
    page = chapter_at()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    seen = page.evaluate(SEEN)
    for part in ("COMPUTED", "FOUND", "ELSEWHERE", "imported = 1", "shown = 1"):
        assert part in seen
    for part in ("checked", "assert", "Show the answer", "Setup"):
        assert part not in seen
    assert page.locator("#fig-waiting img").is_visible()


def test_imports_the_picture_s_code_and_what_proves_it_are_folded(chapter_at):
    page = chapter_at()
    seen = page.evaluate(SEEN)
    assert "✓ checked" in seen and "there is an end" not in seen
    for part in ("imported = 1", "shown = 1", "assert True", "@title"):
        assert part not in seen
    page.get_by_text("✓ checked").last.click()
    page.get_by_text("Setup: what this page imports").click()
    seen = page.evaluate(SEEN)
    assert "assert True" in seen and "imported = 1" in seen
    assert "@title" not in seen


def test_a_dark_page_turns_a_figure_and_leaves_a_photograph_and_paper_alone(chapter_at):
    page = chapter_at(color_scheme="dark")

    def filters():
        return [
            page.locator(f"{name} img").evaluate("one => getComputedStyle(one).filter")
            for name in ("#fig-waiting", "#fig-photograph")
        ]

    assert filters() == ["invert(1) hue-rotate(180deg)", "none"]
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert filters() == ["none", "none"]


def test_a_live_figure_has_a_number_and_a_caption(chapter_at, pages):
    figure = re.search(
        r'<figure [^>]*id="fig-moving".*?</figure>', pages["07_one"], re.S
    )
    assert 'data-figure="k"' in figure[0] and "<img" in figure[0]
    assert 'class="caption-number">Fig. 7.2 ' in figure[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_a_chapter_passes_axe_before_and_after_a_choice(
    chapter_at, axe_violations, scheme, width
):
    size = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page = chapter_at(**size, reduced_motion="reduce")
    assert axe_violations(page) == []
    option(page, "nothing").click()
    page.get_by_role("button", name="Show the answer").click()
    assert is_open(page)
    assert axe_violations(page) == []


@pytest.mark.parametrize("wide", ["#equation-eq-8-1 .formula", ".wide:has(table)"])
def test_on_a_phone_what_is_wide_scrolls_and_says_so_until_its_end(chapter_at, wide):
    page = chapter_at(**PHONE)
    assert page.evaluate("() => document.documentElement.scrollWidth") == 400
    box = page.locator(wide)
    assert box.evaluate(HINT) == ['"scroll →"', "visible"]
    box.focus()
    page.keyboard.press("End")
    box.evaluate("element => { element.scrollLeft = element.scrollWidth; }")
    page.wait_for_function("wide => !document.querySelector(wide + '.more')", arg=wide)
    assert box.evaluate(HINT)[1] == "hidden"


LINES = """code => {
  const lines = [...code.querySelectorAll(".line")].map(line => {
    const range = document.createRange();
    range.selectNodeContents(line);
    const parts = [...range.getClientRects()].filter(part => part.width);
    const below = parts.filter(part => part.top > parts[0].bottom - 2);
    return [parts[0].left, ...below.map(part => part.left)];
  });
  return {lines, inside: code.scrollWidth <= code.clientWidth};
}"""


def test_on_a_phone_a_long_line_of_code_goes_on_below_deeper_than_it_began(
    built, reload_at
):
    file = built / "_build/html/notebooks/07_one.html"
    code = reload_at(file, **PHONE).locator(".cell_input pre").first
    seen = code.evaluate(LINES)
    assert seen["inside"]
    [[first, *below]] = seen["lines"]
    assert below and first + 30 < min(below) < 400
    assert code.text_content() == f"{LONG_LINE}\n"


def test_of_formulas_the_tab_key_stops_at_those_alone_that_scroll(chapter_at):
    stops = "() => document.querySelectorAll('.math [tabindex=\"0\"]').length"
    page = chapter_at()
    assert page.evaluate(stops) <= 1 < page.locator("math").count()
    assert chapter_at(**PHONE).evaluate(stops) >= 1


def test_on_a_phone_an_option_of_many_words_stays_in_sight(chapter_at):
    page = chapter_at(**PHONE)
    for button in page.locator(".options button").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400


# --- The book on paper ------------------------------------------------------------


def test_the_outline_names_parts_and_below_them_chapters_and_their_sections(printed):
    def titles(outline):
        return [e.title if "/Title" in e else titles(e) for e in outline]

    chapters = ["7 · One", ["A section"], "8 · Two", ["A question"]]
    front, *parts = ["The book", ["The road"], "I", chapters, "Excursions", ["More"]]
    assert titles(printed.outline)[:6] == [front, *parts]


def test_every_chapter_begins_a_page_and_every_page_has_its_number(printed):
    pages = [page.extract_text().strip().splitlines() for page in printed.pages]
    assert all(str(number) in page for number, page in enumerate(pages, start=1))
    starts = {line.strip() for page in pages for line in page[:3]}
    assert {"The book", "7 · One", "8 · Two"} <= starts


def test_the_first_page_says_what_it_is_by_whom_and_what_one_may_do_with_it(printed):
    front = printed.pages[0].extract_text()
    for part in ("The book", "By the authors", "CC BY 4.0", "MIT license", version()):
        assert part in " ".join(front.split())


def test_the_contents_list_parts_and_chapters_and_lead_to_them(printed):
    listed = " ".join(printed.pages[1].extract_text().split())
    assert listed.startswith("2 Contents I 7 · One 8 · Two Excursions More")
    links = [note.get_object() for note in printed.pages[1]["/Annots"]]
    assert len([link for link in links if "/Dest" in link]) >= 3


def test_what_is_folded_away_on_a_page_of_the_book_is_printed(text):
    assert "UNFOLDED" in text


def test_no_code_is_cut_off_or_left_folded(text):
    assert bare(LONG_LINE) in bare(text)
    assert "folded = 1" in text


def test_every_answer_is_on_paper_with_its_options_and_nothing_of_the_screen(text):
    for part in ("a third", "COMPUTED", "FOUND", "ELSEWHERE"):
        assert part in text
    for part in ("Show the answer", "The right answer is", "checked:"):
        assert part not in text


def test_no_solution_is_printed_nor_what_would_unfold_it(text):
    for part in ("Solution", "SECRET", "solution('1.1')"):
        assert part not in text


def test_formulas_are_set(text):
    assert "more than a third?" in text
    assert "frac" not in text


def test_figures_are_not_blank_and_a_live_one_is_its_picture(printed, text):
    images = [image.image for page in printed.pages for image in page.images]
    colors = []
    for image in images:
        counts = image.convert("RGB").getcolors()
        colors.append({color for _, color in counts})
    assert {(255, 0, 0), (255, 255, 255)} in colors
    assert {(0, 0, 255), (255, 255, 255)} in colors
    assert "MOVING" not in text


def test_links_between_chapters_lead_to_places_in_the_document(printed):
    notes = [note for page in printed.pages for note in page.annotations or []]
    notes = [note.get_object() for note in notes]
    links = [note for note in notes if note["/Subtype"] == "/Link"]
    addresses = [str(link.get("/A", {}).get("/URI", "")) for link in links]
    assert [address for address in addresses if address.startswith("file:")] == []
    assert any("/Dest" in link for link in links)


def test_a_pdf_is_called_like_the_book_and_does_not_say_when_it_was_made(printed):
    assert printed.metadata.title == "The book"
    assert {printed.metadata["/CreationDate"][:10]} == {"D:20000101"}


def test_without_chromium_one_sentence_says_what_to_do():
    script = [sys.executable, TOOLS / "browser.py"]
    done = subprocess.run(script, env={"PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "install it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- Slides -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def deck(book):
    """Make the slides of the first chapter; return their file."""
    command = [
        sys.executable,
        TOOLS / "slides.py",
        "notebooks/07_one.ipynb",
        "one.html",
    ]
    subprocess.run(command, cwd=book, check=True, capture_output=True)
    return book / "one.html"


SLIDES = """() => Reveal.getSlides().map(slide => {
  const told = slide.querySelector("aside.notes");
  const waiting = [...slide.querySelectorAll(".fragment")];
  return {
    title: slide.querySelector("h1, h2")?.textContent ?? "",
    notes: told?.textContent.trim() ?? "",
    waiting: waiting.map(part => part.textContent),
    pictures: slide.querySelectorAll(
      "[data-figure], figure img:not([data-figure] > img)"
    ).length,
    text: slide.textContent.replace(told?.textContent, ""),
  };
})"""


@pytest.fixture
def slides(deck, reload_at):
    """Open the slides, which ask for no other file, and list what each holds."""
    page = reload_at(deck)
    page.wait_for_function("() => window.Reveal?.isReady?.()")
    assert page.locator("math").count() == 1
    return page.evaluate(SLIDES)


def test_a_slide_begins_at_each_heading_and_two_figures_share_none(slides):
    assert [slide["title"][:9] for slide in slides[:2]] == ["7 · One", "A section"]
    assert [slide["pictures"] for slide in slides] == [0, 0, 1, 1]


def test_a_paragraph_is_whole_only_in_the_notes(slides):
    assert "A second one" in slides[0]["notes"]
    assert "A second one" not in slides[0]["text"]
    assert "A first sentence" in slides[0]["text"]


def test_the_question_and_the_answer_wait_for_a_click(slides):
    question, answer = slides[1]["waiting"]
    assert "Predict." in question
    assert "True" in answer


def test_of_the_second_form_slides_have_the_question_and_then_the_answer():
    maker = importlib.import_module("slides")
    chapter, _ = maker.Deck().preprocess(new_notebook(cells=second_form()), {})
    pieces = chapter.cells
    shown = [(piece.source, piece.metadata.slideshow.slide_type) for piece in pieces]
    place = shown.index((QUESTION, "fragment"))
    computed, drawn, told = shown[place + 1 : place + 4]
    assert computed == ("asked = 1", "fragment")
    assert drawn == ("drawn = 2", "subslide")  # a slide of its own waits by itself
    assert told == (FOUND, "subslide")
    sources = "".join(source for source, _ in shown)
    assert not re.search("assert|imported|@title", sources)
    assert "shown = 1" in sources


def test_solutions_are_on_no_slide(slides):
    assert not any("SECRET" in slide["text"] for slide in slides)


TALL = """async () => {
  const figure = document.querySelector("[data-figure]");
  const slide = figure.closest("section");
  Reveal.slide(...Object.values(Reveal.getIndices(slide)));
  figure.shadowRoot.innerHTML = '<div style="height: 900px"></div>';
  await new Promise((done) => setTimeout(done, 200));
  return slide.scrollHeight - slide.clientHeight;
}"""


def test_a_live_figure_is_shown_large_and_smaller_where_it_would_be_too_high(
    deck, reload_at
):
    page = reload_at(deck)
    page.wait_for_function("() => window.Reveal?.isReady?.()")
    zoom = "document.querySelector('[data-figure]').style.zoom"
    page.wait_for_function(f"() => {zoom} === '1.6'")
    assert page.evaluate(TALL) <= 1  # pixel
    assert 0.5 < float(page.evaluate(zoom)) < 1
