"""What a reader sees of a text that writes itself after real events in a browser."""

from figures_in_browser import generation, press, said


def written(page):
    return page.locator(".token:not(.unwritten) .word").all_inner_texts()


def weights(page):
    return page.locator(".token:not(.unwritten) .number").all_inner_texts()


def test_the_text_goes_on_word_by_word_and_back(shown):
    page = shown(generation())
    assert written(page) == ["<bos>"]
    page.get_by_role("button", name="Next word").click()
    assert written(page) == ["<bos>", "cats"]
    assert weights(page) == ["0.20", "0.80"]
    page.get_by_role("button", name="Back").click()
    page.get_by_role(
        "button", name="Back"
    ).click()  # before the prompt there is nothing
    assert written(page) == ["<bos>"]


def test_arrow_keys_write_and_the_drawn_word_is_named(shown):
    page = shown(generation())
    page.locator(".text").focus()
    press(page, "ArrowRight")
    assert said(page) == (
        "«cats» looks most at «cats». The likeliest next word is «sleep» and is drawn, "
        "which has probability 0.644."
    )
    assert page.locator(".drawn").all_inner_texts() == ["sleep"]
    press(page, "ArrowRight", "ArrowRight", "ArrowRight")
    assert written(page) == ["<bos>", "cats", "sleep", "<eos>"]
    assert said(page).endswith("The text ends.")
    assert page.locator(".next span").count() == 0
    press(page, "ArrowLeft")
    assert written(page)[-1] == "sleep"


def test_each_block_has_its_looks(shown):
    page = shown(generation(begin=2))
    assert weights(page) == ["0.20", "0.80"]
    page.get_by_label("looks of", exact=True).select_option("block 1")
    assert weights(page) == ["0.50", "0.50"]


def test_it_writes_by_itself_until_the_end_and_can_be_paused(shown):
    page = shown(generation())
    page.clock.install()
    page.get_by_role("button", name="Write").click()
    page.clock.run_for(1200)
    assert written(page) == ["<bos>", "cats"]
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert written(page) == ["<bos>", "cats"]
    page.get_by_role("button", name="Write").click()
    page.clock.run_for(5000)
    assert said(page).endswith("The text ends.")
    assert page.get_by_role("button", name="Write").is_visible()
