"""The pages for students and instructors say what really happens."""

import re
import shlex
from pathlib import Path

import pytest
from exercise_chapters import chapters

from tools import __main__
from tools.figures import figures_of
from tools.notebooks import chapters as all_chapters
from tools.notebooks import read_notebook
from tools.questions import write_questions
from tools.sheets import sheets
from tutorial_exercises import check

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
FOLDED = {"aside", "claim", "remove-cell", "setup"}  # what no lesson looks at
CHAPTERS = [chapter for chapter in chapters() if chapter.number != 99]
NUMBERS = [chapter.number for chapter in CHAPTERS]
ROW = re.compile(r"\| (\d+) · .* \| (\d+) min \| (\d+) min \| ([^|]+) \|", re.MULTILINE)
MAKE = re.compile(r"^\$ make (\w+)", re.MULTILINE)
COMMAND = re.compile(r"^\$ python -m tools (.*)$", re.MULTILINE)


def page(name):
    return (BOOK / f"{name}.md").read_text(encoding="utf-8")


def plan():
    """Return {chapter: (lesson, exercises, needs)} as the table has them."""
    rows = ROW.findall(page("teaching_plan"))
    return {int(row[0]): (*map(int, row[1:3]), row[3]) for row in rows}


def by_type(chapter, kind):
    return [cell.source for cell in chapter.notebook.cells if cell.cell_type == kind]


def reckoned(chapter):
    """Return a lesson's minutes, by the rule that stands above the table."""
    text = "\n".join(by_type(chapter, "markdown"))
    lesson = text[: text.index("## Exercises")]
    sources = [cell.source for cell in chapter.notebook.cells]
    end = next(i for i, source in enumerate(sources) if "## Exercises" in source)
    run = [cell for cell in chapter.notebook.cells[:end] if cell.cell_type == "code"]
    cells = sum(not FOLDED & {*cell.metadata.get("tags", [])} for cell in run)
    return len(lesson.split()) / 130 + cells * 25 / 60 + lesson.count("**Predict") / 2


each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=map(str, NUMBERS))


def numbers_in(text):
    """Return the numbers of a list of chapters such as "5, 6 and 10 to 12"."""
    numbers = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def test_the_chapters_that_learn_from_the_grammar_are_on_the_page():
    [said] = re.findall("^Chapters (.*) learn from sent", page("how_to_use"), re.M)
    learns = re.compile(r'translation\("grammar"|english_sentences\(|# @title The gram')
    code = {chapter: "\n".join(by_type(chapter, "code")) for chapter in CHAPTERS}
    found = {one.number for one, source in code.items() if learns.search(source)}
    assert numbers_in(said) == found


def test_the_graders_table_gives_a_point_for_each_exercise():
    [(head, solved)] = re.findall(
        r"^\| \| (.*) \|\n.*\n\| solved \| (.*) \|$", page("instructors"), re.M
    )
    for number, points in zip(head.split(" | "), solved.split(" | "), strict=True):
        count = len(sheets(ROOT, number)[0].tasks)
        assert points == f"{count} of {count}", f"chapter {number}"


def test_exercises_that_ask_for_a_number_need_only_paper():
    [said] = re.findall(r"Exercises ([\d., and]+) need only paper", page("instructors"))
    tasks = [task for sheet in sheets(ROOT) for task in sheet.tasks]
    values = {task.exercise.number for task in tasks if task.exercise.is_value}
    counted = {"10.3"}  # a formula, which is counted before it is typed
    assert {*re.findall(r"\d+\.\d+", said)} == values | counted


@pytest.mark.parametrize("name", ["README.md", "book/intro.md"])
def test_excursions_stand_in_the_order_of_the_contents(name):
    text = (ROOT / name).read_text(encoding="utf-8").partition("\nExcursions")[2]
    text = text.partition("\n## ")[0]
    listed = re.findall(r"\]\([./]*notebooks/(x_\w+)\.ipynb\)", text)
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert listed == re.findall(r"file: notebooks/(x_\w+)", contents)


@pytest.mark.parametrize("answer", [..., 9])
def test_the_student_s_page_shows_what_the_check_says(answer):
    _icon, said = repr(check(answer, "1.1")).split(" ", 1)
    assert f"```text\n{said}\n```" in page("students")


def test_the_counts_that_a_teacher_s_commands_print_are_on_the_page(tmp_path):
    read = {path: read_notebook(path) for path in all_chapters(ROOT)}
    with_exercises = len(sheets(ROOT, ""))
    figures = sum(len(figures_of(path, notebook)) for path, notebook in read.items())
    questions = write_questions(ROOT, tmp_path / "all.gift")
    for line in (
        f"Wrote {figures} figures into slides.",
        f"Wrote {with_exercises} notebooks into out.",
        f"Wrote {with_exercises} notebooks into course.",
        f"Wrote {questions} questions into _build/questions.gift.",
    ):
        assert line in page("instructors"), f"write into book/instructors.md: {line}"


@pytest.mark.parametrize("name", ["instructors", "students", "teaching_plan"])
def test_github_shows_a_guide_as_the_book_does(name):
    assert not re.search(r"\{[a-z:_-]+\}`|^[`:]{3,}\{", page(name), re.MULTILINE)


def test_the_answer_that_the_student_s_page_leaves_open_is_not_on_it():
    assert not re.search(r"2\.[12]\d*", page("students"))


def test_the_plan_has_every_chapter_in_its_table_and_a_part_for_each():
    parts = re.findall(r"^## Chapter (\d+) · ", page("teaching_plan"), re.MULTILINE)
    assert list(plan()) == [int(part) for part in parts] == sorted(NUMBERS)


@each_chapter
def test_the_plan_s_minutes_are_those_of_the_chapter(chapter):
    lesson, exercises, _ = plan()[chapter.number]
    text = "\n".join(by_type(chapter, "markdown"))
    at_home = re.findall(r"(\d+) minutes", text[text.index("## Exercises") :])
    assert exercises == sum(map(int, at_home)) and len(at_home) == len(
        chapter.exercises
    )
    assert abs(lesson - reckoned(chapter)) <= 5


@each_chapter
def test_a_chapter_needs_chapters_before_it(chapter):
    needs = re.findall(r"\d+", plan()[chapter.number][-1])
    assert all(int(number) in NUMBERS for number in needs)
    assert all(int(number) < chapter.number for number in needs)


def test_the_sections_that_the_plan_names_are_there():
    headings = {
        heading
        for notebook in (ROOT / "notebooks").glob("*.ipynb")
        for heading in re.findall(r'"###? (.+?)(?:\\n)?"', notebook.read_text("utf-8"))
    }
    text = re.sub(r"\s+", " ", page("teaching_plan").replace("**", ""))
    named = re.findall(r"\*([A-Z][^*]* [^*]*)\*", text)
    headings = headings | {heading.split(":")[0] for heading in headings}  # as *Try it*
    assert len(named) > 20 and {*named} - headings == set()


@pytest.mark.parametrize("name", ["instructors", "students", "how_to_use"])
def test_the_commands_of_a_page_exist(name):
    parser = __main__._parser()
    for line in COMMAND.findall(page(name)):
        parser.parse_args(shlex.split(line))  # exits where it does not know an option
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in MAKE.findall(page(name)):
        assert re.search(rf"^{target}:", targets, re.MULTILINE), target
