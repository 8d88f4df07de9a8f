"""What a reader sees of a softmax after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    PHONE,
    SCORES,
    as_shown,
    click,
    drag,
    handle,
    press,
    readout,
    softmax,
    touch_drag,
)

from tutorial_figures import show_softmax

BIRD = "[aria-label='score of bird']"


def weights_shown(page):
    return page.locator(".weight .number").all_inner_texts()


def assert_shows(page, scores):
    assert weights_shown(page) == as_shown(torch.as_tensor(scores).softmax(0))


def test_scores_follow_the_mouse_and_the_keys(shown):
    page, weights = shown(softmax()), SCORES.softmax(0)
    assert_shows(page, SCORES)
    entropy = torch.special.entr(weights).sum()
    assert readout(page) == (
        f"Entropy {entropy:.2f} nats, as if {entropy.exp():.1f} of 4 keys shared the "
        "weight equally. Largest derivative of a weight, max α(1 − α): "
        f"{(weights * (1 - weights)).max():.4f} (at most 0.25)."
    )
    track = page.get_by_label("score of cat").bounding_box()
    bar = page.locator(".track .bed span").first.bounding_box()
    thumb = track["x"] + 9 + (track["width"] - 18) * (2 + 3) / 6
    assert bar["x"] + bar["width"] == pytest.approx(thumb, abs=1)
    x, y = handle(page, BIRD)
    drag(page, (x, y), (x + track["width"] / 3, y))
    score = float(page.locator(BIRD).input_value())
    assert score > 1.5
    assert_shows(page, [2.0, 1.0, score, -1.0])
    page.get_by_label("score of cat").focus()
    press(page, "ArrowRight", "ArrowRight")
    assert_shows(page, [2.1, 1.0, score, -1.0])
    assert page.get_by_label("score of cat").get_attribute("aria-valuetext") == "2.10"


def test_a_finger_drags_a_score(shown):
    page = shown(softmax(), **PHONE)
    x, y = handle(page, BIRD)
    touch_drag(page, (x, y), (x + page.locator(BIRD).bounding_box()["width"] / 3, y))
    assert float(page.locator(BIRD).input_value()) > 1


def test_temperature_and_d_k_change_what_enters_the_softmax_and_reset_undoes_it(shown):
    page = shown(softmax(d_k=16))
    page.get_by_label("temperature T", exact=True).focus()
    press(page, *["ArrowLeft"] * 15)
    assert page.locator("label .number").first.inner_text() == "0.50"
    assert_shows(page, SCORES / 0.5)
    click(page, "reset")
    page.get_by_label("divide by √d_k").uncheck()
    assert_shows(page, 4 * SCORES)
    inputs = page.locator(".keys > .number").all_inner_texts()
    assert inputs == ["8.00", "4.00", "0.00", "−4.00"]
    page.get_by_label("d_k", exact=True).focus()
    press(page, "ArrowRight", "ArrowRight")
    assert_shows(page, 8 * SCORES)
    assert "spread √64 = 8.0 times as far" in page.locator("p").first.inner_text()
    page.get_by_label("score of fish").fill("3")
    click(page, "reset")
    assert_shows(page, SCORES)


def test_without_d_k_there_is_nothing_to_divide_by(shown):
    page = shown(softmax(d_k=None))
    assert page.get_by_label("divide by √d_k").count() == 0
    assert page.get_by_label("d_k", exact=True).count() == 0
    assert_shows(page, SCORES)
    assert page.locator("p").first.inner_text().endswith("input = score / T")
    largest = SCORES.softmax(0).max()
    assert readout(page) == f"The largest weight is {largest:.2f}, that of “cat”."


def test_an_arrow_key_moves_a_score_from_where_it_stands(shown):
    page = shown(show_softmax([0.7303, 0.1], labels=["cat", "dog"]))
    before = weights_shown(page)
    page.get_by_label("score of cat").focus()
    press(page, "ArrowRight")
    assert weights_shown(page) != before
    press(page, "ArrowLeft")
    assert weights_shown(page) == before
