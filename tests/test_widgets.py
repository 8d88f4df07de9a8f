"""Controls above a picture: what they are, what they draw, and what stands without."""

import ast

import pytest
from exercise_chapters import executed, text_of
from nbformat.v4 import new_code_cell, new_notebook

from tutorial_lib.widgets import VIEW, _sentence, explore

DRAW = """
import os
from ipywidgets.widgets.widget import _instances
from tutorial_lib.widgets import explore

drawn = []
def draw(number=2, share=0.5, kind="b", word="so", is_on=True, grid=[[True, False]]):
    if number == 7:
        raise ValueError("Seven is not allowed.")
    drawn.append((number, share, kind, word, is_on, grid))
    return {"drawn": drawn[-1]}

CONTROLS = dict(number=(1, 9), share=(0.0, 1.0), kind=["a", "b"], word="", is_on=True,
    grid=[[False, False]])

def find(kind):
    return [one for one in _instances.values() if type(one).__name__ == kind]
"""
OFF = (
    "os.environ['TUTORIAL_WIDGETS'] = 'off'\nexplore(draw, {'is_on': 'on'}, **CONTROLS)"
)
ON = "os.environ['TUTORIAL_WIDGETS'] = 'on'\nexplore(draw, {'is_on': 'on'}, **CONTROLS)"
MOVE = """
[slider], [share], [menu], [field] = map(find, ("IntSlider", "FloatSlider", "Dropdown",
    "Text"))
slider.value, share.value, menu.value, field.value = 3, 0.25, "a", "no"
find("Checkbox")[0].value = False
find("ToggleButton")[1].value = True
drawn[-1]
"""
FAIL = """
count = len(drawn)
slider.value = 7
said, faint = find("HTML")[0].value, find("Output")[0]._dom_classes
slider.value = 4
said, faint = (said, find("HTML")[0].value), (faint, find("Output")[0]._dom_classes)
len(drawn) - count, *said, slider.continuous_update, faint
"""

PRINT = """
import warnings
def tell(size=1):
    print(f"size {size}")
    if size == 2:
        warnings.warn("Two is odd.")
    return size
explore(tell, size=[1, 2, 3])
"""
WARN = """
menu = find("Dropdown")[-1]
below = find("VBox")[-1].children[2]
first = str(below.outputs)
menu.value = 2
first, find("HTML")[-1].value
"""


FIRST = """
def plain(number, share, kind, word, grid):
    return {"drawn": (number, share, kind, word, grid)}
CONTROLS = dict(number=(3, 9, 2), share=(0.25, 1.25), kind=["a", "b"], word="hi",
    grid=[[False, True]])
os.environ["TUTORIAL_WIDGETS"] = "on"
explore(plain, **CONTROLS)
"""
STEPS = """
sliders = find("IntSlider")[-1], find("FloatSlider")[-1]
*((one.min, one.max, one.step) for one in sliders), slider.step
"""


@pytest.fixture(scope="module")
def cells():
    sources = DRAW, OFF, ON, MOVE, FAIL, PRINT, WARN, FIRST, STEPS
    cells = [new_code_cell(source) for source in sources]
    return executed(new_notebook(cells=cells)).cells


def test_without_controls_the_first_picture_stands_with_a_line(cells):
    said = "In a running notebook you can change: number, share, kind, word, on, grid."
    first = "{'drawn': (2, 0.5, 'b', 'so', True, [[True, False]])}"
    assert text_of(cells[1]) == f"{said}\n{first}"
    assert not any(VIEW in output.get("data", {}) for output in cells[1].outputs)


def test_one_output_holds_the_controls_and_the_picture(cells):
    [output] = cells[2].outputs
    assert VIEW in output.data
    assert output.data["text/plain"].startswith("{'drawn': (2, 0.5")


def test_every_control_moves_its_argument(cells):
    moved = "(3, 0.25, 'a', 'no', False, [[True, True]])"
    assert text_of(cells[3]) == moved


def test_what_has_no_default_begins_with_the_first_and_sliders_have_their_steps(cells):
    [output] = cells[7].outputs
    assert (
        output.data["text/plain"] == "{'drawn': (3, 0.25, 'a', 'hi', [[False, True]])}"
    )
    steps = ((3, 9, 2), (0.25, 1.25, 0.01), 1)
    assert ast.literal_eval(text_of(cells[8])) == steps


def test_an_error_is_a_sentence_and_is_gone_after_the_next_picture(cells):
    said = '<span role="status">Seven is not allowed.</span>'
    faint = (("tutorial-old",), ())
    after = (1, said, '<span role="status"></span>', False, faint)
    assert ast.literal_eval(text_of(cells[4])) == after


def test_what_is_printed_changes_with_the_picture(cells):
    [output] = cells[5].outputs
    assert VIEW in output.data
    first, _ = ast.literal_eval(text_of(cells[6]))
    assert "size 1" in first


def test_a_warning_is_a_sentence(cells):
    _, said = ast.literal_eval(text_of(cells[6]))
    assert said == '<span role="status">Two is odd.</span>'
    assert "Two is odd" not in str(cells[6].outputs[:-1])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("A sentence.\nMore."), "A sentence."),
        (KeyError("mouse"), "KeyError: 'mouse'"),
        (ValueError(), "ValueError"),
        (ValueError("short"), "ValueError: short"),
    ],
)
def test_what_is_no_sentence_is_told_with_its_type(error, sentence):
    assert _sentence(error) == sentence


WRONG = [{"number": (3, 9)}, {"kind": ["a"]}, {"number": 3}, {"number": (1,)}]


@pytest.mark.parametrize("control", WRONG, ids=str)
def test_a_control_that_does_not_fit_is_refused_also_where_it_is_not_shown(control):
    def draw(number=2, kind="b"):
        return number

    with pytest.raises(ValueError, match="a control is"):
        explore(draw, **control)
