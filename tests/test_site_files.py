"""What the site has besides its pages, with an address and without."""

import importlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from built_pages import HTML, READ, each, needs_pages
from PIL import Image

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))
site_files = importlib.import_module("site_files")
ADDRESS = "https://you.example/fork/"


class Head(HTMLParser):
    """The title, the language, what metadata say, and links of a page."""

    def __init__(self, text):
        super().__init__()
        self.metadata = {}
        self.links = {}
        self.targets = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "html":
            self.language = values["lang"]
        elif tag == "meta":
            name = values.get("property") or values.get("name")
            self.metadata[name or values.get("http-equiv")] = values.get("content")
        elif tag == "link":
            self.links[values["rel"]] = values["href"]
        elif tag == "a":
            self.targets.append(values["href"])


def written(folder, address):
    """Write the files of a site of two pages; return the names and the texts."""
    (folder / "_static").mkdir()
    config = SimpleNamespace(
        html_baseurl=address,
        html_title="A & B",
        root_doc="book/intro",
    )
    app = SimpleNamespace(
        builder=SimpleNamespace(name="html"),
        config=config,
        env=SimpleNamespace(found_docs={"book/intro", "notebooks/01"}),
        outdir=str(folder),
        srcdir=str(ROOT),
    )
    site_files.write_files(app, None)
    return {path.name: path.read_text("utf-8") for path in folder.glob("*.*")}


def test_with_an_address_the_site_names_it_everywhere(tmp_path):
    files = written(tmp_path, "https://you.example/fork")
    head = Head(files["index.html"])
    assert (head.language, head.targets) == ("en", ["book/intro.html"])
    assert head.metadata["refresh"] == "0; url=book/intro.html"
    assert head.metadata["og:title"] == "A & B"
    assert head.metadata["og:description"] == head.metadata["description"]
    assert head.links == {"canonical": f"{ADDRESS}book/intro.html"}
    picture = head.metadata["og:image"].removeprefix(ADDRESS)
    width = int(head.metadata["og:image:width"])
    height = int(head.metadata["og:image:height"])
    assert Image.open(tmp_path / picture).size == (width, height) == (1200, 630)
    assert Head(files["404.html"]).targets[0] == f"{ADDRESS}book/intro.html"
    urls = [node.text for node in ElementTree.fromstring(files["sitemap.xml"]).iter()]
    assert urls[2::2] == [f"{ADDRESS}book/intro.html", f"{ADDRESS}notebooks/01.html"]


def test_without_an_address_none_is_made_up(tmp_path):
    files = written(tmp_path, "")
    assert {*files} == {"index.html", "404.html"}
    head = Head(files["index.html"])
    assert head.links == {} and "og:image" not in head.metadata
    assert head.metadata["og:title"] == "A & B"
    assert site_files.picture_tags("", "book/intro.html") == ""


def test_a_page_gets_its_own_address():
    context = {"metatags": "<meta>"}
    config = SimpleNamespace(html_baseurl=ADDRESS)
    app = SimpleNamespace(config=config)
    site_files.name_address(app, "notebooks/01", "page.html", context, None)
    head = Head(context["metatags"])
    assert head.metadata["og:url"] == f"{ADDRESS}notebooks/01.html"
    assert head.metadata["og:image"] == f"{ADDRESS}_static/front_page.png"


def test_the_root_says_of_the_book_what_its_front_page_begins_with():
    page = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    assert site_files.DESCRIPTION in " ".join(page.split())


def test_the_source_is_named_where_it_has_an_address():
    named = site_files.about("the authors", {"repository_url": "https://x.example/a"})
    assert 'href="https://x.example/a"' in named and "name “the authors”" in named
    unnamed = site_files.about("the authors", {})
    assert re.findall("href=", unnamed) == ["href="]  # the license


@needs_pages
def test_the_front_page_says_whom_to_name_and_leads_to_where_it_says():
    text = (HTML / "book" / "intro.html").read_text("utf-8")
    author = re.search(r"^author: (.*)$", (ROOT / "_config.yml").read_text(), re.M)[1]
    assert f"if you name “{author}”" in text
    assert "under the MIT license" in text.replace("\n", " ")
    students = (HTML / "book" / "students.html").read_text("utf-8")
    for target, title in (
        ("in-colab", "In Colab"),
        ("on-your-own-computer", "On your"),
    ):
        assert f'href="students.html#{target}"' in text
        assert re.search(rf'<section id="{target}">\s*<h2>{title}', students)


@needs_pages
@each(READ)
def test_no_script_is_waited_for_but_where_a_question_hides_its_answer(page_file):
    text = page_file.read_text("utf-8")
    waits = re.findall(r'<script (?!defer\b)[^>]*src="[^"]*/([\w.-]+)\?', text)
    asked = 'class="prediction' in text
    assert [name for name in waits if name != "predict.js" or not asked] == []
    assert "const DOCUMENTATION_OPTIONS" in text


@pytest.mark.parametrize(("old", "new"), site_files.MOVED.items())
def test_an_old_address_leads_to_a_page_that_is_there(old, new, tmp_path):
    written(tmp_path, "")
    page = tmp_path / f"{old}.html"
    links = Head(page.read_text("utf-8"))
    assert links.targets == [f"{new}.html"]
    assert links.metadata["refresh"].endswith(f"url={new}.html")
    assert (ROOT / "notebooks" / f"{new}.ipynb").is_file()
    assert not (ROOT / f"{old}.ipynb").exists()
