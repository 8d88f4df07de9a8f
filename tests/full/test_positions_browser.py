"""What a reader sees of positional encodings after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    PHONE,
    click,
    drag,
    handle,
    pixels_of,
    positions,
    press,
    press_in_stage,
    readout,
    touch_drag,
    width_of,
)
from positions_by_formula import (
    assert_curve,
    curve_shown,
    dot_products,
    points_of,
    queries_and_keys,
    sentence_of,
)

from tutorial_figures import show_positions
from tutorial_lib.plotting.colors import scale

DISTANCE = {"sinusoidal": 5, "rotary": -3}  # at first
FAINT = [0, 10, 19, 29, 39]
FAINT_CURVES = ".stage path:not(.first)"
MAPS = ".stage > canvas"
every_kind = pytest.mark.parametrize("kind", DISTANCE)


def in_map(page, t, row=4):
    """Return where on the page a number of position t lies."""
    box = page.locator(MAPS).first.bounding_box()
    x = box["x"] + box["width"] * (t + 0.5) / 40
    return x, box["y"] + box["height"] * (row + 0.5) / 8


def choose(page, name, option):
    page.get_by_label(name, exact=True).select_option(option)


def middle_of(page, which):
    return handle(page, which)[0]


@every_kind
def test_a_position_is_dragged_and_its_curve_is_that_of_the_papers(kind, shown):
    page, products = shown(positions(kind=kind)), dot_products(kind)
    assert readout(page) == sentence_of(kind, products, 8, 8 + DISTANCE[kind])
    assert positions(kind=kind).text.endswith(readout(page))
    assert_curve(page, products, 8)
    assert page.locator(FAINT_CURVES).count() == len(FAINT)
    for i, other in enumerate(FAINT):
        assert_curve(page, products, other, f"{FAINT_CURVES} >> nth={i}")
    assert page.get_by_text("positions 0, 10, 19, 29, 39", exact=True).is_visible()
    drag(page, in_map(page, 8), in_map(page, 15), in_map(page, 23))
    assert readout(page) == sentence_of(kind, products, 23, 23 + DISTANCE[kind])
    assert_curve(page, products, 23)
    page.mouse.move(*in_map(page, 3))
    assert_curve(page, products, 23)
    drag(page, in_map(page, 23), in_map(page, 39), in_map(page, 60))
    assert_curve(page, products, 39)


def test_the_distance_is_dragged_below_and_kept_where_there_is_room(shown):
    page, products = shown(positions()), dot_products("sinusoidal")
    box = page.locator(".stage svg").bounding_box()
    x, y = handle(page, "circle.second")
    step = (box["width"] - 40 - 12) / 78
    drag(page, (x, y), (x - 9 * step, y - 20))
    assert readout(page) == sentence_of("sinusoidal", products, 8, 4)
    assert middle_of(page, "circle.second") == pytest.approx(x - 9 * step, abs=0.5)
    drag(page, (x, y), (5, y))
    assert readout(page) == sentence_of("sinusoidal", products, 8, 0)
    click(page, "reset")
    page.mouse.click(*in_map(page, 38))
    assert "Position 38 and position 39:" in readout(page)
    page.mouse.click(*in_map(page, 20))
    assert "Position 20 and position 25:" in readout(page)
    page.mouse.click(*in_map(page, 38))
    press_in_stage(page, "ArrowDown")  # from where it stands
    assert "Position 38 and position 38:" in readout(page)


def test_the_point_lies_on_the_curve_and_the_frames_around_their_columns(shown):
    page = shown(positions())
    page.mouse.click(*in_map(page, 21))
    point = [
        float(page.locator("circle.second").get_attribute(name))
        for name in ("cx", "cy")
    ]
    path = points_of(page.locator("path.first").get_attribute("d"))
    assert path[21 + 5].tolist() == pytest.approx(point, abs=1e-6)
    cell = page.locator(MAPS).first.bounding_box()["width"] / 40
    for which, letter, position in (("first", "t", 21), ("second", "j", 26)):
        middle = in_map(page, position)[0]
        assert middle_of(page, f"rect.{which}") == pytest.approx(middle, abs=0.5)
        width = page.locator(f"rect.{which}").bounding_box()["width"]
        assert cell < width < cell + 8
        assert page.get_by_text(f"position {letter} = {position}").is_visible()
    assert middle_of(page, "circle.first") == pytest.approx(
        in_map(page, 21)[0], abs=0.5
    )


def test_a_key_is_framed_among_the_keys_and_dragged_there(shown):
    page = shown(positions(kind="rotary"))
    upper, lower = (page.locator(MAPS).nth(i).bounding_box() for i in (0, 1))
    assert upper["y"] + upper["height"] < lower["y"]
    for which, place, box in (("first", 8, upper), ("second", 5, lower)):
        middle = in_map(page, place)[0]
        assert middle_of(page, f"rect.{which}") == pytest.approx(middle, abs=0.5)
        top = page.locator(f"rect.{which}").bounding_box()["y"]
        assert top == pytest.approx(box["y"] - 3, abs=1.5)
    y = lower["y"] + 4
    drag(page, (in_map(page, 20)[0], y), (in_map(page, 30)[0], y))
    assert readout(page) == sentence_of("rotary", dot_products("rotary"), 8, 30)
    assert page.get_by_label("key", exact=True).is_visible()
    choose(page, "encoding", "sinusoidal")
    assert page.locator(MAPS).count() == 1
    assert not page.get_by_label("key", exact=True).is_visible()


def test_arrow_keys_move_the_position_and_the_distance(shown):
    page, products = shown(positions(kind="rotary")), dot_products("rotary")
    press_in_stage(page)
    for keys, t, j in (
        (["ArrowRight", "ArrowRight", "ArrowLeft"], 9, 6),
        (["ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"], 9, 8),
        (["ArrowLeft"] * 12, 0, 0),
        (["ArrowRight"] * 50, 39, 38),
        (["ArrowUp"] * 4, 39, 39),
    ):
        press(page, *keys)
        assert readout(page) == sentence_of("rotary", products, t, j)
        assert_curve(page, products, t)


def test_a_finger_drags_the_position_and_a_swipe_down_the_page_does_not(shown):
    page = shown(positions(), **PHONE)
    touch_drag(page, in_map(page, 8), in_map(page, 30))
    assert "Position 30 and position 35:" in readout(page)
    page.touchscreen.tap(*in_map(page, 12))
    assert "Position 12 and position 17:" in readout(page)
    x, y = in_map(page, 25)
    touch_drag(page, (x, y), (x, y - 150))
    assert "Position 12 and position 17:" in readout(page)


def spread(page, products):
    """Return by how much curves differ at most where they share a distance."""
    which = ["path.first", *(f"{FAINT_CURVES} >> nth={i}" for i in range(len(FAINT)))]
    curves = [curve_shown(page, products, path) for path in which]
    differences = [
        abs(one[distance] - two[distance])
        for one in curves
        for two in curves
        for distance in one.keys() & two.keys()
    ]
    assert len(differences) > 500
    return max(differences) / float(products.abs().max())


def test_curves_coincide_as_only_the_distance_counts_and_peak_where_two_fit(shown):
    page = shown(positions())
    page.mouse.click(*in_map(page, 17))
    assert spread(page, dot_products("sinusoidal")) < 1e-6
    choose(page, "encoding", "rotary")
    for key, (name, peak, lesson) in enumerate((
        ("equal to the query", 0, "the same values: the curve peaks at distance 0."),
        ("fits 3 positions back", -3, "the curve peaks at −3, not at 0."),
        ("other values", None, "Every key has values of its own: "),
    )):  # fmt: skip
        choose(page, "key", name)
        products = dot_products("rotary", key=key)
        assert_curve(page, products, 17)
        assert spread(page, products) < 1e-6
        curve = curve_shown(page, products)
        assert peak in (None, max(curve, key=curve.get))
        assert lesson in page.locator("p").last.inner_text()


@every_kind
def test_the_base_slows_the_slow_pairs_and_reset_brings_all_back(kind, shown):
    page = shown(positions(kind=kind))
    lesson = page.locator("p").last
    first = readout(page)
    # 2π · 10000^(6/8) positions
    slowest = "The slowest pair, 3, has a wavelength of 6283 positions."
    assert lesson.inner_text().endswith(slowest)
    page.get_by_label("base", exact=True).fill("1.5")
    assert page.locator("label .number").inner_text() == "32"
    assert_curve(page, dot_products(kind, base=32), 8)
    assert lesson.inner_text().endswith("has a wavelength of 85 positions.")
    page.get_by_label("base", exact=True).focus()
    press(page, "ArrowLeft")
    assert_curve(page, dot_products(kind, base=28), 8)
    page.mouse.click(*in_map(page, 30))
    choose(page, "encoding", "1" if kind == "sinusoidal" else "0")
    click(page, "reset")
    assert readout(page) == first and lesson.inner_text().endswith(slowest)
    assert_curve(page, dot_products(kind), 8)


def map_pixels(page, which=0):
    """Return the colors (d_model, token, 4) of a map, from 0 to 1."""
    return pixels_of(page, f"{MAPS} >> nth={which}")


@every_kind
def test_the_map_has_the_colours_of_the_static_maps_of_signed_numbers(kind, shown):
    page, parts = shown(positions(kind=kind)), list(queries_and_keys(kind))
    limit = max(part.abs().max() for part in parts)
    for which, part in enumerate(parts if kind == "rotary" else parts[:1]):
        expected = torch.tensor(scale("scores")((part.T / limit + 1) / 2))
        assert (map_pixels(page, which) - expected).abs().max() < 0.025
    if kind == "sinusoidal":
        low, high = page.locator(".scale span").all_inner_texts()
        assert (low, high) == ("−1.0", "1.0")
        ends = 255 * pixels_of(page, ".scale canvas")[0, [0, 80]]
        assert ends.tolist() == [[5, 48, 97, 255], [103, 0, 31, 255]]


@every_kind
def test_in_the_dark_zero_is_the_page_and_both_signs_brighten(kind, shown):
    page = shown(positions(kind=kind), color_scheme="dark")
    queries, _ = queries_and_keys(kind)
    shares = queries.T / queries.abs().max()
    pixels = map_pixels(page)
    red, blue, alpha = pixels[..., 0], pixels[..., 2], pixels[..., 3]
    assert (alpha[shares.abs() > 0.26] == 1).all()
    assert (alpha[shares.abs() < 0.1] < 0.43).all()
    assert (red > blue)[shares > 0.05].all() and (red < blue)[shares < -0.05].all()
    light = pixels[..., :3].sum(-1)
    strong, weak = light[shares.abs() > 0.9].mean(), light[shares.abs() < 0.4].mean()
    assert strong > weak + 0.6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rotary_kind_fits_a_phone_and_is_open_to_anybody(
    scheme, shown, axe_violations
):
    page = shown(positions(kind="rotary"), color_scheme=scheme, **PHONE)
    assert width_of(page) <= 400 and axe_violations(page) == []


@every_kind
@pytest.mark.parametrize("size", [(2, 2), (256, 256)])
def test_the_smallest_and_the_largest_figure_run(kind, size, shown):
    page = shown(show_positions(*size, kind=kind))
    press_in_stage(page, *["ArrowRight"] * 3, "ArrowDown", "ArrowUp")
    position = size[0] // 5 + 3 if size[0] > 2 else 1
    assert f"osition {position}" in readout(page)
    products = dot_products(kind, tokens=size[0], d_model=size[1])
    assert_curve(page, products, position)
