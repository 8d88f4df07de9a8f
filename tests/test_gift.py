"""The questions of the book for Moodle: each whole, with one right option."""

import re
from pathlib import Path

import pytest

from tools.__main__ import main
from tools.notebooks import chapters, read_notebook, short_name, tags_of
from tools.questions import gift, write_questions

ROOT = Path(__file__).parents[1]
# As Moodle reads the format: a backslash takes its meaning from what follows.
QUESTION = re.compile(
    r"::(?P<name>(?:\\.|[^\\:])*)::\[html\](?P<asked>(?:\\.|[^\\{])*)"
    r"\{\n(?P<answers>(?:\\.|[^\\}])*)\}\n"
)
ANSWER = re.compile(r"^(=|~|####)((?:\\.|[^\\=~#])*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("questions") / "all.gift"
    write_questions(ROOT, path)
    return path.read_text(encoding="utf-8")


def test_every_question_of_the_book_is_written_and_nothing_else(written):
    cells = [cell for path in chapters(ROOT) for cell in read_notebook(path)["cells"]]
    asked = [cell for cell in cells if "predict" in tags_of(cell)]
    names = [match["name"].split()[1] for match in QUESTION.finditer(written)]
    assert names == [cell["id"] for cell in asked]
    assert not QUESTION.sub("", written).strip()
    assert "\n\n\n" not in written  # a blank line ends a question


def test_the_right_option_is_the_one_that_the_book_calls_right(written):
    rights = {
        f"{short_name(path)} {cell['id']}": int(tag.removeprefix("right-"))
        for path in chapters(ROOT)
        for cell in read_notebook(path)["cells"]
        for tag in tags_of(cell)
        if tag.startswith("right-")
    }
    for match in QUESTION.finditer(written):
        *options, feedback = ANSWER.findall(match["answers"])
        marks = [mark for mark, _ in options]
        assert marks.index("=") + 1 == rights[match["name"]]
        assert marks.count("=") == 1 and len(marks) == marks.count("~") + 1 >= 2
        assert feedback[0] == "####" and len(feedback[1]) > 40
        assert "details" not in feedback[1] and ".ipynb" not in feedback[1]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a: **b** = `{c}`", r"a\: <strong>b</strong> \= <code>\{c\}</code>"),
        ("# not", r"<h1>not</h1>"),
        ("one\n\ntwo", "<p>one</p> <p>two</p>"),
        ("[chapter 3](03_a.ipynb#b), [paper](https://a.b)", None),
        ("$x_i < 2$", None),
    ],
)
def test_markdown_becomes_html_with_escapes(markdown, expected):
    question = gift(markdown)
    assert expected in (None, question)
    assert "ipynb" not in question and "x_i < 2" not in question
    if "paper" in markdown:
        assert question == r'chapter 3, <a href\="https\://a.b">paper</a>'
    if "$" in markdown:
        assert r"\\(x_i &lt; 2\\)" in question


def test_one_chapter_alone_and_a_sentence_where_there_is_none(tmp_path, capsys):
    path = tmp_path / "_build" / "three.gift"  # a folder that is not there yet
    assert main(["questions", "--chapter", "3", "--out", str(path)]) == 0
    count = path.read_text(encoding="utf-8").count("::03 ")
    [chapter] = chapters(ROOT, ["3"])
    asked = [c for c in read_notebook(chapter)["cells"] if "predict" in tags_of(c)]
    assert capsys.readouterr().out == f"Wrote {count} questions into {path}.\n"
    assert count == len(asked) > 0
    both = ["--chapter", "3", "--chapter", "4"]
    assert main(["questions", *both, "--out", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert text.count("::03 ") == count and "::04 " in text
    capsys.readouterr()
    assert main(["questions", "--chapter", "77", "--out", str(path)]) == 1
    assert "there is no chapter 77" in capsys.readouterr().err
