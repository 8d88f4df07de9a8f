"""The kit: what a card says of an answer, whatever the answer does."""

import contextlib
import functools
import random
import re
import signal
import sys
import time
import warnings

import numpy
import pytest
import torch
from exercise_chapters import Chapter, define
from made_up import exercise, judge
from torch import nn

import tutorial_exercises
from tutorial_exercises import Exercise, check, hint, progress, solution, use
from tutorial_exercises.answer import TimeUp, time_limit
from tutorial_exercises.check import CHECKED
from tutorial_exercises.exercise import EXERCISES

assert Chapter(99).exercises


def softmax_over(axis):
    return lambda scores, mask=None: scores.softmax(axis)


# --- What is looked at ------------------------------------------------------------


def test_steps_stop_at_the_first_that_finds_something():
    with exercise(lambda x: x) as task:
        task.cases(lambda: [("one", 1), ("two", 2), ("two", 3), ("three", 4)])
        card = check(lambda x: x if x < 3 else 0, "98.1")
    assert card.rows == [("pass", "one"), ("fail", "two"), ("open", "three")]
    assert card.message == "0 is not right: expected 3."


def test_the_inputs_of_cases_are_the_same_each_time():
    drawn = []
    with exercise(lambda x: x) as task:
        task.cases(lambda: [("drawn", torch.rand(1)), ("again", torch.rand(1))])
        for _ in range(2):
            check(lambda x: drawn.append(x.item()) or x, "98.1")
            torch.rand(5)
    assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1]


def test_a_demand_says_what_is_missing_and_nothing_if_it_is_met():
    def demand(answer):
        if answer(3) < 3:
            return "It must grow."

    assert judge(lambda x: x, demand=demand).passed
    assert judge(lambda x: -x, demand=demand).message == "It must grow."


def test_a_mistake_with_the_same_output_or_error_is_named_first():
    mistakes = [("You add.", lambda x: x + 1), ("You divide.", lambda x: 1 / (x - 2))]
    options = {"right": lambda x: 2 * x, "mistakes": mistakes}
    assert judge(lambda x: 1 + x, 2, **options).message == "You add."
    assert judge(lambda x: 5 / (x - 2), 2, **options).message == "You divide."
    assert "raised NameError" in judge(lambda x: y, 2, **options).message  # noqa: F821
    assert judge(lambda x: 7, 2, **options).message == "7 is not right: expected 4."


def test_a_right_output_is_no_known_mistake():
    mistakes = [("You are right.", lambda x: x)]
    card = judge(lambda x: x, demand=lambda _: _(1) and "No.", mistakes=mistakes)
    assert card.message == "No."


def test_a_module_gets_the_oracle_s_weights_and_its_parameters_are_compared():
    class Scale(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(size))

        def forward(self, x):
            return self.scale * x

    class Wide(Scale):
        def __init__(self, size):
            super().__init__(size + 1)
            self.more = nn.Linear(1, 1)

    inputs = (3,), torch.ones(3)
    with exercise(Scale) as task:
        task.cases(lambda: [("is right", *inputs)])
        assert check(type("Mine", (Scale,), {}), "98.1").passed
        said = check(Wide, "98.1").message
        assert "`scale` is (4,), expected (3,); `more.weight` is (1, 1)" in said
        said = check(type("Never", (), {"__init__": lambda self, n: None}), "98.1")
        assert "Expected a subclass of nn.Module" in said.message
        said = check(lambda size: Scale(size), "98.1").message
        assert said == "This exercise asks for a class Scale."


def test_gradients_must_arrive_and_be_finite():
    def demand(answer):
        x = torch.zeros(2, requires_grad=True)
        answer(x)
        answer.gradients(x)

    def overwritten(x):
        y = x.exp()
        y[0] = 1
        return y

    assert judge(lambda x: x.exp(), demand=demand).passed
    for cut in (lambda x: x.detach(), lambda x: torch.tensor(x.tolist())):
        assert "No gradient reaches" in judge(cut, demand=demand).message
    assert "infinite or NaN" in judge(lambda x: x.sqrt(), demand=demand).message
    assert "You overwrite numbers" in judge(overwritten, demand=demand).message


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (torch.zeros(2, 3), "Expected shape (query=3, key=2), got (2, 3). The sizes"),
        (torch.zeros(3), "Expected shape (query=3, key=2), got (3,). One axis is miss"),
        (torch.zeros(3, 2, 1), "got (3, 2, 1). There is one axis too many"),
        (torch.zeros(3, 2).bool(), "Expected dtype torch.float32, got torch.bool."),
        (torch.full((3, 2), torch.nan), "6 of 6 entries are NaN"),
        (
            torch.eye(3)[:, :2],
            "2 of 6 values differ. The first is at query 0, key 0: y",
        ),
        ([[0, 0]] * 3, "Expected a torch.Tensor, got [[0, 0], [0, 0], [0, 0]]."),
        (None, "Your code returned None."),
    ],
)
def test_a_wrong_tensor_is_told_where_it_differs(got, said):
    right = torch.zeros(3, 2)
    card = judge(lambda x: got, 1, right=lambda x: right, axes="query key")
    assert said in card.message


def test_parts_are_named():
    axes = {"outputs": "token", "weights": "query key"}
    right = torch.ones(2), torch.ones(2, 3)
    options = {"right": lambda x: right, "axes": axes}
    card = judge(lambda x: right[0], 1, **options)
    assert "Expected `return outputs, weights`, got a tensor of sh" in card.message
    card = judge(lambda x: (right[0], right[1].T), 1, **options)
    assert card.message.startswith("weights: Expected shape (query=2, key=3)")


@pytest.mark.parametrize(
    ("got", "passes"),
    [
        *[(2, True), (2.0, True), (torch.tensor(2), True), (3, False), (True, False)],
        *[("2", False), ((2, 1), False), (torch.ones(2), False), (torch.nan, False)],
    ],
)
def test_numbers_are_compared_whatever_their_type(got, passes):
    with exercise(lambda: 2):
        card = check(got, "98.1")
    assert card.passed == passes
    assert "expected 2" not in card.message  # it is asked for


def test_each_wrong_entry_of_a_dictionary_is_told():
    right = {"rank": 8, "count": 10, "name": "a"}
    mistakes = [("The rank is less.", {**right, "rank": 64})]
    mistakes += [("A head is missing.", {**right, "count": 9})]
    with exercise(lambda: right, mistakes=mistakes):
        said = check({"rank": 64, "count": 9, "name": "A"}, "98.1").message
        assert said == "The rank is less.\nA head is missing."
        said = check({"rank": 64, "count": 5, "name": "a"}, "98.1").message
        assert said == "The rank is less.\nEntry 'count' is not right."
        assert "'count' is not right" in check({"rank": 8}, "98.1").message


# --- Whatever an answer does ------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda scores, words: scores.add_(1),
        lambda scores, words: scores.unsqueeze_(0),
        lambda scores, words: words.append(1),
        lambda scores, words: words[0].zero_(),
    ],
)
def test_an_input_changed_in_place_is_named(change):
    def answer(scores, words):
        change(scores, words)
        return 1

    inputs = torch.tensor([1.0, torch.nan]), [torch.ones(2), "word", {"set"}]
    right = {"right": lambda scores, words: 1}
    assert "changed one of its inputs" in judge(answer, *inputs, **right).message
    assert judge(lambda scores, words: 1, *inputs, **right).passed


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
    """An error whose text fails, too."""

    def __str__(self):
        raise RuntimeError("no text for you")


ODD = [None, 3, "text", {}, torch.ones(2), torch.softmax, functools.partial(max, 1)]
ODD += [int, type, functools, Evil, Evil(), ..., [Evil()], lambda x: Evil()]


@pytest.mark.parametrize("place", range(len(ODD)))
@pytest.mark.parametrize("name", [None, "98.1", "98.2", "no such name", 3, 1.5])
def test_nothing_at_all_makes_a_check_raise(place, name):
    with exercise(lambda: torch.ones(2), number="98.2"), exercise(same, number="98.1"):
        card = check(ODD[place], name)
        assert repr(card)[0] in ("✅" if name == "98.2" else "") + "❌⬜❔"
        assert card._repr_html_().endswith("</div>")


def same(x):
    return x


def raising(error):
    def answer(x):
        raise error

    return answer


@pytest.mark.parametrize(
    "error", [SystemExit(1), GeneratorExit(), MemoryError(), Unprintable(), OSError(2)]
)
def test_no_error_in_the_student_s_code_comes_out_of_a_check(error):
    assert f"raised {type(error).__name__}" in judge(raising(error), 1).message


def test_the_student_s_own_line_and_the_inputs_are_shown():
    answer = define("def answer(x):\n    return answer(x)", "answer")
    said = judge(answer, torch.ones(2, 3)).message
    assert "RecursionError" in said
    assert "line 2 of the cell: `return answer(x)`" in said
    assert "called with a tensor of shape (2, 3)" in said


def test_an_interrupt_by_the_user_stays_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        judge(raising(KeyboardInterrupt()), 1)


def test_a_fault_in_the_check_itself_is_shown_and_not_raised():
    with exercise(lambda x: x) as task:
        task.cases(lambda: 1 / 0)
        card = check(lambda x: x, "98.1")
    assert card.status == "unknown" and "ZeroDivisionError" in card.message


def swallowing(x):
    while True:
        try:
            time.sleep(0.01)
        except:  # noqa: E722
            x += 1


@pytest.mark.parametrize("answer", [lambda x: time.sleep(60), swallowing])
def test_what_never_ends_is_stopped(answer):
    card = judge(answer, 1, seconds=0.3)
    assert "was still running after 0.3 s" in card.message
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_ends_in_time_is_not_stopped_and_an_import_does_not_count():
    frozen = compile("import time\nwhile time.monotonic() < end: pass", *FROZEN)
    end = time.monotonic() + 0.3
    with time_limit(0.1):
        exec(frozen, {"end": end})
    with pytest.raises(TimeUp), time_limit(0.05):
        time.sleep(5)
    time.sleep(0.2)


FROZEN = "<frozen importlib._bootstrap>", "exec"


def meddling(x):
    torch.manual_seed(5), random.seed(5), numpy.random.seed(5)
    torch.rand(1), random.random(), numpy.random.rand()
    torch.set_grad_enabled(False)
    return x


@pytest.mark.parametrize("answer", [meddling, raising(KeyboardInterrupt())])
def test_random_states_and_gradients_are_as_they_were(answer):
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    expected = torch.rand(1), random.random(), numpy.random.rand()
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    with contextlib.suppress(KeyboardInterrupt):
        judge(answer, 1)
    assert (torch.rand(1), random.random(), numpy.random.rand()) == expected
    assert torch.is_grad_enabled()


def test_what_an_answer_prints_stands_in_the_card_alone_and_ends(capsys, recwarn):
    def answer(x):
        for number in range(10_000):
            print("line", number)
        print("trouble", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return 2

    card = judge(answer, 1)
    assert card.printed == [f"line {number}" for number in range(5)]
    assert "Your code printed:\n" in repr(card)
    assert capsys.readouterr() == ("", "") and not recwarn.list
    assert "line" not in repr(judge(answer, 2))


# --- Cards ------------------------------------------------------------------------


def test_an_open_stub_is_told_its_lines():
    source = "def answer(x, y=...):\n    z = x[..., 0]\n    w = ...\n    return ..."
    assert judge(define(source, "answer"), 1).message == (
        "Still to write: lines 3, 4 of the cell."
    )
    with exercise(lambda: 1):
        for blank in (..., {"a": 1, "b": ...}, [...]):
            assert check(blank, "98.1").message == "Replace the `...` by your answer."


def test_the_html_says_everything_the_text_does_and_nothing_becomes_html():
    card = judge(raising(ValueError("<b>`x`</b>")), 1, hints=["Use `y`."])
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", card._repr_html_(), flags=re.S)
    for words in ("Not right yet", "is right", "ValueError: &lt;b&gt;", "Hint 1"):
        assert words in text
    assert "<code>x</code>" in card._repr_html_() and "<b>" not in card._repr_html_()
    assert 'aria-label="Not right yet"' in card._repr_html_()
    assert "Stuck? hint(" in repr(card)


def test_hints_come_one_by_one():
    with exercise(lambda x: x, hints=["One.", "Two."]):
        shown = [hint("98.1").message for _ in range(3)]
    assert shown == ["1. One.", "1. One.\n2. Two.", "1. One.\n2. Two."]


def test_solutions_are_printed_when_asked_and_values_come_with_their_reason():
    assert str(solution("99.1")) == (
        "# The variances of 64 independent products add up to 64, whose root is 8.\n8.0"
    )
    assert str(solution("example_softmax")).startswith("def example_softmax(scores, m")
    assert "torch.softmax" not in repr(solution("99.2"))
    assert "<details>" in solution("ExampleScores")._repr_html_()


def test_progress_counts_what_passes():
    CHECKED.clear()
    assert "0 of 4 exercises passed" in repr(progress(99))
    check(8.0, "99.1"), check(softmax_over(0), "99.2")
    shown = repr(progress(99))
    assert "✓ Exercise 99.1" in shown and "✗ Exercise 99.2" in shown
    assert "1 of 4 exercises passed" in shown
    assert "1 of 2 exercises passed" in repr(progress())


def test_the_book_s_answer_is_used_until_one_s_own_passes(capsys):
    right, wrong = softmax_over(-1), softmax_over(0)
    assert use(wrong, "example_softmax") is EXERCISES["99.2"].solution
    said = "Using the library's example_softmax until yours passes its check.\n"
    assert capsys.readouterr().out == said
    with exercise(lambda x: x) as task:
        task.cases(lambda: [("is right", 1)])
        assert use(answer := lambda x: x, "98.1") is answer
    assert right(torch.ones(2)).sum() == 1 and capsys.readouterr().out == ""
    assert use(3, "no such") == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((nn.Linear(1, 1),), "Say which exercise it answers"),
        ((3,), "Say which exercise it answers"),
        ((lambda x: x,), "Say which exercise it answers"),
        (("example_softmax",), "Check the answer itself: `check(example_softmax)`"),
        ((3, "exmaple_softmax"), "Did you mean `example_softmax`?"),
        ((EXERCISES["99.4"](1, 1, 1),), "`check(ExampleScores)`"),
    ],
)
def test_what_is_no_exercise_is_met_with_advice(arguments, words):
    assert words in check(*arguments).message
    assert check(*arguments).status == "unknown"


# --- For authors ------------------------------------------------------------------


def test_the_example_for_authors_works():
    lines = tutorial_exercises.__doc__.split("expected::\n")[1].split(
        "\nAn exercise n"
    )[0]
    source = "\n".join(line[4:] for line in lines.split("\n")).replace("1.2", "98.6")
    try:
        task = define(source, "normalized")
        assert len(task.known) == 4 and len(task.hint_list) == 2
        for known in task.known:
            said = check(known.answer, "98.6").message
            assert said == known.sentence
        assert check(task.solution, "98.6").passed
        task.__dict__.pop("known")
        task.mistakes = "A sentence.\n    amounts -> 1\n"
        assert "differ" in check(lambda amounts: 2 * amounts, "98.6").message
        with pytest.raises(ValueError, match="an edit is `old → new`"):
            len(task.known)
    finally:
        del EXERCISES["normalized"], EXERCISES["98.6"]


def test_two_exercises_cannot_share_a_name_or_a_number():
    for number, name in [("99.1", "other"), ("98.5", "example_softmax")]:
        with pytest.raises(ValueError, match="there is another"):
            Exercise(number, "Again")(type(name, (), {}))


def test_an_edit_must_fit_the_solution():
    task = EXERCISES["example_softmax"]
    for old in ("nowhere", "scores"):
        with pytest.raises(ValueError, match="occurs once in the solution"):
            task._edited(f"{old} → new")
