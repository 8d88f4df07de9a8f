"""What a reader sees of a text that writes itself after real events in a browser."""

from figures_in_browser import (
    click,
    generation,
    press,
    press_in_stage,
    readout,
    stop_clock,
)


def written(page):
    return page.locator(".token:not(.unwritten) .word").all_inner_texts()


def weights(page):
    return page.locator(".token:not(.unwritten) .number").all_inner_texts()


def test_buttons_and_arrow_keys_write_a_word_or_take_it_back(shown):
    page = shown(generation())
    assert written(page) == ["<bos>"]
    click(page, "Next token")
    assert written(page) == ["<bos>", "cats"]
    assert weights(page) == ["0.20", "0.80"]
    page.get_by_label("attention of", exact=True).select_option("layer 0")
    assert weights(page) == ["0.50", "0.50"]
    page.get_by_label("attention of", exact=True).select_option("layer 1")
    click(page, "Back")
    click(page, "Back")  # before the first word there is nothing
    assert written(page) == ["<bos>"]
    press_in_stage(page, "ArrowRight")
    assert readout(page) == (
        "“cats” attends most to “cats”. The most probable next token is “sleep” "
        "(0.644), and it is drawn."
    )
    assert page.locator(".drawn").all_inner_texts() == ["sleep"]
    press(page, "ArrowRight", "ArrowRight", "ArrowRight")
    assert written(page) == ["<bos>", "cats", "sleep", "<eos>"]
    assert readout(page).endswith("The text ends.")
    assert page.locator(".next span").count() == 0
    press(page, "ArrowLeft")
    assert written(page)[-1] == "sleep"


def test_it_writes_by_itself_until_the_end_and_can_be_paused(shown):
    page = shown(generation())
    stop_clock(page)
    click(page, "Generate")
    page.clock.run_for(1200)
    click(page, "Pause")
    page.clock.run_for(5000)
    assert written(page) == ["<bos>", "cats"]
    click(page, "Generate")
    page.clock.run_for(5000)
    assert readout(page).endswith("The text ends.")
    assert page.get_by_role("button", name="Generate").is_visible()
