"""The page of others' numbers names the tests that there are, and no others."""

import ast
import functools
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "book" / "elsewhere.md").read_text(encoding="utf-8")
ITALIC = re.compile(r"(?<!\*)\*(\w[^*]*)\*(?!\*)")
NAMED = [f"test_{words.replace(' ', '_')}" for words in ITALIC.findall(PAGE)]


@functools.cache
def functions(pattern):
    """List the names of the test functions in the files that match a pattern."""
    return [
        node.name
        for path in TESTS.glob(pattern)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def test_every_test_that_the_page_names_is_one():
    assert [name for name in NAMED if functions("test_*.py").count(name) != 1] == []


def test_every_comparison_is_on_the_page_once():
    assert sorted(set(functions("test_elsewhere_*.py")) - set(NAMED)) == []
    assert len(NAMED) == len(set(NAMED))


def test_the_page_counts_its_comparisons():
    assert re.findall(r"(\d+) tests\s+compare", PAGE) == [str(len(NAMED))]


def test_every_row_says_what_with_whom_and_how_close():
    lines = re.findall(r"^\|(.+)\|$", PAGE, re.MULTILINE)
    rows = [line for line in lines if not re.search(r"---|Compared with", line)]
    assert len(rows) > 15
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        assert len(cells) == 3 and all(cells), row
        assert re.search(r"10⁻|%|\b0$", cells[2]), row


def test_every_link_leads_to_a_file_of_one_version_that_a_test_names():
    links = re.findall(r"\]\((.*?)\)", PAGE)
    source = "\n".join(p.read_text("utf-8") for p in TESTS.glob("test_elsewhere_*.py"))
    for link in links:
        assert re.match(r"https://github\.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/", link)
        assert link.rsplit("/", 1)[1] in source, link


def test_the_page_has_at_most_500_words_that_are_not_folded():
    read = re.sub(r"\]\(.*?\)", "", PAGE.split(":::{dropdown}")[0])
    assert len(read.replace("|", " ").split()) <= 500
