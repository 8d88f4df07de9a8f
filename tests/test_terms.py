"""Whoever types a term is led to the page that explains it.

``book/terms.csv`` says which page that is. The search is the built book's own, in
_build/html, which `make book` makes; where it is not built such tests are skipped.
"""

import csv
import gzip
import hashlib
import importlib
import re
import sys
from collections import Counter
from types import SimpleNamespace

import nbformat
import pytest
from built_pages import PAGES, ROOT, needs_pages

SEARCH = ROOT / "_build" / "html" / "search.html"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIND = """queries => queries.map(query => find(query).results.slice(0, 3)
  .map(({page, hits}) => [page.url, hits[0].section.title]))"""


def read_terms():
    """List the spellings of each term, and its row in the table."""
    with (ROOT / "book" / "terms.csv").open(encoding="utf-8", newline="") as file:
        return [
            ([row["term"], *filter(None, row["also"].split("; "))], row)
            for row in csv.DictReader(file)
        ]


TERMS = read_terms()


def plain(text):
    """Return a text without markup, and with spaces for all that joins two words."""
    return re.sub(r"[-–_\s]+", " ", re.sub(r"[*`$]", "", text)).lower()


def joined(spelling):
    """Return a spelling as the search compares it: without spaces, hyphens, plural."""
    words = re.findall(r"[^\W_]+", spelling.lower())
    return "".join(word.removesuffix("s") for word in words)


def test_no_spelling_stands_twice():
    counts = Counter(each.lower() for spellings, _ in TERMS for each in spellings)
    assert [each for each, count in counts.items() if count > 1] == []


def test_no_spelling_means_two_terms():
    term_of = {}
    for spellings, row in TERMS:
        for spelling in spellings:
            before = term_of.setdefault(joined(spelling), row["term"])
            assert before == row["term"], f"{spelling}: {before} and {row['term']}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_page_names_the_terms_that_it_explains(path):
    cells = nbformat.read(path, as_version=4).cells
    text = plain("\n".join(c.source for c in cells if c.cell_type == "markdown"))
    terms = [words for words, row in TERMS if path.stem.startswith(row["page"])]
    assert terms
    unnamed = []
    for spellings in terms:
        if not any(plain(each) in text for each in spellings):
            unnamed.append(spellings[0])
    assert unnamed == []


@pytest.fixture(scope="module")
def search_page(loaded):
    """Open the page of the search, in which `find` lists the results of a query."""
    page, problems = loaded(SEARCH)
    page.wait_for_function("() => window.find")
    yield page
    assert problems == []


@needs_pages
def test_every_term_is_found_first_in_every_spelling_and_in_its_section(search_page):
    asked = [(each, row) for spellings, row in TERMS for each in spellings]
    results = search_page.evaluate(FIND, [query for query, _ in asked])
    missed = {}
    for (query, row), found in zip(asked, results, strict=True):
        url, heading = found[0] if found else ("", "")
        is_page = url.split("/")[-1].startswith(row["page"])
        if not (is_page and heading.startswith(row["section"])):
            missed[query] = found
    assert missed == {}


# What readers typed, with the page that they meant and the beginning of its heading.
QUESTIONS = {
    "layernrom": ("10", "Layer normalization"),
    "swni": ("16", ""),
    "postional encoding": ("09", ""),
    "multihaed attention": ("08", ""),
    "casual mask": ("04", "The causal mask"),
    "soft max temperature": ("01", "Softmax and temperature"),
    "√d": ("questions", "Why divide by √d_k?"),
    "why add positions instead of concatenating": ("09", "Why add positions"),
    "why mask at inference": ("04", "The causal mask at inference"),
    "why do we divide by sqrt(d_k)?": ("03", "Scaling"),
    "what happens if all keys are masked": ("04", "Masked softmax"),
    "does pytorch's mask mean true = ignore": ("04", "What does True mean"),
    "how big is the kv cache of llama": ("x_llama", "Grouped-query"),
    "masked_softmax": ("04", "Masked softmax"),
    "LearnedPositions": ("09", "Learned position embeddings"),
    "induction hed": ("13", "Induction heads"),
    "rope vs alibi": ("09", ""),
    "why is softmax needed": ("01", "Softmax and temperature"),
    "where do i find the solutions": ("students", "When you are stuck"),
    "vanishing gradients deep transformer": ("x_training", "Vanishing"),
}


@needs_pages
@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question_or_a_slip_of_the_keys_is_answered_by_the_first_hit(
    query, search_page
):
    name, heading = QUESTIONS[query]
    [[(url, found), *_]] = search_page.evaluate(FIND, [query])
    assert url.split("/")[-1].startswith(name)
    assert found.startswith(heading)


@needs_pages
def test_pages_to_look_things_up_come_behind_those_that_explain(search_page):
    queries = ["attention", "kernel", "token", "decoder", "masks of a batch"]
    for found in search_page.evaluate(FIND, queries):
        assert [url for url, _ in found if not url.startswith("notebooks/")] == []


@needs_pages
def test_the_index_leads_to_sections_that_have_the_term():
    index = (ROOT / "_build/html/book/terms.html").read_text(encoding="utf-8")
    lines = re.findall(
        r'<p>([^<]*) <a class="reference internal" href="([^"]+)"', index
    )
    assert len(lines) == len(read_terms())
    led = {term: link for term, link in lines if "#" in link}
    assert len(led) > 0.8 * len(lines)
    assert "13_reading_attention.html#counterfactual-" in led["ablation"]
    for link in led.values():
        page, anchor = link.split("#")
        text = (ROOT / "_build/html/book" / page).read_text(encoding="utf-8")
        assert f'id="{anchor}"' in text


@needs_pages
def test_an_index_is_asked_for_by_the_page_of_the_search_alone_and_is_small():
    index = SEARCH.parent / "_static" / "search_index.js"
    assert len(gzip.compress(index.read_bytes())) < 400_000
    asking = [page for page in PAGES if "search_index.js" in page.read_text("utf-8")]
    assert asking == [SEARCH]


# --- What the extension reads ------------------------------------------------------


@pytest.fixture(scope="module")
def book_search():
    pytest.importorskip("sphinx")
    sys.path.append(str(ROOT / "book" / "_ext"))
    return importlib.import_module("book_search")


@pytest.mark.parametrize(
    ("tex", "plain_text"),
    [
        (r"\mathbf{q} \cdot \mathbf{k} / \sqrt{d_k}", "q · k / √d_k"),
        (r"e^{-d^2 / (2\sigma^2)}", "e^(-d^2 / (2σ^2))"),
        (r"\frac{1}{\sqrt{d_\text{model}}}", "1/√d_model"),
        (r"\max(0, p - q)", "max(0, p - q)"),
        (r"1{,}024 \times \alpha_{ij}", "1,024 × α_ij"),
    ],
)
def test_a_formula_is_read_in_plain_signs(tex, plain_text, book_search):
    assert book_search.plain_formula(tex) == plain_text


def test_a_sentence_ends_behind_its_point_and_not_behind_a_name(book_search):
    text = "Cho et al. (2014b) read it, see Fig. 6.2. They did so twice. So. It ends."
    assert book_search.split_sentences(text) == [
        "Cho et al. (2014b) read it, see Fig. 6.2.",
        "They did so twice.",
        "So. It ends.",
    ]


def test_a_page_gives_its_sentences_and_hides_what_waits(book_search):
    nodes = importlib.import_module("docutils.nodes")
    asked = nodes.container("", nodes.paragraph("", "Is it?"), classes=["question"])
    told = nodes.container("", nodes.paragraph("", "It is."), classes=["answer"])
    link = nodes.paragraph("", "", nodes.reference("", "Chapter 1"))
    section = nodes.section(
        "",
        nodes.title("", "1 · One"),
        nodes.paragraph("", "A first sentence. A second sentence."),
        nodes.literal_block("", "code = masked_softmax(scores)"),
        link,
        asked,
        told,
        nodes.section("", nodes.title("", "Two"), ids=["two"]),
        ids=["one"],
    )
    page, part = book_search.sections_of(section)
    assert page["sentences"] == ["A first sentence.", "A second sentence."]
    assert page["hidden"] == ["Is it?", "It is."]
    assert page["names"] == ["masked_softmax"]
    assert [page["id"], part["id"], part["title"]] == ["", "two", "Two"]


def test_a_term_that_names_no_heading_stops_the_build(book_search):
    term = SimpleNamespace(spellings=["mask"], page="notebooks/04", section="Masques")
    sections = [{"title": "4 · Masks", "id": "", "sentences": [], "hidden": []}]
    with pytest.raises(Exception, match="mask: no heading of notebooks/04 begins with"):
        book_search.section_of(term, sections)


def test_minisearch_is_as_it_was_published():
    folder = ROOT / "book" / "_static" / "vendor" / "minisearch"
    digest = hashlib.sha256((folder / "minisearch.js").read_bytes()).hexdigest()
    assert digest in (folder / "README.md").read_text(encoding="utf-8")
    assert "MIT" in (folder / "README.md").read_text(encoding="utf-8")
