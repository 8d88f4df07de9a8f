"""What a reader sees of attention weights after real events in a browser."""

import io

import pytest
import torch
from figures_in_browser import (
    PHONE,
    UNREPORTED,
    WEIGHTS,
    WORDS,
    attention,
    press,
    said,
    texts,
)

from tutorial_figures import show_attention
from tutorial_lib.plotting.colors import DARK_SCALES, LIGHT_SCALES, scale


def in_heatmap(page, query, key):
    """Return where on the page the middle of a heatmap cell lies."""
    canvas = page.locator(".views canvas")
    canvas.wait_for()  # a busy machine draws late
    box = canvas.bounding_box()
    x = box["x"] + box["width"] * (key + 0.5) / len(WORDS)
    return x, box["y"] + box["height"] * (query + 0.5) / len(WORDS)


@pytest.mark.parametrize("scale", [1, 0.6])  # slides are scaled to the screen
def test_every_cell_says_the_weight_it_was_given(scale, shown):
    page = shown(attention(layer=1, head=2))
    page.evaluate(f"document.body.style = 'transform-origin: 0 0; scale: {scale}'")
    for query, row in enumerate(WEIGHTS[1, 2]):
        for key, weight in enumerate(row):
            page.mouse.move(*in_heatmap(page, query, key))
            assert said(page).startswith(
                f"query «{WORDS[query]}» gives key «{WORDS[key]}» "
                f"the weight {weight:.3f}. It looks most at "
            )


def test_the_cells_show_their_numbers(shown):
    page = shown(attention(layer=1, head=2))
    given = [f"{round(w.item(), 3):.2f}" for w in WEIGHTS[1, 2].flatten()]
    assert texts(page.locator("[role=application] .number")) == given


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_cells_have_the_colours_of_the_static_heatmaps(scheme, shown):
    page = shown(
        show_attention(torch.tensor([[1.0, 0], [0.3, 0.7]]), "ab"), color_scheme=scheme
    )
    pixels = page.locator(".views canvas").evaluate(
        "canvas => [...canvas.getContext('2d').getImageData(0, 0, 2, 2).data]"
    )
    for i, weight in enumerate([1, 0, 0.3, 0.7]):
        scales = LIGHT_SCALES if scheme == "light" else DARK_SCALES
        expected = [255 * part for part in scale("weights", scales)(float(weight))]
        red_green_blue_alpha = pixels[4 * i : 4 * i + 4]
        if scheme == "dark" and weight == 0:  # the page shines through
            assert red_green_blue_alpha[3] == 0
        else:
            assert red_green_blue_alpha == pytest.approx(expected, abs=2)


def test_a_token_shows_its_weights_beside_the_others(shown):
    page = shown(attention())
    lines = page.locator(".views > svg")
    lines.get_by_text("it", exact=True).first.hover()
    assert texts(lines.locator(".number")) == [
        f"{weight:.3f}" for weight in WEIGHTS[0, 0, 2]
    ]
    assert said(page).startswith("query «it» looks most at ")
    lines.get_by_text("it", exact=True).last.hover()
    assert texts(lines.locator(".number")) == [
        f"{weight:.3f}" for weight in WEIGHTS[0, 0, :, 2]
    ]
    assert said(page).startswith("key «it» gets most from ")


def test_the_lines_are_as_strong_as_the_weights(shown):
    page = shown(attention())
    assert page.locator(".views > svg path").count() == (WEIGHTS[0, 0] >= 0.0095).sum()
    page.locator(".views > svg").get_by_text("it", exact=True).first.hover()
    widths = page.locator(".views > svg path").evaluate_all(
        "paths => paths.map(path => Number(path.getAttribute('stroke-width')))"
    )
    strong = [
        1 + 4 * weight for weight in WEIGHTS[0, 0, 2].tolist() if weight >= 0.0095
    ]
    assert widths == pytest.approx(strong, abs=0.01)


def test_a_click_pins_and_a_second_click_lets_go(shown):
    page = shown(attention())
    page.mouse.click(*in_heatmap(page, 1, 2))
    pinned = said(page)
    page.mouse.move(*in_heatmap(page, 3, 3))
    assert said(page) == pinned
    page.mouse.click(*in_heatmap(page, 1, 2))
    page.mouse.move(*in_heatmap(page, 3, 3))
    assert said(page) != pinned
    page.mouse.move(5, 5)
    assert said(page).startswith("Point at")


def test_layer_and_head_are_chosen_and_the_chosen_cell_stays(shown):
    page = shown(attention())
    page.mouse.click(*in_heatmap(page, 1, 2))
    page.get_by_label("layer", exact=True).select_option("1")
    assert f"the weight {WEIGHTS[1, 0, 1, 2]:.3f}" in said(page)
    page.get_by_label("head 2", exact=True).click()
    assert f"the weight {WEIGHTS[1, 2, 1, 2]:.3f}" in said(page)
    assert page.get_by_label("head", exact=True).input_value() == "2"
    page.get_by_label("head", exact=True).select_option("mean")
    assert f"the weight {WEIGHTS[1, :, 1, 2].mean():.3f}" in said(page)
    assert (
        page.locator("[aria-pressed=true]").get_attribute("aria-label") == "head mean"
    )


def test_arrow_keys_walk_the_heatmap(shown):
    page = shown(attention())
    page.locator("[role=application]").focus()
    press(page, "ArrowDown")
    assert said(page).startswith("query «The» looks most at ")
    press(page, "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert f"«cat» the weight {WEIGHTS[0, 0, 1, 1]:.3f}" in said(page)
    press(page, *["ArrowDown"] * 9, *["ArrowRight"] * 9)
    assert f"«down» the weight {WEIGHTS[0, 0, 4, 4]:.3f}" in said(page)
    page.mouse.move(*in_heatmap(page, 0, 0))
    assert f"«down» the weight {WEIGHTS[0, 0, 4, 4]:.3f}" in said(page)
    press(page, "Escape")
    assert said(page).startswith("Point at")


def test_a_finger_taps_a_cell_and_a_token(shown):
    page = shown(attention(), **PHONE)
    page.touchscreen.tap(*in_heatmap(page, 3, 1))
    assert f"the weight {WEIGHTS[0, 0, 3, 1]:.3f}" in said(page)
    page.locator(".views > svg").get_by_text("cat", exact=True).first.tap()
    assert said(page).startswith("query «cat» looks most at ")


def test_stretched_colours_make_each_rows_largest_weight_darkest(shown):
    page = shown(show_attention(torch.full((2, 4), 0.25), "ab", "wxyz"))
    pixel = "canvas => [...canvas.getContext('2d').getImageData(0, 0, 1, 1).data]"
    canvas = page.locator(".views canvas")
    assert canvas.evaluate(pixel)[0] > 150
    page.get_by_label("stretch colors per row").check()
    assert canvas.evaluate(pixel) == [8, 48, 107, 255]


def test_masked_cells_are_hatched_and_called_masked(shown):
    causal = torch.ones(5, 5).tril().bool()
    weights = WEIGHTS[0, 0].masked_fill(~causal, 0)
    page = shown(show_attention(weights / weights.sum(-1, True), WORDS, mask=causal))
    page.mouse.move(*in_heatmap(page, 1, 3))
    assert "the weight 0 (masked)." in said(page)
    assert said(page).count("masked") == 1  # not among what it looks at most
    page.mouse.move(*in_heatmap(page, 3, 1))
    assert "masked" not in said(page)
    assert page.locator(".hatch").get_attribute("d").count("M") == 10


def test_a_query_that_may_look_at_nothing_looks_at_nothing(shown):
    weights, mask = torch.tensor([[0.5, 0.5], [0, 0]]), torch.tensor([[1, 1], [0, 0]])
    page = shown(show_attention(weights, "ab", mask=mask.bool()))
    page.locator("[role=application]").focus()
    press(page, "ArrowDown", "ArrowDown")
    assert said(page) == "query «b» looks most at nothing."


GOLD = {(0, 0), (1, 1), (2, 1), (4, 4)}


def outlined_cells(page):
    """Return the cells (query, key) that the frames on the page go around."""
    canvas = page.locator(".views canvas").bounding_box()
    boxes = page.locator(".outline").evaluate(
        "path => { const edge = path.ownerSVGElement.getBoundingClientRect();"
        "return path.getAttribute('d').split('M').slice(1).map(part => {"
        "const [x, y, side] = part.split(/[,hv]/).map(Number);"
        "return [edge.left + x + side / 2, edge.top + y + side / 2]; }); }"
    )
    place = [((x - canvas["x"]), (y - canvas["y"])) for x, y in boxes]
    cell = canvas["width"] / len(WORDS)
    return {(int(y // cell), int(x // cell)) for x, y in place}


def test_outlined_cells_are_framed_named_and_in_the_legend(shown):
    page = shown(attention(outline=frozenset(GOLD)))
    assert outlined_cells(page) == GOLD
    assert page.get_by_text("□ gold link", exact=True).is_visible()
    page.mouse.move(*in_heatmap(page, 2, 1))
    assert f"weight {WEIGHTS[0, 0, 2, 1]:.3f} (gold link). It looks" in said(page)
    page.mouse.move(*in_heatmap(page, 2, 2))
    assert f"the weight {WEIGHTS[0, 0, 2, 2]:.3f}. It looks" in said(page)


def test_the_largest_weights_say_whether_they_are_outlined(shown):
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    page = shown(
        show_attention(weights, "ab", "xyz", outline={(0, 1)}, outline_label="target")
    )
    page.locator("[role=application]").focus()
    press(page, "ArrowDown")
    assert said(page) == (
        "query «a» looks most at «x» 0.600, «y» 0.300 (target), «z» 0.100."
    )


def test_without_an_outline_there_is_no_frame_and_no_legend(shown):
    page = shown(attention())
    assert page.locator(".outline").get_attribute("d") == ""
    assert page.get_by_text("gold link").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_a_frame_stands_out_from_a_cell_of_any_colour_in_grey(weight, scheme, shown):
    from PIL import Image

    weights = torch.tensor([[weight, 0.0] * 8] * 16) / 8
    weights[0, :2] = torch.tensor([weight, 1 - weight])
    weights[0, 2:] = 0
    page = shown(
        show_attention(weights, range(16), range(16), outline={(0, 0)}),
        color_scheme=scheme,
        **PHONE,
    )
    canvas = page.locator(".views canvas").bounding_box()
    cell = canvas["width"] / 16
    inner = {"width": cell - 3, "height": cell - 3}  # without its neighbours
    clip = {"x": canvas["x"] + 1, "y": canvas["y"] + 1, **inner}
    shot = io.BytesIO(page.screenshot(clip=clip, full_page=True))
    low, high = Image.open(shot).convert("L").getextrema()
    assert cell < 20 and high - low > 170


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sixteen_words_a_side_are_legible_and_open_to_anybody(scheme, shown, barriers):
    words = ["parce", "que", "la", "maison"] * 4
    figure = show_attention(
        torch.eye(16), words, words, names=("French", "English"), outline={(3, 5)}
    )
    for options in ({"viewport": {"width": 1280, "height": 900}}, PHONE):
        page = shown(figure, color_scheme=scheme, **options)
        labels = texts(page.locator("[role=application] text"))
        assert labels[:2] == ["English", "French"] and labels[2:34] == words + words
        assert barriers(page) == []
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= options["viewport"]["width"]
        row = page.locator("[role=application] text.end").first.bounding_box()
        cell = page.locator(".views canvas").bounding_box()["height"] / 16
        assert row["height"] <= cell + 4


def test_many_weights_are_unpacked(shown):
    weights = torch.softmax(torch.randn(2, 8, 40, 40), -1)
    page = shown(show_attention(weights, range(40), layer=1, head=7))
    page.locator("[role=application]").focus()
    press(page, "ArrowDown", "ArrowRight")
    assert f"the weight {weights[1, 7, 0, 0]:.3f}" in said(page)


def test_a_browser_that_cannot_unpack_keeps_the_picture(shown):
    figure = show_attention(torch.softmax(torch.randn(8, 40, 40), -1), range(40))
    page = shown(
        figure, pictured=True, script=UNREPORTED + "delete window.DecompressionStream;"
    )
    assert page.locator("img").is_visible()


def test_more_than_64_tokens_show_a_heatmap_alone(shown):
    page = shown(show_attention(torch.eye(65), range(65)))
    assert page.locator(".views > svg").count() == 0
    page.locator("[role=application]").focus()
    press(page, *["ArrowDown"] * 65, *["ArrowRight"] * 65)
    assert "«64» the weight 1.000" in said(page)
