"""What a reader sees of kernel regression after real events in a browser."""

import re

import pytest
import torch
from figures_in_browser import (
    PHONE,
    X,
    Y,
    click,
    drag,
    handle,
    kernel_regression,
    press,
    press_in_stage,
    readout,
    touch_drag,
)

from tutorial_figures import show_kernel_regression
from tutorial_lib import kernels
from tutorial_lib.attention import nadaraya_watson
from tutorial_lib.plotting.colors import DARK, LIGHT

QUERY, BANDWIDTH, POINTS = ".handle >> nth=1", ".handle >> nth=0", "circle:not(.handle)"
SET_BANDWIDTH = """(slider, bandwidth) => {
  slider.step = 'any';
  slider.value = Math.log(bandwidth);
  slider.dispatchEvent(new Event('input'));
}"""
FLAT = "bars => bars.every(bar => bar.getAttribute('y1') === bar.getAttribute('y2'))"


def library_says(query, bandwidth, kernel="gaussian", x=X, y=Y):
    """Return the sentence that the library's own numbers make."""
    if kernel == "constant":
        function = torch.ones_like
    else:
        function = getattr(kernels, kernel)(bandwidth)
    estimate, [weights] = nadaraya_watson(torch.tensor([query]), x, y, function)
    return (
        f"At the query {query:.2f} the estimate is {estimate.item():.2f}, the weighted "
        f"mean of {len(x)} values; the largest weight is {weights.max():.3f}, as "
        f"if {torch.special.entr(weights).sum().exp():.1f} of them shared the weight "
        "equally."
    ).replace("-", "−")


def numbers(page):
    """Return the query and the bandwidth that stand beside their sliders."""
    query, bandwidth = page.locator("label .number").all_inner_texts()
    return float(query.replace("−", "-")), float(bandwidth)


def choose(page, kernel):
    page.get_by_label("kernel", exact=True).select_option(kernel)


def test_the_browser_and_the_library_agree_on_every_kernel(shown):
    page = shown(kernel_regression())
    for kernel in ("boxcar", "epanechnikov", "triangular", "constant", "gaussian"):
        choose(page, kernel)
        for query, bandwidth in ((1.2, 0.6), (1.5, 0.5), (3.7, 0.9)):
            page.get_by_label("query", exact=True).fill(str(query))
            slider = page.get_by_label("bandwidth", exact=True)
            slider.evaluate(SET_BANDWIDTH, bandwidth)
            assert readout(page) == library_says(query, bandwidth, kernel), kernel
        bandwidth = page.get_by_label("bandwidth", exact=True)
        assert bandwidth.is_disabled() == (kernel == "constant")
        assert page.locator(BANDWIDTH).is_visible() == (kernel != "constant")


def test_query_and_bandwidth_follow_the_mouse_and_the_keys(shown):
    page = shown(kernel_regression())
    x, y = handle(page, QUERY)
    drag(page, (x, y), (x + 90, y + 30), (x + 200, y))
    query, bandwidth = numbers(page)
    assert query > 2 and bandwidth == 0.6
    assert readout(page) == library_says(query, bandwidth)
    assert handle(page, QUERY)[0] == pytest.approx(x + 200, abs=2)
    page.mouse.move(x, y)
    assert numbers(page) == (query, bandwidth)
    x, y = handle(page, BANDWIDTH)
    drag(page, (x, y), (x + 100, y))
    assert numbers(page)[0] == query and numbers(page)[1] > 1
    assert readout(page) == library_says(*numbers(page))
    assert handle(page, BANDWIDTH)[0] == pytest.approx(x + 100, abs=2)
    click(page, "reset")
    press_in_stage(page, "ArrowRight", "ArrowRight", "ArrowUp")
    query, bandwidth = numbers(page)
    assert query > 1.2 and bandwidth == 0.66
    assert readout(page) == library_says(query, bandwidth)


def test_a_finger_drags_and_taps_and_a_swipe_down_the_page_moves_nothing(shown):
    page = shown(kernel_regression(), **PHONE)
    x, y = handle(page, QUERY)
    touch_drag(page, (x, y), (x + 120, y))
    assert numbers(page)[0] > 2
    assert readout(page) == library_says(*numbers(page))
    before, (x, y) = numbers(page), handle(page, QUERY)
    touch_drag(page, (x - 60, y + 100), (x - 60, y - 100))
    assert numbers(page) == before
    x, y = handle(page, QUERY)
    page.touchscreen.tap(x - 60, y)
    assert handle(page, QUERY)[0] == pytest.approx(x - 60, abs=2)


def test_points_are_added_drawn_and_removed_by_mouse(shown):
    page = shown(kernel_regression())
    click(page, "edit points")
    svg = page.locator("[role=application] svg").bounding_box()
    dots = page.locator(POINTS)
    x, y = svg["x"] + 620, svg["y"] + 60
    page.mouse.click(x, y)
    assert dots.count() == 8 and "weighted mean of 8 values" in readout(page)
    assert handle(page, f"{POINTS} >> nth=7") == pytest.approx((x, y), abs=1)
    page.mouse.click(x + 3, y - 3)
    assert dots.count() == 7
    drag(page, (x, y), (x - 150, y), (x - 150, y + 60))
    assert dots.count() >= 12
    click(page, "reset")
    click(page, "edit points")
    assert dots.count() == 7 and readout(page) == library_says(1.2, 0.6)


def test_points_are_added_and_removed_by_key(shown):
    page = shown(kernel_regression())
    click(page, "edit points")
    press_in_stage(page, "ArrowUp", "ArrowRight", "Enter")
    assert "weighted mean of 8 values" in readout(page)
    press(page, "ArrowLeft", "ArrowRight", " ")
    assert "weighted mean of 7 values" in readout(page)


def test_a_new_point_changes_the_estimate_as_in_the_library(shown):
    page = shown(kernel_regression())
    click(page, "edit points")
    page.mouse.click(*handle(page, QUERY))
    click(page, "edit points")
    estimate = float(re.search(r"estimate is ([\d.]+)", library_says(1.2, 0.6))[1])
    x, y = torch.cat([X, torch.tensor([1.2])]), torch.cat([Y, torch.tensor([estimate])])
    assert readout(page) == library_says(1.2, 0.6, x=x, y=y)


def test_an_empty_window_is_a_gap_with_a_reason(shown):
    page = shown(kernel_regression())
    choose(page, "boxcar")
    assert page.locator(".curve").get_attribute("d").count("M") == 1
    page.get_by_label("bandwidth", exact=True).focus()
    press(page, *["PageDown"] * 4)
    page.get_by_label("query", exact=True).fill("2")
    assert "no point lies within the bandwidth: every weight is 0" in readout(page)
    assert page.locator(".curve").get_attribute("d").count("M") == len(X)
    assert page.locator(".weight").evaluate_all(FLAT)
    page = shown(show_kernel_regression([0.0, 1.0], [0.0, 1.0]))
    click(page, "edit points")
    for _ in range(2):  # nor is there one where all are removed
        page.mouse.click(*handle(page, f"{POINTS} >> nth=0"))
    assert "no point lies within the bandwidth" in readout(page)


ROLES = {
    ".handle:not(.hollow)": ("fill", "query"),
    ".kernel": ("fill", "query"),
    ".weight": ("stroke", "query"),
    ".dots circle": ("fill", "value"),
    ".curve": ("stroke", "value"),
    ".keys": ("fill", "key"),
    ".values": ("fill", "value"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_query_key_and_value_have_their_colors(shown, scheme):
    page = shown(kernel_regression())
    if scheme == "dark":
        page.evaluate("document.body.style.cssText = 'background: #111; color: #eee'")
        page.locator("[data-figure][data-dark]").wait_for()
    palette = LIGHT if scheme == "light" else DARK
    for part, (kind, role) in ROLES.items():
        style = f"node => getComputedStyle(node).{kind}"
        numbers_of_color = re.findall(r"\d+", page.locator(part).first.evaluate(style))
        color = "#" + "".join(f"{int(number):02x}" for number in numbers_of_color)
        assert color == palette[role], part
