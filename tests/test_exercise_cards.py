"""What a student sees and asks for: cards, hints, solutions, progress, and `use`."""

import html.parser
import re
import sys

import pytest
from exercise_chapters import define
from made_up import called_with, exercise, judge

from tutorial_exercises import check, help, hint, progress, solution, use
from tutorial_exercises.check import CHECKED
from tutorial_exercises.help import _value_source
from tutorial_lib.attention import masked_softmax

NASTY = "<img src=x onerror=alert(1)>"


class Elements(html.parser.HTMLParser):
    """Collects the tags and the text of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def raising(text):
    def answer():
        print(text)
        raise ValueError(text)

    return answer


@pytest.fixture(autouse=True)
def new_session(monkeypatch):
    monkeypatch.setattr(help, "ASKED", {})
    for name in list(CHECKED):
        del CHECKED[name]


# --- cards -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "first", "last"),
    [
        (lambda: 1, "✅ Passed: Exercise 98.1 · Made up", "   ✓ is right"),
        (
            lambda: 2,
            "❌ Not right yet: Exercise 98.1 · Made up",
            "   Stuck? hint(answer)",
        ),
    ],
)
def test_a_card_says_in_words_how_it_went(answer, first, last):
    lines = repr(judge(answer, oracle=lambda: 1, hints=["Count."])).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


def test_the_html_says_everything_the_text_does():
    result = judge(lambda: 2, oracle=lambda: 1, hints=["Count to `1`."])
    words = "".join(Elements(result._repr_html_()).words)
    for text in [result.heading, "Not right yet", "is right", result.message]:
        assert text in words
    assert "Count to 1." in words


def test_marks_are_readable_without_seeing_them():
    elements = Elements(judge(lambda: 2, oracle=lambda: 1)._repr_html_())
    labels = [about.get("aria-label") for _, about in elements.tags]
    assert "failed" in labels
    assert ("div", {"class": "exercise-card fail", "role": "status"}) in elements.tags


@pytest.mark.parametrize(
    "result",
    [
        judge(raising(NASTY), oracle=lambda: 1, hints=[NASTY]),
        judge(lambda: NASTY, oracle=lambda: "right"),
        judge(NASTY, name=None, oracle=lambda: "right"),
        check(1, NASTY),
    ],
)
def test_nothing_a_student_can_write_becomes_html(result):
    text = result._repr_html_()
    assert "img" not in [tag for tag, _ in Elements(text).tags]
    assert NASTY in "".join(Elements(text).words)


def test_the_same_answer_gives_the_same_bytes():
    first, second = (judge(raising("x"), hints=["a"])._repr_html_() for _ in range(2))
    assert first == second
    assert not re.search(r"\bid=|0x[0-9a-f]{6}|https?:", first)


def test_hints_are_folded_in_a_card_and_gone_once_it_passes():
    wrong = judge(lambda: 2, oracle=lambda: 1, hints=["Count.", "It is 1."])
    assert wrong._repr_html_().count("<details><summary>Hint") == 2
    right = judge(lambda: 1, oracle=lambda: 1, hints=["Count.", "It is 1."])
    assert "<details" not in right._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((lambda: 1, "exmple_softmax"), "Did you mean example_softmax"),
        ((3,), 'Say which exercise it answers: check(answer, "1.1")'),
        ((lambda: 1,), "There is no exercise '<lambda>'"),
        (("example_softmax",), "Check the answer itself: check(example_softmax)"),
        ((3, "99.77"), "There is no exercise '99.77'"),
    ],
)
def test_an_unknown_exercise_is_met_with_advice(arguments, words):
    result = check(*arguments)
    assert (result.status, result.code) == ("unknown", "unknown")
    assert words in repr(result).replace("`", "")


def test_a_built_module_is_told_to_come_as_a_class():
    module = define("class ExampleScores:\n    pass", "ExampleScores")()
    assert "Check the class itself: `check(ExampleScores)`" in check(module).message


# --- hints, solutions, progress ----------------------------------------------------


def test_every_call_shows_one_more_hint_until_all_are_shown():
    seen = [repr(hint("example_softmax")).count("Hint") for _ in range(4)]
    assert seen == [1, 2, 3, 3]
    assert repr(hint("99.1")).startswith("Hint 1 of 2: Variances")
    assert "<code>scores.masked_fill" in hint("example_softmax")._repr_html_()


def test_an_exercise_without_hints_says_so():
    with exercise():
        assert "has no hints" in repr(hint("answer"))


def test_hints_and_solutions_of_no_exercise_are_met_with_advice():
    for ask in (hint, solution):
        assert "Did you mean `example_softmax`" in repr(ask("example_sofmax"))
        assert ask(3).status == "unknown"


def test_a_solution_is_folded_in_a_notebook_and_printed_when_asked():
    found = solution("example_softmax")
    assert repr(found) == (
        "Solution of Exercise 99.2 · Masked softmax: "
        "print(solution(example_softmax)) shows it."
    )
    assert str(found).startswith("def example_softmax(scores, mask=None):\n    if mask")
    assert str(found).endswith("return torch.softmax(scores, dim=-1)")
    elements = Elements(found._repr_html_())
    assert ("details", {}) in elements.tags
    assert str(found) in "".join(elements.words)


def test_the_solution_of_a_value_comes_with_its_reason():
    comment, value = str(solution("99.1")).splitlines()
    assert comment.startswith("# The variances of 64 independent products add up")
    assert value == "8.0"


def test_the_solution_of_a_value_stands_at_the_left_edge():
    text = 'ANSWERS = {\n    "1.1": {\n        "a": 1,\n    },\n}\n'
    assert _value_source(text, "1.1").splitlines() == ["{", '    "a": 1,', "}"]


def test_the_solution_of_a_class_is_its_source():
    assert str(solution("ExampleScores")).startswith("class ExampleScores(nn.Module):")


def test_a_copy_without_solutions_says_so(monkeypatch):
    solutions = "tutorial_exercises.chapter_99.solutions"
    monkeypatch.setitem(sys.modules, solutions, None)
    assert "not part of this copy" in str(solution("example_softmax"))


def test_progress_counts_the_chapters_begun_in_this_session():
    assert repr(progress()) == "░" * 20 + " No exercise was checked yet."
    check(8, "99.1")
    check(lambda: 1, "example_softmax")
    assert repr(progress()).splitlines() == [
        "✅ Passed: Exercise 99.1 · How large do scores get?",
        "❌ Not right yet: Exercise 99.2 · Masked softmax",
        "⬜ Open: Exercise 99.3 · Scaled dot-product attention",
        "⬜ Open: Exercise 99.4 · Additive scores",
        "█████░░░░░░░░░░░░░░░ Chapter 99: 1 of 4 exercises passed",
    ]


def test_progress_of_one_chapter_has_a_bar_that_can_be_read_aloud():
    check(8, "99.1")
    elements = Elements(progress(99)._repr_html_())
    sentence = "Chapter 99: 1 of 4 exercises passed"
    bar = {"value": "1", "max": "4", "aria-label": sentence}
    assert ("progress", bar) in elements.tags
    assert "".join(elements.words).endswith(f" {sentence}")
    assert repr(progress(97)) == "░" * 20 + " Chapter 97 has no exercises."


# --- use ---------------------------------------------------------------------------


def test_an_answer_that_passes_is_used_silently(capsys):
    with exercise(oracle=lambda: 1) as made_up:
        made_up.step("is right")(called_with())
        right = lambda: 1  # noqa: E731
        assert use(right, "answer") is right
    assert capsys.readouterr().out == ""


def test_until_it_passes_the_library_s_version_is_used_and_named(capsys):
    open_answer = define("def example_softmax(scores):\n    ...", "example_softmax")
    assert use(open_answer) is masked_softmax
    assert capsys.readouterr().out == (
        "Using the library's example_softmax until yours passes its check.\n"
    )


def test_an_exercise_without_fallback_uses_its_oracle(capsys):
    with exercise(oracle=len) as made_up:
        made_up.step("is right")(called_with("abc"))
        assert use(lambda text: 0, "answer") is len
    with exercise(name=None, oracle=lambda: 7):
        assert use(8, "98.1") == 7


def test_an_answer_is_checked_again_only_when_it_changed():
    checks = []
    with exercise(oracle=lambda: 1) as made_up:
        made_up.step("is right")(lambda probe: checks.append(probe.answer))
        first, second = lambda: 1, lambda: 1
        for answer in (first, first, second, second):
            assert use(answer, "answer") is answer
    assert checks == [first, second]


CALLS = "def answer(x):\n    return double(x) + 1"


@pytest.mark.parametrize(
    ("source", "used"),
    [
        (f"def double(x):\n    return 2 * x\n{CALLS}", True),
        (f"def double(x):\n    ...\n{CALLS}", False),
        (CALLS, False),
        ("def answer(x):\n    return 2 * x + 1", True),
    ],
)
def test_an_answer_is_used_only_when_what_it_calls_passes_too(source, used, capsys):
    answer = define(source, "answer")
    double = exercise(number="98.2", name="double", oracle=lambda x: 2 * x)
    with double as earlier, exercise(oracle=len, needs=["double"]) as made_up:
        earlier.step("is right")(called_with(4))
        made_up.step("is right")(lambda probe: probe.same(9, output=probe(4)))
        assert use(answer) is (answer if used else len)
    said = "Using the library's answer until your double passes its check.\n"
    assert capsys.readouterr().out == ("" if used else said)


def test_what_is_no_exercise_is_handed_back_with_advice(capsys):
    assert use(3) == 3
    assert "Say which exercise" in capsys.readouterr().out
