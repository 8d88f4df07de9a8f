"""What a reader sees of object queries after real events in a browser."""

import pytest
import torch
from figures_in_browser import (
    OBJECT_MASKS,
    OBJECT_NAMES,
    OBJECT_SCENES,
    PHONE,
    STEPS,
    objects,
    said,
    texts,
)


def assert_shows(page, at, scene=0):
    """Check sentence, names, veils and boxes for a step and a scene."""
    names = OBJECT_NAMES[at][scene]
    spoken = [f"query {i + 1} says {name or 'nothing'}" for i, name in enumerate(names)]
    assert said(page) == f"After {STEPS[at]} steps {', '.join(spoken)}."
    labels = [f"query {i + 1}: {name or 'nothing'}" for i, name in enumerate(names)]
    assert texts(page.locator(".view + div")) == labels
    for query, name in enumerate(names):
        mask = OBJECT_MASKS[at, scene, query] * (name is not None)
        panel = page.locator(".panel").nth(query)
        assert_veiled(panel, OBJECT_SCENES[scene], mask)
        assert_framed(panel, mask > 0.5)


def assert_veiled(panel, ink, mask):
    shades = mask.repeat_interleave(2, 0).repeat_interleave(2, 1)
    expected = 127 / 255 + (0.22 + 0.78 * shades) * (1 - ink - 127 / 255)
    pixels = panel.locator("canvas").evaluate(
        "canvas => [...canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data]"
    )
    shown = torch.tensor(pixels).reshape(4, 6, 4).double() / 255
    assert (shown[..., :3] - expected[..., None]).abs().max() < 0.01


def assert_framed(panel, there):
    frame = panel.locator(".frame")
    assert frame.is_visible() == bool(there.any())
    if there.any():
        rows, columns = there.nonzero().T
        outer, box = panel.locator(".view").bounding_box(), frame.bounding_box()
        side = outer["width"] / 3
        assert box["x"] - outer["x"] == pytest.approx(side * columns.min(), abs=4)
        assert box["y"] - outer["y"] == pytest.approx(side * rows.min(), abs=4)
        across = columns.max() - columns.min() + 1
        assert box["width"] == pytest.approx(side * across, abs=8)


def test_it_opens_untrained_and_a_slider_leads_on(shown):
    page = shown(objects())
    assert_shows(page, 0)
    slider = page.get_by_label("steps of training")
    for at in (2, 1, 0):
        slider.fill(str(at))
        assert_shows(page, at)
        assert slider.get_attribute("aria-valuetext") == f"{STEPS[at]}"


def test_another_scene_is_shown_at_the_same_step(shown):
    page = shown(objects())
    page.get_by_label("steps of training").fill("1")
    page.get_by_label("scene", exact=True).select_option("2")
    assert_shows(page, 1, scene=1)


def test_training_runs_from_its_beginning_to_its_end_and_can_be_paused(shown):
    page = shown(objects())
    page.get_by_role("button", name="Train").click()
    assert_shows(page, 0)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1200)
    assert_shows(page, 0)
    page.get_by_role("button", name="Train").click()
    page.get_by_text("After 500 steps").first.wait_for()
    assert_shows(page, 2)
    assert page.get_by_role("button", name="Train").is_visible()


def test_a_phone_shows_every_query(shown):
    page = shown(objects(), **PHONE)
    for box in (panel.bounding_box() for panel in page.locator(".panel").all()):
        assert box["x"] >= 0 and box["x"] + box["width"] <= 400
    assert_shows(page, 0)
