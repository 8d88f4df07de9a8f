"""What a reader sees of attention to patches after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    DRAWN,
    IMAGE,
    PATCH_WEIGHTS,
    PHONE,
    as_shown,
    drawn,
    handle,
    patches,
    pixels_of,
    press,
    press_in_stage,
    readout,
    softmaxed,
    texts,
    touch_drag,
    width_of,
)

from tutorial_figures import show_patch_attention
from tutorial_lib.plotting.colors import scale

TOKENS = ["class token", *((row, column) for row in range(3) for column in range(4))]
STAGE = ".stage > canvas"


def in_patches(page, token, rows=3, columns=4):
    """Return where on the page a token lies, given as in TOKENS."""
    if token == "class token":
        return handle(page, ".chip")
    box = page.locator(STAGE).bounding_box()
    x = box["x"] + box["width"] * (token[1] + 0.5) / columns
    return x, box["y"] + box["height"] * (token[0] + 0.5) / rows


def weights_of(token, layer=0, head=0):
    """Return the weights (key,) that a token gives, as the page knows them."""
    weights = PATCH_WEIGHTS[layer]
    weights = weights.mean(0) if head == "mean" else weights[head]
    return (1000 * weights[TOKENS.index(token)].double()).round() / 1000


def over_pixels(weights, most=None):
    """Return weights (patch,) for each of IMAGE's pixels, as shares of the largest."""
    shares = weights.reshape(3, 4) / (most or weights.max())
    return shares.repeat_interleave(2, 0).repeat_interleave(2, 1)


def blended(grey, shades, dark=False):
    """Return what a pale image (…) looks like under shades (…) of the Blues."""
    pale = (grey if dark else 1 + grey)[..., None] / 2
    strongest = torch.tensor(scale("weights")(0.55 if dark else 0.75)[:3])
    return pale + 0.85 * shades[..., None] * (strongest - pale)


def veiled(image, shares):
    """Return an image (channel, height, width) under a veil but for these shares."""
    return 127 / 255 + (0.22 + 0.78 * shares) * (image - 127 / 255)


def assert_overlay(page, weights, *, most=None, dark=False):
    """Compare the image on the page with one under the weights (patch,)."""
    image = (IMAGE if dark else 1 - IMAGE).double()
    shown = pixels_of(page, STAGE)
    expected = blended(image, over_pixels(weights, most), dark)
    assert (shown[..., :3] - expected).abs().max() < 0.01
    assert (shown[..., 3] == 1).all()


def assert_veiled(page, image, shares):
    pixels = pixels_of(page, STAGE)[..., :3].permute(2, 0, 1)
    assert (pixels - veiled(image, shares)).abs().max() < 0.01


def assert_shows(page, token, layer=0, head=0):
    """Check overlay, frame, chip, gauge, legend and sentence for one query."""
    weights = weights_of(token, layer, head)
    assert_overlay(page, weights[1:])
    assert handle(page, ".frame") == pytest.approx(in_patches(page, token), abs=1)
    assert texts(page.locator(".chip ~ .middle"))[0] == as_shown(weights)[0]
    gauge, chip = (page.locator(of).bounding_box() for of in (".gauge", ".chip"))
    assert gauge["height"] == pytest.approx(84 * float(weights[0]), abs=0.1)
    bottom = gauge["y"] + gauge["height"]
    assert bottom == pytest.approx(chip["y"] + chip["height"], abs=1.5)
    assert page.get_by_text(f"{weights[1:].max():.3f}", exact=True).is_visible()
    assert readout(page) == sentence_of(token, weights)


def sentence_of(token, weights):
    subject = f"Patch {token}"
    receiver = "the class token"
    if token == "class token":
        subject, receiver = "The class token", "itself"
    order = sorted(range(1, 13), key=lambda key: -weights[key])[:3]
    largest = ", ".join(
        f"{'itself' if TOKENS[key] == token else TOKENS[key]} {as_shown(weights)[key]}"
        for key in order
    )
    given = f"{subject} gives {receiver} {as_shown(weights)[0]}."
    return f"{given} Of the patches it attends most to {largest}."


def test_every_token_pointed_at_lays_its_weights_over_the_image(shown):
    page = shown(patches(layer=1, head=1))
    assert_shows(page, "class token", 1, 1)
    for token in TOKENS:
        page.mouse.move(*in_patches(page, token))
        assert_shows(page, token, 1, 1)


def test_a_patch_is_looked_at_in_passing_and_kept_by_a_click(shown):
    page = shown(patches())
    page.mouse.move(*in_patches(page, (2, 3)))
    page.mouse.move(5, 5)
    assert_shows(page, "class token")
    page.mouse.click(*in_patches(page, (1, 2)))
    for token in ((2, 3), "class token"):
        page.mouse.move(*in_patches(page, token))
        assert_shows(page, token)
        page.mouse.move(5, 5)
        assert_shows(page, (1, 2))
    x, y = in_patches(page, "class token")
    for place in ((x + 42, y), (x, y - 60), (x, y + 60)):  # beside the chip
        page.mouse.click(*place)
        assert_shows(page, (1, 2))
    press_in_stage(page, "ArrowUp")
    page.mouse.move(5, 5)
    assert_shows(page, (0, 2))
    page.mouse.click(*in_patches(page, "class token"))
    page.mouse.move(5, 5)
    assert_shows(page, "class token")


def test_arrow_keys_walk_the_patches_and_reach_the_class_token(shown):
    page = shown(patches())
    press_in_stage(page, "ArrowUp", "ArrowLeft")
    assert_shows(page, "class token")
    for key, token in (
        ("ArrowRight", (1, 0)),
        ("ArrowUp", (0, 0)),
        ("ArrowUp", (0, 0)),
        ("ArrowRight", (0, 1)),
        ("ArrowDown", (1, 1)),
        ("ArrowDown", (2, 1)),
        ("ArrowDown", (2, 1)),
        ("ArrowLeft", (2, 0)),
        ("ArrowLeft", "class token"),
        ("ArrowDown", "class token"),
        ("ArrowRight", (2, 0)),
        ("Escape", "class token"),
        ("ArrowRight", (1, 0)),
    ):
        press(page, key)
        assert_shows(page, token)
    press(page, *["ArrowRight"] * 9)
    assert_shows(page, (1, 3))


def test_a_finger_taps_a_patch_and_the_class_token_and_scrolls_the_page(shown):
    page = shown(patches(), **PHONE)
    for token in ((2, 1), "class token"):
        page.touchscreen.tap(*in_patches(page, token))
        assert_shows(page, token)
    x, y = in_patches(page, (2, 1))
    touch_drag(page, (x, y), (x, y - 120))
    assert_shows(page, "class token")


def test_layer_and_head_of_patches_are_chosen_and_the_kept_patch_stays(shown):
    page = shown(patches())
    page.mouse.click(*in_patches(page, (1, 3)))
    page.get_by_label("layer", exact=True).select_option("1")
    assert_shows(page, (1, 3), 1, 0)
    for i, head in enumerate((0, 1, 2, "mean")):  # the small maps
        over = weights_of((1, 3), 1, head)[1:].reshape(3, 4)
        small = pixels_of(page, f".heads canvas >> nth={i}")
        expected = scale("weights")(over / over.max())
        assert small.numpy() == pytest.approx(expected, abs=0.01)
    page.get_by_label("head 2", exact=True).click()
    assert_shows(page, (1, 3), 1, 2)
    assert page.get_by_label("head", exact=True).input_value() == "2"
    page.get_by_label("head", exact=True).select_option("mean")
    assert_shows(page, (1, 3), 1, "mean")
    pressed = page.locator("[aria-pressed=true]")
    assert pressed.get_attribute("aria-label") == "head mean"


def test_colors_and_numbers_can_be_those_of_the_weights_themselves(shown):
    page = shown(patches(head=1))
    numbers = page.locator(".stage .small.number")
    page.get_by_label("colors from 0 to 1").check()
    page.get_by_label("numbers", exact=True).check()
    for token in ("class token", (2, 2)):
        page.mouse.move(*in_patches(page, token))
        over = weights_of(token, 0, 1)[1:]
        assert_overlay(page, over, most=1)
        assert page.get_by_text("1.000", exact=True).is_visible()
        assert texts(numbers) == as_shown(over)
        middle = handle(page, ".stage .small.number >> nth=6")
        assert middle == pytest.approx(in_patches(page, (1, 2)), abs=3)
    page.get_by_label("colors from 0 to 1").uncheck()
    page.get_by_label("numbers", exact=True).uncheck()
    assert texts(numbers) == []
    assert_shows(page, "class token", 0, 1)


def test_what_would_show_nothing_is_not_offered(shown):
    page = shown(show_patch_attention(torch.full((13, 13), 1 / 13), IMAGE))
    assert page.get_by_label("colors from 0 to 1").count() == 0
    page = shown(show_patch_attention(torch.eye(257), torch.zeros(32, 32)), **PHONE)
    assert not page.get_by_label("numbers", exact=True).is_visible()
    assert page.locator(".stage .small.number").count() == 0
    page.mouse.click(*in_patches(page, (15, 15), 16, 16))
    least = "gives the class token 0. Of the patches it attends most to itself 1.000."
    assert readout(page).endswith(least)


def test_in_the_dark_ink_is_light_and_the_legend_shows_its_colors_on_both(shown):
    page = shown(patches(), color_scheme="dark")
    page.mouse.move(*in_patches(page, (1, 2)))
    assert_overlay(page, weights_of((1, 2))[1:], dark=True)
    page.emulate_media(color_scheme="light")
    page.wait_for_function("!document.querySelector('[data-dark]')")
    assert_overlay(page, weights_of((1, 2))[1:])
    assert page.get_by_text(f"equal shares: {1 / 13:.3f}", exact=True).is_visible()
    shades = torch.linspace(0, 1, 81).double()
    expected = torch.stack([blended(torch.full((81,), x), shades) for x in (1, 0)])
    legend = pixels_of(page, ".bar > canvas")[..., :3]
    assert (legend - expected).abs().max() < 0.01


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_photograph_keeps_its_colors_under_a_veil_where_nobody_looks(scheme, shown):
    photograph, weights = drawn(3, 6, 8, seed=6).double(), torch.zeros(13, 13)
    weights[:, 1], weights[:, 6] = 0.8, 0.2
    page = shown(show_patch_attention(weights, photograph), color_scheme=scheme)
    assert_veiled(page, photograph, over_pixels(weights[0, 1:].double()))


def test_patches_without_a_class_token_show_no_chip(shown, axe_violations):
    weights = PATCH_WEIGHTS[0, 0, 1:, 1:]
    weights = weights / weights.sum(-1, keepdim=True)
    page = shown(show_patch_attention(weights, IMAGE, class_token=False), **PHONE)
    assert page.locator(".chip, .gauge, .heads button, select").count() == 0
    assert "class token" not in page.locator("main").inner_text()
    assert readout(page).startswith("Patch (1, 2) attends most to ")
    press_in_stage(page, *["ArrowLeft"] * 5, "ArrowDown")
    over = (1000 * weights[8].double()).round() / 1000
    assert_overlay(page, over)
    key = int(over.argmax())
    name = "itself" if key == 8 else f"({key // 4}, {key % 4})"
    assert readout(page).startswith(
        f"Patch (2, 0) attends most to {name} {over[key]:.3f}, "
    )
    assert axe_violations(page) == [] and width_of(page) <= 400


def test_a_patch_that_is_named_speaks_first_and_after_escape(shown):
    page = shown(show_patch_attention(PATCH_WEIGHTS, IMAGE, layer=0, first=(0, 3)))
    assert_shows(page, (0, 3))
    page.mouse.click(*in_patches(page, (2, 1)))
    press_in_stage(page, "Escape")
    page.mouse.move(0, 0)
    assert_shows(page, (0, 3))


def test_a_query_that_looks_at_no_patch_says_nothing(shown):
    page = shown(show_patch_attention(torch.eye(13), IMAGE))
    assert readout(page) == (
        "The class token gives itself 1.000. Of the patches it attends most to nothing."
    )
    assert_overlay(page, torch.zeros(12).double(), most=1)


@pytest.mark.parametrize("size", [(2, 20), (20, 2), (2, 2), (224, 224)])
def test_images_of_any_form_fit_a_phone_and_a_page(size, shown):
    patch = 16 if size[0] == 224 else 2
    rows, columns = size[0] // patch, size[1] // patch
    weights = torch.eye(1 + rows * columns).repeat(2, 1, 1)
    page = shown(show_patch_attention(weights, torch.zeros(size)))
    for width in (1000, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(
            "width => document.documentElement.scrollWidth <= width", arg=width
        )
        page.evaluate(DRAWN)  # a new width draws the image anew
        page.mouse.click(*in_patches(page, (rows - 1, columns - 1), rows, columns))
        last = f"Patch {(rows - 1, columns - 1)}"
        assert readout(page).startswith(f"{last} gives the class token 0. ")
        box = page.locator(STAGE).bounding_box()
        assert box["width"] / box["height"] == pytest.approx(columns / rows, abs=0.01)
        assert box["width"] / columns >= 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_question_lights_what_it_looks_at_and_tells_of_a_patch(
    scheme, shown, axe_violations
):
    weights, image = softmaxed(2, 12, seed=5), drawn(3, 6, 8, seed=6).double()
    weights = (1000 * weights.double()).round() / 1000
    asked = ["What is here?", "Where is it?"]
    figure = show_patch_attention(weights, image, questions=asked)
    page = shown(figure, color_scheme=scheme, **PHONE)
    for question, name in enumerate(asked):
        page.get_by_role("button", name=name).click()
        assert_veiled(page, image, over_pixels(weights[question]))
    assert page.locator("[aria-pressed=true]").all_inner_texts() == [asked[1]]
    largest = int(weights[1].argmax())
    where = f"({largest // 4}, {largest % 4})"
    most = f"{weights[1, largest]:.3f}"
    assert readout(page).startswith(f"Where is it? Patch {where} gets {most}")
    page.mouse.click(*in_patches(page, (2, 1)))
    assert readout(page).startswith(
        f"Where is it? Patch (2, 1) gets {weights[1, 9]:.3f}, and the largest are "
        f"{where} {most}, "
    )
    press_in_stage(page, "ArrowUp")
    assert f"Patch (1, 1) gets {weights[1, 5]:.3f}" in readout(page)
    assert page.locator(".chip").count() == 0
    assert axe_violations(page) == [] and width_of(page) <= 400
