"""Every chapter's exercises: right answers pass, wrong ones get their diagnosis."""

import inspect
import sys

import pytest
from exercise_chapters import chapters, define, tags, text_of

from tutorial_lib.exercises import check

CHAPTERS = chapters()


def every(list_name, *, label):
    """Return (chapter, …) parameters for each entry of a list in the solutions."""
    return [
        pytest.param(chapter, *entry, id=f"{chapter.number}-{label(*entry)}")
        for chapter in CHAPTERS
        for entry in getattr(chapter.solutions, list_name, [])
    ]


def each_solution():
    return [
        pytest.param(chapter, name, id=f"{chapter.number}-{name}")
        for chapter in CHAPTERS
        for name in chapter.definitions
    ]


def each_exercise(which=lambda exercise: True):
    return [
        pytest.param(chapter, exercise, id=f"{chapter.number}-{exercise.name}")
        for chapter in CHAPTERS
        for exercise in filter(which, chapter.exercises)
    ]


each_chapter = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=[str(chapter.number) for chapter in CHAPTERS]
)


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_every_exercise_has_a_solution_and_hints(chapter, exercise):
    answers = chapter.solutions.ANSWERS if exercise.is_value else chapter.definitions
    assert exercise.name in answers
    assert exercise.hints


@pytest.mark.parametrize(("chapter", "name"), each_solution())
def test_the_solution_passes(chapter, name):
    assert check(chapter.variant(name)).passed, check(chapter.variant(name))


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_the_library_s_version_passes(chapter, exercise):
    result = check(exercise.library_version(), exercise.name)
    assert result.passed, result


@pytest.mark.parametrize(
    ("chapter", "exercise"), each_exercise(lambda e: ".solutions." in str(e.fallback))
)
def test_without_the_solutions_the_oracle_stands_in(chapter, exercise, monkeypatch):
    monkeypatch.setitem(sys.modules, chapter.solutions.__name__, None)
    assert exercise.library_version() is exercise.oracle


@pytest.mark.parametrize(
    ("chapter", "name", "old", "new", "code"),
    every("MUTANTS", label=lambda name, old, new, code: f"{name}-{code}"),
)
def test_a_mutant_gets_its_diagnosis(chapter, name, old, new, code):
    result = check(chapter.variant(name, old, new))
    assert (result.status, result.code) == ("fail", code), result


@pytest.mark.parametrize(
    ("chapter", "name", "old", "new"),
    every("ACCEPT", label=lambda name, old, new: name),
)
def test_another_right_answer_passes(chapter, name, old, new):
    result = check(chapter.variant(name, old, new))
    assert result.passed, result


@each_chapter
def test_right_values_pass(chapter):
    for number, answer in chapter.solutions.ANSWERS.items():
        assert check(answer, number).passed, check(answer, number)


@pytest.mark.parametrize(
    ("chapter", "number", "answer", "code"),
    every("WRONG_ANSWERS", label=lambda number, answer, code: f"{number}-{code}"),
)
def test_a_wrong_value_gets_its_diagnosis(chapter, number, answer, code):
    assert check(answer, number).code == code, check(answer, number)


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_every_misconception_is_tried_and_so_are_three_mistakes(chapter, exercise):
    mistakes = [*chapter.solutions.MUTANTS, *chapter.solutions.WRONG_ANSWERS]
    codes = [mistake[-1] for mistake in mistakes if mistake[0] == exercise.name]
    assert {known.code for known in exercise.misconceptions} <= set(codes)
    assert len(codes) >= 3


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise(lambda e: e.needs))
def test_an_error_is_not_carried_forward(chapter, exercise):
    broken = "".join(f"\n{name} = None" for name in exercise.needs)
    answer = define(chapter.text + broken, exercise.name)
    assert check(answer).passed
    function = getattr(answer, "forward", answer)
    assert all(function.__globals__[name] is None for name in exercise.needs)


@each_chapter
def test_the_notebook_asks_for_every_exercise_once(chapter):
    asked = [exercise.name for exercise, _, _ in chapter.stubs()]
    assert sorted(asked) == sorted(exercise.name for exercise in chapter.exercises)


@each_chapter
def test_stubs_are_open_and_have_the_solution_s_signature(chapter):
    for exercise, cell, name in chapter.stubs():
        stub = define(
            chapter.notebook.cells[cell].source, name, vars(chapter.solutions)
        )
        assert check(stub, exercise.name).status == "open"
        if not exercise.is_value:
            solution = getattr(chapter.solutions, name)
            assert signatures(stub) == signatures(solution)
            assert signatures(stub) == signatures(exercise.oracle)


def signatures(answer):
    """Return how an answer is called, and its `forward`, where it has one."""
    forward = getattr(answer, "forward", answer)
    return inspect.signature(answer), inspect.signature(forward)


@each_chapter
def test_unsolved_the_notebook_shows_open_cards_and_no_progress(chapter):
    cells = chapter.notebook.cells
    cards = [text_of(cell) for cell in cells if "check" in tags(cell)]
    assert all(card.startswith("⬜") for card in cards), cards
    assert any(f"0 of {len(cards)} exercises" in text_of(c) for c in code(cells))


def code(cells):
    """Return the code cells."""
    return [cell for cell in cells if cell.cell_type == "code"]
