"""What a reader sees of positional encodings after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    PHONE,
    drag,
    handle,
    positions,
    press,
    said,
    touch_drag,
)
from positions_by_formula import (
    assert_curve,
    curve_shown,
    dot_products,
    places,
    queries_and_keys,
    sentence_of,
)

from tutorial_figures import show_positions
from tutorial_lib.plotting.colors import scale


def in_map(page, t, row=4):
    """Return where on the page a number of position t lies."""
    box = page.locator(".stage > canvas").first.bounding_box()
    x = box["x"] + box["width"] * (t + 0.5) / 40
    return x, box["y"] + box["height"] * (row + 0.5) / 8


def choose_kind(page, kind):
    page.get_by_label("encoding", exact=True).select_option(kind)


DISTANCE = {"sinusoidal": 5, "rotary": -3}  # at first


every_kind = pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
FAINT = [0, 10, 19, 29, 39]
FAINT_CURVES = ".stage path:not(.first)"


@every_kind
def test_the_curves_are_the_dot_products_of_the_papers_formulas(kind, shown):
    page = shown(positions(kind=kind))
    products = dot_products(kind)
    assert said(page) == sentence_of(kind, products, 8, 8 + DISTANCE[kind])
    assert positions(kind=kind).text.endswith(said(page))
    assert_curve(page, products, 8)
    assert page.locator(FAINT_CURVES).count() == len(FAINT)
    for i, other in enumerate(FAINT):
        assert_curve(page, products, other, f"{FAINT_CURVES} >> nth={i}")
    assert page.get_by_text("positions 0, 10, 19, 29, 39", exact=True).is_visible()


@every_kind
def test_a_position_is_dragged_and_its_curve_follows(kind, shown):
    page = shown(positions(kind=kind))
    products = dot_products(kind)
    drag(page, in_map(page, 8), in_map(page, 15), in_map(page, 23))
    assert said(page) == sentence_of(kind, products, 23, 23 + DISTANCE[kind])
    assert_curve(page, products, 23)
    page.mouse.move(*in_map(page, 3))
    assert_curve(page, products, 23)
    drag(page, in_map(page, 23), in_map(page, 39), in_map(page, 60))
    assert_curve(page, products, 39)
    assert "osition 39 and position 39:" in said(page) or kind == "rotary"


def test_the_distance_is_dragged_below(shown):
    page = shown(positions())
    box = page.locator(".stage svg").bounding_box()
    x, y = handle(page, "circle.second")
    step = (box["width"] - 40 - 12) / 78
    drag(page, (x, y), (x - 9 * step, y - 20))
    products = dot_products("sinusoidal")
    assert said(page) == sentence_of("sinusoidal", products, 8, 4)
    assert handle(page, "circle.second")[0] == pytest.approx(x - 9 * step, abs=0.5)
    drag(page, (x, y), (5, y))
    assert said(page) == sentence_of("sinusoidal", products, 8, 0)
    assert_curve(page, products, 8)


def test_the_point_lies_on_the_curve_and_the_frames_around_their_columns(shown):
    page = shown(positions())
    page.mouse.click(*in_map(page, 21))
    x, y = (
        float(page.locator("circle.second").get_attribute(name))
        for name in ("cx", "cy")
    )
    path = places(page.locator("path.first").get_attribute("d"))
    assert path[21 + 5].tolist() == pytest.approx([x, y], abs=1e-6)
    for which, position in (("first", 21), ("second", 26)):
        frame = page.locator(f"rect.{which}").bounding_box()
        cell = page.locator(".stage > canvas").first.bounding_box()["width"] / 40
        middle = frame["x"] + frame["width"] / 2
        assert middle == pytest.approx(in_map(page, position)[0], abs=0.5)
        assert cell < frame["width"] < cell + 8
        letter = "t" if which == "first" else "j"
        assert page.get_by_text(f"position {letter} = {position}").is_visible()
    assert handle(page, "circle.first")[0] == pytest.approx(
        in_map(page, 21)[0], abs=0.5
    )


def test_a_key_is_framed_among_the_keys_and_dragged_there(shown):
    page = shown(positions(kind="rotary"))
    upper, lower = (
        page.locator(".stage > canvas").nth(i).bounding_box() for i in (0, 1)
    )
    assert upper["y"] + upper["height"] < lower["y"]
    for which, place, box in (("first", 8, upper), ("second", 5, lower)):
        frame = page.locator(f"rect.{which}").bounding_box()
        middle = frame["x"] + frame["width"] / 2
        assert middle == pytest.approx(in_map(page, place)[0], abs=0.5)
        assert frame["y"] == pytest.approx(box["y"] - 3, abs=1.5)
    y = lower["y"] + 4
    drag(page, (in_map(page, 20)[0], y), (in_map(page, 30)[0], y))
    assert said(page) == sentence_of("rotary", dot_products("rotary"), 8, 30)
    choose_kind(page, "sinusoidal")
    assert page.locator(".stage > canvas").count() == 1


def test_arrow_keys_move_the_position_and_the_distance(shown):
    page = shown(positions(kind="rotary"))
    products = dot_products("rotary")
    page.locator("[role=application]").focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowLeft")
    assert said(page) == sentence_of("rotary", products, 9, 6)
    press(page, *["ArrowUp"] * 3, "ArrowDown")
    assert said(page) == sentence_of("rotary", products, 9, 8)
    assert_curve(page, products, 9)
    press(page, *["ArrowLeft"] * 12)
    assert said(page) == sentence_of("rotary", products, 0, 0)
    press(page, *["ArrowRight"] * 50)
    assert said(page) == sentence_of("rotary", products, 39, 38)
    press(page, *["ArrowUp"] * 4)
    assert said(page) == sentence_of("rotary", products, 39, 39)


def test_the_second_position_keeps_its_distance_where_there_is_room(shown):
    page = shown(positions())
    page.mouse.click(*in_map(page, 38))
    assert "Position 38 and position 39:" in said(page)
    page.mouse.click(*in_map(page, 20))
    assert "Position 20 and position 25:" in said(page)


def test_an_arrow_key_moves_the_distance_from_where_it_stands(shown):
    page = shown(positions())
    page.mouse.click(*in_map(page, 38))
    page.locator("[role=application]").focus()
    press(page, "ArrowDown")
    assert "Position 38 and position 38:" in said(page)


def test_a_finger_drags_the_position_and_a_swipe_down_the_page_does_not(shown):
    page = shown(positions(), **PHONE)
    touch_drag(page, in_map(page, 8), in_map(page, 30))
    assert "Position 30 and position 35:" in said(page)
    assert_curve(page, dot_products("sinusoidal"), 30)
    page.touchscreen.tap(*in_map(page, 12))
    assert "Position 12 and position 17:" in said(page)
    x, y = in_map(page, 25)
    touch_drag(page, (x, y), (x, y - 150))
    assert "Position 12 and position 17:" in said(page)


def spread(page, products):
    """Return by how much curves differ at most where they share a distance."""
    page.mouse.click(*in_map(page, 17))
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


@pytest.mark.parametrize(
    ("kind", "key"), [("sinusoidal", 0), ("rotary", 0), ("rotary", 1), ("rotary", 2)]
)
def test_curves_coincide_where_only_the_distance_counts(kind, key, shown):
    page = shown(positions())
    choose_kind(page, kind)
    if kind == "rotary":
        page.get_by_label("key", exact=True).select_option(str(key))
    products = dot_products(kind, key=key)
    assert_curve(page, products, 8)
    assert spread(page, products) < 1e-6


def test_a_rotary_curve_peaks_where_query_and_key_fit(shown):
    page = shown(positions(kind="rotary"))
    for key, peak, lesson in (
        ("the query itself", 0, "the same: the curve peaks at distance 0."),
        ("the query 3 positions on", -3, "the curve peaks 3 back, not at 0."),
    ):
        page.get_by_label("key", exact=True).select_option(key)
        curve = curve_shown(page, dot_products("rotary", key=-peak // 3))
        assert max(curve, key=curve.get) == peak
        assert lesson in page.locator("p").last.inner_text()
    page.get_by_label("key", exact=True).select_option("other numbers")
    assert "every key other numbers: " in page.locator("p").last.inner_text()


@every_kind
def test_the_base_slows_the_slow_pairs(kind, shown):
    page = shown(positions(kind=kind))
    lesson = page.locator("p").last
    # 2π · 10000^(6/8) positions
    assert lesson.inner_text().endswith("The slowest pair, 3, turns once in 6283 posi"
                                        "tions.")  # fmt: skip
    page.get_by_label("base", exact=True).fill("1.5")
    assert page.locator("label .number").inner_text() == "32"
    assert_curve(page, dot_products(kind, base=32), 8)
    assert lesson.inner_text().endswith("turns once in 85 positions.")
    page.get_by_label("base", exact=True).focus()
    press(page, "ArrowLeft")
    assert_curve(page, dot_products(kind, base=28), 8)


def test_controls_are_there_when_they_have_something_to_do(shown):
    page = shown(positions())
    options = page.get_by_label("encoding", exact=True).locator("option")
    assert options.all_inner_texts() == ["sinusoidal", "rotary"]
    for kind in ("rotary", "sinusoidal"):
        choose_kind(page, kind)
        key = page.get_by_label("key", exact=True)
        assert key.is_visible() == (kind == "rotary")


def test_reset_brings_the_first_positions_back(shown):
    page = shown(positions(base=500, kind="rotary"))
    first = said(page), page.locator("path.first").get_attribute("d")
    page.mouse.click(*in_map(page, 30))
    page.get_by_label("base", exact=True).fill("2")
    page.get_by_label("key", exact=True).select_option("other numbers")
    choose_kind(page, "sinusoidal")
    assert said(page) != first[0]
    page.get_by_role("button", name="reset").click()
    assert (said(page), page.locator("path.first").get_attribute("d")) == first
    assert page.get_by_label("encoding", exact=True).input_value() == "1"
    assert page.locator("label .number").inner_text() == "500"


def map_pixels(page, which=0):
    """Return the colors (d_model, token, 4) of a map."""
    pixels = page.locator(f".stage > canvas >> nth={which}").evaluate(
        "canvas => [...canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data]"
    )
    return torch.tensor(pixels).reshape(8, 40, 4)


@every_kind
def test_the_map_has_the_colours_of_the_static_maps_of_signed_numbers(kind, shown):
    page = shown(positions(kind=kind))
    parts = list(queries_and_keys(kind))
    limit = max(part.abs().max() for part in parts)
    for which, part in enumerate(parts if kind == "rotary" else parts[:1]):
        expected = 255 * torch.tensor(scale("scores")((part.T / limit + 1) / 2))
        assert (map_pixels(page, which) - expected).abs().max() < 6


@every_kind
def test_in_the_dark_zero_is_the_page_and_both_signs_brighten(kind, shown):
    page = shown(positions(kind=kind), color_scheme="dark")
    queries, _ = queries_and_keys(kind)
    shares = queries.T / queries.abs().max()
    pixels = map_pixels(page)
    red, blue, alpha = pixels[..., 0], pixels[..., 2], pixels[..., 3]
    assert (alpha[shares.abs() > 0.26] == 255).all()
    assert (alpha[shares.abs() < 0.1] < 110).all()
    assert (red > blue)[shares > 0.05].all() and (red < blue)[shares < -0.05].all()
    light = pixels[..., :3].sum(-1).double()
    strong, weak = light[shares.abs() > 0.9].mean(), light[shares.abs() < 0.4].mean()
    assert strong > weak + 150


def test_the_scale_names_the_largest_number_and_keeps_its_signs_apart(shown):
    page = shown(positions())
    low, high = page.locator(".scale span").all_inner_texts()
    assert (low, high) == ("−1.0", "1.0")
    ends = page.locator(".scale canvas").evaluate(
        "canvas => [0, 80].map(x => [...canvas.getContext('2d')"
        ".getImageData(x, 0, 1, 1).data])"
    )
    assert ends == [[5, 48, 97, 255], [103, 0, 31, 255]]


@every_kind
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_position_fits_a_phone_and_is_open_to_anybody(
    kind, scheme, shown, barriers
):
    page = shown(positions(kind=kind), color_scheme=scheme, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert barriers(page) == []
    for control in page.locator("button, select, input[type=range]").all():
        if control.is_visible():
            assert control.bounding_box()["height"] >= 24


@every_kind
@pytest.mark.parametrize("size", [(2, 2), (256, 256)])
def test_the_smallest_and_the_largest_figure_run(kind, size, shown):
    page = shown(show_positions(*size, kind=kind))
    page.locator("[role=application]").focus()
    press(page, *["ArrowRight"] * 3, "ArrowDown", "ArrowUp")
    position = size[0] // 5 + 3 if size[0] > 2 else 1
    assert f"osition {position}" in said(page)
    assert_curve(
        page,
        dot_products(kind, tokens=size[0], d_model=size[1]),
        position,
    )
