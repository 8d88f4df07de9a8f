"""The figures that tests show in a browser, and what a reader does there."""

import copy
import functools
import pathlib
from base64 import b64decode

import pytest
import torch
from architecture_code import CODE

import tutorial_figures as figures
from tutorial_figures.writing import in_8_bits
from tutorial_lib.llama import Llama

PHONE = {"viewport": {"width": 400, "height": 500}, "has_touch": True}
WORDS = ["The", "cat", "it", "sat", "down"]
NAMES = ["cat", "dog", "bird", "fish"]


def softmaxed(*shape, seed):
    return torch.softmax(2 * torch.randn(shape, generator=torch.manual_seed(seed)), -1)


def drawn(*shape, seed):
    return torch.rand(shape, generator=torch.manual_seed(seed))


WEIGHTS = softmaxed(2, 3, 5, 5, seed=1)
X = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 4.0])
Y = torch.tensor([0.0, 1.0, 0.5, 2.0, 1.5, 0.0, 1.0])
SCORES = torch.tensor([2.0, 1.0, 0.0, -1.0])
# A class token and 3 × 4 patches of 2 × 2 pixels.
PATCH_WEIGHTS, IMAGE = softmaxed(2, 3, 13, 13, seed=3), drawn(6, 8, seed=4)
# Two scenes of 2 × 3 patches of 2 × 2 pixels, at three steps of training.
SCENES, SCENE_WEIGHTS = drawn(2, 4, 6, seed=5), drawn(3, 2, 2, 2, 3, seed=6)
SCENE_BOXES = 0.3 + 0.4 * drawn(3, 2, 2, 4, seed=8)
SAID_OF_SCENES = [
    [[None, None], ["a cat", "a cat"]],
    [["a cat", None], ["a dog", "a bird"]],
    [["a cat", "a dog"], [None, "a bird"]],
]
STEPS = 0, 20, 500
# Four corners of a map and a value between them, whose key is much like the first.
KEYS = torch.tensor([[2, 1, 0], [0, 2, 1], [1, 0, 2], [-1, 1, 1], [2, 0, 1]]).double()
PLACES = torch.tensor([[0, 0], [2, 0], [2, 1], [0, 1], [0.8, 0.4]]).double()
TOWNS = ["west", "south", "east", "north", "town"]
# After each of four tokens the logits of four words; two blocks that look back.
LOGITS = torch.tensor([[2.0, 1, 0, 0], [0, 2, 3, 1], [1, 0, 0, 2], [3, 0, 0, 0]])
BACKWARD = torch.ones(2, 4, 4).tril()
BACKWARD[1] += 3 * torch.eye(4)
BACKWARD /= BACKWARD.sum(dim=-1, keepdim=True)
TEXT = ["<bos>", "cats", "sleep", "<eos>"]
# A model that has learned nothing, of seven letters.
LETTERS = [*"abcde \n"]
with torch.random.fork_rng():
    torch.manual_seed(7)
    WRITER = Llama(len(LETTERS), 16, 4, 2, num_kv_heads=2, d_ff=44)
    for weight in WRITER.parameters():
        torch.nn.init.normal_(weight)
in_8_bits(WRITER)


def maker(show, *given, **named):
    """Return a function that makes a figure, once for the same options."""
    return functools.cache(functools.partial(show, *given, **named))


architecture = maker(figures.show_architecture, CODE)
attention = maker(figures.show_attention, WEIGHTS, WORDS, layer=0)
generation = maker(figures.show_generation, LOGITS, BACKWARD, TEXT, TEXT)
induction = maker(figures.show_induction)
kernel_regression = maker(
    figures.show_kernel_regression, X, Y, query=1.2, bandwidth=0.6
)
learning = maker(
    figures.show_learning, KEYS, PLACES, labels=TOWNS, landmarks={"middle": [1, 0.5]}
)
model_heads = maker(figures.show_model_heads)
objects = maker(
    figures.show_objects,
    SCENES,
    SAID_OF_SCENES,
    SCENE_BOXES,
    SCENE_WEIGHTS,
    steps=STEPS,
)
patches = maker(figures.show_patch_attention, PATCH_WEIGHTS, IMAGE, layer=0)
positions = maker(figures.show_positions, 40, 8)
sampling = maker(figures.show_sampling, SCORES, NAMES)
softmax = maker(figures.show_softmax, SCORES, labels=NAMES, d_k=64)
windows = maker(figures.show_windows)
writing = maker(
    figures.show_writing, WRITER, LETTERS, "a bad cab", length=20, max_tokens=24
)
MAKERS = (architecture, attention, generation, induction, kernel_regression, learning)
MAKERS += (
    model_heads,
    objects,
    patches,
    positions,
    sampling,
    softmax,
    windows,
    writing,
)
FIGURES = {make().name: make for make in MAKERS}
assert len(FIGURES) == len(MAKERS), "two figures have one name"
every_figure = pytest.mark.parametrize("name", FIGURES)

UNREPORTED = (
    "for (const kind of ['error', 'unhandledrejection'])"
    "  addEventListener(kind, (event) => event.preventDefault());"
)
PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5E"
    "rkJggg=="
)

# A figure draws in the frame in which its size is first told.
DRAWN = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def without_picture(figure):
    """Return a figure with a pixel for its picture, which takes long to draw."""
    figure = copy.copy(figure)
    vars(figure).pop("html", None)
    vars(figure)["png"] = PIXEL
    return figure


def write_page(path, body):
    """Write a page of a body; return its path."""
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>'
    pathlib.Path(path).write_text(f"{head}<body>{body}", encoding="utf-8")
    return path


def readout(page):
    """Return the figure's sentence without the marks that isolate its tokens."""
    return without_isolates(page.locator(".readout").inner_text())


def without_isolates(text):
    return text.translate({0x2068: "", 0x2069: "", 0xA0: " "})


def texts(locator):
    """Return the texts that are not empty; SVG has no inner text."""
    return [text for text in locator.all_text_contents() if text]


def as_shown(weights):
    return [f"{weight:.3f}" if weight >= 0.0005 else "<0.001" for weight in weights]


def pixels_of(page, which):
    """Return the colors (height, width, 4) of a canvas, from 0 to 1."""
    width, height, *pixels = page.locator(which).evaluate(
        "canvas => [canvas.width, canvas.height, ...canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data]"
    )
    return torch.tensor(pixels).reshape(height, width, 4).double() / 255


def handle(page, which):
    """Return where the middle of a part lies."""
    box = page.locator(which).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def width_of(page):
    return page.evaluate("document.documentElement.scrollWidth")


def stop_clock(page):
    """Let the page's time pass only by ``page.clock.run_for``."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.is_stopped = True


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def press_in_stage(page, *keys):
    """Press keys in the part of a figure that they move."""
    page.locator("[role=application]").focus()
    press(page, *keys)


def move_by_keys(page, name, times=1):
    """Press a key that changes what a figure says, or else move its first slider."""
    movers = "[role=application], .track input, .stage button, [aria-label=top-p]"
    mover = page.locator(f"{movers}, [aria-label*=training]")
    if not mover.count():
        mover = page.locator("input[type=range]")
    assert mover.count(), "no slider: say in move_by_keys which key moves this figure"
    mover.first.focus()
    key = "ArrowLeft" if name in ("objects", "sampling", "writing") else "ArrowRight"
    press(page, *[key] * times)
    if name == "writing":  # which answers when its model has computed
        page.locator("p.readout", has_text="the likeliest is").wait_for()


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
        there = [a + (b - a) * step / 8 for a, b in zip(start, end, strict=True)]
        send("touchMove", there)
    send("touchEnd")
