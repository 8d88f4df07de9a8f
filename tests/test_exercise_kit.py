"""A check as a whole: it runs every step, never raises, and leaves nothing behind."""

import contextlib
import functools
import random
import sys
import warnings

import numpy
import pytest
import torch
from exercise_chapters import define
from made_up import called_with, exercise, judge

import tutorial_exercises as exercises
from tutorial_exercises import Exercise, check
from tutorial_exercises.exercise import EXERCISES
from tutorial_exercises.mistakes import Known, edited, read


def test_steps_stop_at_the_first_that_fails():
    with exercise(oracle=lambda: 1) as made_up:
        made_up.step("one")(lambda probe: probe.require(True, "one", ""))
        made_up.step("two")(lambda probe: probe.require(False, "two", ""))
        made_up.step("three")(lambda probe: probe.require(False, "three", ""))
        result = check(lambda: 1, "answer")
    assert result.steps == [("pass", "one"), ("fail", "two"), ("open", "three")]


def test_every_step_starts_from_its_own_seed():
    drawn = []
    for _ in range(2):
        judge(lambda: 1, lambda probe: drawn.append(torch.rand(1)), oracle=lambda: 1)
        torch.rand(5)
    assert drawn[0] == drawn[1]


def test_earlier_exercises_are_replaced_while_checking_and_put_back():
    source = "def double(x):\n    return 0\ndef answer(x):\n    return double(x)"
    answer = define(source, "answer")
    mine = answer.__globals__["double"]
    options = {"oracle": lambda x: 2 * x, "needs": ["double"]}
    with exercise(number="98.2", name="double", oracle=lambda x: 2 * x):
        assert judge(answer, called_with(4), **options).passed
        assert answer.__globals__["double"] is mine
        assert judge(answer, called_with({}), **options).code == "error"
        assert answer.__globals__["double"] is mine
        del answer.__globals__["double"]
        assert judge(answer, called_with(4), **options).passed
    assert "double" not in answer.__globals__


def test_an_exercise_is_found_by_its_name_or_its_number():
    with exercise(number="98.3", name="triple", oracle=lambda: 3) as made_up:
        made_up.step("is right")(called_with())

        def triple():
            return 3

        assert check(triple).passed
        assert check(triple, "98.3").passed
        assert check(lambda: 3, "triple").passed


def test_the_example_for_authors_works():
    lines = exercises.__doc__.splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    "))
    checks, _, edits = example.partition("# 1.2 share\n")
    [(code, message, edit)] = read(f"# 1.2 share\n{edits}")["share"]
    solution = "def share(amounts):\n    return amounts / amounts.sum()"
    mistaken = define(edited(solution, edit), "share")
    names = {"Exercise": Exercise, "torch": torch}
    try:
        made_up = define(checks.replace("1.2", "98.6"), "share", names)
        made_up.mistakes = [Known(code, message, lambda: mistaken)]
        assert check(lambda amounts: amounts / amounts.sum(), "share").passed
        wrong = check(lambda amounts: amounts / amounts.max(), "share")
        assert (wrong.code, wrong.message) == (code, message)
        assert code == "by-largest"
    finally:
        del EXERCISES["share"]


def test_two_exercises_cannot_share_a_name_or_a_number():
    with exercise(number="98.4", name="shared"):
        for number, name in [("98.4", "other"), ("98.5", "shared")]:
            with pytest.raises(ValueError, match="share a number or a name"):
                Exercise(number, "Again", name=name)
    assert "other" not in EXERCISES


def test_an_exercise_number_must_name_its_chapter():
    with pytest.raises(ValueError, match=r'looks like "3\.2", not \'three\''):
        Exercise("three", "No number")


def test_a_changed_signature_is_told_with_what_is_called():
    result = judge(lambda scores: scores, called_with(torch.ones(2, 3), mask=None))
    assert result.code == "signature"
    assert "with a tensor of shape (2, 3), mask = None" in result.message
    assert "takes (scores)" in result.message


def test_a_forgotten_return_is_named():
    assert judge(lambda: None).code == "no-return"


@pytest.mark.parametrize(
    "change",
    [
        lambda scores, extras: scores.add_(1),
        lambda scores, extras: extras[0].zero_(),
        lambda scores, extras: extras.append(1),
        lambda scores, extras: scores.unsqueeze_(0),
    ],
)
def test_an_input_changed_in_place_is_named(change):
    def answer(scores, extras):
        right = scores.exp()
        change(scores, extras)
        return right

    step = called_with(torch.ones(2), [torch.ones(2)])
    result = judge(answer, step, oracle=lambda scores, extras: scores.exp())
    assert result.code == "in-place"


@pytest.mark.parametrize(
    "change",
    [lambda words, known: words.sort(), lambda words, known: known.add("new")],
)
def test_a_list_of_words_or_a_set_changed_in_place_is_named(change):
    def answer(words, known):
        change(words, known)
        return 1

    step = called_with(["two", "one"], {"one"})
    assert judge(answer, step, oracle=lambda words, known: 1).code == "in-place"
    same = judge(lambda words, known: 1, step, oracle=lambda words, known: 1)
    assert same.passed


def test_nan_in_an_input_is_not_taken_for_a_change():
    holey = torch.tensor([1.0, torch.nan])
    step = called_with(holey)
    assert judge(lambda x: x + 1, step, oracle=lambda x: x + 1).passed


def test_what_the_step_itself_cannot_work_with_is_shown():
    def step(probe):
        outputs, _ = probe()
        probe.shape(outputs, key=1)

    result = judge(lambda: torch.ones(3), step)
    assert result.code == "unusable"
    assert "returned a tensor of shape (3,)" in result.message


class Evil:
    """An object on which everything fails."""

    def __getattr__(self, name):
        raise RuntimeError("no attribute for you")

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    def __repr__(self):
        raise RuntimeError("not printable")

    __hash__ = None


class Unprintable(Exception):
    """An error whose text fails too."""

    def __str__(self):
        raise RuntimeError("no text for you")


def raising(error):
    def answer():
        raise error

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        lambda: None,
        lambda: 3,
        lambda: "text",
        lambda: {},
        lambda: torch.ones(2),
        lambda: lambda x: x,
        lambda: torch.softmax,
        lambda: functools.partial(max, 1),
        lambda: int,
        lambda: type,
        lambda: functools,
        lambda: Evil,
        lambda: Evil(),
        lambda: ...,
    ],
)
@pytest.mark.parametrize("name", [None, "answer", "98.2", "no such name", 3, 1.5])
def test_nothing_at_all_makes_a_check_raise(answer, name):
    answer = answer()
    value = exercise(number="98.2", name=None, oracle=lambda: torch.ones(2))
    with value, exercise(oracle=lambda: 1) as made_up:
        made_up.step("is right")(called_with())
        result = check(answer, name)
        assert repr(result)[0] in ("✅" if name == "98.2" else "") + "❌⬜❔"
        assert result._repr_html_().endswith("</div>")


@pytest.mark.parametrize(
    "error", [SystemExit(1), GeneratorExit(), MemoryError(), Unprintable(), OSError(2)]
)
def test_no_error_in_the_student_s_code_comes_out_of_a_check(error):
    result = judge(raising(error), oracle=lambda: 1)
    assert result.code == "error"
    assert f"raised {type(error).__name__}" in result.message


def test_a_recursion_without_end_is_an_error_like_any_other():
    result = judge(define("def answer():\n    return answer()", "answer"))
    assert "RecursionError" in result.message
    assert "line 2 of the cell: `return answer()`" in result.message


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"a": x}])
def test_an_output_that_cannot_be_compared_is_no_reason_to_raise(wrap):
    assert judge(lambda: wrap(Evil()), oracle=lambda: [1]).status == "fail"


def test_an_interrupt_by_the_user_stays_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        judge(raising(KeyboardInterrupt()), oracle=lambda: 1)


def test_a_fault_in_the_check_itself_is_shown_and_not_raised():
    with exercise(needs=["nowhere"]):
        result = check(lambda: 1, "answer")
    assert (result.status, result.code) == ("unknown", "kit")


def meddling():
    torch.manual_seed(5), random.seed(5), numpy.random.seed(5)
    torch.rand(1), random.random(), numpy.random.rand()
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    return 1


@pytest.mark.parametrize("answer", [meddling, raising(KeyboardInterrupt())])
def test_random_states_gradients_and_dtype_are_as_they_were(answer):
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    expected = torch.rand(1), random.random(), numpy.random.rand()
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    with contextlib.suppress(KeyboardInterrupt):
        judge(answer, oracle=lambda: 1)
    assert (torch.rand(1), random.random(), numpy.random.rand()) == expected
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32


def test_an_answer_is_checked_alike_whatever_the_settings_around_it():
    def step(probe):
        inputs = torch.ones(2, requires_grad=True)
        probe(inputs)
        probe.gradients(inputs)
        probe.require(inputs.dtype == torch.float32, "dtype", "")

    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            assert judge(lambda x: x * 2, step).passed
        with torch.no_grad():
            assert judge(lambda x: x * 2, step).passed
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_check_prints_nothing_and_warns_of_nothing(capsys, recwarn):
    def answer():
        print("hello")
        print("trouble", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return 1

    result = judge(answer, oracle=lambda: 1)
    assert result.passed and "hello" not in repr(result)
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


def test_the_first_lines_printed_are_shown_when_a_check_fails():
    def answer():
        for number in range(100):
            print("line", number)
        return 2

    result = judge(answer, oracle=lambda: 1)
    assert result.printed == [f"line {n}" for n in range(5)] + ["…"]
    assert "Your code printed:\n       line 0\n" in repr(result)
