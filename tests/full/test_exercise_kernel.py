"""Checks in a real kernel, where code has no file and classes have no source."""

import pytest
from example_chapter.notebook import IMPORTS, KERNEL, SCORES
from exercise_chapters import Chapter, executed, text_of
from nbformat import v4

SOLUTIONS = {task.name: task.source for task in Chapter(99).exercises}
CLASS = SOLUTIONS["ExampleScores"]
MINE = SOLUTIONS["example_softmax"].replace("example_softmax", "my_softmax")
SOFTMAX = "def example_softmax(scores, mask=None):\n    "

CELLS = {
    "open class": f"{SCORES}\ncheck(ExampleScores)",
    "right class": f"{CLASS}\ncheck(ExampleScores)",
    "failing class": (
        f"%matplotlib inline\n{CLASS.replace('tanh(hidden)', 'tanh(hiden)')}\n"
        "check(ExampleScores)"
    ),
    "failing function": (
        f"# Mine.\n\n{SOFTMAX}return scores @ scores\ncheck(example_softmax)"
    ),
    "waiting": f"import time\n{SOFTMAX}time.sleep(60)\ncheck(example_softmax)",
    "looping": (
        f"{SOFTMAX}while True:\n        try:\n            3 + 3\n"
        "        except Exception:\n            pass\ncheck(example_softmax)"
    ),
    "quitting": f"{SOFTMAX}quit()\ncheck(example_softmax)",
    "exiting": f"{SOFTMAX}exit(keep_kernel=True)\ncheck(example_softmax)",
    "leaving": f"import sys\n{SOFTMAX}sys.exit()\ncheck(example_softmax)",
    "asking": f"{SOFTMAX}return input('? ')\ncheck(example_softmax)",
    "after": "import asyncio\nawait asyncio.sleep(1)\nprint('still well')",
    "printing": f"{SOFTMAX}print('hello')\n    return 1\ncheck(example_softmax)",
    "silent": (
        f"{SOLUTIONS['example_softmax']}\nprint('no more')\n_ = check(example_softmax)"
    ),
    "lambda": "example_softmax = lambda scores, mask=None: 1\ncheck(example_softmax)",
    "deleted": "del example_softmax\ncheck('99.2')",
    "renamed": f"{MINE}\ncheck('99.2')",
    "back again": SOLUTIONS["example_softmax"],
    "unreadable": f"{SOFTMAX}return (",
    "checked after unreadable": "check(example_softmax)",
    "checked again": "check(example_softmax)",
    "answered": "width = 9",
    "answered wrongly": "width = log(9)",
    "checked after an error": 'check(width, "99.1")',
    "an error elsewhere": "log(9)",
    "checked after an error elsewhere": 'check(width, "99.1")',
    "another error elsewhere": "log(9)",
    "function checked after an error elsewhere": "check(example_softmax)",
    "tried wrongly": f"{SOLUTIONS['example_softmax']}\nexample_softmax(9)",
    "checked after a wrong trial": "check(example_softmax)",
    "tried in a cell of its own": "example_softmax(9)",
    "checked after a trial of its own": "check(example_softmax)",
    "answered, then stopped": "width = 9\nlog(width)",
    "checked after it was answered": 'check(width, "99.1")',
    "answered twice": "width = 9\nwidth = log(9)",
    "checked after the second": 'check(width, "99.1")',
}
STOPS = {
    "unreadable",
    "answered wrongly",
    "an error elsewhere",
    "another error elsewhere",
    "tried wrongly",
    "tried in a cell of its own",
    "answered, then stopped",
    "answered twice",
}


@pytest.fixture(scope="module")
def shown():
    """Run the cells once, in one kernel; return what each shows, as text."""
    limit = "from tutorial_exercises.check import find\nfind('99.2').seconds = 0.5"
    sources = [f"{IMPORTS}\n{limit}", *CELLS.values()]
    cells = [v4.new_code_cell(source) for source in sources]
    for name, cell in zip(CELLS, cells[1:], strict=True):
        cell.metadata["tags"] = ["raises-exception"] * (name in STOPS)
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    results = map(text_of, executed(notebook).cells[1:])
    return dict(zip(CELLS, results, strict=True))


def test_blanks_in_a_class_are_found(shown):
    assert shown["open class"].startswith("⬜ Open: Exercise 99.4 · Additive scores")
    assert "Still to write: lines 7, 11 of the cell." in shown["open class"]


def test_a_right_class_passes(shown):
    assert shown["right class"].startswith("✅")


def test_lines_are_counted_in_the_cell(shown):
    assert "NameError: name 'hiden' is not defined" in shown["failing class"]
    assert "line 13 of the cell: `return self.w_score" in shown["failing class"]
    assert "line 4 of the cell: `return scores @ scores`" in shown["failing function"]


@pytest.mark.parametrize("cell", ["waiting", "looping"])
def test_what_never_ends_is_stopped(shown, cell):
    assert "still running after 0.5 s" in shown[cell]
    assert "line 3 of the cell: `time.sleep(60)`" in shown["waiting"]


@pytest.mark.parametrize("cell", ["quitting", "exiting", "leaving"])
def test_what_would_end_the_kernel_is_told(shown, cell):
    assert "Your code ends Python " in shown[cell]
    assert "of the cell: `" in shown[cell]


def test_what_waits_for_the_keyboard_is_told(shown):
    assert "Your code calls `input()`, " in shown["asking"]
    assert "line 2 of the cell: `return input('? ')`" in shown["asking"]


def test_the_kernel_goes_on_afterwards(shown):
    assert shown["after"] == "still well\n"


def test_prints_show_in_the_card_alone(shown):
    assert shown["printing"].count("hello") == 1
    assert "Your code printed:\n       hello" in shown["printing"]
    assert shown["silent"] == "no more\n"


def test_answers_are_found_in_the_notebook(shown):
    assert "Expected a torch.Tensor, got 1." in shown["lambda"]
    assert "There is no `example_softmax(scores, mask=None)` in" in shown["deleted"]
    assert shown["renamed"].startswith("✅")
    assert "so this is about `my_softmax`, which has the same" in shown["renamed"]


def test_an_answer_whose_cell_stopped_is_not_judged(shown):
    card = shown["checked after unreadable"]
    assert "stopped with `SyntaxError: " in card
    assert "your answer is still the one from before" in card
    assert "stopped with `NameError: name 'log' is" in shown["checked after an error"]


def test_an_answer_that_was_made_before_its_cell_stopped_is_judged(shown):
    assert shown["checked after a wrong trial"].startswith("✅")
    assert shown["checked after a trial of its own"].startswith("✅")
    assert "stopped" not in shown["checked after it was answered"]
    assert "the one from before" in shown["checked after the second"]


def test_other_errors_before_a_check_do_not_matter(shown):
    assert shown["checked again"].startswith("✅")
    assert "stopped" not in shown["checked after an error elsewhere"]
    assert shown["function checked after an error elsewhere"].startswith("✅")
