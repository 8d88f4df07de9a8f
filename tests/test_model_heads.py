"""The figure of all heads of SmolLM2: its data, what it says, and where they are kept.

What is stored is compared with the model itself; the rest needs no model.
"""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from figures_in_browser import model_heads

from tutorial_figures import show_model_heads
from tutorial_figures.fragment import weights_script
from tutorial_figures.model_heads import stored_heads, weights_of
from tutorial_lib.interpret import record_attention
from tutorial_lib.pretrained import smollm2

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "book" / "_ext")]
BENCHMARK = importlib.import_module("model_heads")
STEP = 1 / 255  # between two weights in 8 bits


@pytest.fixture(scope="module")
def loaded():
    return smollm2()


# ---- what is stored, against the model


@torch.no_grad()
@pytest.mark.parametrize("text", range(4))
def test_stored_weights_are_those_of_the_model(loaded, text):
    model, tokenizer = loaded
    _, written, query = BENCHMARK.TEXTS[text]
    ids = tokenizer.encode("<|endoftext|>" + written).ids
    with record_attention(model) as maps:
        model(torch.tensor([ids]))
    expected = torch.cat([layer[0] for layer in maps.values()]).numpy()
    stored = weights_of(stored_heads(), text)
    assert stored.shape == expected.shape == (270, len(ids), len(ids))
    assert np.abs(stored - expected).max() < STEP
    assert stored_heads()["texts"][text]["query"] == query < len(ids)
    assert len(ids) <= 24


@torch.no_grad()
def test_scores_of_two_heads_are_means_over_the_cells_they_are_named_for(loaded):
    model, _ = loaded
    texts = BENCHMARK.repeated_tokens(8, BENCHMARK.LENGTH, seed=0)
    assert texts.shape == (8, 101) and torch.equal(texts[:, 1:51], texts[:, 51:])
    weights = BENCHMARK.attention_of(model, texts).mean(dim=1)
    for name, layer, head, back in (("induction", 18, 6, 49), ("previous", 16, 0, 1)):
        queries = range(51, 100) if name == "induction" else range(1, 100)
        cells = [weights[layer, head, i, i - back].item() for i in queries]
        stored = stored_heads()["scores"][name][9 * layer + head]
        assert np.mean(cells) == pytest.approx(stored, abs=0.002)
        assert stored == max(stored_heads()["scores"][name])


def test_scores_are_worked_by_hand_on_a_head_that_copies():
    size = 2 * BENCHMARK.LENGTH + 1
    copies = torch.zeros(size, size)
    copies[0, 0] = 1
    for query in range(1, size):
        key = query - BENCHMARK.LENGTH + 1 if query > BENCHMARK.LENGTH else query - 1
        copies[query, key] = 0.75
        copies[query, 0] += 0.25
    scores = BENCHMARK.scores_of(copies[None, None, None])
    assert scores["induction"].item() == pytest.approx(0.75)
    # Queries 1 to 50 of 99 attend to the token before, and query 1's is the first.
    assert scores["previous"].item() == pytest.approx((49 * 0.75 + 1) / 99)
    assert scores["first"].item() == pytest.approx((98 * 0.25 + 1) / 99)


def test_all_that_is_stored_stays_below_250_kb():
    assert BENCHMARK.STORED.stat().st_size < 250_000
    assert len(stored_heads()["weights"]) < 200_000


@pytest.mark.parametrize("text", range(4))
def test_rows_sum_to_1_and_nobody_sees_the_future(text):
    weights = weights_of(stored_heads(), text)
    size = weights.shape[1]
    assert np.abs(weights.sum(axis=2) - 1).max() < size * STEP / 2
    assert np.triu(weights, 1).max() == 0


# ---- what it says


def test_it_says_which_heads_are_highest_and_what_one_attends_to():
    assert model_heads().text == (
        "The 270 attention heads of SmolLM2-135M-Instruct (30 layers of 9) by "
        "induction score; the highest are, as layer.head, 18.6 (0.86), 17.3 (0.68), "
        "17.4 (0.64), 17.5 (0.61), 23.7 (0.44). Over the text “ten random words, "
        "twice”, head 18.6 attends most from “chair” (position 15) to “bread” "
        "(position 6), with the weight 0.93."
    )
    other = show_model_heads(score="previous", layer=16, head=0, text=2).text
    assert "by previous-token score; the highest are, as layer.head, 16.0 (0" in other
    assert "“a pronoun”, head 16.0 attends most from “it” (position 9) to “be" in other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "copying"}, "one of induction, previous, first, got 'copying'"),
        ({"layer": 30}, "layer 30 does not exist: choose 0 to 29"),
        ({"head": -1}, "head -1 does not exist: choose 0 to 8"),
        ({"text": 4}, "text 4 does not exist: choose 0 to 3"),
    ],
)
def test_what_does_not_exist_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        show_model_heads(**options)


# ---- where a page keeps the weights


@pytest.fixture(scope="module")
def live_figure():
    pytest.importorskip("sphinx")
    return importlib.import_module("live_figure")


def test_a_page_is_left_without_weights_which_a_script_beside_it_has(live_figure):
    html = model_heads().html
    page, moved = live_figure.without_weights(f"<p>{html}{html}", "../_static")
    [name] = moved
    assert re.fullmatch("model_heads_[0-9a-f]{8}", name)
    weights = stored_heads()["weights"]
    assert moved[name] == weights
    assert weights in html and weights not in page and len(page) < 100_000
    assert page.count(f'"weightsFile":"../_static/{name}.js"') == 2
    script = weights_script(name, weights)
    assert json.loads(script.split("=\n")[1].rstrip(";\n")) == weights
    assert live_figure.without_weights(page, "../_static") == (page, {})


def test_figures_that_do_not_ask_for_weights_keep_what_they_carry(live_figure):
    html = model_heads().html.replace("function loadWeights(", "function other(")
    assert live_figure.without_weights(html, "_static") == (html, {})
