"""What a reader sees of a query that learns, after real events in a browser."""

import re

import pytest
import torch
from figures_in_browser import (
    KEYS,
    PHONE,
    PLACES,
    click,
    drag,
    handle,
    learning,
    press,
    press_in_stage,
    readout,
    stop_clock,
    touch_drag,
)

from tutorial_figures import show_learning
from tutorial_figures.fragment import shipped
from tutorial_figures.learning import learn

RUN = """
let state = lookUp(data.labels.map(() => 0), data.values);
return count(steps + 1).map(() => {
  const { weights, output } = state;
  state = descend(state, data, data.shown.target, data.shown.learning_rate);
  return [...weights, ...output];
});
"""
OUTPUT = "circle.output"
TARGET = "circle.target"
MEAN = [0.2] * 5


def by_javascript(page, data, steps):
    """Run the figure's own code; return weights and output of each step."""
    code = shipped("base.js") + shipped("learning.js") + RUN
    run = "([code, ...given]) => Function('data', 'steps', code)(...given)"
    return torch.tensor(page.evaluate(run, [code, data, steps]), dtype=torch.float64)


def by_autograd(target, size, steps, keys=KEYS, values=PLACES):
    """Move a query by the gradients of torch; return weights and output by step."""
    query = torch.zeros(keys.shape[1], dtype=torch.float64)
    path = []
    for _ in range(steps + 1):
        query.requires_grad_()
        weights = (keys @ query).softmax(dim=0)
        output = weights @ values
        path.append(torch.cat([weights, output]).detach())
        (gradient,) = torch.autograd.grad((output - target).square().sum(), query)
        query = query.detach() - size * gradient
    return torch.stack(path)


def weights_shown(page):
    return [float(text) for text in page.locator(".shares .number").all_inner_texts()]


def choose(page, name):
    page.get_by_label("target", exact=True).select_option(name)


@pytest.fixture
def stopped(shown):
    """Return a function that opens a figure whose time passes only when told."""

    def open_stopped(figure):
        page = shown(figure)
        stop_clock(page)
        return page

    return open_stopped


def learned(page):
    """Let a page learn to the end; return what it says then."""
    click(page, "Learn")
    page.clock.run_for(20_000)
    return readout(page)


@pytest.mark.parametrize(("target", "learning_rate"), [("east", 0.1), ("town", 0.2)])
def test_the_browser_moves_the_query_as_torch_s_gradients_do(
    target, learning_rate, shown
):
    data = learning(target=target, learning_rate=learning_rate).data
    path = learn(data)
    steps = len(path) - 1
    assert steps > 50  # not over in a moment
    point = torch.tensor(data["shown"]["target"])
    expected = by_autograd(point, learning_rate, steps)
    shown_path = by_javascript(shown(learning()), data, steps)
    assert torch.allclose(shown_path, expected, atol=1e-5, rtol=0)
    rows = [torch.tensor([*weights, *output]) for weights, output in path]
    assert torch.allclose(torch.stack(rows), expected, atol=1e-5, rtol=0)


def test_it_begins_at_the_mean_and_a_step_shows_the_weights_after_it(shown):
    page = shown(learning(learning_rate=0.5))
    assert weights_shown(page) == MEAN
    assert readout(page) == (
        "The query is 0 and its 5 weights are equal, so the output is the mean of the "
        f"values, {PLACES.mean(0).norm():.2f} from “west”."
    )
    for step in (1, 2, 3):
        click(page, "Step")
        *weights, x, y = by_autograd(PLACES[0], 0.5, step)[-1].tolist()
        assert weights_shown(page) == pytest.approx(weights, abs=0.0051)
        away = (x * x + y * y) ** 0.5
        assert readout(page).startswith(f"Step {step}: the output is {away:.2f} from")


def test_corners_and_mixtures_are_found_and_each_time_from_the_same_start(stopped):
    figure = learning(learning_rate=0.5, target="town")
    page = stopped(figure)
    before, first = readout(page), learned(page)
    steps, away = re.search(r"after (\d+) steps: .* is ([\d.]+) from", first).groups()
    assert f"After {steps} steps" in figure.text and f"is {away} from" in figure.text
    assert learned(page) == first
    click(page, "Reset")
    assert readout(page) == before and weights_shown(page) == MEAN
    choose(page, "north")
    assert re.match("Found after .* from “north”", learned(page))
    assert weights_shown(page)[3] > 0.95
    assert handle(page, OUTPUT) == pytest.approx(handle(page, TARGET), abs=4)
    choose(page, "middle")
    assert learned(page).startswith("Found after") and max(weights_shown(page)) < 0.6


def test_what_cannot_be_found_is_said_to_be_stuck_or_out_of_reach(stopped):
    page = stopped(learning(learning_rate=50))
    choose(page, "middle")
    assert "nothing moves any more" in learned(page)
    assert max(weights_shown(page)) == 1
    corners = [[0, 0], [1, 0], [0, 1]]
    page = stopped(show_learning(torch.eye(3), corners, learning_rate=1))
    press_in_stage(page, *["ArrowRight"] * 40, *["ArrowUp"] * 40)
    click(page, "Step")
    assert "Outside the hull no average can arrive." in readout(page)


def test_the_target_follows_mouse_and_keys_and_learning_begins_anew(shown):
    page = shown(learning(learning_rate=0.5))
    click(page, "Step")
    x, y = handle(page, TARGET)
    drag(page, (x, y), (x + 150, y - 60))
    assert handle(page, TARGET) == pytest.approx((x + 150, y - 60), abs=1)
    assert weights_shown(page) == MEAN
    assert readout(page).endswith("from the target.")
    x, y = handle(page, "circle.ring >> nth=2")
    page.mouse.click(x + 4, y)
    assert readout(page).endswith("from “east”.")
    chosen = page.get_by_label("target", exact=True)
    assert chosen.evaluate("select => select.selectedOptions[0].text") == "east"
    choose(page, "west")
    x, y = handle(page, TARGET)
    press_in_stage(page, "ArrowRight", "ArrowRight", "ArrowUp")
    far = (page.locator("[role=application] svg").bounding_box()["width"] - 56) / 50
    assert handle(page, TARGET) == pytest.approx((x + 2 * far, y - far), abs=0.1)


def test_a_finger_drags_the_ring_taps_elsewhere_and_scrolls(shown):
    page = shown(learning(), **PHONE)
    x, y = handle(page, TARGET)
    touch_drag(page, (x, y), (x + 90, y - 40))
    assert handle(page, TARGET) == pytest.approx((x + 90, y - 40), abs=3)
    page.touchscreen.tap(x + 60, y - 70)
    assert handle(page, TARGET) == pytest.approx((x + 60, y - 70), abs=1)
    touch_drag(page, (x + 200, y + 10), (x + 200, y - 60))
    assert readout(page).endswith("from the target.")


def test_everything_is_done_by_keyboard_alone(stopped):
    page = stopped(learning(learning_rate=0.5))
    press(page, "Tab", "Tab", "Enter")
    assert readout(page).startswith("Step 1:")
    press(page, "Tab", "Tab", "ArrowDown", "ArrowDown")
    assert readout(page).endswith("from “east”.")
    press(page, "Tab", "ArrowRight")
    assert page.locator("label .number").inner_text() == "1"
    press(page, *["Shift+Tab"] * 4, " ")
    page.clock.run_for(20_000)
    assert readout(page).startswith("Found after") and weights_shown(page)[2] > 0.95


def test_learning_rests_while_it_is_paused_or_out_of_sight(stopped):
    page = stopped(learning(learning_rate=0.01))
    click(page, "Learn")
    page.clock.run_for(500)
    learning_there = readout(page)
    assert learning_there.startswith("Step")
    click(page, "Pause")
    page.clock.run_for(1000)
    assert readout(page) == learning_there
    click(page, "Learn")
    page.clock.run_for(500)
    assert readout(page) != learning_there
    for padding, moves in (("3000px", False), ("0", True)):
        page.evaluate("to => { document.body.style.paddingTop = to }", padding)
        page.wait_for_function(IN_SIGHT, arg=moves)
        before = readout(page)
        page.clock.run_for(1000)
        assert (readout(page) != before) == moves


# What observes after the figure has observed, is told after it.
IN_SIGHT = """(wanted) => new Promise((resolve) => {
  new IntersectionObserver(([{ isIntersecting }], watch) => {
    watch.disconnect();
    resolve(isIntersecting === wanted);
  }).observe(document.querySelector("[data-figure]"));
})"""


def test_who_wants_no_motion_sees_the_end_at_once(shown):
    page = shown(learning(learning_rate=0.5), reduced_motion="reduce")
    click(page, "Learn")
    assert readout(page).startswith("Found after")
