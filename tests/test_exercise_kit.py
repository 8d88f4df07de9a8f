"""The kit: what a card says of an answer, whatever the answer does."""

import contextlib
import copy
import functools
import importlib.util
import os
import random
import re
import signal
import sys
import time
import types
import warnings
from fractions import Fraction
from pathlib import Path

import numpy
import pytest
import torch
from einops import rearrange
from exercise_chapters import Chapter, define
from made_up import exercise, judge
from torch import nn

import tutorial_exercises
from tutorial_exercises import check, hint, progress, solution, use
from tutorial_exercises.check import CHECKED
from tutorial_exercises.exercise import EXERCISES
from tutorial_exercises.sandbox import TimeUp, call_within
from tutorial_exercises.verdict import false_alarms, first_unseen, verdict

assert Chapter(99).exercises
CHAPTER_4 = importlib.util.find_spec("tutorial_exercises.chapter_04").origin
IN_4 = re.findall(r'@Exercise\("(4\.\d+)"', Path(CHAPTER_4).read_text("utf-8"))


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
        message = check(Wide, "98.1").message
        assert "`scale` is a tensor of shape (4,), expected a tensor of sha" in message
        assert "; `more.bias` is a tensor of shape (1,), expected None." in message
        card = check(type("Never", (), {"__init__": lambda self, n: None}), "98.1")
        assert "Expected a subclass of nn.Module" in card.message
        message = check(lambda size: Scale(size), "98.1").message
        assert message == "This exercise asks for a class Scale."


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
    ("got", "message"),
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
        (torch.zeros(3, 2) + 1j, "Expected real numbers, got a tensor of shape (3, 2)"),
        ((torch.zeros(3, 2) + 1j, 0), "Expected real numbers, got a tensor of shape"),
        (torch.zeros(3, 2).to_sparse(), "dense tensor, got a tensor of shape (3, 2),"),
    ],
)
def test_a_wrong_tensor_is_told_where_it_differs(got, message):
    right = torch.zeros(3, 2)
    card = judge(lambda x: got, 1, right=lambda x: right, axes="query key")
    assert message in card.message


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
        (Fraction(7, 3), False),
    ],
)
def test_numbers_are_compared_whatever_their_type(got, passes):
    with exercise(lambda: 2):
        card = check(got, "98.1")
    assert card.passed == passes
    assert "expected 2" not in card.message  # it is asked for
    assert passes or "could not use" not in card.message


def test_a_comma_in_a_number_is_named():
    with exercise(lambda: 2.2):
        message = check((2, 2), "98.1").message
    assert message.endswith("(2, 2). Python reads 2,2 as two numbers: write 2.2.")
    with exercise(lambda: 16640):
        assert "as two numbers: write no comma." in check((16, 640), "98.1").message
        assert "comma" not in check((16.0, 640), "98.1").message
    assert "comma" not in judge(lambda x: (2, 2), 2).message  # nobody typed it


def test_each_wrong_entry_of_a_dictionary_has_its_mistake_named():
    right = {"rank": 8, "count": 10, "rows": [1, 2]}
    mistakes = [("A head is missing.", {**right, "count": 9})]
    mistakes += [("The rank is less.", {**right, "rank": 64})]
    mistakes += [("The rank is less.", {**right, "rank": 32})]
    mistakes += [("The rank is far too large.", {**right, "rank": 64})]

    def message(**entries):
        return check(right | entries, "98.1").message

    with exercise(lambda: right, mistakes=mistakes):
        assert check({**right, "rows": (1, 2)}, "98.1").passed
        assert message(rank=64, count=9) == "The rank is less.\nA head is missing."
        assert message(rank=32, count=5) == "The rank is less."
        assert message(count=5, rank=3) == "Entry 'rank': 3 is not right."
        assert message(rows=3) == "Entry 'rows': Expected a list, got 3."
        assert (
            message(rows=[1]) == "Entry 'rows': 1 is not the right number of entries."
        )
        assert message(rank="8") == "Entry 'rank': Expected a number, got '8'."
        expected = "Expected the entries ['rank', 'count', 'rows'], got"
        assert message(more=1) == f"{expected} ['rank', 'count', 'rows', 'more']."
        assert check({"rank": 64}, "98.1").message == f"{expected} ['rank']."
        assert check(64, "98.1").message == f"{expected} 64."


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
    "error", [GeneratorExit(), MemoryError(), Unprintable(), OSError(2)]
)
def test_no_error_in_the_student_s_code_comes_out_of_a_check(error):
    assert f"raised {type(error).__name__}" in judge(raising(error), 1).message


def test_the_student_s_own_line_and_the_inputs_are_shown():
    source = "def answer(x, y=None):\n    return answer(x)"
    card = judge(
        define(source, "answer"), torch.ones(2, 3), 4, right=lambda scores, size: 1
    )
    assert "RecursionError" in card.message
    assert "line 2 of the cell: `return answer(x)`" in card.message
    called = "called with scores = a tensor of shape (2, 3), size = 4."
    assert card.message.endswith(called)


def test_a_slip_that_takes_the_notebook_s_variable_is_named():
    source = (
        "def boxcar_weights(queries, keys, bandwidth):\n    return stops / bandwidth"
    )
    names = {"stops": torch.ones(2, 3)}
    answer = define(source, "boxcar_weights", names)
    with exercise(EXERCISES["2.1"].definition) as task:
        task.solution = EXERCISES["2.1"].solution
        task.cases(lambda: [("is right", torch.ones(2), torch.ones(4), 1.0)])
        message = check(answer, "98.1").message
        assert message == (
            "Expected shape (2, 4), got (2, 3).\n"
            "Your code does not use its arguments `queries`, `keys`."
        )
        answer = define(source.replace("stops", "stops[9]"), "boxcar_weights", names)
        assert check(answer, "98.1").message.endswith("`queries`, `keys`.")
        source = source.replace("stops", "(queries.sum() + keys)")
        answer = define(source, "boxcar_weights")
        assert "does not use" not in check(answer, "98.1").message


def test_the_inputs_of_a_module_are_named_as_in_forward():
    def forward(self, queries, keys):
        return queries @ keys

    with exercise(EXERCISES["99.4"].definition) as task:
        task.cases(
            lambda: [("is right", (3, 3, 2), torch.ones(2, 3), torch.ones(4, 3))]
        )
        message = check(
            type("Mine", (task.solution,), {"forward": forward}), "98.1"
        ).message
    assert "with queries = a tensor of shape (2, 3), keys = a tensor of sh" in message


@pytest.mark.parametrize("leave", [sys.exit, exit, lambda: raising(SystemExit)(1)])
def test_what_would_end_python_or_asks_the_keyboard_is_told(leave):
    card = judge(define("def answer(x):\n    leave()", "answer", {"leave": leave}), 1)
    assert card.message.startswith("Your code ends Python ")
    assert card.message.endswith("line 2 of the cell: `leave()`")
    message = judge(define("def answer(x):\n    return input()", "answer"), 1).message
    assert message.startswith("Your code calls `input()`, ")
    assert message.endswith("line 2 of the cell: `return input()`")


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
    call_within(0.1, exec, frozen, {"end": end})
    with pytest.raises(TimeUp):
        call_within(0.05, lambda: time.sleep(5))
    time.sleep(0.2)


FROZEN = "<frozen importlib._bootstrap>", "exec"


def meddling(x):
    torch.manual_seed(5), random.seed(5), numpy.random.seed(5)
    torch.rand(1), random.random(), numpy.random.rand()
    torch.set_grad_enabled(False), torch.set_default_dtype(torch.float64)
    os.chdir("/")
    return x


@pytest.mark.parametrize("answer", [meddling, raising(KeyboardInterrupt())])
def test_random_states_modes_and_the_folder_are_as_they_were(answer):
    folder = os.getcwd()
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    expected = torch.rand(1), random.random(), numpy.random.rand()
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    with contextlib.suppress(KeyboardInterrupt):
        judge(answer, 1)
    assert (torch.rand(1), random.random(), numpy.random.rand()) == expected
    assert torch.is_grad_enabled()
    assert (os.getcwd(), torch.get_default_dtype()) == (folder, torch.float32)


def test_what_cells_before_have_set_does_not_count(request):
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    torch.set_default_dtype(torch.float64)
    with torch.autocast("cpu"):
        card = judge(lambda x: torch.eye(2) @ torch.eye(2), 1, demand=is_of_float32)
    assert card.passed
    assert torch.get_default_dtype() == torch.float64


def is_of_float32(answer):
    return "" if answer(torch.ones(1)).dtype == torch.float32 else "It is of others."


def test_a_float_number_of_heads_breaks_neither_the_whole_one_nor_its_mistakes():
    def split(heads):
        return lambda x: rearrange(x, "(head d_k) -> head d_k", head=heads)

    mistakes = [("You flip them.", lambda x: split(2)(x.flip(0)))]
    options = {"right": split(2), "mistakes": mistakes}
    for _ in range(2):
        message = judge(split(2.0), torch.rand(4), **options).message
        assert message.startswith("Your code raised TypeError: reshape()")
        assert judge(split(2), torch.rand(4), **options).passed
    judge(split(2.0), torch.rand(4), **options)
    assert split(2)(torch.rand(4)).shape == (2, 2)


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
        blanks = [..., {"a": 1, "b": ...}, [...]]
        for blank in blanks:
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
    assert "1 of 4 exercises passed" in repr(progress())


def test_progress_lists_every_exercise_of_the_chapters_that_were_begun():
    CHECKED.clear()
    assert progress().rows == []
    check(softmax_over(0), "99.2")
    assert progress().rows == progress(99).rows
    assert "0 of 4 exercises passed" in repr(progress())
    CHECKED.clear()


def test_the_book_s_answer_is_used_until_one_s_own_passes(capsys):
    right, wrong = softmax_over(-1), softmax_over(0)
    assert use(wrong, "example_softmax") is EXERCISES["99.2"].solution
    message = "Using the library's example_softmax until yours passes its check.\n"
    assert capsys.readouterr().out == message
    with exercise(lambda x: x) as task:
        task.cases(lambda: [("is right", 1)])
        calls = []

        def answer(x):
            calls.append(x)
            return x

        check(answer, "98.1")
        assert use(answer, "98.1") is answer and calls == [1]
    assert right(torch.ones(2)).sum() == 1 and capsys.readouterr().out == ""
    assert use(3, "no such") == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((nn.Linear(1, 1),), "Say which exercise it is"),
        ((3,), "Say which exercise it is"),
        ((lambda x: x,), "Say which exercise it is"),
        (("exmaple_softmax",), "Did you mean `example_softmax`?"),
        ((3, "exmaple_softmax"), "Did you mean `example_softmax`?"),
        (("99.1",), 'Check your variable itself: `check(answer, "99.1")`.'),
        ((99.1,), 'Check your variable itself: `check(answer, "99.1")`.'),
        ((4.9,), f'That chapter has {", ".join(IN_4)}: `check(answer, "4.1")`.'),
    ],
)
def test_what_is_no_exercise_is_met_with_advice(arguments, words):
    assert words in check(*arguments).message
    assert check(*arguments).status == "unknown"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("4.9",), f'That chapter has {", ".join(IN_4)}: `NAME("4.1")`.'),
        ((3,), 'Say which exercise it is: `NAME("1.2")`.'),
        ((), 'Say which exercise it is: `NAME("1.2")`.'),
    ],
)
@pytest.mark.parametrize("ask", [hint, solution])
def test_hints_and_solutions_of_no_exercise_have_advice_of_their_own(
    ask, arguments, words
):
    assert ask(*arguments).message == words.replace("NAME", ask.__name__)


def test_a_check_of_nothing_says_what_is_missing():
    assert 'Say which exercise it is: `check(answer, "1.2")`.' in repr(check())


@pytest.mark.parametrize("chapter", [4, "4", "04"])
def test_the_progress_of_a_chapter_is_asked_for_by_its_number(chapter):
    assert len(progress(chapter).rows) == len(IN_4) >= 4


def test_an_excursion_s_exercises_are_asked_for_by_its_letter():
    headings = [heading for _, heading in progress("A").rows]
    assert headings[0] == "Exercise A.1 · Rollout" and len(headings) == 3
    assert "A.1, A.2, A.3" in check("A.9").message
    assert hint("a.1").heading.endswith("Exercise A.1 · Rollout")
    assert "chapters 1 to " in progress("B").message


def test_an_instance_is_told_from_its_class():
    message = check(EXERCISES["99.4"](1, 1, 1)).message
    assert message == "This exercise asks for a class ExampleScores."


# --- Answers that a notebook holds --------------------------------------------------

LAST, FIRST = "scores.softmax(-1)", "scores.softmax(0)"


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs source as a notebook's cells do; return the names."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    return lambda source: exec(source, vars(main)) or vars(main)


@pytest.mark.parametrize("key", ["99.2", "example_softmax"])
def test_a_number_or_a_name_is_enough(run, key):
    run(f"def example_softmax(scores, mask=None):\n    return {FIRST}")
    card = check(key)
    assert card.status == "fail" and "values differ" in card.message
    assert card.note == "This is about the notebook's `example_softmax`."


def test_a_lambda_is_known_by_its_variable(run, capsys):
    names = run(f"example_softmax = lambda scores, mask=None: {FIRST}")
    for card in (check("99.2"), check(names["example_softmax"])):
        assert card.heading == "Exercise 99.2 · Masked softmax"
        assert "values differ" in card.message
    use(names["example_softmax"])
    assert "until yours passes" in capsys.readouterr().out
    assert check(lambda scores: 1).status == "unknown"


OTHERS = f"""
from tutorial_lib.attention import masked_softmax as theirs  # is not the student's
def the_book_s(scores, mask=None): return {LAST}
def example_attention(scores, mask=None): ...  # belongs to another exercise
def with_other_arguments(scores): ...
class Mine:
    def __init__(self, scores, mask=None): ...
class Trouble(Exception): ...
def _(scores, mask=None): return 1
"""


def test_a_renamed_answer_is_known_by_its_arguments(run):
    run(f"{OTHERS}def mine(scores, mask=None): return {FIRST}")
    card = check("99.2")
    assert "values differ" in card.message
    assert card.note.startswith(
        "There is no `example_softmax`, so this is about `mine`"
    )
    assert card.note.endswith("if not, run the cell of `example_softmax`.")
    run("class Mine:\n    def __init__(self, d_query, d_key, d_hidden): ...")
    assert "is about `Mine`" in check("99.4").note


def test_a_missing_answer_is_told_what_to_do(run):
    run(OTHERS.replace("def the_book_s", "the_book_s = 3\ndef _"))
    card = check("99.2")
    assert card.status == "unknown"
    assert card.message == (
        "There is no `example_softmax(scores, mask=None)` in this notebook: run the "
        "cell that defines it, and mend it first if it stops with an error; or define "
        "it again if you renamed or deleted it."
    )


# --- For authors ------------------------------------------------------------------


def test_the_example_for_authors_works():
    _, lines = tutorial_exercises.__doc__.split("options::\n")
    lines, _ = lines.split("\n**Cases", 1)
    source = "\n".join(line[4:] for line in lines.split("\n")).replace("1.2", "98.6")
    try:
        task = define(source, "normalized")
        assert len(task.known) == 4 and len(task.hint_list) == 2
        for known in task.known:
            message = check(known.answer, "98.6").message
            assert message == known.sentence
        assert check(task.solution, "98.6").passed
    finally:
        del EXERCISES["normalized"], EXERCISES["98.6"]


@pytest.mark.parametrize(
    ("mistakes", "fault"),
    [
        (
            "No.\n    ~mask -> mask\n",
            "`~mask -> mask` cannot be made: it has no arrow.",
        ),
        (
            "No.\n    nowhere → mask\n",
            "`nowhere` is in the solution 0 times, not once.",
        ),
        (
            "No.\n    ~mask → m\n    and , -t → t\n    and is → as\n",
            "`is` is in the sol",
        ),
        ("No.\n    ~mask → mask)\n", "`~mask → mask)` cannot be made: unmatched ')'"),
        ("No.\n    ~mask → (\n      mask)\n", "text are to be indented by eight."),
        ("No.\n  ~mask → mask\n", "below 'No.' an edit must follow, indented by four."),
        ("No.\n    ~mask → mask\nNo, no.\n", "below 'No, no.' an edit must follow"),
        ("No.\n~mask → m\nOr.\n    ~mask → mask\n", "Or.' an edit must follow"),
    ],
)
def test_an_author_is_told_which_edit_fails_and_why(mistakes, fault):
    task = copy.copy(EXERCISES["example_softmax"])
    task.__dict__.pop("known", None)
    task.mistakes = mistakes
    where = "Exercise 99.2 · Masked softmax: in example_softmax.mistakes, "
    with pytest.raises(ValueError, match=f"^{where}.*{re.escape(fault)}"):
        len(task.known)


@pytest.mark.parametrize(
    "cases",
    [
        ["no inputs"],
        [torch.ones(2)],
        [(torch.ones(2), (1, 1))],
        [("no sizes", 1)],
        None,
    ],
)
def test_an_author_is_told_how_a_case_is_written(cases):
    with exercise(type("Made", (EXERCISES["99.4"].solution,), {})) as task:
        task.cases(lambda: cases)
        message = check(task.solution, "98.1").message
    assert 'Made up: a case is `yield "label", (sizes), input, …`, not ' in message


def test_a_student_is_not_blamed_for_what_the_author_wrote():
    def absent(*inputs):
        raise NameError("name 'absent' is not defined")

    mistakes = [("No.", lambda x: x)]
    for demand, message in [
        (None, "the oracle raises NameError: name 'absent' is not"),
        (absent, "a demand raises an error before it calls the answer: NameError"),
    ]:
        with exercise(lambda x: x, mistakes=mistakes) as task:
            task.oracle(absent)
            task.cases(lambda: [("is right", torch.ones(1))])
            if demand:
                task.steps = [("is right", demand)]
            card = check(lambda x: x, "98.1")
        assert card.status == "unknown"
        assert f"Exercise 98.1 · Made up: {message}" in card.message


# --- Answers that are tests, modules and indices ------------------------------------


@pytest.mark.parametrize(
    ("returned", "passes"),
    [
        *[(True, True), (numpy.True_, True), (torch.tensor(True), True)],
        *[(1, False), (1.0, False), (torch.tensor(1), False), ("True", False)],
        *[(torch.tensor([True]), False), (torch.ones(2).bool(), False)],
    ],
)
def test_a_verdict_is_true_or_false(returned, passes):
    card = judge(lambda x: returned, demand=lambda answer: not verdict(answer, 1) or "")
    assert card.passed == passes
    assert passes or card.message.startswith("Return True or False, not ")


def test_a_test_that_remembers_earlier_calls_is_told_so():
    def right(found=None):
        return lambda x: x < 0

    def demand(answer):
        good, bad = {"one": 1}, {"minus one": -1}
        assert false_alarms(answer, good, bad) == ([], False)
        return first_unseen(answer, good, bad, {"minus one": "Look."}, "Numbers")

    def sticky(x, found=[]):  # noqa: B006
        found += [x] * (x < 0)
        return bool(found)

    assert judge(right(), right=right(), demand=demand).passed
    assert (
        "remembers earlier calls" in judge(sticky, right=right(), demand=demand).message
    )


def test_a_module_whose_weights_change_is_named():
    def right(x, layer):
        return x @ layer.weight.T

    def zeroed(x, layer):
        layer.bias.data.zero_()
        return layer(x)

    def deleted(x, layer):
        layer.bias = None
        return layer(x)

    for answer in (zeroed, deleted):
        card = judge(answer, torch.ones(2, 3), nn.Linear(3, 4), right=right)
        assert "changed the weights of a module" in card.message
    assert judge(right, torch.ones(2, 3), nn.Linear(3, 4), right=right).passed


def test_indices_are_whole_numbers():
    def right(x):
        return x.argsort()

    x = torch.tensor([3.0, 1.0, 2.0])
    assert judge(lambda x: x.argsort().int(), x, right=right).passed
    message = judge(lambda x: x.argsort().float(), x, right=right).message
    assert "The values are right, but of torch.float32: use `.long()`." in message
    assert "values differ" in judge(lambda x: x, x, right=right).message


def test_an_array_of_one_number_without_axes_is_that_number():
    assert check(numpy.array(15), "1.4").passed
    assert "there are two other keys" in check(numpy.array(14), "1.4").message
