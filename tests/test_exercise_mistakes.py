"""Known mistakes are edits of the right answer, made only when they are asked for."""

import subprocess
import sys

import pytest

from tutorial_exercises.exercise import find
from tutorial_exercises.mistakes import edited, known, read

FILE = """\
# double
sign: You turn
the sign around.
- return 2 * x
+ return -2 * x
or
- x = x + 0
- return 2 * x
+ return x - 3 * x
type:
- return 2 * x
+ return str(2 * x)

# 1.1
half: That is half.
= 4.0
= [4.0]
right:
= 8
"""
SOURCE = """\
def double(x):
    if x:
        x = x + 0
        return 2 * x
    x = 0
    return x"""


def test_a_file_is_read_exercise_by_exercise():
    found = read(FILE)
    assert [(code, message) for code, message, _ in found["double"]] == [
        ("sign", "You turn the sign around."),
        ("sign", "You turn the sign around."),
        ("type", ""),
    ]
    assert found["double"][0][2] == ("- return 2 * x", "+ return -2 * x")
    assert found["1.1"] == [
        ("half", "That is half.", ("= 4.0",)),
        ("half", "That is half.", ("= [4.0]",)),
        ("right", "", ("= 8",)),
    ]


def test_old_lines_are_replaced_at_their_depth():
    edit = ["- x = x + 0", "- return 2 * x", "+ y = x", "+ if y:", "+     return y"]
    assert edited(SOURCE, edit) == SOURCE.replace(
        "        x = x + 0\n        return 2 * x",
        "        y = x\n        if y:\n            return y",
    )
    assert edited(SOURCE, ["- x = 0", "+"]) == SOURCE.replace("    x = 0", "")


@pytest.mark.parametrize("line", ["return 3 * x", "2 * x", "return 2"])
def test_lines_that_do_not_stand_there_whole_are_an_error(line):
    with pytest.raises(ValueError, match="must stand once in the solution"):
        edited(SOURCE, [f"- {line}", "+ pass"])


def test_lines_that_stand_there_twice_are_an_error():
    with pytest.raises(ValueError, match="must stand once"):
        edited("x = 1\nx = 1", ["- x = 1", "+ x = 2"])


def test_a_mistake_is_made_once_and_can_be_quoted():
    [entry, *_] = find("split_heads").mistakes
    assert entry.answer is entry.answer
    assert entry.answer is not known(find("split_heads"))[0].answer
    assert entry.answer.__name__ == "split_heads"


PASSING = """\
import sys
from tutorial_exercises import check, mistakes
read = []
mistakes.read = lambda text: read.append(text) or {}
def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
assert check(split_heads).passed
assert not read and "tutorial_exercises.chapter_08.solutions" not in sys.modules
check(lambda x, heads: x, "split_heads")
assert len(read) == 1
"""


def test_a_check_that_passes_reads_no_mistakes_and_no_solutions():
    subprocess.run([sys.executable, "-c", PASSING], check=True)
