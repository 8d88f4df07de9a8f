"""What a reader sees of all the heads of a model after real events in a browser."""

import importlib
import sys
from pathlib import Path

import pytest
from figures_in_browser import (
    PHONE,
    UNREPORTED,
    handle,
    model_heads,
    pixels_of,
    press,
    readout,
    touch_drag,
    without_picture,
    write_page,
)

from tutorial_figures.fragment import weights_script
from tutorial_figures.model_heads import stored_heads, weights_of

sys.path.append(str(Path(__file__).parents[2] / "book" / "_ext"))
DATA = stored_heads()
HEADS = "[aria-label^='heads by layer']"
MAP = "[aria-label^='attention map']"


def told(layer, head, text, query, key=None):
    """Return what the figure should say, by what is stored."""
    number = 9 * layer + head
    tokens = [token.strip() for token in DATA["texts"][text]["tokens"]]
    row = weights_of(DATA, text)[number, query]
    names = ("induction score", "induction"), ("previous-token score", "previous")
    names += (("weight on the first token", "first"),)
    scores = [f"{name} {DATA['scores'][of][number]:.2f}" for name, of in names]
    most = [i for i in (-row).argsort(kind="stable")[:3] if row[i] >= 0.005]
    most = [f"“{tokens[i]}” ({i}) {row[i]:.2f}" for i in most]
    gives = f"gives “{tokens[key or 0]}” ({key}) the weight {row[key or 0]:.2f}, and "
    return (
        f"Layer {layer}, head {head}: {', '.join(scores)}. “{tokens[query]}” ({query}) "
        f"{'' if key is None else gives}attends most to {', '.join(most)}."
    )


def at(page, stage, column, row):
    """Return where a cell of a map lies, as its canvas is stretched."""
    box = page.locator(f"{stage} canvas").bounding_box()
    size = page.locator(f"{stage} canvas").evaluate("one => [one.width, one.height]")
    x = box["x"] + (column + 0.5) * box["width"] / size[0]
    return x, box["y"] + (row + 0.5) * box["height"] / size[1]


def test_the_mouse_shows_a_head_in_passing_and_a_click_keeps_it(shown):
    page = shown(model_heads())
    first = told(18, 6, 0, 15)
    assert readout(page) == first
    page.mouse.move(*at(page, HEADS, 0, 16))
    assert readout(page) == told(16, 0, 0, 15)
    page.mouse.move(0, 0)
    assert readout(page) == first
    page.mouse.click(*at(page, HEADS, 0, 16))
    page.mouse.move(0, 0)
    assert readout(page) == told(16, 0, 0, 15)
    assert handle(page, f"{HEADS} .frame") == pytest.approx(
        at(page, HEADS, 0, 16), abs=1
    )


def test_a_cell_names_query_and_key_in_passing_and_when_clicked(shown):
    page = shown(model_heads())
    page.mouse.move(*at(page, MAP, 6, 15))
    assert readout(page) == told(18, 6, 0, 15, key=6)
    page.mouse.move(*at(page, MAP, 19, 3))  # a name, where nobody sees the future
    assert readout(page) == told(18, 6, 0, 3)
    page.mouse.click(*at(page, MAP, 9, 18))
    page.mouse.move(0, 0)
    assert readout(page) == told(18, 6, 0, 18, key=9)
    bold = page.locator(f"{MAP} text[font-weight='700']").all_text_contents()
    assert bold == [" piano", " lemon"] or bold == [" lemon", " lemon"]


def test_arrow_keys_choose_a_head_and_end_at_the_edges(shown):
    page = shown(model_heads())
    page.locator(HEADS).focus()
    press(page, "ArrowUp", "ArrowLeft")
    assert readout(page) == told(17, 5, 0, 15)
    press(page, *["ArrowLeft"] * 9, *["ArrowDown"] * 30)
    assert readout(page) == told(29, 0, 0, 15)


def test_arrow_keys_choose_query_and_key_and_escape_lets_the_key_go(shown):
    page = shown(model_heads())
    page.locator(MAP).focus()
    press(page, "ArrowDown", "ArrowRight")
    assert readout(page) == told(18, 6, 0, 16, key=0)
    press(page, *["ArrowRight"] * 30)
    assert readout(page) == told(18, 6, 0, 16, key=16)
    press(page, "ArrowUp")  # the key is never behind the query
    assert readout(page) == told(18, 6, 0, 15, key=15)
    press(page, "Escape", *["ArrowDown"] * 30)
    assert readout(page) == told(18, 6, 0, 20)


def test_scores_and_texts_are_chosen_and_the_highest_heads_marked(shown):
    page = shown(model_heads())
    page.get_by_label("color").select_option("previous-token score")
    buttons = page.locator(".strongest button")
    numbers = [text.split()[0] for text in buttons.all_text_contents()]
    assert numbers == ["16.0", "11.1", "19.3", "2.1", "1.2"]
    buttons.first.click()
    assert buttons.first.get_attribute("aria-pressed") == "true"
    for text in range(4):
        page.get_by_label("text", exact=True).select_option(str(text))
        query = DATA["texts"][text]["query"]
        assert readout(page) == told(16, 0, text, query)
    marked = page.locator(f"{HEADS} .strong").get_attribute("d")
    assert marked.count("M") == 5


def test_colors_are_those_of_scores_and_weights(shown):
    page = shown(model_heads())
    shades = 1 - pixels_of(page, f"{HEADS} canvas")[..., 0]  # the darker, the less red
    assert shades.shape == (30, 9)
    assert shades.argmax() == 18 * 9 + 6
    shades = (1 - pixels_of(page, f"{MAP} canvas"))[..., 0].numpy()
    weights = weights_of(DATA, 0)[18 * 9 + 6]
    assert shades.shape == weights.shape == (21, 21)
    for query in range(1, 21):
        row = shades[query, : query + 1]
        assert row.argmax() == weights[query].argmax()


def test_on_a_phone_the_map_lies_flat_and_a_finger_chooses(shown):
    page = shown(model_heads(), **PHONE)
    page.locator(HEADS).focus()
    press(page, "ArrowRight", "ArrowDown")  # to the next layer, to the next head
    assert readout(page) == told(19, 7, 0, 15)
    page.locator(HEADS).scroll_into_view_if_needed()
    touch_drag(page, at(page, HEADS, 2, 1), at(page, HEADS, 16, 0))
    assert readout(page) == told(16, 0, 0, 15)
    page.touchscreen.tap(*at(page, HEADS, 11, 1))
    assert readout(page) == told(11, 1, 0, 15)


def test_weights_are_loaded_from_a_script_beside_a_page_that_is_a_file(
    page_at, tmp_path
):
    pytest.importorskip("sphinx")
    without_weights = importlib.import_module("live_figure").without_weights
    html = without_picture(model_heads()).html
    body, moved = without_weights(f"{html}<p>between</p>{html}", ".")
    [(name, weights)] = moved.items()
    path = write_page(tmp_path / "page.html", body)
    script = weights_script(name, weights)
    (tmp_path / f"{name}.js").write_text(script, encoding="utf-8")
    page = page_at(path)
    page.locator(".readout", has_text="Layer 18").first.wait_for()
    assert page.locator(".readout").count() == 2


def test_where_the_script_is_missing_the_picture_stays(page_at, tmp_path):
    pytest.importorskip("sphinx")
    without_weights = importlib.import_module("live_figure").without_weights
    body, _ = without_weights(without_picture(model_heads()).html, "data:,")
    path = write_page(tmp_path / "page.html", body)
    page = page_at(path, script=UNREPORTED + "addEventListener('error', () => 0, true)")
    page.wait_for_timeout(500)
    assert page.locator("img").is_visible()
    assert page.locator(".readout").count() == 0
