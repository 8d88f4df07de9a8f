"""What a reader sees of attention to patches after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    IMAGE,
    PATCH_WEIGHTS,
    PHONE,
    as_shown,
    handle,
    patches,
    press,
    said,
    texts,
    touch_drag,
)

from tutorial_figures import show_patch_attention
from tutorial_lib.plotting.colors import scale

TOKENS = ["class token", *((row, column) for row in range(3) for column in range(4))]


def in_patches(page, token, rows=3, columns=4):
    """Return where on the page a token lies, given as in TOKENS."""
    if token == "class token":
        return handle(page, ".chip")
    box = page.locator(".stage > canvas").bounding_box()
    x = box["x"] + box["width"] * (token[1] + 0.5) / columns
    return x, box["y"] + box["height"] * (token[0] + 0.5) / rows


def weights_of(token, layer=0, head=0):
    """Return the weights (key,) that a token gives, as the page knows them."""
    query = TOKENS.index(token)
    weights = PATCH_WEIGHTS[layer]
    weights = weights.mean(0) if head == "mean" else weights[head]
    return (1000 * weights[query].double()).round() / 1000


def canvas_of(page, which=".stage > canvas"):
    """Return the colors (height, width, 4) of a canvas, from 0 to 1."""
    width, height, *pixels = page.locator(which).evaluate(
        "canvas => [canvas.width, canvas.height, ...canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data]"
    )
    return torch.tensor(pixels).reshape(height, width, 4).double() / 255


def blended(grey, shades, dark=False):
    """Return what a pale image (…) looks like under shades (…) of the Blues."""
    pale = (grey if dark else 1 + grey)[..., None] / 2
    strongest = torch.tensor(scale("weights")(0.55 if dark else 0.75)[:3])
    return pale + 0.85 * shades[..., None] * (strongest - pale)


def assert_overlay(page, over, *, limit=None, dark=False):
    """Compare the image on the page with one under the weights (patch,)."""
    shades = over.reshape(3, 4) / (limit or over.max())
    shades = shades.repeat_interleave(2, 0).repeat_interleave(2, 1)
    expected = blended((IMAGE if dark else 1 - IMAGE).double(), shades, dark)
    shown = canvas_of(page)
    assert (shown[..., :3] - expected).abs().max() < 0.01
    assert (shown[..., 3] == 1).all()


def assert_shows(page, token, layer=0, head=0):
    """Check overlay, frame, chip, legend and sentence for one token as the query."""
    weights = weights_of(token, layer, head)
    assert_overlay(page, weights[1:])
    chosen = handle(page, ".frame")
    assert chosen == pytest.approx(in_patches(page, token), abs=1)
    assert texts(page.locator(".chip ~ .middle"))[0] == as_shown(weights)[0]
    assert page.get_by_text(f"{weights[1:].max():.3f}", exact=True).is_visible()
    assert said(page) == sentence_of_patch(token, weights)


def sentence_of_patch(token, weights):
    subject, receiver = f"Patch {token}", "the class token"
    if token == "class token":
        subject, receiver = "The class token", "itself"
    order = sorted(range(1, 13), key=lambda key: -weights[key])[:3]
    largest = ", ".join(
        f"{'itself' if TOKENS[key] == token else TOKENS[key]} {as_shown(weights)[key]}"
        for key in order
    )
    given = f"{subject} gives {receiver} {as_shown(weights)[0]}."
    return f"{given} Of the patches it looks most at {largest}."


def test_at_first_the_class_token_looks_at_the_image(shown):
    for layer, head in ((0, 0), (1, 2), (1, "mean")):
        page = shown(patches(layer=layer, head=head))
        assert_shows(page, "class token", layer, head)


def test_every_token_pointed_at_lays_its_weights_over_the_image(shown):
    page = shown(patches(layer=1, head=1))
    for token in TOKENS:
        page.mouse.move(*in_patches(page, token))
        assert_shows(page, token, 1, 1)


def test_a_patch_is_looked_at_in_passing_and_kept_by_a_click(shown):
    page = shown(patches())
    page.mouse.move(*in_patches(page, (2, 3)))
    page.mouse.move(5, 5)
    assert_shows(page, "class token")
    page.mouse.click(*in_patches(page, (1, 2)))
    page.mouse.move(*in_patches(page, (2, 3)))
    assert_shows(page, (2, 3))
    page.mouse.move(5, 5)
    assert_shows(page, (1, 2))
    page.mouse.move(*in_patches(page, "class token"))
    assert_shows(page, "class token")
    page.mouse.move(5, 5)
    assert_shows(page, (1, 2))
    page.mouse.click(*in_patches(page, "class token"))
    page.mouse.move(5, 5)
    assert_shows(page, "class token")


def test_between_chip_and_image_nothing_changes(shown):
    page = shown(patches())
    page.mouse.click(*in_patches(page, (0, 1)))
    x, y = in_patches(page, "class token")
    for place in ((x + 42, y), (x, y - 60), (x, y + 60)):
        page.mouse.click(*place)
        assert_shows(page, (0, 1))


def test_arrow_keys_walk_the_patches_and_reach_the_class_token(shown):
    page = shown(patches())
    page.locator("[role=application]").focus()
    press(page, "ArrowUp", "ArrowLeft")
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
    ):
        press(page, key)
        assert_shows(page, token)
    press(page, *["ArrowRight"] * 9)
    assert_shows(page, (2, 3))
    press(page, "Escape")
    assert_shows(page, "class token")
    press(page, "ArrowRight")
    assert_shows(page, (1, 0))


def test_keys_go_on_from_the_patch_that_was_clicked(shown):
    page = shown(patches())
    page.mouse.click(*in_patches(page, (2, 2)))
    page.locator("[role=application]").focus()
    press(page, "ArrowUp")
    page.mouse.move(5, 5)
    assert_shows(page, (1, 2))


def test_a_finger_taps_a_patch_and_the_class_token(shown):
    page = shown(patches(), **PHONE)
    for token in ((2, 1), "class token", (0, 3)):
        page.touchscreen.tap(*in_patches(page, token))
        assert_shows(page, token)


def test_a_finger_that_scrolls_the_page_chooses_nothing(shown):
    page = shown(patches(), **PHONE)
    x, y = in_patches(page, (2, 1))
    touch_drag(page, (x, y), (x, y - 120))
    assert_shows(page, "class token")


def test_layer_and_head_of_patches_are_chosen_and_the_kept_patch_stays(shown):
    page = shown(patches())
    page.mouse.click(*in_patches(page, (1, 3)))
    page.get_by_label("layer", exact=True).select_option("1")
    assert_shows(page, (1, 3), 1, 0)
    page.get_by_label("head 2", exact=True).click()
    assert_shows(page, (1, 3), 1, 2)
    assert page.get_by_label("head", exact=True).input_value() == "2"
    page.get_by_label("head", exact=True).select_option("mean")
    assert_shows(page, (1, 3), 1, "mean")
    pressed = page.locator("[aria-pressed=true]")
    assert pressed.get_attribute("aria-label") == "head mean"


def test_the_small_maps_show_where_the_query_looks_in_every_head(shown):
    page = shown(patches(layer=1))
    page.mouse.move(*in_patches(page, (0, 2)))
    for i, head in enumerate((0, 1, 2, "mean")):
        over = weights_of((0, 2), 1, head)[1:].reshape(3, 4)
        expected = scale("weights")(over / over.max())
        shown_map = canvas_of(page, f".heads canvas >> nth={i}")
        assert shown_map.numpy() == pytest.approx(expected, abs=0.01)


def test_colours_from_0_to_1_stand_for_the_weights_themselves(shown):
    page = shown(patches())
    page.get_by_label("colors from 0 to 1").check()
    page.mouse.move(*in_patches(page, (1, 1)))
    assert_overlay(page, weights_of((1, 1))[1:], limit=1)
    assert page.get_by_text("1.000", exact=True).is_visible()
    page.get_by_label("colors from 0 to 1").uncheck()
    assert_shows(page, "class token")


def test_numbers_on_the_patches_are_their_weights(shown):
    page = shown(patches(head=1))
    numbers = page.locator(".stage .small.number")
    assert texts(numbers) == []
    page.get_by_label("numbers", exact=True).check()
    for token in ("class token", (2, 2)):
        page.mouse.move(*in_patches(page, token))
        assert texts(numbers) == as_shown(weights_of(token, 0, 1)[1:])
        box = numbers.nth(6).bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        assert middle == pytest.approx(in_patches(page, (1, 2)), abs=3)
    page.get_by_label("numbers", exact=True).uncheck()
    assert texts(numbers) == []


def test_where_numbers_have_no_room_nobody_offers_them(shown):
    figure = show_patch_attention(torch.eye(257), torch.zeros(32, 32))
    page = shown(figure, **PHONE)
    assert not page.get_by_label("numbers", exact=True).is_visible()
    assert page.locator(".stage .small.number").count() == 0
    page.mouse.click(*in_patches(page, (15, 15), 16, 16))
    assert said(page).endswith("gives the class token 0. Of the patches it looks most "
                               "at itself 1.000.")  # fmt: skip


def test_the_gauge_is_as_high_as_the_share_of_the_class_token(shown):
    page = shown(patches())
    chip = page.locator(".chip").bounding_box()
    for token in ("class token", (0, 0), (2, 3)):
        page.mouse.move(*in_patches(page, token))
        gauge = page.locator(".gauge")
        y, height = (float(gauge.get_attribute(name)) for name in ("y", "height"))
        assert height == pytest.approx(84 * float(weights_of(token)[0]), abs=0.01)
        svg = page.locator(".stage svg").bounding_box()
        bottom = svg["y"] + y + height
        assert bottom == pytest.approx(chip["y"] + chip["height"], abs=1.5)


def test_the_legend_shows_its_colours_on_ink_and_on_paper(shown):
    page = shown(patches())
    assert page.get_by_text(f"equal shares: {1 / 13:.3f}", exact=True).is_visible()
    shades = torch.linspace(0, 1, 81).double()
    expected = torch.stack([blended(torch.full((81,), x), shades) for x in (1, 0)])
    shown_scale = canvas_of(page, ".bar > canvas")[..., :3]
    assert (shown_scale - expected).abs().max() < 0.01


def test_in_the_dark_ink_is_light_and_weights_shine(shown):
    page = shown(patches(), color_scheme="dark")
    for token in ("class token", (1, 2)):
        page.mouse.move(*in_patches(page, token))
        assert_overlay(page, weights_of(token)[1:], dark=True)
    page.emulate_media(color_scheme="light")
    page.wait_for_function("!document.querySelector('[data-dark]')")
    assert_overlay(page, weights_of((1, 2))[1:])


def veiled(image, shares):
    """Return an image (channel, height, width) under a veil but for these shares."""
    return 127 / 255 + (0.22 + 0.78 * shares) * (image - 127 / 255)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_photograph_keeps_its_colors_under_a_veil_where_nobody_looks(scheme, shown):
    photograph = torch.rand(3, 4, 4, generator=torch.manual_seed(6)).double()
    weights = torch.zeros(5, 5)
    weights[:, 1], weights[:, 4] = 0.8, 0.2
    page = shown(show_patch_attention(weights, photograph), color_scheme=scheme)
    shares = torch.tensor([[1.0, 0], [0, 0.25]]).double()
    shares = shares.repeat_interleave(2, 0).repeat_interleave(2, 1)
    found = canvas_of(page)[..., :3].permute(2, 0, 1)
    assert (found - veiled(photograph, shares)).abs().max() < 0.01


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_patches_without_a_class_token_show_no_chip(scheme, shown, barriers):
    weights = PATCH_WEIGHTS[0, 0, 1:, 1:]
    weights = weights / weights.sum(-1, keepdim=True)
    figure = show_patch_attention(weights, IMAGE, class_token=False)
    page = shown(figure, color_scheme=scheme, **PHONE)
    assert page.locator(".chip, .gauge, .heads button, select").count() == 0
    assert "class token" not in page.locator("main").inner_text()
    assert said(page).startswith("Patch (1, 2) looks most at ")
    page.locator("[role=application]").focus()
    press(page, *["ArrowLeft"] * 5, "ArrowDown")
    over = (1000 * weights[8].double()).round() / 1000
    assert_overlay(page, over, dark=scheme == "dark")
    key = int(over.argmax())
    name = "itself" if key == 8 else f"({key // 4}, {key % 4})"
    assert said(page).startswith(f"Patch (2, 0) looks most at {name} {over[key]:.3f}, ")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_patch_that_is_named_speaks_first_and_after_escape(shown):
    page = shown(show_patch_attention(PATCH_WEIGHTS, IMAGE, first=(0, 3)))
    assert_shows(page, (0, 3))
    page.mouse.click(*in_patches(page, (2, 1)))
    page.locator("[role=application]").focus()
    press(page, "Escape")
    page.mouse.move(0, 0)
    assert_shows(page, (0, 3))


def test_colors_from_0_to_1_are_offered_only_where_a_weight_could_be_seen(shown):
    for weights, offers in ((PATCH_WEIGHTS, 1), (torch.full((13, 13), 1 / 13), 0)):
        page = shown(show_patch_attention(weights, IMAGE))
        assert page.get_by_label("colors from 0 to 1").count() == offers


def test_a_query_that_looks_at_no_patch_says_nothing(shown):
    page = shown(show_patch_attention(torch.eye(5), IMAGE[:4, :4]))
    assert said(page) == (
        "The class token gives itself 1.000. Of the patches it looks most at nothing."
    )
    plain = blended(1 - IMAGE[:4, :4].double(), torch.zeros(4, 4))
    assert (canvas_of(page)[..., :3] - plain).abs().max() < 0.01


@pytest.mark.parametrize("size", [(2, 20), (20, 2), (2, 2), (224, 224)])
def test_images_of_any_form_fit_a_phone_and_a_page(size, shown):
    patch = 16 if size[0] == 224 else 2
    patches_there = size[0] * size[1] // patch**2
    weights = torch.eye(1 + patches_there).repeat(2, 1, 1)
    figure = show_patch_attention(weights, torch.zeros(size))
    rows, columns = size[0] // patch, size[1] // patch
    for options in ({}, PHONE):
        page = shown(figure, **options)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= (400 if options else 1000)
        last = rows - 1, columns - 1
        page.mouse.click(*in_patches(page, last, rows, columns))
        assert said(page).startswith(f"Patch {last} gives the class token 0. ")
        box = page.locator(".stage > canvas").bounding_box()
        assert box["width"] / box["height"] == pytest.approx(columns / rows, abs=0.01)
        assert box["width"] / columns >= 12


def questions_to(image=None):
    """Return a figure of two questions to 3 × 4 patches, and their weights."""
    weights = torch.softmax(torch.randn(2, 12, generator=torch.manual_seed(5)), -1)
    weights = (1000 * weights.double()).round() / 1000
    image = torch.rand(3, 6, 8) if image is None else image
    asked = ["What is here?", "Where is it?"]
    return show_patch_attention(weights, image, questions=asked), weights


def test_a_question_lights_what_it_looks_at_in_the_colors_of_the_image(shown):
    image = torch.rand(3, 6, 8, generator=torch.manual_seed(6)).double()
    figure, weights = questions_to(image)
    for scheme in ("light", "dark"):
        page = shown(figure, color_scheme=scheme)
        for question, name in enumerate(["What is here?", "Where is it?"]):
            page.get_by_role("button", name=name).click()
            shares = weights[question].reshape(3, 4) / weights[question].max()
            shares = shares.repeat_interleave(2, 0).repeat_interleave(2, 1)
            found = canvas_of(page)[..., :3].permute(2, 0, 1)
            assert (found - veiled(image, shares)).abs().max() < 0.01


def test_a_question_says_what_it_gives_to_the_patch_pointed_at(shown, barriers):
    figure, weights = questions_to()
    page = shown(figure, **PHONE)
    page.get_by_role("button", name="Where is it?").click()
    pressed = page.locator("[aria-pressed=true]").all_inner_texts()
    assert pressed == ["Where is it?"]
    largest = int(weights[1].argmax())
    where = f"({largest // 4}, {largest % 4})"
    assert said(page).startswith(
        f"Where is it? Patch {where} gets {weights[1, largest]:.3f}"
    )
    page.mouse.click(*in_patches(page, (2, 1)))
    assert said(page).startswith(
        f"Where is it? Patch (2, 1) gets {weights[1, 9]:.3f}, and the largest are "
        f"{where} {weights[1, largest]:.3f}, "
    )
    page.locator("[role=application]").focus()
    press(page, "ArrowUp")
    assert f"Patch (1, 1) gets {weights[1, 5]:.3f}" in said(page)
    assert page.locator(".chip").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert barriers(page) == []
