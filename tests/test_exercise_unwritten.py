"""What a check reads in an answer's source: blanks, and the line that failed."""

import pytest
import torch
from exercise_chapters import define
from made_up import called_with, judge


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def answer(x):\n    ...", "line 2"),
        ("def answer(x):\n    '''Return x.'''\n    y = ...\n    return y", "line 3"),
        ("def answer(x):\n    y: int = ...\n    return ...", "lines 2 and 3"),
        ("def answer(x):\n    return x.softmax(dim=...)", "line 2"),
        ("def answer(x):\n    return ... @ x", "line 2"),
        ("def answer(x):\n    x[..., 0] = ...", "line 2"),
        ("def answer(x):\n    for i in x:\n        ...", "line 3"),
        ("\n\ndef answer(x):\n    '''Return x.'''", "line 3"),
        ("def answer(x):\n    pass", "line 1"),
        ("def answer(x):\n    raise NotImplementedError", "line 2"),
        ("def answer(x):\n    raise NotImplementedError('your turn')", "line 2"),
        ("def mark(f):\n    return f\n@mark\ndef answer(x):\n    ...", "line 5"),
        ("class answer:\n    size = ...\n    def f(self):\n        return 1", "line 2"),
        ("class answer:\n    def f(self):\n        ...", "line 3"),
        ("class answer:\n    '''Does something.'''", "the whole class"),
    ],
)
def test_an_answer_with_something_left_to_write_is_open(source, lines):
    result = judge(define(source, "answer"))
    assert (result.status, result.code) == ("open", "open")
    assert f"Still to write: {lines}" in result.message


@pytest.mark.parametrize(
    "source",
    [
        "def answer(x=...):\n    return 1",
        "def answer():\n    import torch\n    return torch.eye(2)[..., 0].sum()",
        "def answer() -> tuple[int, ...]:\n    return 1",
        "def answer():\n    '''...'''\n    return 1",
        "answer = lambda: 1",
    ],
)
def test_dots_that_are_no_blank_do_not_count(source):
    assert judge(define(source, "answer"), oracle=lambda: 1).passed


WHOLE = [
    "class Box: pass",
    "def helper():\n        'Wait.'",
    "if not True: raise NotImplementedError",
    "if not True:\n        raise NotImplementedError('odd input')",
]


@pytest.mark.parametrize("line", [*WHOLE, "last = (..., 0)", "helper = lambda: ..."])
def test_a_right_answer_is_not_open_whatever_it_holds(line):
    source = f"def answer():\n    {line}\n    return 1"
    assert judge(define(source, "answer"), oracle=lambda: 1).passed


@pytest.mark.parametrize("line", WHOLE)
def test_what_is_wrong_with_a_whole_answer_is_said(line):
    source = f"def answer():\n    {line}\n    return 2"
    result = judge(define(source, "answer"), oracle=lambda: 1)
    assert result.message == "2 is not right: expected 1."


@pytest.mark.parametrize("value", [..., [1, ...], {"a": (1, [...])}])
def test_a_value_with_dots_in_it_is_open(value):
    assert judge(value, name=None).status == "open"


def test_an_error_is_shown_with_the_student_s_own_line_and_the_shapes():
    source = (
        "import torch\ndef answer(queries, *, scale):\n    return queries @ queries"
    )
    answer = define(source, "answer")
    result = judge(answer, called_with(torch.ones(2, 3), scale=0.5))
    assert result.code == "error"
    assert "raised RuntimeError: mat1 and mat2 shapes cannot" in result.message
    assert "\n  line 3 of the cell: `return queries @ queries`\n" in result.message
    assert "called with queries of shape (2, 3), scale = 0.5." in result.message


def test_the_line_of_a_helper_in_the_same_cell_is_the_one_shown():
    source = "def helper(x):\n    return 1 / x\ndef answer(x):\n    return helper(x)"
    result = judge(define(source, "answer"), called_with(0))
    assert "line 2 of the cell: `return 1 / x`" in result.message


def test_an_answer_in_a_file_is_pointed_at_by_the_file_s_name():
    message = judge(lambda: 1 / 0).message
    assert "of test_exercise_unwritten.py: `message = judge(lambda: 1 / 0)" in message
