"""The Transformer's diagram agrees with the Transformer, and leads to its code."""

import functools
import inspect
import linecache
import re

import pytest
import torch
from architecture_code import CODE
from figures_in_browser import DRAWN, PHONE, architecture, press, width_of

from tutorial_figures import show_architecture
from tutorial_figures.architecture import ABOUT, PARTS, cut_at_comments
from tutorial_figures.diagram import HEIGHT, MASKS, WIDTH, transformer
from tutorial_lib.definitions import source_of
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.transformer import Decoder, Encoder, Transformer

DIAGRAM = transformer()
BOXES = {box.name: box for box in DIAGRAM.boxes}
FRAMES = {name: box.frame for name, box in BOXES.items() if box.frame}
# Where the text of the code ends on the page, to the right and below.
ENDS = """() => {
  const range = document.createRange();
  const { shadowRoot } = document.querySelector("[data-figure]");
  range.selectNodeContents(shadowRoot.querySelector("pre code"));
  const boxes = [...range.getClientRects()];
  const farthest = (side) => Math.max(...boxes.map((box) => box[side]));
  return { right: farthest("right"), bottom: farthest("bottom") };
}"""
# The boxes that are pressed, what is told, and how many frames are chosen.
CHOSEN = """() => {
  const { shadowRoot } = document.querySelector("[data-figure]");
  const pressed = [...shadowRoot.querySelectorAll("[aria-pressed=true]")];
  return [
    pressed.map((box) => box.ariaLabel),
    shadowRoot.querySelector(".readout").innerText,
    shadowRoot.querySelectorAll(".frame[data-chosen]").length,
  ];
}"""
# How far the labels reach out of their boxes, and how large their letters are.
LABELS = """boxes => boxes.map((box) => [
  box.scrollWidth - box.clientWidth,
  box.scrollHeight - box.clientHeight,
  parseFloat(getComputedStyle(box).fontSize),
])"""
# By how the name of a module ends that does the work of a box.
MODULES = {
    r"token_embedding": "embedding",
    r"position_encoding": "position",
    r"encoder\..*\.attention\.W_O": "self-attention",
    r"decoder\..*\.attention\.W_O": "causal self-attention",
    r"cross_attention\.W_O": "cross-attention",
    r"\.norm\d": "add & norm",
    r"feed_forward": "feed-forward",
    r"decoder\.lm_head": "linear",
}


def code_of(name):
    """Return the source that the box of this name leads to."""
    return inspect.getsource(CODE[ABOUT[BOXES[name].about].part])


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
    words, lengths = torch.tensor([[3, 4, 5]]), torch.tensor([3])
    model(words, lengths, words)
    return done


def drawn(tower):
    """List the boxes that a stream meets on its way up a tower."""
    inside = [box for name, box in BOXES.items() if name.startswith(f"{tower}: ")]
    upward = sorted(inside, key=lambda box: -box.place[1])
    return [box.about for box in upward if "mask" not in box.about]


def test_the_boxes_stand_in_the_order_in_which_the_model_computes():
    sizes, options = (8, 2, 16, 1), {"max_tokens": 9, "norm_first": False}
    model = Transformer(Encoder(9, *sizes, **options), Decoder(9, *sizes, **options))
    assert [*drawn("encoder"), *drawn("decoder"), "linear"] == computed(model)
    assert BOXES["linear"].place[1] < min(
        box.place[1] for name, box in BOXES.items() if name.startswith("decoder: ")
    )


def test_the_small_grids_are_the_library_s_masks():
    def drawn(mask):
        return ["".join(str(int(cell)) for cell in row) for row in mask]

    assert MASKS["causal self-attention"] == drawn(causal_mask(3))
    assert MASKS["self-attention"] == drawn(padding_mask([2], 3)[0].expand(3, 3))
    assert MASKS["cross-attention"] == drawn(padding_mask([3], 4)[0].expand(3, 4))


def test_each_attention_has_its_own_grid_in_the_box_of_its_mask():
    for name, box in BOXES.items():
        if "mask of " in name:
            x, y, width, height = box.place
            cells = MASKS[box.about.removeprefix("mask of ")]
            assert (x + width / 2, y + height / 2, cells) in DIAGRAM.masks


def test_boxes_are_in_the_picture_and_do_not_overlap():
    assert len(BOXES) == len(DIAGRAM.boxes)
    for name, box in BOXES.items():
        assert holds((0, 0, WIDTH, HEIGHT), box.place), name
        for other, there in BOXES.items():
            assert name == other or apart(box.place, there.place), (name, other)


def test_frames_hold_what_they_are_named_for():
    for tower in ("encoder", "decoder"):
        whole, block = FRAMES[tower], FRAMES[f"{tower} block"]
        assert holds(FRAMES["Transformer"], whole) and holds(whole, block)
        for name, box in BOXES.items():
            of_tower = name.startswith((f"{tower}: ", f"{tower} block"))
            in_tower = of_tower or (tower == "decoder" and name in ("linear", "tied"))
            assert holds(whole, box.place) == in_tower, name
            of_block = of_tower and "block" not in name
            in_block = of_block and not name.endswith(("embedding", "position"))
            assert holds(block, box.place) == in_block, name
    assert not holds(FRAMES["Transformer"], BOXES["softmax"].place)


def test_every_arrow_ends_at_the_edge_of_a_box_or_below_a_word():
    edges = []
    for head in DIAGRAM.heads:
        x, y = head[0]
        edges.append(any(
            (y == top + high and left < x < left + wide)
            or (x in (left, left + wide) and top < y < top + high)
            for left, top, wide, high in (box.place for box in DIAGRAM.boxes)
        ))  # fmt: skip
    words = [
        head for head, at_box in zip(DIAGRAM.heads, edges, strict=True) if not at_box
    ]
    above = [min(DIAGRAM.texts, key=lambda text: abs(text[0] - x) + abs(text[1] - y))[2]
             for (x, y), *_ in words]  # fmt: skip
    assert above == ["memory", "next French token"]


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
    lines = inspect.getsource(Transformer).splitlines()
    found = [lines[i].strip() for i in architecture().data["about"]["tied"]["marks"]]
    assert found == [
        "if tied:",
        "decoder.lm_head.weight = decoder.embeddings.token_embedding.weight",
    ]


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


def test_a_method_from_elsewhere_leads_to_no_other_class():
    class Borrowing:
        pass

    Borrowing.forward = Encoder.forward
    assert source_of(Borrowing) is None


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


# ---- in a browser


@pytest.fixture
def shown(shown):
    """Return a function that opens the figure's page."""
    return functools.partial(shown, architecture())


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def chosen(page):
    """Name the boxes that are pressed, framed or told of: one and the same."""
    names, told, frames = page.evaluate(CHOSEN)
    assert names == [told.split("\n")[0]]
    assert frames == (names[0] in FRAMES)
    return names[0]


def test_every_box_and_frame_leads_to_its_own_code_and_says_what_it_does(shown):
    page = shown()
    assert page.locator(".stage button").count() == len(BOXES)
    for name, box in BOXES.items():
        button(page, name).click()
        assert chosen(page) == name
        assert page.locator("pre").text_content() == code_of(name)
        about = ABOUT[box.about]
        code = CODE[about.part].__name__
        assert page.locator(".readout").text_content() == (
            f"{name}\n{about.does}\nin: {about.takes}\nout: {about.gives}\ncode: {code}"
        )
        assert page.get_by_role("region", name=f"source of {code}").is_visible()
    stage = page.locator(".stage").bounding_box()
    scale = stage["width"] / WIDTH
    for name, (x, y, _, height) in FRAMES.items():
        x, y = stage["x"] + scale * (x + 3), stage["y"] + scale * (y + height - 3)
        page.mouse.click(x, y)
        assert chosen(page) == name


def test_keys_open_boxes_follow_the_stream_and_change_towers(shown):
    page = shown()
    press(page, "Tab", "Tab", "Tab")
    assert chosen(page) == "Transformer"
    press(page, "Enter")
    assert chosen(page) == "encoder: embedding"
    press(page, "Tab", "Space")
    assert chosen(page) == "encoder: position"
    seen = []
    for key in ("Up", "Up", "Up", "Right", "Down", "Down", "Right", "Left", "Left"):
        press(page, f"Arrow{key}")
        assert button(page, chosen(page)).evaluate("box => box.matches(':focus')")
        seen.append(chosen(page))
    assert seen == [
        "encoder: self-attention",
        "encoder: add & norm after self-attention",
        "encoder: feed-forward",
        "decoder: cross-attention",
        "decoder: add & norm after causal self-attention",
        "decoder: causal self-attention",
        "decoder: mask of causal self-attention",
        "decoder: causal self-attention",
        "encoder: mask of self-attention",
    ]


def test_arrow_keys_reach_every_box_and_in_the_code_choose_nothing(shown):
    page = shown()
    reached, waiting = set(), ["Transformer"]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for key in ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"):
            button(page, name).focus()
            press(page, key)
            waiting.append(chosen(page))
    assert reached == set(BOXES)
    button(page, "decoder").click()
    page.locator("pre").focus()
    press(page, "ArrowDown")
    page.wait_for_function(
        "document.querySelector('[data-figure]').shadowRoot"
        ".querySelector('pre').scrollTop > 0"
    )
    assert chosen(page) == "decoder"


def assert_marked(page, name):
    """Check that the lines that matter are marked, and the first is in sight."""
    button(page, name).click()
    source, marks = code_of(name).splitlines(), ABOUT[BOXES[name].about].marks
    marked = [i for i, line in enumerate(source) if any(mark in line for mark in marks)]
    high = page.locator("pre code").bounding_box()["height"] / len(source)
    tops = page.locator("mark").evaluate_all("marks => marks.map(m => m.offsetTop)")
    assert tops == pytest.approx([high * i for i in marked], abs=2)
    first, window = page.locator("mark").first, page.locator("pre").bounding_box()
    assert first.bounding_box()["height"] == pytest.approx(high, abs=1)
    assert 0 <= first.bounding_box()["y"] - window["y"] <= window["height"] - high


@pytest.mark.parametrize("options", [{}, PHONE], ids=["wide", "phone"])
def test_the_lines_that_matter_are_marked_and_the_code_is_whole(options, shown):
    page = shown(**options)
    for name in ("tied", "linear", "softmax", "decoder: cross-attention"):
        assert_marked(page, name)
    listing = page.locator("pre")
    button(page, "encoder: embedding").click()
    assert page.locator("mark").count() == 0
    assert listing.evaluate("pre => pre.scrollTop") == 0
    button(page, "decoder").click()
    listing.evaluate("pre => pre.scrollTo(9999, 9999)")
    assert listing.evaluate("pre => pre.scrollLeft > 0") == bool(options)
    for medium in ("screen", "print"):
        page.emulate_media(media=medium)
        window, end = listing.bounding_box(), page.evaluate(ENDS)
        assert window["x"] < end["right"] <= window["x"] + window["width"]
        assert window["y"] < end["bottom"] <= window["y"] + window["height"]


def test_what_is_told_stands_beside_the_diagram_and_the_code_below_both(shown):
    page = shown()
    parts = map(page.locator, (".stage", ".readout", "pre"))
    diagram, told, code = (part.bounding_box() for part in parts)
    assert diagram["x"] + diagram["width"] <= told["x"]
    assert diagram["y"] + diagram["height"] <= code["y"]
    assert told["y"] + told["height"] <= code["y"] and code["x"] < told["x"]


def test_on_a_phone_what_is_told_stays_in_sight(shown, axe_violations):
    page = shown(**PHONE)
    for scrolled in (0, 100, 200):
        page.evaluate("scrolled => scrollTo(0, scrolled)", scrolled)
        told = page.locator(".readout").bounding_box()
        assert told["y"] > 0 and told["y"] + told["height"] <= 501
    button(page, "decoder: cross-attention").tap()
    assert chosen(page) == "decoder: cross-attention"
    told = page.locator(".readout").bounding_box()
    assert told["y"] >= 0 and told["y"] + told["height"] <= 501
    for scheme in ("light", "dark"):  # a chosen box, and marks in the code
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "dark => !!document.querySelector('[data-dark]') === dark",
            arg=scheme == "dark",
        )
        assert axe_violations(page) == []


def test_labels_fit_their_boxes_and_stay_legible(shown):
    page = shown(viewport={"width": 1200, "height": 700})
    for width in (1200, 688, 400, 360):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate(DRAWN)
        labels = page.locator(".stage button").evaluate_all(LABELS)
        assert len(labels) == len(BOXES)
        for over, under, size in labels:
            assert over <= 1 and under <= 1 and 10 <= size <= 14
        assert width_of(page) <= width
