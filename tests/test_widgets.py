"""Controls above a picture: what they are, what they draw, and what stands without."""

import ast
import asyncio

import numpy as np
import pytest
import zmq
from exercise_chapters import execute, executed, text_of
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tools.notebooks import connection
from tutorial_lib.notebook import explore
from tutorial_lib.notebook.widgets import VIEW, _sentence

DRAW = """
import os
from ipywidgets.widgets.widget import _instances
from tutorial_lib.notebook import explore

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

def shown():
    return find("VBox")[-1].children[-2].outputs
"""
OFF = """
os.environ["TUTORIAL_WIDGETS"] = "off"
explore(draw, {"is_on": "on"}, **CONTROLS)
"""
ON = """
os.environ["TUTORIAL_WIDGETS"] = "on"
explore(draw, {"is_on": "on"}, **CONTROLS)
"""
FIRST_PICTURE = "[output['data']['text/plain'] for output in shown()]"
MOVE = """
[slider], [share], [menu], [field] = map(find, ("IntSlider", "FloatSlider", "Dropdown",
    "Text"))
slider.value, share.value, menu.value, field.value = 3, 0.25, "a", "no"
find("Checkbox")[0].value = False
find("ToggleButton")[1].value = True
drawn[-1]
"""
FAIL = """
status = find("HTML")[0]
count = len(drawn)
slider.value = 7
sentence = status.value
slider.value = 4
len(drawn) - count, sentence, status.value, slider.continuous_update
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
PRINTED = "[output.get('text') for output in shown()][0]"
WARN = """
find("Dropdown")[-1].value = 2
find("HTML")[-1].value
"""
WITHOUT_DEFAULTS = """
def plain(number, share, kind, word, grid):
    drawn.append((number, share, kind, word, grid))
explore(plain, number=(3, 9, 2), share=(0.25, 1.25), kind=["a", "b"], word="hi",
    grid=[[False, True]])
drawn[-1]
"""
STEPS = """
sliders = find("IntSlider")[-1], find("FloatSlider")[-1]
*((one.min, one.max, one.step) for one in sliders), slider.step
"""
ON_PAGE = """
from tutorial_figures import show_softmax
os.environ["TUTORIAL_WIDGETS"] = "off"
def bars(number=2, kind="b"):
    print(number, kind, torch.rand(1).item() < 2)
    if kind == "a":
        return Image(b"a picture", format="png")
    return show_softmax([1.0, number])
import torch
from IPython.display import Image
explore(bars, number=(1, 9), kind=["a", "b"],
    on_page={"number": [2, 5], "kind": {"first": "a", "second": "b"}})
os.environ["TUTORIAL_WIDGETS"] = "on"
"""
SOURCES = {
    "draw": DRAW,
    "off": OFF,
    "on": ON,
    "first picture": FIRST_PICTURE,
    "move": MOVE,
    "fail": FAIL,
    "print": PRINT,
    "printed": PRINTED,
    "warn": WARN,
    "without defaults": WITHOUT_DEFAULTS,
    "steps": STEPS,
    "on page": ON_PAGE,
}


@pytest.fixture(scope="module")
def cells():
    notebook = new_notebook(
        cells=[new_code_cell(source) for source in SOURCES.values()]
    )
    return dict(zip(SOURCES, executed(notebook).cells, strict=True))


def value_of(cell):
    """Return what the last line of a cell shows, as Python reads it."""
    return ast.literal_eval(cell.outputs[-1]["data"]["text/plain"])


def test_without_controls_the_first_picture_stands_with_a_line(cells):
    picture = "{'drawn': (2, 0.5, 'b', 'so', True, [[True, False]])}"
    names = "number, share, kind, word, on, grid"
    line = f"In a running notebook you can freely change: {names}."
    assert text_of(cells["off"]) == f"{line}\n{picture}"
    assert not any(VIEW in output.get("data", {}) for output in cells["off"].outputs)


def test_one_output_holds_the_controls_and_the_picture(cells):
    [output] = cells["on"].outputs
    assert VIEW in output.data
    [picture] = value_of(cells["first picture"])
    assert picture == "{'drawn': (2, 0.5, 'b', 'so', True, [[True, False]])}"


def test_every_control_moves_its_argument(cells):
    assert value_of(cells["move"]) == (3, 0.25, "a", "no", False, [[True, True]])


def test_what_has_no_default_begins_with_the_first_and_sliders_have_their_steps(cells):
    expected = (3, 0.25, "a", "hi", [[False, True]])
    assert value_of(cells["without defaults"]) == expected
    assert value_of(cells["steps"]) == ((3, 9, 2), (0.25, 1.25, 0.01), 1)


def test_an_error_is_a_sentence_and_is_gone_after_the_next_picture(cells):
    sentence = '<span role="status">Seven is not allowed.</span>'
    after = (1, sentence, '<span role="status"></span>', False)
    assert value_of(cells["fail"]) == after


def test_what_is_printed_stands_with_the_picture(cells):
    assert value_of(cells["printed"]) == "size 1\n"


def test_a_warning_is_a_sentence(cells):
    assert value_of(cells["warn"]) == '<span role="status">Two is odd.</span>'


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


def test_settings_for_the_page_are_stored_with_the_picture(cells):
    printed, picture, *_ = cells["on page"].outputs
    assert printed.text.startswith("2 b True")
    stored = picture.metadata["settings"]
    assert stored["controls"] == [
        {"label": "number", "values": ["2", "5"], "first": 0},
        {"label": "kind", "values": ["first", "second"], "first": 1},
    ]
    texts = [drawn["text"] for drawn in stored["drawn"]]
    assert texts == ["2 a True\n", "2 b True\n", "5 a True\n", "5 b True\n"]
    kinds = [("png" in drawn, "html" in drawn) for drawn in stored["drawn"]]
    assert kinds == [(True, False), (False, True)] * 2
    assert stored["drawn"][1]["html"] == picture.data["text/html"]


REFUSED = [
    ({"number": [3, 4]}, "number needs a control and, among its values, 2, with which"),
    ({"size": [1]}, "size needs a control"),
    ({"number": range(1, 10), "kind": ["a", "b"]}, "at most 9 combinations .* not 18"),
]


@pytest.mark.parametrize(("on_page", "message"), REFUSED)
def test_settings_for_the_page_that_do_not_fit_are_refused(on_page, message):
    def draw(number=2, kind="b"):
        return number

    with pytest.raises(ValueError, match=message):
        explore(draw, number=(1, 9), kind=["a", "b"], on_page=on_page)


def test_without_ipython_the_first_picture_is_printed(monkeypatch, capsys):
    monkeypatch.setattr("tutorial_lib.notebook.widgets.find_spec", lambda name: None)
    explore(lambda size=3: f"a picture of {size}", size=(1, 5))
    printed = capsys.readouterr().out
    assert printed.startswith("a picture of 3\nIn a running notebook")


def test_bounds_may_be_numbers_of_numpy(capsys, monkeypatch):
    monkeypatch.setenv("TUTORIAL_WIDGETS", "off")
    explore(lambda number: number, number=(np.int64(1), np.int64(3)))
    assert "you can freely change: number." in capsys.readouterr().out


def test_a_reply_is_seen_though_somebody_else_asked_for_the_events_of_its_socket():
    client = NotebookClient(
        new_notebook(cells=[new_code_cell("import time; time.sleep(0.2)")]),
        config=connection(),
        timeout=60,
    )

    async def ask_all_the_time():
        while True:
            await asyncio.sleep(0)
            if client.kc is not None and client.kc.channels_running:
                asked = zmq.Socket.shadow(client.kc.shell_channel.socket.underlying)
                asked.get(zmq.EVENTS)

    async def run():
        asking = asyncio.create_task(ask_all_the_time())
        try:
            await asyncio.wait_for(execute(client), timeout=30)
        finally:
            asking.cancel()

    asyncio.run(run())
