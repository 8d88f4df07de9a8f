"""A page has one name, its title, wherever the book speaks of it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = [path for path in PAGES if path.stem[0] != "x"]
EXCURSIONS = [path for path in PAGES if path.stem[0] == "x"]
SVG = "{http://www.w3.org/2000/svg}"


def title_of(path):
    first = nbformat.read(path, as_version=4).cells[0].source
    return first.splitlines()[0].removeprefix("# ")


def link_text(page, path):
    """Return what a page of Markdown calls a notebook where it lists them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    link = rf"\[([^]]+)\]\([./]*notebooks/{path.name}\)(?: ·|[.\n])"
    [name] = {*re.findall(link, text)}
    return name


def each(pages):
    return pytest.mark.parametrize("path", pages, ids=[path.stem for path in pages])


@each(PAGES)
def test_the_readme_names_a_page_by_its_title(path):
    assert link_text("README.md", path) == title_of(path)


@each(EXCURSIONS)
def test_the_front_page_names_an_excursion_by_its_title(path):
    assert link_text("book/intro.md", path) == title_of(path)


@each(CHAPTERS)
def test_the_road_names_a_chapter_by_its_title(path):
    road = ElementTree.parse(ROOT / "book" / "diagrams" / "road.svg")
    link = f"../notebooks/{path.stem}.html"
    [station] = [a for a in road.iter(f"{SVG}a") if a.get("href") == link]
    number, *words = [part.text for part in station.iter(f"{SVG}text")]
    assert f"{number} · {' '.join(words)}" == title_of(path)


@each(CHAPTERS)
def test_the_teaching_plan_names_a_chapter_by_its_title(path):
    plan = (ROOT / "book" / "teaching_plan.md").read_text(encoding="utf-8")
    title = title_of(path)
    assert f"\n| {title} | " in plan
    assert f"\n## Chapter {title}\n" in plan
