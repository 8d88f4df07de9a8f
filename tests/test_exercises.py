"""Every chapter's exercises: right answers pass, known mistakes are named.

What fails here is read by authors: one sentence says what to change. Of an exercise's
known mistakes every third is tried here, and of the answers that no check can use one;
full/test_more_exercises.py tries the others.
"""

import builtins
import dis
import inspect
import re

import numpy
import pytest
import torch
from exercise_chapters import Chapter, chapters, define, excursions, tags, text_of

from tutorial_exercises import check
from tutorial_lib.definitions import functions_of

BOOK = [*chapters(), *excursions()]
CHAPTERS = [Chapter(99), *BOOK]
TASKS = [task for chapter in CHAPTERS for task in chapter.exercises]

each_chapter = pytest.mark.parametrize("chapter", BOOK, ids=lambda one: one.number)
each_exercise = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.number)


def each_known(is_right, is_tried=lambda place: True):
    """Parametrize by the answers that authors have foreseen, right or wrong.

    Which of an exercise's are tried may depend on their place, from 0.
    """
    answers = [
        pytest.param(task, known, id=f"{task.number}-{place + 1}")
        for task in TASKS
        for place, known in enumerate(task.known)
        if (known.sentence == "") == is_right and is_tried(place)
    ]
    return pytest.mark.parametrize(("task", "known"), answers)


def is_first_of_three(place):
    """Whether a known mistake is tried here, by its place."""
    return place % 3 == 0


def require(condition, task, message):
    """Fail with a sentence for the author, where the condition does not hold."""
    if not condition:
        pytest.fail(f"{task.heading}: {message}", pytrace=False)


@each_exercise
@pytest.mark.parametrize("kind", ["solution", "oracle"])
def test_solution_and_oracle_pass(task, kind):
    right = task.solution if kind == "solution" else task.definition
    card = check(right() if task.is_value else right, task.number)
    require(
        card.passed, task, f"the check refuses the {kind}. Mend one of them.\n{card}"
    )


@each_exercise
def test_nothing_that_an_exercise_needs_is_missing(task):
    name = task.name
    named = [known for known in task.known if known.sentence]
    told = [*task.hint_list, *[known.sentence for known in named]]
    axes = task.axes.values() if isinstance(task.axes, dict) else [task.axes]
    for is_there, message in [
        (task.definition is not task.solution, f"write an oracle, `@{name}.oracle`."),
        (task.steps or task.is_value, f"write inputs to try, `@{name}.cases`."),
        (task.solution.__doc__, "write a docstring, which says what is asked for."),
        (task.hint_list, f"begin each hint of {name}.hints with `- `, and write one."),
        (len(named) > 1, f"write two edits into {name}.mistakes, not {len(named)}."),
        ("$" not in "".join(told), "write formulas as text: no card sets $…$."),
        ("," not in "".join(axes), "write spaces, not commas, between axes."),
    ]:
        require(is_there, task, message)


@each_known(is_right=False, is_tried=is_first_of_three)
def test_a_known_mistake_is_named(task, known):
    require_that_it_is_named(task, known)


def require_that_it_is_named(task, known):
    """Fail with what to mend, if a mistake passes or gets another's sentence."""
    card = check(known.answer, task.number)
    mistake = f"the mistake {known.sentence!r}"
    message = f"the check passes {mistake}. Add a case in which its result is another."
    require(not card.passed, task, message)
    message = (
        f"another sentence is shown for {mistake}. Add a case in which they differ; "
        "if both edits always give the same, write one sentence above both."
    )
    is_named = known.sentence in card.message.split("\n")
    require(is_named, task, f"{message}\n{card}")
    lost = {
        name for name in undefined_names(known.answer) if name not in known.sentence
    }
    require(not lost, task, f"{mistake} uses {lost}, which nothing defines. Mend it.")


def undefined_names(answer):
    """Return the names that the code of an answer looks up and that nothing defines."""
    lost = set()
    for function in functions_of(answer):
        known = {*vars(builtins), *function.__globals__}
        codes = [function.__code__]
        for code in codes:
            codes += [part for part in code.co_consts if inspect.iscode(part)]
            instructions = dis.get_instructions(code)
            loads = {one.argval for one in instructions if one.opname == "LOAD_GLOBAL"}
            lost.update(loads - known)
    return lost


@each_known(is_right=True)
def test_another_right_answer_passes(task, known):
    card = check(known.answer, task.number)
    place = 1 + [one for one in task.known if not one.sentence].index(known)
    message = f"the check refuses answer {place} below `right:`. Mend one of them."
    require(card.passed, task, f"{message}\n{card}")


def with_one_nan(value):
    """Return a number or a tensor whose last entry is NaN."""
    if not torch.is_tensor(value):
        return float("nan")
    value = value.detach().float().clone()
    value.flatten()[-1:] = float("nan")
    return value


def on_meta(value):
    return value.to("meta") if torch.is_tensor(value) else float("nan")


def as_complex_array(value):
    value = value.detach().numpy() if torch.is_tensor(value) else value
    return numpy.asarray(value) + 1j


# What becomes of each number and each tensor that a right answer returns.
UNUSABLE = {
    "with an imaginary part": lambda value: value + 1j,
    "with an imaginary part in numpy": as_complex_array,
    "with a NaN": with_one_nan,
    "without values": on_meta,
    "as an object": lambda value: object(),
}


def changed(value, change):
    """Return what an answer returns with all its numbers and tensors changed."""
    if isinstance(value, dict):
        return {key: changed(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(changed(part, change) for part in value)
    is_number = torch.is_tensor(value) or isinstance(value, (int, float, numpy.number))
    return change(value) if is_number else value


def returning_changed(task, change):
    """Return the solution, whose output is changed."""
    if task.is_value:
        return changed(task.solution(), change)
    if task.is_class:
        forward = task.solution.forward
        names = {"forward": lambda *inputs: changed(forward(*inputs), change)}
        return type(task.name, (task.solution,), names)
    return lambda *inputs: changed(task.solution(*inputs), change)


KINDS = [*UNUSABLE]


@pytest.mark.parametrize("place", range(len(TASKS)), ids=lambda i: TASKS[i].number)
def test_what_no_check_can_use_is_named_and_never_passes(place):
    require_that_it_is_refused(TASKS[place], KINDS[place % len(KINDS)])


def require_that_it_is_refused(task, kind):
    """Fail with what to mend, if an answer passes that no check can use."""
    answer = returning_changed(task, UNUSABLE[kind])
    card = check(answer, task.number)
    if task.is_value and answer == task.solution():
        return  # of words alone
    require(card.status == "fail", task, f"the check passes an answer {kind}.\n{card}")
    message = f"the check says nothing of an answer {kind}."
    require("could not use" not in card.message, task, f"{message}\n{card}")


@each_exercise
def test_another_precision_passes_or_is_named(task):
    def double(value):
        return value.double() if torch.is_tensor(value) else numpy.float64(value)

    card = check(returning_changed(task, double), task.number)
    message = f"the check cannot use float64.\n{card}"
    is_used = card.status != "unknown" and "could not use" not in card.message
    require(is_used, task, message)


@each_exercise
def test_every_edit_of_the_mistakes_is_read(task):
    edits = re.findall(r"^    (?! |and ).+ →", task.mistakes, re.M)
    message = (
        f"{len(task.known)} of {len(edits)} edits of {task.name}.mistakes are read."
    )
    require(
        len(edits) == len(task.known), task, f"{message} Write sentences above them."
    )


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
    message = f"0 of {len(cards)} exercises passed"
    assert any(message in text_of(cell) for cell in cells if cell.cell_type == "code")
