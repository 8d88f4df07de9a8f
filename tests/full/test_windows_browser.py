"""What a reader sees of windows on a grid after real events in a browser."""

import pytest
from figures_in_browser import PHONE, handle, press, press_in_stage, readout, windows

from tutorial_lib.windows import shifted_window_mask


def told(place, layers=2, shifted=True):
    """Return what the figure should say, by the masks of the library."""
    token, shifts = 8 * place[0] + place[1], [0, 2 * shifted] * 4
    masks = [shifted_window_mask(8, 4, shift) for shift in shifts[:layers]]
    read, heard = masks[-1][token], masks[-1][token]
    for mask in masks[-2::-1]:
        heard = mask[heard].any(dim=0)
    kind = "shifted" if shifts[layers - 1] else "regular"
    return (
        f"Token {place} attends to {read.sum()} tokens in the last layer, whose "
        f"windows are {kind}. After {layers} layer{'s' * (layers > 1)} its receptive "
        f"field has {heard.sum()} of 64 tokens."
    ), (read.sum(), heard.sum())


def assert_shows(page, place, **options):
    sentence, (read, heard) = told(place, **options)
    assert readout(page) == sentence
    assert page.locator(".stage .reads").count() == read
    assert page.locator(".stage .reads, .stage .known").count() == heard
    middle = handle(page, token(place))
    assert handle(page, ".frame") == pytest.approx(middle, abs=4)


def token(place):
    return f"svg text:text-is('{place[0]},{place[1]}')"


def click(page, place):
    page.mouse.click(*handle(page, token(place)))


def test_a_token_shows_its_receptive_field_with_and_without_shift(shown):
    page = shown(windows())
    assert_shows(page, (3, 3))
    for place in ((0, 0), (1, 6), (7, 4), (5, 5)):
        click(page, place)
        assert_shows(page, place)
    page.get_by_label("layers", exact=True).fill("4")
    page.get_by_label("shift every other layer").uncheck()
    assert_shows(page, (5, 5), layers=4, shifted=False)
    page.get_by_label("shift every other layer").check()
    page.get_by_label("layers", exact=True).fill("3")
    assert_shows(page, (5, 5), layers=3)


def test_arrow_keys_move_and_end_at_the_edges(shown):
    page = shown(windows(token=(0, 1)))
    press_in_stage(page)
    for key, place in (
        ("ArrowUp", (0, 1)),
        ("ArrowLeft", (0, 0)),
        ("ArrowLeft", (0, 0)),
        ("ArrowDown", (1, 0)),
        ("Escape", (0, 1)),
    ):
        press(page, key)
        assert_shows(page, place)


def test_a_cyclic_shift_makes_whole_windows_and_masks_what_came_from_elsewhere(shown):
    page = shown(windows())
    page.get_by_label("cyclic shift").check()
    for place, masked in (((3, 3), 0), ((0, 0), 12), ((7, 3), 8)):
        click(page, place)
        sentence, (read, _) = told(place)
        hidden = f" After the cyclic shift, {masked} tokens of its window are masked."
        assert readout(page) == sentence + hidden
        assert page.locator(".stage .masked").count() == masked == 16 - read
    click(page, (2, 2))
    frame, stage = (page.locator(of).bounding_box() for of in (".frame", ".stage"))
    assert (frame["x"] - stage["x"], frame["y"] - stage["y"]) < (4, 4)


def test_a_phone_shows_the_whole_grid(shown):
    page = shown(windows(), **PHONE)
    box = page.locator(".stage").bounding_box()
    assert box["x"] + box["width"] <= 400
    page.touchscreen.tap(*handle(page, token((6, 6))))
    assert_shows(page, (6, 6))
