"""What a reader sees after real mouse, key and touch events in a browser."""

import functools
import io
import re

import matplotlib
import pytest
import torch
from architecture_code import CODE

from tutorial_lib import kernels
from tutorial_lib.attention import nadaraya_watson
from tutorial_lib.figures import (
    show_architecture,
    show_attention,
    show_kernel_regression,
    show_patch_attention,
    show_positions,
    show_softmax,
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
TABLE = torch.randn(40, 8, generator=torch.manual_seed(2)).double()


@functools.cache
def architecture(**options):
    return show_architecture(CODE, **options)


@functools.cache
def attention(**options):
    return show_attention(WEIGHTS, WORDS, **options)


@functools.cache
def kernel_regression(**options):
    return show_kernel_regression(X, Y, query=1.2, width=0.6, **options)


@functools.cache
def softmax(**options):
    return show_softmax(SCORES, labels=["cat", "dog", "bird", "fish"], **options)


@functools.cache
def patches(**options):
    return show_patch_attention(PATCH_WEIGHTS, IMAGE, **options)


@functools.cache
def positions(**options):
    return show_positions(40, 8, learned=TABLE, **options)


UNREPORTED = (
    "for (const kind of ['error', 'unhandledrejection'])"
    "  addEventListener(kind, (event) => event.preventDefault());"
)

every_figure = pytest.mark.parametrize(
    "show", [architecture, attention, kernel_regression, patches, positions, softmax]
)


@pytest.fixture
def shown(page_at, tmp_path):
    """Return a function that saves a figure and opens its page."""

    def open_figure(figure, **options):
        figure.save(tmp_path / "figure.html")
        return page_at(tmp_path / "figure.html", **options)

    return open_figure


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


def in_heatmap(page, query, key):
    """Return where on the page the middle of a heatmap cell lies."""
    box = page.locator(".views canvas").bounding_box()
    x = box["x"] + box["width"] * (key + 0.5) / len(WORDS)
    return x, box["y"] + box["height"] * (query + 0.5) / len(WORDS)


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


# ---- every figure


@every_figure
def test_a_figure_starts_and_hides_its_picture(show, shown):
    page = shown(show(title="A title"))
    assert page.get_by_text("A title", exact=True).is_visible()
    assert said(page)
    assert not page.locator("img").is_visible()


@every_figure
def test_without_javascript_the_picture_stands_with_its_sentence(show, shown):
    figure = show()
    picture = shown(figure, java_script_enabled=False).locator("img")
    assert picture.is_visible() and picture.bounding_box()["height"] > 100
    assert picture.get_attribute("alt") == figure.text


@every_figure
def test_a_figure_that_cannot_start_shows_its_picture(show, shown):
    broken = "Element.prototype.append = () => { throw 'broken'; };"
    page = shown(show(), script=UNREPORTED + broken)
    assert page.locator("img").is_visible()


@every_figure
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers_for_anybody(show, scheme, shown, barriers):
    page = shown(show(title="A title"), color_scheme=scheme)
    assert (page.locator("[data-dark]").count() == 1) == (scheme == "dark")
    assert barriers(page) == []


@every_figure
def test_controls_are_large_enough_to_hit(show, shown):
    page = shown(show(), **PHONE)
    for control in page.locator("button, select, input[type=range], label").all():
        if not control.is_visible():
            continue
        box = control.bounding_box()
        assert box["height"] >= 24 and box["width"] >= 24


@every_figure
def test_a_phone_needs_no_sideways_scrolling(show, shown):
    page = shown(show(title="A rather long title " * 4), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@every_figure
def test_a_figure_follows_the_page_into_the_dark_and_back(show, shown):
    page = shown(show())
    host = page.locator("[data-figure]")
    page.evaluate("document.body.style.cssText = 'background: #111; color: #eee'")
    page.wait_for_function("document.querySelector('[data-dark]')")
    page.evaluate("document.body.style.cssText = ''")
    page.wait_for_function("!document.querySelector('[data-dark]')")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.querySelector('[data-dark]')")
    assert host.evaluate("host => getComputedStyle(host).colorScheme") == "dark"


@every_figure
def test_the_same_figure_twice_on_a_page_runs_twice(show, page_at, tmp_path):
    (tmp_path / "two.html").write_text(
        f"<!doctype html><meta charset=utf-8>{show().html}<hr>{show().html}"
    )
    page = page_at(tmp_path / "two.html")
    assert page.locator(".readout").count() == 2


@every_figure
def test_a_figure_runs_in_a_sandbox(show, page_at, tmp_path):
    show().save(tmp_path / "inner.html")
    frame = '<iframe sandbox="allow-scripts" src="inner.html" width=700 height=700>'
    (tmp_path / "outer.html").write_text(f"<!doctype html>{frame}")
    page = page_at(tmp_path / "outer.html")
    assert page.frame_locator("iframe").locator(".readout").inner_text()


@every_figure
def test_a_hidden_figure_draws_itself_when_it_appears(show, page_at, tmp_path):
    (tmp_path / "hidden.html").write_text(
        f"<!doctype html><meta charset=utf-8><main hidden>{show().html}</main>"
    )
    page = page_at(tmp_path / "hidden.html")
    page.locator("main").evaluate("main => main.hidden = false")
    page.locator(".readout", has_text=" ").wait_for()


@every_figure
def test_keys_pressed_in_a_figure_stay_there(show, shown):
    page = shown(show())
    page.evaluate("addEventListener('keydown', event => (window.heard = event.key))")
    page.locator("input, .stage button").first.focus()
    press(page, "ArrowRight", "d", "d")
    assert page.evaluate("window.heard") is None
    assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 1


@every_figure
def test_screen_readers_hear_the_last_of_many_sentences_only(show, shown):
    page = shown(show())
    live = page.locator("[aria-live=polite]")
    page.evaluate("window.told = []")
    live.evaluate(
        "node => new MutationObserver(() => window.told.push(node.textContent))"
        ".observe(node, {childList: true})"
    )
    page.locator("[role=application], .track input, .stage button").first.focus()
    press(page, *["ArrowRight"] * 5)
    page.wait_for_function("window.told.length")
    assert list(map(without_isolates, page.evaluate("window.told"))) == [said(page)]


@every_figure
def test_a_narrower_page_draws_the_figure_narrower(show, shown):
    page = shown(show())
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_function("document.documentElement.scrollWidth <= 420")


def test_hostile_text_is_shown_as_text(shown):
    hostile = "<img src=x onerror=window.hacked=1>"
    script = "</script><script>window.hacked=1</script>"
    names = {"names": (hostile, script), "title": f"{hostile} {script}"}
    for figure in (
        show_attention(torch.eye(2), [hostile, script], **names),
        show_softmax([1.0, 2.0], labels=[hostile, script], title=hostile),
        show_kernel_regression([0, 1], [0, 1], title=f"{script} {hostile}"),
        show_positions(8, 4, title=f"{hostile} {script}"),
        show_patch_attention(torch.eye(5), torch.eye(4), title=f"{hostile} {script}"),
        show_architecture(CODE, title=f"{script} {hostile}"),
    ):
        page = shown(figure)
        press(page, *["Tab"] * 4, "ArrowDown", "ArrowRight")
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 1  # the picture
        assert page.locator("script").count() == 1
        assert hostile in page.locator("b").inner_text()
    page = shown(show_attention(torch.eye(2), [hostile, script]))
    page.locator("[role=application]").focus()
    press(page, "ArrowDown", "ArrowRight")
    assert f"«{hostile}» the weight 1.000" in said(page)


# ---- attention


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
        place = float(weight if scheme == "light" else 1 - weight)
        expected = [255 * part for part in matplotlib.colormaps["Blues"](place)]
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
    page = shown(figure, script=UNREPORTED + "delete window.DecompressionStream;")
    assert page.locator("img").is_visible()


def test_more_than_64_tokens_show_a_heatmap_alone(shown):
    page = shown(show_attention(torch.eye(65), range(65)))
    assert page.locator(".views > svg").count() == 0
    page.locator("[role=application]").focus()
    press(page, *["ArrowDown"] * 65, *["ArrowRight"] * 65)
    assert "«64» the weight 1.000" in said(page)


# ---- kernel regression


def library_says(query, width, kernel="gaussian", x=X, y=Y):
    """Return the sentence that the library's own numbers make."""
    function = (
        kernels.constant() if kernel == "constant" else getattr(kernels, kernel)(width)
    )
    estimate, [weights] = nadaraya_watson(torch.tensor([query]), x, y, function)
    return (
        f"At the query {query:.2f} the estimate is {estimate.item():.2f}, the weighted "
        f"mean of {len(x)} values; the largest weight is {weights.max():.3f}, the "
        f"effective number of points 1/Σw² = {1 / weights.square().sum():.1f}."
    ).replace("-", "−")


def numbers(page):
    """Return the query and the width that stand beside their sliders."""
    query, width = page.locator("label .number").all_inner_texts()
    return float(query.replace("−", "-")), float(width)


def handle(page, which):
    box = page.locator(which).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


QUERY, WIDTH = ".handle >> nth=1", ".handle >> nth=0"
KERNELS = ["gaussian", "boxcar", "epanechnikov", "triangular", "constant"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_browser_and_the_library_agree_on_every_kernel(kernel, shown):
    page = shown(kernel_regression())
    page.get_by_label("kernel", exact=True).select_option(kernel)
    for query, width in ((1.2, 0.6), (1.5, 0.5), (3.7, 0.9)):
        page.get_by_label("query", exact=True).fill(str(query))
        page.get_by_label("width", exact=True).evaluate(
            "(slider, width) => { slider.step = 'any'; slider.value = Math.log(width);"
            "slider.dispatchEvent(new Event('input')); }",
            width,
        )
        assert said(page) == library_says(query, width, kernel)


def test_the_query_follows_the_mouse(shown):
    page = shown(kernel_regression())
    x, y = handle(page, QUERY)
    drag(page, (x, y), (x + 90, y + 30), (x + 200, y))
    query, width = numbers(page)
    assert query > 2 and width == 0.6
    assert said(page) == library_says(query, width)
    assert handle(page, QUERY)[0] == pytest.approx(x + 200, abs=2)
    page.mouse.move(x, y)
    assert numbers(page) == (query, width)


def test_the_width_follows_the_mouse(shown):
    page = shown(kernel_regression())
    x, y = handle(page, WIDTH)
    drag(page, (x, y), (x + 100, y))
    query, width = numbers(page)
    assert query == 1.2 and width > 1
    assert said(page) == library_says(query, width)
    assert handle(page, WIDTH)[0] == pytest.approx(x + 100, abs=2)


def test_a_finger_drags_the_query(shown):
    page = shown(kernel_regression(), **PHONE)
    x, y = handle(page, QUERY)
    touch_drag(page, (x, y), (x + 120, y))
    query, width = numbers(page)
    assert query > 2
    assert said(page) == library_says(query, width)


def test_a_tap_moves_the_query_and_a_swipe_down_the_page_does_not(shown):
    page = shown(kernel_regression(), **PHONE)
    x, y = handle(page, QUERY)
    touch_drag(page, (x + 100, y + 100), (x + 100, y - 100))
    assert numbers(page) == (1.2, 0.6)
    x, y = handle(page, QUERY)
    page.touchscreen.tap(x + 100, y)
    assert handle(page, QUERY)[0] == pytest.approx(x + 100, abs=2)


def test_arrow_keys_move_query_and_width(shown):
    page = shown(kernel_regression())
    page.locator("[role=application]").focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowUp")
    query, width = numbers(page)
    assert query > 1.2 and width == 0.66
    assert said(page) == library_says(query, width)


def test_points_are_added_drawn_and_removed_by_mouse(shown):
    page = shown(kernel_regression())
    page.get_by_role("button", name="edit points").click()
    svg = page.locator("[role=application] svg").bounding_box()
    dots = page.locator("circle:not(.handle)")
    x, y = svg["x"] + 620, svg["y"] + 60
    page.mouse.click(x, y)
    assert dots.count() == 8 and "weighted mean of 8 values" in said(page)
    assert handle(page, "circle:not(.handle) >> nth=7") == pytest.approx((x, y), abs=1)
    page.mouse.click(x + 3, y - 3)
    assert dots.count() == 7
    drag(page, (x, y), (x - 150, y), (x - 150, y + 60))
    assert dots.count() >= 12
    page.get_by_role("button", name="reset").click()
    page.get_by_role("button", name="edit points").click()
    assert dots.count() == 7 and said(page) == library_says(1.2, 0.6)


def test_points_are_added_and_removed_by_key(shown):
    page = shown(kernel_regression())
    page.get_by_role("button", name="edit points").click()
    page.locator("[role=application]").focus()
    press(page, "ArrowUp", "ArrowRight", "Enter")
    assert "weighted mean of 8 values" in said(page)
    press(page, "ArrowLeft", "ArrowRight", " ")
    assert "weighted mean of 7 values" in said(page)
    page.get_by_role("button", name="edit points").click()
    assert said(page) == library_says(1.2, 0.6)


def test_a_new_point_changes_the_estimate_as_in_the_library(shown):
    page = shown(kernel_regression())
    page.get_by_role("button", name="edit points").click()
    page.mouse.click(*handle(page, QUERY))
    page.get_by_role("button", name="edit points").click()
    before = library_says(1.2, 0.6)
    estimate = float(re.search(r"estimate is ([\d.]+)", before)[1])
    x, y = torch.cat([X, torch.tensor([1.2])]), torch.cat([Y, torch.tensor([estimate])])
    assert said(page) == library_says(1.2, 0.6, x=x, y=y)


def test_an_empty_window_is_a_gap_with_a_reason(shown):
    page = shown(kernel_regression(kernel="boxcar"))
    assert page.locator(".curve").get_attribute("d").count("M") == 1
    page.get_by_label("width", exact=True).focus()
    press(page, *["PageDown"] * 4)
    page.get_by_label("query", exact=True).fill("2")
    assert "no point lies within the width: every weight is 0" in said(page)
    assert page.locator(".curve").get_attribute("d").count("M") == len(X)
    assert page.locator(".weight").evaluate_all(
        "bars => bars.every(bar => bar.getAttribute('y1') === bar.getAttribute('y2'))"
    )


def test_all_points_can_be_removed(shown):
    page = shown(show_kernel_regression([0.0, 1.0], [0.0, 1.0]))
    page.get_by_role("button", name="edit points").click()
    for _ in range(2):
        page.mouse.click(*handle(page, "circle:not(.handle) >> nth=0"))
    assert "no point lies within the width" in said(page)


def test_the_constant_kernel_has_no_width(shown):
    page = shown(kernel_regression(kernel="constant"))
    assert page.get_by_label("width", exact=True).is_disabled()
    assert not page.locator(WIDTH).is_visible()
    assert said(page) == library_says(1.2, 0.6, "constant")


# ---- softmax


def weights_shown(page):
    return page.locator(".weight .number").all_inner_texts()


def test_the_weights_are_those_of_the_scores(shown):
    page = shown(softmax())
    weights = SCORES.softmax(0)
    assert weights_shown(page) == as_shown(weights)
    entropy = -(weights * weights.log()).sum()
    gradient = (weights * (1 - weights)).max()
    assert said(page) == (
        f"Entropy {entropy:.2f} nats, as if {entropy.exp():.1f} of 4 keys shared the "
        "weight equally. Largest gradient, max w(1 − w): "
        f"{gradient:.4f} (at most 0.25)."
    )


def test_a_score_follows_the_mouse(shown):
    page = shown(softmax())
    slider = page.get_by_label("score of bird")
    box = slider.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drag(page, middle, (middle[0] + box["width"] / 3, middle[1]))
    score = float(slider.input_value())
    assert score > 1.5
    scores = torch.tensor([2.0, 1.0, score, -1.0])
    assert weights_shown(page) == as_shown(scores.softmax(0))


def test_a_finger_drags_a_score(shown):
    page = shown(softmax(), **PHONE)
    slider = page.get_by_label("score of bird")
    box = slider.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch_drag(page, middle, (middle[0] + box["width"] / 3, middle[1]))
    assert float(slider.input_value()) > 1


def test_arrow_keys_move_a_score(shown):
    page = shown(softmax())
    page.get_by_label("score of cat").focus()
    press(page, "ArrowRight", "ArrowRight")
    scores = torch.tensor([2.1, 1.0, 0.0, -1.0])
    assert weights_shown(page) == as_shown(scores.softmax(0))
    assert page.get_by_label("score of cat").get_attribute("aria-valuetext") == "2.10"


def test_a_score_bar_ends_under_its_thumb(shown):
    page = shown(softmax())
    track = page.get_by_label("score of cat").bounding_box()
    bar = page.locator(".track .bed span").first.bounding_box()
    thumb = track["x"] + 9 + (track["width"] - 18) * (2 + 3) / 6
    assert bar["x"] + bar["width"] == pytest.approx(thumb, abs=1)


def test_temperature_divides_what_enters_the_softmax(shown):
    page = shown(softmax())
    page.get_by_label("temperature T", exact=True).focus()
    press(page, *["ArrowLeft"] * 15)
    temperature = float(page.locator("label .number").first.inner_text())
    assert temperature == 0.50
    assert weights_shown(page) == as_shown((SCORES / temperature).softmax(0))


def test_without_division_the_dot_products_enter_the_softmax(shown):
    page = shown(softmax(d_k=16))
    page.get_by_label("divide by √d_k").uncheck()
    assert weights_shown(page) == as_shown((4 * SCORES).softmax(0))
    assert page.locator(".keys > .number").all_inner_texts() == [
        "8.00", "4.00", "0.00", "−4.00",
    ]  # fmt: skip
    page.get_by_label("d_k", exact=True).focus()
    press(page, "ArrowRight", "ArrowRight")
    assert weights_shown(page) == as_shown((8 * SCORES).softmax(0))
    assert "spread √64 = 8.0 times as far" in page.locator("p").first.inner_text()
    page.get_by_label("divide by √d_k").check()
    assert weights_shown(page) == as_shown(SCORES.softmax(0))


def test_without_d_k_there_is_nothing_to_divide_by(shown):
    page = shown(softmax(d_k=None))
    assert page.get_by_label("divide by √d_k").count() == 0
    assert page.get_by_label("d_k", exact=True).count() == 0
    assert weights_shown(page) == as_shown(SCORES.softmax(0))
    assert page.locator("p").first.inner_text().endswith("input = score / T")


def test_an_arrow_key_moves_a_score_from_where_it_stands(shown):
    page = shown(show_softmax([0.7303, 0.1], labels=["cat", "dog"]))
    before = weights_shown(page)
    page.get_by_label("score of cat").focus()
    press(page, "ArrowRight")
    assert weights_shown(page) != before
    press(page, "ArrowLeft")
    assert weights_shown(page) == before


def test_reset_brings_the_first_scores_back(shown):
    page = shown(softmax(temperature=2.0))
    before = weights_shown(page)
    page.get_by_label("score of fish").fill("3")
    page.get_by_label("temperature T", exact=True).fill("-1")
    page.get_by_label("divide by √d_k").uncheck()
    assert weights_shown(page) != before
    page.get_by_role("button", name="reset").click()
    assert weights_shown(page) == before == as_shown((SCORES / 2).softmax(0))


# ---- positions


def as_hands(angles, lengths=1.0):
    """Return complex numbers (token, pair) that point to the angles."""
    return torch.polar(torch.ones_like(angles), angles) * lengths


def queries_and_keys(kind, base=10_000, key=1, tokens=40, d_model=8):
    """Return queries and keys (token, d_model) of the papers' formulas."""
    speeds = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    positions = torch.arange(tokens).double()[:, None]
    if kind == "learned":
        return TABLE, TABLE
    if kind == "sinusoidal":
        angles = positions * speeds
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return table, table
    squares = torch.arange(1, d_model + 1).double().square()
    query, other = (
        torch.view_as_complex(content.view(-1, 2))
        for content in (squares.cos(), squares.sin())
    )
    contents = [query, query * as_hands(3 * speeds), other]
    queries = as_hands(positions * speeds, query)
    keys = as_hands(positions * speeds, contents[key])
    return (torch.view_as_real(hands).flatten(1) for hands in (queries, keys))


def dot_products(kind, **options):
    queries, keys = queries_and_keys(kind, **options)
    return queries @ keys.T


def places(path):
    """Return the points (point, 2) of a path."""
    points = [[float(n) for n in point.split(",")] for point in path[1:].split("L")]
    return torch.tensor(points, dtype=torch.float64)


def curve_shown(page, products, which="path.first"):
    """Return a curve as {distance: value}, read by the lines of its axes."""
    lines = page.locator(".stage g line").evaluate_all(
        "lines => lines.map(line => ['x1', 'x2', 'y1', 'y2'].map("
        "name => Number(line.getAttribute(name))))"
    )
    flat = [line for line in lines if line[2] == line[3]]
    left, right = flat[0][:2]
    top, bottom = min(line[2] for line in flat), max(line[2] for line in flat)
    low, high = min(0, products.min()), max(0, products.max())
    x, y = places(page.locator(which).get_attribute("d")).T
    last = len(products) - 1
    distances = (x - left) / (right - left) * 2 * last - last
    assert (distances - distances.round()).abs().max() < 1e-6
    values = high - (y - top) / (bottom - top) * (high - low)
    return dict(zip(distances.round().int().tolist(), values.tolist(), strict=True))


def curve_of(products, t):
    """Return the curve that position t has by its dot products."""
    return {j - t: value for j, value in enumerate(products[t].tolist())}


def assert_curve(page, products, t, which="path.first"):
    assert curve_shown(page, products, which) == pytest.approx(
        curve_of(products, t), abs=2e-3 * float(products.abs().max())
    )


def sentence_of(kind, products, t, j, digits=2):
    """Return the sentence that the given dot products make."""
    low, high, found = (
        f"{value:.{digits}f}".replace("-", "−")
        for pairs in [products.diagonal(j - t)]
        for value in (pairs.min(), pairs.max(), products[t, j])
    )
    pair = f"Position {t} and position {j}: dot product {found}."
    if kind == "rotary":
        pair = f"Query at position {t}, key at position {j}: score {found}."
    distance = str(j - t).replace("-", "−")
    bounds = low if low == high else f"{low} to {high}"
    return f"{pair} All pairs at distance {distance}: {bounds}."


def in_map(page, t, row=4):
    """Return where on the page a number of position t lies."""
    box = page.locator(".stage > canvas").bounding_box()
    x = box["x"] + box["width"] * (t + 0.5) / 40
    return x, box["y"] + box["height"] * (row + 0.5) / 8


def choose_kind(page, kind):
    page.get_by_label("encoding", exact=True).select_option(kind)


KINDS = {"sinusoidal": 2, "rotary": 2, "learned": 1}  # and the decimals they show
every_kind = pytest.mark.parametrize("kind", KINDS)
FAINT = [0, 10, 19, 29, 39]
FAINT_CURVES = ".stage path:not(.first)"


@every_kind
def test_the_curves_are_the_dot_products_of_the_papers_formulas(kind, shown):
    page = shown(positions(kind=kind))
    products = dot_products(kind)
    assert said(page) == sentence_of(kind, products, 8, 13, KINDS[kind])
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
    assert said(page) == sentence_of(kind, products, 23, 28, KINDS[kind])
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
        cell = page.locator(".stage > canvas").bounding_box()["width"] / 40
        middle = frame["x"] + frame["width"] / 2
        assert middle == pytest.approx(in_map(page, position)[0], abs=0.5)
        assert cell < frame["width"] < cell + 8
        letter = "t" if which == "first" else "j"
        assert page.get_by_text(f"position {letter} = {position}").is_visible()
    assert handle(page, "circle.first")[0] == pytest.approx(
        in_map(page, 21)[0], abs=0.5
    )


def test_arrow_keys_move_the_position_and_the_distance(shown):
    page = shown(positions(kind="rotary"))
    products = dot_products("rotary")
    page.locator("[role=application]").focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowLeft")
    assert said(page) == sentence_of("rotary", products, 9, 14)
    press(page, *["ArrowDown"] * 7, "ArrowUp")
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


def test_curves_of_a_learned_table_do_not_coincide(shown):
    page = shown(positions())
    choose_kind(page, "learned")
    assert spread(page, dot_products("learned")) > 0.3
    assert "the curves need not coincide" in page.locator("p").last.inner_text()
    assert " to " in said(page)


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
    assert "every key sin(c²)" in page.locator("p").last.inner_text()


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
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
    base, key = (page.get_by_label(name, exact=True) for name in ("base", "key"))
    options = page.get_by_label("encoding", exact=True).locator("option")
    assert options.all_inner_texts() == ["sinusoidal", "rotary", "learned"]
    for kind in KINDS:
        choose_kind(page, kind)
        assert key.is_visible() == (kind == "rotary")
        assert base.is_disabled() == (kind == "learned")
    page = shown(show_positions(8, 4))
    assert options.page.get_by_label("encoding").count() == 1
    options = page.get_by_label("encoding", exact=True).locator("option")
    assert options.all_inner_texts() == ["sinusoidal", "rotary"]


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


def map_pixels(page):
    """Return the colors (d_model, token, 4) of the map."""
    pixels = page.locator(".stage > canvas").evaluate(
        "canvas => [...canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data]"
    )
    return torch.tensor(pixels).reshape(8, 40, 4)


@every_kind
def test_the_map_has_the_colours_of_the_static_maps_of_signed_numbers(kind, shown):
    page = shown(positions(kind=kind))
    queries, _ = queries_and_keys(kind)
    shares = queries.T / queries.abs().max()
    expected = 255 * torch.tensor(matplotlib.colormaps["RdBu_r"]((shares + 1) / 2))
    assert (map_pixels(page) - expected).abs().max() < 6


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
    page = shown(positions(kind="learned"))
    largest = f"{TABLE.abs().max():.1f}"
    low, high = page.locator(".scale span").all_inner_texts()
    assert (low, high) == (f"−{largest}", largest)
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


@pytest.mark.parametrize("scale", [0.0, 1e-4, 100.0])
def test_learned_tables_of_any_scale_are_drawn(scale, shown):
    table = scale * torch.ones(5, 3 + 1)
    page = shown(show_positions(5, 4, kind="learned", learned=table))
    heights = places(page.locator("path.first").get_attribute("d"))[:, 1]
    assert heights.isfinite().all() and heights.unique().numel() == 1
    number = {0.0: "0.00", 1e-4: "0.0000000400", 100.0: "40000"}[scale]
    assert said(page).startswith(f"Position 1 and position 1: dot product {number}. ")


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
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


# ---- patches


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
    strongest = torch.tensor(matplotlib.colormaps["Blues"](0.55 if dark else 0.75)[:3])
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
        expected = matplotlib.colormaps["Blues"](over / over.max())
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_photograph_is_no_negative(scheme, shown):
    photograph = torch.zeros(3, 4, 4)
    photograph[:, :2] = 1
    weights = torch.eye(5)  # each token at itself: nothing lies over the image
    page = shown(show_patch_attention(weights, photograph), color_scheme=scheme)
    light = torch.zeros(4, 4).double()
    light[:2] = 1
    expected = blended(light, torch.zeros(4, 4), scheme == "dark")
    assert (canvas_of(page)[..., :3] - expected).abs().max() < 0.01


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
