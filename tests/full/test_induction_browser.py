"""The model that learns in the page: its numbers, and what a reader sees of it."""

import functools
import json
import re
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from figures_in_browser import click, induction, press, press_in_stage, readout

from tutorial_figures.fragment import shipped
from tutorial_figures.induction import SIZES, stored_run

EXACT = {"atol": 1e-5, "rtol": 0}
# Each returns what the figure's own code computes.
ONE_BATCH = """
const model = inductionModel(sizes);
const texts = Array.from({ length: sizes.batch }, model.draw);
const [start, loss] = [[...model.weights], model.learn(texts)];
model.read(texts[0].text);
return { start, loss, texts, gradients: [...model.gradients], probs: [...model.probs],
  maps: model.maps.map((map) => [...map]) };
"""
TEXTS = "return Array.from({ length: 200 }, inductionModel(sizes).draw);"
STEPS = """
const model = inductionModel(sizes);
const rows = [[...model.weights]];
for (let i = 0; i < 3; i += 1) {
  rows.push([model.step()], [...model.gradients], [...model.weights]);
}
return rows;
"""
LEARN = """
const model = inductionModel(sizes);
const other = inductionModel(sizes);
const texts = Array.from({ length: 48 }, other.draw);
for (let i = 0; i < sizes.steps; i += 1) model.step();
const off = [[], [true, false], [false, true]];
const scores = off.map((heads) => model.measure(texts, heads));
const { text } = texts[0];
model.read(text);
return { scores, text, maps: model.maps.map((map) => [...map]) };
"""


def by_javascript(page, program, **changes):
    """Run the figure's model in the browser, with some sizes changed."""
    code = shipped("induction_model.js") + program
    sizes = SIZES | changes
    call = "([code, sizes]) => JSON.stringify(Function('sizes', code)(sizes))"
    return json.loads(page.evaluate(call, [code, sizes]))


@functools.cache
def shapes():
    """Return the parameters' names with their shapes, in their order."""
    vocab, d_model, tokens = (SIZES[x] for x in ("vocab", "d_model", "tokens"))
    square = {f"{name}{layer}": (d_model,) * 2 for layer in (0, 1) for name in "QKVO"}
    ends = {
        "token_embedding": (vocab, d_model),
        "position_embedding": (tokens, d_model),
    }
    return ends | square | {"output": (d_model, vocab)}


def by_torch(numbers, texts):
    """Return the loss, the probabilities of all next words, and the two maps."""
    sizes = [a * b for a, b in shapes().values()]
    parts = numbers.split(sizes)
    W = {n: x.view(s) for (n, s), x in zip(shapes().items(), parts, strict=True)}
    rows = torch.tensor([text["text"] for text in texts])
    read, answers = rows[:, :-1], rows[:, 1:]
    x = W["token_embedding"][read] + W["position_embedding"]
    maps = []
    hidden = torch.ones(read.shape[1], read.shape[1]).triu(1).bool()
    for layer in "01":
        Q, K, V = (x @ W[name + layer] for name in "QKV")
        scores = (Q @ K.mT / Q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        maps.append(scores.softmax(dim=-1))
        x = x + maps[-1] @ V @ W[f"O{layer}"]
    logits = x @ W["output"]
    known = torch.zeros(read.shape, dtype=torch.bool)
    for row, text in zip(known, texts, strict=True):
        row[text["known"]] = True
    loss = F.cross_entropy(logits[known], answers[known])
    return loss, logits.softmax(dim=-1), maps


def as_row(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def test_loss_maps_and_every_gradient_are_those_of_torch(shown):
    result = by_javascript(shown(induction()), ONE_BATCH)
    numbers = as_row(result["start"]).requires_grad_()
    loss, probs, maps = by_torch(numbers, result["texts"])
    loss.backward()
    assert numbers.numel() == 6144
    assert torch.allclose(as_row(result["loss"]), loss, **EXACT)
    assert torch.allclose(as_row(result["probs"]), probs[0].flatten(), **EXACT)
    for ours, theirs in zip(result["maps"], maps, strict=True):
        assert torch.allclose(as_row(ours), theirs[0].flatten(), **EXACT)
    gradients = as_row(result["gradients"])
    assert torch.allclose(gradients, numbers.grad, **EXACT)
    sizes = [a * b for a, b in shapes().values()]
    for name, part in zip(shapes(), gradients.split(sizes), strict=True):
        assert part.abs().max() > 1e-4, name  # none is right because it is 0


def test_three_steps_are_those_of_adam(shown):
    page = shown(induction())
    start, *rows = by_javascript(page, STEPS, batch=4)
    assert start != by_javascript(page, STEPS, batch=1, seed=1)[0]
    weights = torch.nn.Parameter(as_row(start))
    adam = torch.optim.Adam([weights], lr=1.0, betas=(0.9, 0.99))
    for step in range(3):
        _, gradients, after = rows[3 * step : 3 * step + 3]
        adam.param_groups[0]["lr"] = 0.02 * (step + 1) / 20
        weights.grad = as_row(gradients)
        adam.step()
        assert torch.allclose(weights, as_row(after), **EXACT)


def test_the_stored_run_is_the_one_that_the_page_computes(shown):
    result, run = by_javascript(shown(induction()), LEARN), stored_run()
    whole, *without = result["scores"]
    assert whole["accuracy"] == pytest.approx(run["accuracy"][-1], abs=0.02)
    assert whole["prefix"] == pytest.approx(run["prefix"][-1], abs=0.02)
    assert whole["accuracy"] > 0.95 and whole["prefix"] > 0.9
    accuracies = [score["accuracy"] for score in without]
    assert max(accuracies) < 0.45  # both layers are used
    assert accuracies == pytest.approx(run["without"], abs=0.05)
    assert [chr(97 + word) for word in result["text"][:-1]] == list(run["text"])
    maps = torch.tensor(run["maps"]).flatten(1)
    assert torch.allclose(torch.tensor(result["maps"]), maps, atol=0.05)


def test_texts_mention_five_names_in_any_order(shown):
    texts = by_javascript(shown(induction()), TEXTS)
    followers = Counter()
    for text in texts:
        words = text["text"]
        names = [tuple(words[i : i + 3]) for i in range(0, 24, 3)]
        distinct = set(names)
        assert len(distinct) <= 5
        assert len({word for name in distinct for word in name}) == 3 * len(distinct)
        assert text["known"] == [
            i for i in range(24) if i % 3 < 2 and words[i] in words[:i]
        ]
        followers[names.index(names[-1])] += 1
    assert min(followers[i] for i in range(3)) > 20  # any earlier mention may be needed


# ---- what a reader sees

# What the page tells its worker: whether to go on.
TELL = """
window.told = [];
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message) {
  window.told.push(message.running);
  postMessage.call(this, message);
};"""
STEP = """step => Number(document.querySelector('[data-figure]').shadowRoot
  .querySelector('.readout').textContent.match(/After (\\d+)|$/)[1]) > step"""


def wait_for_more(page, steps):
    page.wait_for_function(STEP, arg=steps, timeout=120_000)  # 200 steps, shared CPU


def wait_until_told(page, running):
    page.wait_for_function("running => told.at(-1) === running", arg=running)
    return int((re.search(r"After (\d+) steps", readout(page)) or "00")[1])


def right(page):
    return int(re.search(r"(\d+) % of the letters", readout(page))[1])


def test_it_learns_while_the_reader_looks_pauses_rests_and_ends(shown):
    page = shown(induction(), script=TELL)
    before = readout(page)
    assert before.startswith("Not trained yet: ") and right(page) < 25
    asked = page.locator("svg text", has_text="press Train")
    assert asked.count() == 3  # the charts are still empty
    click(page, "Train")
    wait_for_more(page, 0)
    assert asked.count() == 0
    click(page, "Start over")
    assert readout(page) == before
    click(page, "Train")
    wait_for_more(page, 0)
    click(page, "Pause")
    steps = wait_until_told(page, False)
    click(page, "Train")
    wait_for_more(page, steps)
    page.evaluate("document.body.style.paddingTop = '3000px'")
    steps = wait_until_told(page, False)
    assert steps < 200
    page.evaluate("document.body.style.paddingTop = 0")
    wait_until_told(page, True)
    wait_for_more(page, 199)
    assert right(page) > 95
    assert page.get_by_role("button", name="Train", exact=True).is_visible()
    page.get_by_role("button", name="Start over").focus()
    press(page, "Tab", " ")  # the head of layer 0
    assert "and without the head of layer 0" in readout(page) and right(page) < 45
    press(page, "Tab", " ", "Shift+Tab", " ")
    assert "and without the head of layer 1," in readout(page) and right(page) < 45
    press(page, "Tab", " ")
    assert right(page) > 95


def test_arrow_keys_and_clicks_choose_the_query(shown):
    page = shown(induction())
    before = int(re.search(r"position (\d+)", readout(page))[1])
    press_in_stage(page, "ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight")
    assert f"position {before + 2}," in readout(page)
    press(page, *["ArrowUp"] * 30)
    assert "position 0," in readout(page)
    field = page.locator(".field svg").nth(1).bounding_box()
    page.mouse.click(field["x"] + 40, field["y"] + field["height"] - 4)
    assert f"position {SIZES['tokens'] - 1}," in readout(page)
