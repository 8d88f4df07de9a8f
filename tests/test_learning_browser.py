"""What a reader sees of a query that learns, after real events in a browser."""

import re

import pytest
import torch
from figures_in_browser import (
    KEYS,
    PHONE,
    PLACES,
    drag,
    handle,
    learning,
    press,
    said,
    touch_drag,
)

from tutorial_figures import show_learning
from tutorial_figures.figure import shipped
from tutorial_figures.learning import learn

RUN = """
let state = lookUp(data.labels.map(() => 0), data.values);
return count(steps + 1).map(() => {
  const { weights, output } = state;
  state = descend(state, data, data.shown.target, data.shown.size);
  return [...weights, ...output];
});
"""
OUTPUT, TARGET = "circle.output", "circle.target"


def by_javascript(page, data, steps):
    """Run the figure's own code; return weights and output of each step."""
    code = shipped("base.js") + shipped("learning.js") + RUN
    run = "([code, ...given]) => Function('data', 'steps', code)(...given)"
    return torch.tensor(page.evaluate(run, [code, data, steps]), dtype=torch.float64)


def by_autograd(target, size, steps, keys=KEYS, values=PLACES):
    """Move a query by the gradients of torch; return weights and output by step."""
    query, path = torch.zeros(keys.shape[1], dtype=torch.float64), []
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


def click(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def choose(page, name):
    page.get_by_label("answer wanted", exact=True).select_option(name)


def ended(page):
    page.locator(".readout", has_text=re.compile("^(Found|Stuck|Not found)")).wait_for()
    return said(page)


def wait_for_another(page, sentence):
    """Wait until the figure says something else."""
    step = re.search(r"Step \d+:", sentence)[0]
    page.locator(".readout", has_text=re.compile("^Step")).filter(
        has_not_text=step
    ).wait_for()


@pytest.mark.parametrize(("wanted", "size"), [("east", 0.1), ("town", 0.2)])
def test_the_browser_moves_the_query_as_torch_s_gradients_do(wanted, size, shown):
    data = learning(wanted=wanted, step_size=size).data
    path = learn(data)
    steps = len(path) - 1
    target = torch.tensor(data["shown"]["target"])
    expected = by_autograd(target, size, steps)
    assert steps > 50  # not over in a moment
    shown_path = by_javascript(shown(learning()), data, steps)
    assert torch.allclose(shown_path, expected, atol=1e-5, rtol=0)
    rows = [torch.tensor([*weights, *output]) for weights, output in path]
    assert torch.allclose(torch.stack(rows), expected, atol=1e-5, rtol=0)


def test_it_begins_at_the_mean_of_the_values(shown):
    page = shown(learning())
    assert weights_shown(page) == [0.2] * 5
    away = PLACES.mean(0).norm()
    assert said(page) == (
        "The query is 0 and its 5 weights are equal, so the output is the mean of the "
        f"values, {away:.2f} from «west»."
    )


def test_a_step_shows_the_weights_after_it(shown):
    page = shown(learning(step_size=0.5))
    for step in (1, 2, 3):
        click(page, "Step")
        *weights, x, y = by_autograd(PLACES[0], 0.5, step)[-1].tolist()
        assert weights_shown(page) == pytest.approx(weights, abs=0.0051)
        away = (x * x + y * y) ** 0.5
        assert said(page).startswith(f"Step {step}: the output is {away:.2f} from")


def test_a_corner_is_found_with_nearly_all_weight_on_it(shown):
    page = shown(learning(step_size=0.5))
    choose(page, "north")
    click(page, "Learn")
    assert "from «north»" in ended(page) and said(page).startswith("Found after")
    assert weights_shown(page)[3] > 0.95
    assert handle(page, OUTPUT) == pytest.approx(handle(page, TARGET), abs=4)


def test_a_place_inside_is_found_by_a_mixture(shown):
    page = shown(learning(step_size=0.5))
    choose(page, "middle")
    click(page, "Learn")
    assert ended(page).startswith("Found after")
    assert max(weights_shown(page)) < 0.6


def test_what_the_page_says_at_the_end_is_what_the_picture_says(shown):
    figure = learning(step_size=0.5, wanted="town")
    page = shown(figure)
    click(page, "Learn")
    steps, away = re.search(
        r"after (\d+) steps: .* is ([\d.]+) from", ended(page)
    ).groups()
    assert f"After {steps} steps" in figure.text and f"is {away} from" in figure.text


def test_a_step_too_large_is_said_to_be_stuck(shown):
    page = shown(learning(step_size=50))
    choose(page, "middle")
    click(page, "Learn")
    assert "nothing moves any more" in ended(page)
    assert max(weights_shown(page)) == 1


def test_a_place_outside_the_hull_is_said_to_be_out_of_reach(shown):
    page = shown(show_learning(torch.eye(3), [[0, 0], [1, 0], [0, 1]], step_size=1))
    page.locator("[role=application]").focus()
    press(page, *["ArrowRight"] * 40, *["ArrowUp"] * 40)
    click(page, "Step")
    assert "Outside the hull no average can arrive." in said(page)


def test_the_answer_wanted_follows_the_mouse_and_learning_begins_anew(shown):
    page = shown(learning(step_size=0.5))
    click(page, "Step")
    x, y = handle(page, TARGET)
    drag(page, (x, y), (x + 150, y - 60))
    assert handle(page, TARGET) == pytest.approx((x + 150, y - 60), abs=1)
    assert weights_shown(page) == [0.2] * 5
    assert said(page).endswith("from the place wanted.")


def test_a_click_on_a_value_wants_that_value(shown):
    page = shown(learning())
    east = page.locator("circle.ring").nth(2).bounding_box()
    page.mouse.click(east["x"] + east["width"] / 2 + 4, east["y"] + east["height"] / 2)
    assert said(page).endswith("from «east».")
    chosen = page.get_by_label("answer wanted", exact=True)
    assert chosen.evaluate("select => select.selectedOptions[0].text") == "east"


def test_a_finger_drags_the_ring_taps_elsewhere_and_scrolls(shown):
    page = shown(learning(), **PHONE)
    x, y = handle(page, TARGET)
    touch_drag(page, (x, y), (x + 90, y - 40))
    assert handle(page, TARGET) == pytest.approx((x + 90, y - 40), abs=3)
    page.touchscreen.tap(x + 60, y - 70)
    assert handle(page, TARGET) == pytest.approx((x + 60, y - 70), abs=1)
    touch_drag(page, (x + 200, y + 10), (x + 200, y - 60))
    assert said(page).endswith("from the place wanted.")


def test_arrow_keys_move_the_answer_wanted(shown):
    page = shown(learning())
    x, y = handle(page, TARGET)
    page.locator("[role=application]").focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowUp")
    far = (page.locator("[role=application] svg").bounding_box()["width"] - 56) / 50
    assert handle(page, TARGET) == pytest.approx((x + 2 * far, y - far), abs=0.1)


def test_everything_is_done_by_keyboard_alone(shown):
    page = shown(learning(step_size=0.5))
    press(page, "Tab", "Tab", "Enter")
    assert said(page).startswith("Step 1:")
    press(page, "Tab", "Tab", "ArrowDown", "ArrowDown")
    assert said(page).endswith("from «east».")
    press(page, "Tab", "ArrowRight")
    assert page.locator("label .number").inner_text() == "1"
    press(page, *["Shift+Tab"] * 4, " ")
    assert ended(page).startswith("Found after")
    assert weights_shown(page)[2] > 0.95


def test_learning_pauses_and_goes_on(shown):
    page = shown(learning(step_size=0.01))
    click(page, "Learn")
    page.locator(".readout", has_text=re.compile("^Step")).wait_for()
    click(page, "Pause")
    paused = said(page)
    page.wait_for_timeout(300)
    assert said(page) == paused
    click(page, "Learn")
    wait_for_another(page, paused)


def test_out_of_sight_learning_rests(shown):
    page = shown(learning(step_size=0.01))
    click(page, "Learn")
    page.evaluate("document.body.style.paddingTop = '3000px'")
    page.wait_for_timeout(300)
    resting = said(page)
    page.wait_for_timeout(300)
    assert said(page) == resting
    page.evaluate("document.body.style.paddingTop = 0")
    wait_for_another(page, resting)


def test_reset_and_learning_again_begin_at_the_same_start(shown):
    page = shown(learning(step_size=0.5))
    before = said(page)
    click(page, "Learn")
    first = ended(page)
    click(page, "Reset")
    assert said(page) == before
    click(page, "Learn")
    assert ended(page) == first
    click(page, "Learn")
    page.locator(".readout", has_text=re.compile("^Step")).wait_for()
    assert ended(page) == first


def test_who_wants_no_motion_sees_the_end_at_once(shown):
    page = shown(learning(step_size=0.5), reduced_motion="reduce")
    click(page, "Learn")
    assert said(page).startswith("Found after")
