"""What a reader sees of a softmax after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    PHONE,
    SCORES,
    as_shown,
    drag,
    press,
    said,
    softmax,
    touch_drag,
)

from tutorial_figures import show_softmax


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
