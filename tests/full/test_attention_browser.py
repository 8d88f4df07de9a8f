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
    pixels_of,
    press,
    press_in_stage,
    readout,
    softmaxed,
    texts,
    width_of,
)

from tutorial_figures import show_attention
from tutorial_lib.plotting.colors import DARK_SCALES, LIGHT_SCALES, scale

CANVAS = ".views canvas"
FRAMED = """path => {
  const edge = path.ownerSVGElement.getBoundingClientRect();
  return path.getAttribute('d').split('M').slice(1).map(part => {
    const [x, y, side] = part.split(/[,hv]/).map(Number);
    return [edge.left + x + side / 2, edge.top + y + side / 2];
  });
}"""


def in_heatmap(page, query, key):
    """Return where on the page the middle of a heatmap cell lies."""
    box = page.locator(CANVAS).bounding_box()
    x = box["x"] + box["width"] * (key + 0.5) / len(WORDS)
    return x, box["y"] + box["height"] * (query + 0.5) / len(WORDS)


@pytest.mark.parametrize("scaled", [1, 0.6])  # slides are scaled to the screen
def test_every_cell_says_and_shows_the_weight_it_was_given(scaled, shown):
    page = shown(attention(layer=1, head=2))
    page.evaluate(f"document.body.style = 'transform-origin: 0 0; scale: {scaled}'")
    for query, row in enumerate(WEIGHTS[1, 2]):
        for key, weight in enumerate(row):
            page.mouse.move(*in_heatmap(page, query, key))
            assert readout(page).startswith(
                f"query “{WORDS[query]}” gives key “{WORDS[key]}” "
                f"the weight {weight:.3f}. It attends most to "
            )
    given = [f"{round(w.item(), 3):.2f}" for w in WEIGHTS[1, 2].flatten()]
    assert texts(page.locator("[role=application] .number")) == given


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_cells_have_the_colours_of_the_static_heatmaps(scheme, shown):
    weights = torch.tensor([[1.0, 0], [0.3, 0.7]])
    page = shown(show_attention(weights, "ab"), color_scheme=scheme)
    scales = LIGHT_SCALES if scheme == "light" else DARK_SCALES
    expected = torch.tensor(scale("weights", scales)(weights))
    pixels = pixels_of(page, CANVAS)
    seen = weights > 0 if scheme == "dark" else weights >= 0
    assert (pixels - expected)[seen].abs().max() < 0.01
    assert (pixels[~seen][:, 3] == 0).all()  # the page shines through


def test_tokens_show_their_weights_beside_the_others_and_as_lines(shown):
    page = shown(attention())
    lines = page.locator(".views > svg")
    strong = WEIGHTS[0, 0] >= 0.0095
    assert lines.locator("path").count() == strong.sum()
    lines.get_by_text("it", exact=True).first.hover()
    given = WEIGHTS[0, 0, 2]
    assert texts(lines.locator(".number")) == [f"{weight:.3f}" for weight in given]
    assert readout(page).startswith("query “it” attends most to ")
    widths = lines.locator("path").evaluate_all(
        "paths => paths.map(path => Number(path.getAttribute('stroke-width')))"
    )
    assert widths == pytest.approx((1 + 4 * given[strong[2]]).tolist(), abs=0.01)
    lines.get_by_text("it", exact=True).last.hover()
    got = [f"{weight:.3f}" for weight in WEIGHTS[0, 0, :, 2]]
    assert texts(lines.locator(".number")) == got
    assert readout(page).startswith("key “it” gets most from ")


def test_a_click_pins_a_cell_in_every_layer_and_head_and_another_lets_go(shown):
    page = shown(attention())
    page.mouse.click(*in_heatmap(page, 1, 2))
    page.mouse.move(*in_heatmap(page, 3, 3))
    assert f"the weight {WEIGHTS[0, 0, 1, 2]:.3f}" in readout(page)
    page.get_by_label("layer", exact=True).select_option("1")
    assert f"the weight {WEIGHTS[1, 0, 1, 2]:.3f}" in readout(page)
    page.get_by_label("head 2", exact=True).click()
    assert f"the weight {WEIGHTS[1, 2, 1, 2]:.3f}" in readout(page)
    assert page.get_by_label("head", exact=True).input_value() == "2"
    page.get_by_label("head", exact=True).select_option("mean")
    assert f"the weight {WEIGHTS[1, :, 1, 2].mean():.3f}" in readout(page)
    pressed = page.locator("[aria-pressed=true]")
    assert pressed.get_attribute("aria-label") == "head mean"
    page.mouse.click(*in_heatmap(page, 1, 2))
    page.mouse.move(*in_heatmap(page, 3, 3))
    assert f"the weight {WEIGHTS[1, :, 3, 3].mean():.3f}" in readout(page)
    page.mouse.move(5, 5)
    assert readout(page).startswith("Point at")


def test_arrow_keys_walk_the_heatmap(shown):
    page = shown(attention())
    press_in_stage(page, "ArrowDown")
    assert readout(page).startswith("query “The” attends most to ")
    press(page, "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert f"“cat” the weight {WEIGHTS[0, 0, 1, 1]:.3f}" in readout(page)
    press(page, *["ArrowDown"] * 9, *["ArrowRight"] * 9)
    page.mouse.move(*in_heatmap(page, 0, 0))
    assert f"“down” the weight {WEIGHTS[0, 0, 4, 4]:.3f}" in readout(page)
    press(page, "Escape")
    assert readout(page).startswith("Point at")


def test_a_finger_taps_a_cell_and_a_token(shown):
    page = shown(attention(), **PHONE)
    page.touchscreen.tap(*in_heatmap(page, 3, 1))
    assert f"the weight {WEIGHTS[0, 0, 3, 1]:.3f}" in readout(page)
    page.locator(".views > svg").get_by_text("cat", exact=True).first.tap()
    assert readout(page).startswith("query “cat” attends most to ")


def test_stretched_colours_make_each_rows_largest_weight_darkest(shown):
    page = shown(show_attention(torch.full((2, 4), 0.25), "ab", "wxyz"))
    assert pixels_of(page, CANVAS)[0, 0, 0] > 0.6
    page.get_by_label("stretch colors per row").check()
    assert (255 * pixels_of(page, CANVAS)[0, 0]).tolist() == [8, 48, 107, 255]


def test_masked_cells_are_hatched_and_called_masked(shown):
    causal = torch.ones(5, 5).tril().bool()
    weights = WEIGHTS[0, 0].masked_fill(~causal, 0)
    page = shown(show_attention(weights / weights.sum(-1, True), WORDS, mask=causal))
    page.mouse.move(*in_heatmap(page, 1, 3))
    assert "the weight 0 (masked)." in readout(page)
    assert readout(page).count("masked") == 1  # not among what it looks at most
    page.mouse.move(*in_heatmap(page, 3, 1))
    assert "masked" not in readout(page)
    assert page.locator(".hatch").get_attribute("d").count("M") == 10


def test_a_query_that_may_look_at_nothing_looks_at_nothing(shown):
    weights, mask = torch.tensor([[0.5, 0.5], [0, 0]]), torch.tensor([[1, 1], [0, 0]])
    page = shown(show_attention(weights, "ab", mask=mask.bool()))
    press_in_stage(page, "ArrowDown", "ArrowDown")
    assert readout(page) == "query “b” attends most to nothing."


def test_outlined_cells_are_framed_named_and_in_the_legend(shown):
    gold = frozenset({(0, 0), (1, 1), (2, 1), (4, 4)})
    page = shown(attention(outline=gold))
    canvas = page.locator(CANVAS).bounding_box()
    cell = canvas["width"] / len(WORDS)
    assert gold == {
        (int((y - canvas["y"]) // cell), int((x - canvas["x"]) // cell))
        for x, y in page.locator(".outline").evaluate(FRAMED)
    }
    assert page.get_by_text("□ gold link", exact=True).is_visible()
    page.mouse.move(*in_heatmap(page, 2, 1))
    assert f"weight {WEIGHTS[0, 0, 2, 1]:.3f} (gold link). It attends" in readout(page)
    page.mouse.move(*in_heatmap(page, 2, 2))
    assert f"the weight {WEIGHTS[0, 0, 2, 2]:.3f}. It attends" in readout(page)
    page = shown(attention())
    assert page.locator(".outline").get_attribute("d") == ""
    assert page.get_by_text("gold link").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_frame_stands_out_from_a_cell_of_any_colour_in_grey(scheme, shown):
    from PIL import Image

    rows = [[1.0, 0], [0.5, 0.5], [0.0, 1.0]]  # its first column is framed
    weights = torch.zeros(16, 16)
    weights[:3, :2] = torch.tensor(rows)
    figure = show_attention(weights, range(16), outline={(0, 0), (1, 0), (2, 0)})
    page = shown(figure, color_scheme=scheme, **PHONE)
    canvas = page.locator(CANVAS).bounding_box()
    cell = canvas["width"] / 16
    inner = {"width": cell - 3, "height": cell - 3}  # without its neighbours
    for row in range(3):
        clip = {"x": canvas["x"] + 1, "y": canvas["y"] + row * cell + 1, **inner}
        shot = io.BytesIO(page.screenshot(clip=clip, full_page=True))
        low, high = Image.open(shot).convert("L").getextrema()
        assert cell < 20 and high - low > 170, rows[row]


def test_sixteen_words_a_side_are_legible_and_open_to_anybody(shown, axe_violations):
    words = ["parce", "que", "la", "maison"] * 4
    names = ("French", "English")
    figure = show_attention(torch.eye(16), words, words, names=names, outline={(3, 5)})
    for width, height in ((1280, 900), (400, 500)):
        page = shown(figure, viewport={"width": width, "height": height})
        labels = texts(page.locator("[role=application] text"))
        assert labels[:2] == ["English", "French"] and labels[2:34] == words + words
        assert width_of(page) <= width
        row = page.locator("[role=application] text.end").first.bounding_box()
        cell = page.locator(CANVAS).bounding_box()["height"] / 16
        assert row["height"] <= cell + 4
    assert axe_violations(page) == []


def test_many_weights_are_unpacked_and_where_they_cannot_be_the_picture_stays(shown):
    weights = softmaxed(2, 8, 40, 40, seed=7)
    figure = show_attention(weights, range(40), layer=1, head=7)
    page = shown(figure)
    press_in_stage(page, "ArrowDown", "ArrowRight")
    assert f"the weight {weights[1, 7, 0, 0]:.3f}" in readout(page)
    script = UNREPORTED + "delete window.DecompressionStream;"
    assert shown(figure, pictured=True, script=script).locator("img").is_visible()


def test_more_than_64_tokens_show_a_heatmap_alone(shown):
    page = shown(show_attention(torch.eye(65), range(65)))
    assert page.locator(".views > svg").count() == 0
    press_in_stage(page, *["ArrowDown"] * 65, *["ArrowRight"] * 65)
    assert "“64” the weight 1.000" in readout(page)
