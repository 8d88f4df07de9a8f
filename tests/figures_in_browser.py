"""The figures that tests show in a browser, and what a reader does there.

It does not know what a figure should answer.
"""

import functools

import torch
from architecture_code import CODE

from tutorial_figures import (
    show_architecture,
    show_attention,
    show_generation,
    show_induction,
    show_kernel_regression,
    show_learning,
    show_objects,
    show_patch_attention,
    show_positions,
    show_sampling,
    show_softmax,
    show_windows,
)

PHONE = {"viewport": {"width": 400, "height": 500}, "has_touch": True}
WORDS = ["The", "cat", "it", "sat", "down"]
WEIGHTS = torch.softmax(2 * torch.randn(2, 3, 5, 5, generator=torch.manual_seed(1)), -1)
X = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 4.0])
Y = torch.tensor([0.0, 1.0, 0.5, 2.0, 1.5, 0.0, 1.0])
SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
# A class token and 3 × 4 patches of 2 × 2 pixels.
PATCH_WEIGHTS = torch.softmax(
    2 * torch.randn(2, 3, 13, 13, generator=torch.manual_seed(3)), -1
)
IMAGE = torch.rand(6, 8, generator=torch.manual_seed(4))
# Two scenes of 2 × 3 patches of 2 × 2 pixels, at three steps of training.
OBJECT_SCENES = torch.rand(2, 4, 6, generator=torch.manual_seed(5))
OBJECT_MASKS = torch.rand(3, 2, 2, 2, 3, generator=torch.manual_seed(6))
OBJECT_MASKS[1, 1, 1] = 0.2
OBJECT_NAMES = [
    [[None, None], ["a cat", "a cat"]],
    [["a cat", None], ["a dog", "a bird"]],
    [["a cat", "a dog"], [None, "a bird"]],
]
STEPS = 0, 20, 500
# Four corners of a map and a value between them, whose key is much like the first.
KEYS = torch.tensor([[2, 1, 0], [0, 2, 1], [1, 0, 2], [-1, 1, 1], [2, 0, 1]]).double()
PLACES = torch.tensor([[0, 0], [2, 0], [2, 1], [0, 1], [0.8, 0.4]]).double()


@functools.cache
def architecture(**options):
    return show_architecture(CODE, **options)


@functools.cache
def attention(**options):
    return show_attention(WEIGHTS, WORDS, **options)


@functools.cache
def generation(**options):
    rows = torch.tensor([[2.0, 1, 0, 0], [0, 2, 3, 1], [1, 0, 0, 2], [3, 0, 0, 0]])
    maps = torch.ones(2, 4, 4).tril()
    maps[1] += 3 * torch.eye(4)
    maps /= maps.sum(dim=-1, keepdim=True)
    text, words = ["<bos>", "cats", "sleep", "<eos>"], ["<bos>", "cats", "sleep"]
    return show_generation(rows, maps, text, [*words, "<eos>"], **options)


@functools.cache
def induction(**options):
    return show_induction(**options)


@functools.cache
def kernel_regression(**options):
    return show_kernel_regression(X, Y, query=1.2, width=0.6, **options)


@functools.cache
def learning(**options):
    names = ["west", "south", "east", "north", "town"]
    inside = {"middle": [1, 0.5]}
    return show_learning(KEYS, PLACES, labels=names, places=inside, **options)


@functools.cache
def softmax(**options):
    return show_softmax(SCORES, labels=["cat", "dog", "bird", "fish"], **options)


@functools.cache
def sampling(**options):
    return show_sampling(SCORES, ["cat", "dog", "bird", "fish"], **options)


@functools.cache
def patches(**options):
    return show_patch_attention(PATCH_WEIGHTS, IMAGE, **options)


@functools.cache
def objects(**options):
    scenes, names, masks = OBJECT_SCENES, OBJECT_NAMES, OBJECT_MASKS
    return show_objects(scenes, names, masks, steps=STEPS, **options)


@functools.cache
def windows(**options):
    return show_windows(**options)


@functools.cache
def positions(**options):
    return show_positions(40, 8, **options)


UNREPORTED = (
    "for (const kind of ['error', 'unhandledrejection'])"
    "  addEventListener(kind, (event) => event.preventDefault());"
)


FIGURES = [
    architecture,
    attention,
    generation,
    induction,
    kernel_regression,
    learning,
    objects,
    patches,
    positions,
    sampling,
    softmax,
    windows,
]


def said(page):
    """Return the figure's sentence without the marks that isolate its tokens."""
    return without_isolates(page.locator(".readout").inner_text())


def without_isolates(text):
    return text.translate({0x2068: "", 0x2069: "", 0xA0: " "})


def texts(locator):
    """Return the texts that are not empty; SVG has no inner text."""
    return [text for text in locator.all_text_contents() if text]


def as_shown(weights):
    return [f"{weight:.3f}" if weight >= 0.0005 else "<0.001" for weight in weights]


def handle(page, which):
    box = page.locator(which).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def drag(page, start, *places):
    page.mouse.move(*start)
    page.mouse.down()
    for place in places:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def touch_drag(page, start, end):
    """Drag a finger, by the events a touch screen sends."""
    session = page.context.new_cdp_session(page)

    def send(kind, *places):
        points = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    send("touchStart", start)
    for step in range(1, 9):
        send(
            "touchMove",
            [a + (b - a) * step / 8 for a, b in zip(start, end, strict=True)],
        )
    send("touchEnd")
