"""Every chapter's exercises: right answers pass, known mistakes are named."""

import inspect
import re

import pytest
from exercise_chapters import Chapter, chapters, define, tags, text_of

from tutorial_exercises import check

BOOK = chapters()
CHAPTERS = [Chapter(99), *BOOK]
TASKS = [task for chapter in CHAPTERS for task in chapter.exercises]

each_chapter = pytest.mark.parametrize("chapter", BOOK, ids=lambda one: one.number)
each_exercise = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.number)


def each_known(is_right):
    """Parametrize by the answers that authors have foreseen, right or wrong."""
    found = [
        pytest.param(task, known, id=f"{task.number}-{number}")
        for task in TASKS
        for number, known in enumerate(task.known, 1)
        if (known.sentence == "") == is_right
    ]
    return pytest.mark.parametrize(("task", "known"), found)


@each_exercise
@pytest.mark.parametrize("kind", ["solution", "definition"])
def test_solution_and_oracle_pass(task, kind):
    right = getattr(task, kind)
    card = check(right() if task.is_value else right, task.number)
    assert card.passed, card


@each_exercise
def test_the_oracle_is_not_the_solution_and_hints_and_mistakes_are_known(task):
    assert task.definition is not task.solution, "it has no oracle"
    assert task.hint_list, "it has no hint"
    named = [known for known in task.known if known.sentence]
    assert len(named) >= 2, f"it needs two mistakes indented by four, not {len(named)}"
    parts = task.axes.values() if isinstance(task.axes, dict) else [task.axes]
    assert "," not in "".join(parts), "axes have spaces between"


@each_known(is_right=False)
def test_a_known_mistake_is_named(task, known):
    card = check(known.answer, task.number)
    assert card.status == "fail", "no case shows this mistake"
    assert known.sentence in card.message.split("\n")


@each_known(is_right=True)
def test_another_right_answer_passes(task, known):
    card = check(known.answer, task.number)
    assert card.passed, card


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda one: one.number)
def test_every_line_of_the_mistakes_is_read(chapter):
    for task in chapter.exercises:
        edits = re.findall(r"^    (?! |and ).+ →", task.mistakes, re.M)
        assert len(edits) == len(task.known), task.number
        assert not re.search(r"^ {1,3}\S", task.mistakes, re.M), task.number


@each_chapter
def test_the_notebook_asks_for_every_exercise_once(chapter):
    asked = [task.number for task, _, _ in chapter.stubs()]
    assert asked == [task.number for task in chapter.exercises]


@each_chapter
def test_stubs_are_open_and_have_the_solution_s_signature(chapter):
    cells = chapter.notebook.cells
    for task, cell, name in chapter.stubs():
        stub = define(cells[cell].source, name, chapter.names)
        assert check(stub, task.number).status == "open"
        if not task.is_value:
            assert signatures(stub) == signatures(task.solution)
            assert signatures(stub) == signatures(task.definition)


def signatures(answer):
    """Return how an answer is called, and its `forward`, where it has one."""
    forward = getattr(answer, "forward", answer)
    return inspect.signature(answer), inspect.signature(forward)


@each_chapter
def test_unsolved_the_notebook_shows_open_cards_and_no_progress(chapter):
    cells = chapter.notebook.cells
    cards = [text_of(cell) for cell in cells if "check" in tags(cell)]
    assert all(card.startswith("⬜") for card in cards), cards
    said = f"0 of {len(cards)} exercises passed"
    assert any(said in text_of(cell) for cell in cells if cell.cell_type == "code")
