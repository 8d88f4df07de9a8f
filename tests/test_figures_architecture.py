"""The Transformer's diagram agrees with the Transformer, and leads to its code."""

import inspect
import linecache
import re

import pytest
import torch
from architecture_code import CODE
from figures_in_browser import architecture

from tutorial_figures import show_architecture
from tutorial_figures.architecture import ABOUT, PARTS, cut_at_comments
from tutorial_figures.diagram import HEIGHT, MASKS, WIDTH, transformer
from tutorial_lib.definitions import source_of
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

DIAGRAM = transformer()
BOXES = {box.name: box for box in DIAGRAM.boxes}
# By how the name of a module ends that does the work of a box.
MODULES = {
    r"token_embedding": "embedding",
    r"position_encoding": "position",
    r"encoder\..*\.attention\.W_O": "self-attention",
    r"decoder\..*\.attention\.W_O": "causal self-attention",
    r"cross_attention\.W_O": "cross-attention",
    r"\.norm\d": "add & norm",
    r"feed_forward": "feed-forward",
}


def holds(frame, place):
    (x, y, width, height), (left, top, wide, high) = place, frame
    return (
        left <= x and x + width <= left + wide and top <= y and y + height <= top + high
    )


def apart(one, other):
    (x, y, width, height), (left, top, wide, high) = one, other
    beside = x + width <= left or left + wide <= x
    return beside or y + height <= top or top + high <= y


# ---- the diagram


def computed(model):
    """List the boxes of what the modules compute, in the order in which they do."""
    done = []
    for name, module in model.named_modules():
        for end, box in MODULES.items():
            if re.search(f"{end}$", name):
                module.register_forward_hook(lambda *_, box=box: done.append(box))
    tokens = torch.tensor([[3, 4, 5]])
    model(tokens, torch.tensor([3]), tokens)
    return done


def drawn(tower):
    """List the boxes that a stream meets on its way up a tower."""
    inside = [box for name, box in BOXES.items() if name.startswith(f"{tower}: ")]
    upward = sorted(inside, key=lambda box: -box.place[1])
    return [box.about for box in upward if "mask" not in box.about]


def test_the_boxes_stand_in_the_order_in_which_the_model_computes():
    sizes = {"d_ff": 16, "max_tokens": 9}
    model = Transformer(
        TransformerEncoder(9, 8, 2, 1, **sizes), TransformerDecoder(9, 8, 2, 1, **sizes)
    )
    assert [*drawn("encoder"), *drawn("decoder")] == computed(model)
    assert BOXES["linear"].place[1] < min(
        box.place[1] for name, box in BOXES.items() if name.startswith("decoder: ")
    )


def test_the_small_grids_are_the_library_s_masks():
    def drawn(mask):
        rows = mask.int().tolist()
        return ["".join(map(str, row)) for row in rows]

    assert MASKS["causal self-attention"] == drawn(causal_mask(3))
    assert MASKS["self-attention"] == drawn(padding_mask([2], 3)[0].expand(3, 3))
    assert MASKS["cross-attention"] == drawn(padding_mask([3], 4)[0].expand(3, 4))


def test_boxes_are_in_the_picture_and_do_not_overlap():
    assert len(BOXES) == len(DIAGRAM.boxes)
    for name, box in BOXES.items():
        assert holds((0, 0, WIDTH, HEIGHT), box.place), name
        for other, there in BOXES.items():
            assert name == other or apart(box.place, there.place), (name, other)


# ---- the code


def test_every_part_is_listed_with_its_whole_source():
    for part, value in CODE.items():
        cuts = architecture().data["code"][part]["cuts"]
        assert "".join(cuts) == inspect.getsource(value)
        assert architecture().data["code"][part]["name"] == value.__name__


def test_comments_and_docstrings_are_cut_out_of_the_code():
    source = 'def f(x):\n    """Is # no."""\n    y = "# this"  # that\n    return y\n'
    assert cut_at_comments(source) == [
        "def f(x):\n    ",
        '"""Is # no."""',
        '\n    y = "# this"  ',
        "# that",
        "\n    return y\n",
    ]


def test_every_mark_stands_in_the_library_s_code():
    for about in ABOUT.values():
        for mark in about.marks:
            assert mark in inspect.getsource(CODE[about.part]), mark


def test_marked_lines_are_those_with_the_mark():
    lines = inspect.getsource(TransformerDecoder).splitlines()
    [mark] = architecture().data["about"]["tied"]["marks"]
    assert lines[mark].strip().startswith("return x @ self.token_embedding.weight.T")


def test_a_class_of_a_notebook_s_cell_has_a_source():
    cell = (
        "import functools\n\n"
        "class Early:\n    def forward(self):\n        return 0\n\n"
        "@functools.total_ordering\n"
        "class Embedding:\n"
        "    size = 3\n\n    def __lt__(self, x):\n        return x\n"
    )
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(keepends=True), "")
    names = {"__name__": "no_module_of_this_name"}
    exec(compile(cell, "<cell 1>", "exec"), names)
    assert source_of(names["Embedding"]) == cell[cell.index("@") :]
    changed = show_architecture({**CODE, "embedding": names["Embedding"]})
    assert "".join(changed.data["code"]["embedding"]["cuts"]) == cell[cell.index("@") :]


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_is_named(part):
    code = {name: value for name, value in CODE.items() if name != part}
    with pytest.raises(ValueError, match=f"the diagram misses '{part}': map a class"):
        show_architecture(code)


def test_unknown_parts_are_named_with_those_that_there_are():
    with pytest.raises(
        ValueError, match=r"does not know 'mask', 'head': .* padding mas"
    ):
        show_architecture({**CODE, "mask": padding_mask, "head": padding_mask})


@pytest.mark.parametrize("value", [len, dict, 3, None, torch.nn.Linear(2, 2)])
def test_code_without_a_source_is_refused_with_advice(value):
    message = f"no source found for 'embedding', got {re.escape(repr(value))}: pass a"
    with pytest.raises(ValueError, match=message) as refusal:
        show_architecture({**CODE, "embedding": value})
    assert "\n" not in str(refusal.value)
