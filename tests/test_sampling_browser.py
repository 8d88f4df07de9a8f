"""What a reader sees of a step of sampling after real events in a browser."""

import torch
from figures_in_browser import SCORES, as_shown, press, said, sampling

from tutorial_figures import show_sampling
from tutorial_lib.decoding import apply_temperature, min_p, top_k, top_p


def chances_shown(page):
    return page.locator(".chance .number").all_inner_texts()


def test_the_chances_are_those_of_the_logits(shown):
    page = shown(sampling())
    chances = SCORES.softmax(0)
    assert chances_shown(page) == as_shown(chances)
    assert page.locator(".model .number").all_inner_texts() == as_shown(chances)
    entropy = -(chances * chances.log()).sum()
    assert said(page) == (
        f"4 of 4 words may be drawn. Entropy {entropy:.2f} nats, as if "
        f"{entropy.exp():.1f} words were as likely."
    )


def test_the_sliders_do_what_the_library_s_functions_do(shown):
    page = shown(sampling())
    page.get_by_label("temperature T", exact=True).fill("0.3")  # 10 to this power
    tempered = apply_temperature(SCORES, 2.0)
    assert chances_shown(page) == as_shown(tempered.softmax(0))
    page.get_by_label("top-k", exact=True).fill("3")
    assert chances_shown(page)[:3] == as_shown(top_k(tempered, 3).softmax(0)[:3])
    page.get_by_label("top-p", exact=True).fill("0.7")
    kept = top_p(top_k(tempered, 3), 0.7).softmax(0)
    assert chances_shown(page) == [f"{share:.3f}" for share in kept.tolist()]
    assert page.locator(".out").all_inner_texts() == ["bird", "fish"]
    page.get_by_label("top-p", exact=True).fill("1")
    page.get_by_label("min-p", exact=True).fill("0.3")
    kept = min_p(top_k(tempered, 3), 0.3).softmax(0)
    assert chances_shown(page) == [f"{share:.3f}" for share in kept.tolist()]
    # The model's own probabilities stay.
    assert page.locator(".model .number").all_inner_texts() == as_shown(
        SCORES.softmax(0)
    )
    page.get_by_role("button", name="reset").click()
    assert chances_shown(page) == as_shown(SCORES.softmax(0))


def test_arrow_keys_move_a_slider(shown):
    page = shown(sampling())
    page.get_by_label("top-k", exact=True).focus()
    press(page, "ArrowLeft", "ArrowLeft")
    assert "2 of 4 words may be drawn" in said(page)
    assert page.get_by_label("top-k", exact=True).get_attribute("aria-valuetext") == "2"


def test_a_hundred_draws_are_counted_and_fall_on_what_may_be_drawn(shown):
    page = shown(sampling(k=2))
    page.get_by_role("button", name="draw", exact=True).click()
    assert "Drawn once: «" in said(page)
    page.get_by_role("button", name="draw 100").click()
    drawn = page.locator(".words > .number").all_inner_texts()
    assert sum(int(number or 0) for number in drawn) == 101
    assert drawn[2:] == ["", ""]
    page.get_by_label("top-p", exact=True).fill("0.5")  # other numbers, other draws
    assert page.locator(".words > .number").all_inner_texts() == [""] * 4


def test_unlikely_words_share_a_row(shown):
    logits = torch.arange(30.0, 0, -1) / 10
    page = shown(show_sampling(logits, [f"w{i}" for i in range(30)]))
    assert page.get_by_text("20 others").is_visible()
    assert chances_shown(page)[-1] == f"{logits.softmax(0)[10:].sum():.3f}"
