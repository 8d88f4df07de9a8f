"""The frame of the book, the book on paper, and its slides.

A book of three small pages that has an address is built; it is printed by a real
Chromium and read back; and slides are made of one of its notebooks.
"""

import base64
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tutorial_lib.tools.repository import write_address

pypdf = pytest.importorskip("pypdf")
pytest.importorskip("sphinx_revealjs")

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "book" / "_print"
FORK = "https://github.com/you/fork"
COLAB = "https://colab.research.google.com/github/you/fork/blob/main/notebooks/"
# Both kinds of pages in one process: what is imported for them takes as long as one.
BUILD = """
from jupyter_book.cli.main import main
for kind in [], ["--builder", "singlehtml", "--path-output", "out"]:
    main(["build", ".", "-q", *kind], standalone_mode=False)
"""
LONG_LINE = "long = " + " + ".join(f"number_{i}" for i in range(20))
FIRST = r"""# 7 · One

A first sentence that stands on the slide. A second one that is only told, see
[chapter 8](08_two.ipynb).

## A section

**Predict.** Is $\frac{1}{2}$ more than a third?
"""
CARD = '<div class="exercise-card"><details><summary>Solution</summary>SECRET</details>'
LIVE = """<div data-figure="k">
<img alt="A picture" src="data:image/png;base64,{}"></div>
<script>document.querySelector("[data-figure=k]").attachShadow({{mode: "open"}})
.innerHTML = "<p>MOVING</p>"</script>"""
ABOUT = {"figure": {"caption": "What is *seen*.", "name": "fig-seen"}}
ABOUT |= {"image": {"alt": "Two colors"}}


def picture(color):
    """Return a PNG of two colors in base64."""
    image_module = pytest.importorskip("PIL.Image")
    image, buffer = image_module.new("RGB", (60, 40), "white"), io.BytesIO()
    image.paste(color, (10, 10, 40, 30))
    image.save(buffer, "png")
    return base64.b64encode(buffer.getvalue()).decode()


def cell(source, data=None, **metadata):
    outputs = [new_output("display_data", data)] if data else []
    return new_code_cell(source, outputs=outputs, metadata=metadata, execution_count=1)


def write_notebook(path, *cells):
    lexer = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    nbformat.write(new_notebook(cells=list(cells), metadata=lexer), path)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Write a book of three pages; return its folder."""
    root = tmp_path_factory.mktemp("book")
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / "book" / name, root / "book" / name)
    for name in ("_config.yml", "book/references.bib"):
        shutil.copy(ROOT / name, root / name)
    (root / "book/intro.md").write_text(
        "# The book\n\n## The road\n\n**Predict.** What?\n"
    )
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nparts:\n  - caption: I\n"
        "    numbered: true\n    chapters:\n      - file: notebooks/07_one\n"
        "      - file: notebooks/08_two\n"
    )
    (root / "notebooks").mkdir()
    write_notebook(
        root / "notebooks/07_one.ipynb",
        new_markdown_cell(FIRST),
        cell(LONG_LINE, {"text/plain": "True"}),
        cell("drawn = 1", {"image/png": picture("red")}, mystnb=ABOUT),
        cell("folded = 1", {"text/plain": "six"}, tags=["hide-input"]),
        cell("moving = 1", {"text/html": LIVE.format(picture("blue"))}),
        cell("solution('1.1')", {"text/html": CARD + "</div>"}, tags=["solution"]),
    )
    write_notebook(root / "notebooks/08_two.ipynb", new_markdown_cell("# 8 · Two"))
    write_address(root, FORK)
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


def bare(text):
    return re.sub(r"\s", "", text)


# --- The frame ------------------------------------------------------------------


def test_buttons_lead_to_the_repository_once_it_has_an_address(pages):
    assert f'href="{COLAB}07_one.ipynb"' in pages["07_one"]
    assert f'href="{FORK}"' in pages["intro"]


def test_figures_carry_the_number_in_their_file_s_name_and_headings_none(pages):
    assert 'class="caption-number">Fig. 7.1 ' in pages["07_one"]
    assert "section-number" not in pages["07_one"]
    assert not re.search(r'class="toctree-l1[^>]*><a [^>]*>\s*\d+\. ', pages["intro"])


def test_questions_to_the_reader_are_marked(pages):
    assert '<p class="predict"><strong>Predict.</strong> What?</p>' in pages["intro"]


# --- The book on paper ------------------------------------------------------------


def test_the_outline_names_parts_and_below_them_chapters_and_their_sections(printed):
    def titles(outline):
        return [e.title if "/Title" in e else titles(e) for e in outline]

    chapters = ["7 · One", ["A section"], "8 · Two"]
    assert titles(printed.outline) == ["The book", ["The road"], "I", chapters]


def test_every_chapter_begins_a_page_and_every_page_has_its_number(printed):
    pages = [page.extract_text().strip().splitlines() for page in printed.pages]
    assert all(str(number) in page for number, page in enumerate(pages, start=1))
    starts = {line.strip() for page in pages for line in page[:3]}
    assert {"The book", "7 · One", "8 · Two"} <= starts


def test_no_code_is_cut_off_or_left_folded(text):
    assert bare(LONG_LINE) in bare(text)
    assert "folded = 1" in text


def test_a_solution_stays_folded_away(text):
    assert "Solution" in text
    assert "SECRET" not in text


def test_formulas_are_set(text):
    assert "more than a third?" in text
    assert "frac" not in text


def test_figures_are_not_blank_and_a_live_one_is_its_picture(printed, text):
    images = [image.image for page in printed.pages for image in page.images]
    colors = [{color for _, color in i.convert("RGB").getcolors()} for i in images]
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
def slides(deck, page_at):
    """Open the slides, which ask for no other file, and list what each holds."""
    page = page_at(deck)
    page.wait_for_function("() => window.Reveal?.isReady?.()")
    assert page.locator("mjx-container").count() == 1
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


def test_a_live_figure_that_is_too_high_is_shown_smaller(deck, page_at):
    page = page_at(deck)
    page.wait_for_function("() => window.Reveal?.isReady?.()")
    assert page.evaluate(TALL) <= 1  # pixel
