"""What a reader sees of a step of sampling after real events in a browser."""

import torch
from figures_in_browser import NAMES, SCORES, as_shown, click, press, readout, sampling

from tutorial_exercises.chapter_12 import keep_min_p
from tutorial_figures import show_sampling
from tutorial_lib.decoding import apply_temperature, keep_top_k, keep_top_p


def chances_shown(page, which=".chance .number"):
    return page.locator(which).all_inner_texts()


def slider(page, name):
    return page.get_by_label(name, exact=True)


def test_the_sliders_do_what_the_library_s_functions_do(shown):
    page, first = shown(sampling()), SCORES.softmax(0)
    assert chances_shown(page) == as_shown(first)
    entropy = torch.special.entr(first).sum()
    assert readout(page) == (
        f"4 of 4 tokens may be sampled. Entropy {entropy:.2f} nats, as if "
        f"{entropy.exp():.1f} tokens were equally probable."
    )
    slider(page, "temperature T").fill("0.3")  # 10 to this power
    tempered = apply_temperature(SCORES, 2.0)
    assert chances_shown(page) == as_shown(tempered.softmax(0))
    slider(page, "top-k").fill("3")
    assert chances_shown(page)[:3] == as_shown(keep_top_k(tempered, 3).softmax(0)[:3])
    for name, value, kept in (
        ("top-p", "0.7", keep_top_p(keep_top_k(tempered, 3), 0.7)),
        ("min-p", "0.3", keep_min_p(keep_top_k(tempered, 3), 0.3)),
    ):
        slider(page, name).fill(value)
        shares = kept.softmax(0).tolist()
        assert chances_shown(page) == [f"{share:.3f}" for share in shares]
        outside = [
            label for label, share in zip(NAMES, shares, strict=True) if not share
        ]
        assert page.locator(".out").all_inner_texts() == outside
        slider(page, "top-p").fill("1")
    assert chances_shown(page, ".model .number") == as_shown(first)  # they stay
    click(page, "reset")
    assert chances_shown(page) == as_shown(first)
    slider(page, "top-k").focus()
    press(page, "ArrowLeft", "ArrowLeft")
    assert "2 of 4 tokens may be sampled" in readout(page)
    assert slider(page, "top-k").get_attribute("aria-valuetext") == "2"


def test_a_hundred_draws_are_counted_and_fall_on_what_may_be_drawn(shown):
    page = shown(sampling(k=2))
    click(page, "sample")
    assert "Sampled once: “" in readout(page)
    click(page, "sample 100")
    drawn = chances_shown(page, ".words > .number")
    assert sum(int(number or 0) for number in drawn) == 101
    assert drawn[2:] == ["", ""]
    slider(page, "top-p").fill("0.5")  # other numbers, other draws
    assert chances_shown(page, ".words > .number") == [""] * 4


def test_unlikely_words_share_a_row(shown):
    logits = torch.arange(30.0, 0, -1) / 10
    page = shown(show_sampling(logits, [f"w{i}" for i in range(30)]))
    assert page.get_by_text("20 others").is_visible()
    assert chances_shown(page)[-1] == f"{logits.softmax(0)[10:].sum():.3f}"
