"""What a reader sees of object queries after real events in a browser."""

import pytest
from figures_in_browser import (
    PHONE,
    SAID_OF_SCENES,
    SCENE_BOXES,
    SCENE_WEIGHTS,
    SCENES,
    STEPS,
    click,
    objects,
    pixels_of,
    readout,
    stop_clock,
    texts,
)


def assert_shows(page, at, scene=0):
    """Check sentence, names, veils and boxes for a step and a scene."""
    names = SAID_OF_SCENES[at][scene]
    spoken = [
        f"query {i} predicts {name or 'no object'}" for i, name in enumerate(names)
    ]
    assert readout(page) == f"After {STEPS[at]} steps {', '.join(spoken)}."
    labels = [f"query {i}: {name or '∅'}" for i, name in enumerate(names)]
    assert texts(page.locator(".view + div")) == labels
    for query, name in enumerate(names):
        assert_veiled(page, query, SCENES[scene], SCENE_WEIGHTS[at, scene, query])
        box = SCENE_BOXES[at, scene, query].tolist() if name else None
        assert_framed(page.locator(".panel").nth(query), box)


def assert_veiled(page, query, ink, weights):
    shades = weights / weights.max()
    shades = shades.repeat_interleave(2, 0).repeat_interleave(2, 1)
    expected = 127 / 255 + (0.22 + 0.78 * shades) * (1 - ink - 127 / 255)
    shown = pixels_of(page, f".panel canvas >> nth={query}")
    assert (shown[..., :3] - expected[..., None]).abs().max() < 0.01


def assert_framed(panel, box):
    frame = panel.locator(".frame")
    assert frame.is_visible() == (box is not None)
    if box is not None:
        x, y, width, height = box
        outer, drawn = panel.locator(".view").bounding_box(), frame.bounding_box()
        left = outer["x"] + (x - width / 2) * outer["width"]
        top = outer["y"] + (y - height / 2) * outer["height"]
        assert drawn["x"] == pytest.approx(left, abs=4)
        assert drawn["y"] == pytest.approx(top, abs=4)
        assert drawn["width"] == pytest.approx(width * outer["width"], abs=8)
        assert drawn["height"] == pytest.approx(height * outer["height"], abs=8)


def test_it_opens_trained_and_a_slider_leads_back_in_every_scene(shown):
    page = shown(objects())
    assert_shows(page, len(STEPS) - 1)
    slider = page.get_by_label("steps of training")
    for at in (2, 0, 1):
        slider.fill(str(at))
        assert_shows(page, at)
        assert slider.get_attribute("aria-valuetext") == f"{STEPS[at]}"
    page.get_by_label("scene", exact=True).select_option("2")
    assert_shows(page, 1, scene=1)


def test_training_runs_from_its_beginning_to_its_end_and_can_be_paused(shown):
    page = shown(objects())
    stop_clock(page)
    click(page, "Train")
    page.clock.run_for(1000)
    assert_shows(page, 1)
    click(page, "Pause")
    page.clock.run_for(2000)
    assert_shows(page, 1)
    click(page, "Train")
    page.clock.run_for(1000)
    assert_shows(page, 2)
    click(page, "Train")  # and once more
    assert_shows(page, 0)


def test_a_phone_shows_every_query(shown):
    page = shown(objects(), **PHONE)
    for box in (panel.bounding_box() for panel in page.locator(".panel").all()):
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400
    assert_shows(page, len(STEPS) - 1)
