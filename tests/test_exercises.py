"""Every chapter's exercises: right answers pass, wrong ones get their diagnosis."""

import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from exercise_chapters import chapters, define, tags, text_of

from tutorial_exercises import check
from tutorial_exercises.mistakes import known, read

CHAPTERS = chapters()


def each_exercise(which=lambda exercise: True):
    return [
        pytest.param(chapter, exercise, id=f"{chapter.number}-{exercise.name}")
        for chapter in CHAPTERS
        for exercise in filter(which, chapter.exercises)
    ]


def each_known(which):
    """Return (exercise, entry) parameters for the entries of the mistakes' files."""
    entries, seen = [], Counter()
    for chapter in CHAPTERS:
        for exercise in chapter.exercises:
            for entry in filter(which, known(exercise)):
                label = f"{chapter.number}-{exercise.name}-{entry.code}"
                seen[label] += 1
                name = f"{label}{seen[label]}"
                entries.append(pytest.param(exercise, entry, id=name))
    return entries


each_chapter = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=[str(chapter.number) for chapter in CHAPTERS]
)


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_every_exercise_has_a_solution_that_passes_and_hints(chapter, exercise):
    if exercise.is_value:
        result = check(chapter.answers[exercise.name], exercise.name)
    else:
        result = check(chapter.solution(exercise.name))
    assert result.passed, result
    assert exercise.hints


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_the_library_s_version_passes(chapter, exercise):
    result = check(exercise.library_version(), exercise.name)
    assert result.passed, result


@pytest.mark.parametrize(
    ("chapter", "exercise"), each_exercise(lambda e: ".solutions:" in str(e.fallback))
)
def test_without_the_solutions_the_oracle_stands_in(chapter, exercise, monkeypatch):
    monkeypatch.setitem(sys.modules, chapter.solutions.__name__, None)
    assert exercise.library_version() is exercise.oracle


@pytest.mark.parametrize(
    ("exercise", "mistake"), each_known(lambda entry: entry.code != "right")
)
def test_a_known_mistake_gets_its_diagnosis(exercise, mistake):
    result = check(mistake.answer, exercise.name)
    assert (result.status, result.code) == ("fail", mistake.code), result
    assert mistake.message in result.message


@pytest.mark.parametrize(
    ("exercise", "entry"), each_known(lambda entry: entry.code == "right")
)
def test_another_right_answer_passes(exercise, entry):
    result = check(entry.answer, exercise.name)
    assert result.passed, result


@pytest.mark.parametrize(("chapter", "exercise"), each_exercise())
def test_at_least_three_mistakes_are_known_of_an_exercise(chapter, exercise):
    assert sum(entry.code != "right" for entry in known(exercise)) >= 3


@each_chapter
def test_every_entry_of_the_mistakes_is_read_and_belongs_to_an_exercise(chapter):
    path = Path(chapter.solutions.__file__).with_name("mistakes.diff")
    text = path.read_text(encoding="utf-8")
    titles = [{one.number: None, one.name: None} for one in chapter.exercises]
    headings = [line[2:] for line in text.splitlines() if line.startswith("# ")]
    assert sorted(headings) == sorted(map(" ".join, titles))
    entries = read(text)
    codes = {code for found in entries.values() for code, _, _ in found}
    assert all(re.fullmatch(r"[\w -]+", code) for code in codes), codes


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
