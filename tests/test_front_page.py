"""The model of the front page: what is told of it, and what it is."""

import base64
import csv
import hashlib
import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tutorial_figures import show_writing
from tutorial_figures.writing import encode, packed
from tutorial_lib.interpret import record_attention

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "book" / "_ext")]
front_page = importlib.import_module("front_page")
live_figure = importlib.import_module("live_figure")


@pytest.fixture(scope="module")
def data():
    return front_page.stored_data()


@pytest.fixture(scope="module")
def model(data):
    return front_page.stored_model(data)


def test_the_stored_figure_is_what_the_library_makes_of_its_model(data, model):
    figure = show_writing(model, data["words"], data["prompt"], length=128)
    assert figure.data["written"] == data["written"]
    assert packed(model)[0] == data["spec"]


def test_the_build_makes_the_html_of_the_library_but_for_the_weights(data, model):
    figure = show_writing(model, data["words"], data["prompt"], length=128)
    file = front_page.WEIGHTS
    version = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    address = f"../_static/{file.name}?v={version}"
    # The probabilities that the library computes may differ in the last digit.
    figure.data = {key: data[key] for key in data if key != "weights"}
    figure.data["weightsFile"] = address
    built = live_figure.html_of(front_page.STORED, ROOT, "../_static")
    assert built.split("<script>")[1] == figure.html.split("<script>")[1]
    assert data["weights"] not in built


def test_the_weights_are_a_script_that_sets_a_variable(data):
    text = front_page.WEIGHTS.read_text(encoding="utf-8")
    name = front_page.WEIGHTS.stem
    script = front_page.weights_script(name, data["weights"])
    assert text == f"{front_page.MADE_BY}\n{script}"
    spec, weights = packed(front_page.stored_model(data))
    assert spec == data["spec"]
    assert base64.b64encode(weights).decode() == data["weights"]


def head_rows():
    with front_page.HEADS.open(newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def test_a_head_has_a_name_where_it_was_measured_in_every_text(data):
    rows = [row for row in head_rows() if row["kind"] != "switched off"]
    assert {row["text"] for row in rows} == {"validation", "test", "written", "licence"}
    names = front_page.names_of(rows)
    for number, name in enumerate(data["headNames"]):
        assert names.get(divmod(number, 4), "") == name
    for head, name in names.items():
        own = [r for r in rows if (int(r["layer"]), int(r["head"])) == head]
        shares = [float(row["share"]) for row in own if row["kind"] == name]
        assert len(shares) == 4 and min(shares) >= 0.5
    for row in rows:
        if row["text"] == "test":
            row["share"] = "0.499"
    assert front_page.names_of(rows) == {}


def test_the_head_called_previous_character_attends_there(data, model):
    head = data["headNames"].index("previous character")
    characters = np.array([*(data["prompt"] + data["written"])])
    tokens = torch.tensor(encode(characters, data["words"]))
    shares = front_page.shares_of(model, tokens, characters)
    given, even = shares["previous character"]
    with torch.no_grad(), record_attention(model) as maps:
        model(tokens[None])
    own = [*maps.values()][head // 4][0, head % 4]
    expected = own.diagonal(-1)[front_page.FIRST - 1 :].mean().item()
    assert given[head].mean() == pytest.approx(expected, abs=1e-6)
    assert given[head].mean() > 0.45 > 10 * even.mean()


def test_kinds_of_characters_are_what_they_are_called():
    characters = np.array([*"ab\nca b"])
    distance = np.arange(7)[:, None] - np.arange(7)

    def read(kind, query):
        keys = np.flatnonzero(front_page.KINDS[kind](characters, distance)[query])
        return keys.tolist()

    assert read("previous character", 4) == [3]
    assert read("two or three back", 4) == [1, 2]
    assert read("same character", 4) == [0]
    assert read("after the same character", 4) == [1]
    assert read("line start", 4) == [3]
    assert read("line ends", 4) == [2] and read("line ends", 1) == []
    assert read("ends of words", 6) == [2, 5]


def test_the_loss_that_is_stored_is_the_model_s_on_the_line(data, model):
    line = data["line"]
    given = encode(line["context"], data["words"])
    tokens = encode(line["text"], data["words"])
    with torch.no_grad():
        logits = model(torch.tensor([given + tokens]))[0, len(given) - 1 : -1]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(tokens)).item()
    assert line["loss"] == pytest.approx(loss, abs=2e-3)
    assert line["text"] == front_page.LINE


def test_what_the_page_tells_of_the_model_is_so(data, model):
    page = (ROOT / "book/intro.md").read_text(encoding="utf-8")
    number = sum(weight.numel() for weight in model.parameters())
    assert f"{round(number, -3):,} parameters" in page
    assert "four layers of four attention heads" in page
    assert (len(model.layers), data["sizes"]["num_heads"]) == (4, 4)
    with (ROOT / "benchmarks/front_page.csv").open(encoding="utf-8") as file:
        [row] = [row for row in csv.DictReader(file) if row["part"] == "page"]
    assert row["seconds"] == "720" and "for twelve minutes" in page
    assert f"its loss is {float(row['test']):.2f} nats" in page
    assert f"costs {math.log(len(data['words'])):.2f})" in page
    assert f"its {len(data['words'])} characters" in page
    losses = {
        (row["layer"], row["head"]): float(row["share"])
        for row in head_rows()
        if row["kind"] == "switched off"
    }
    assert f"head 0 of layer 0, the loss is {losses['0', '0']:.2f}" in page
    assert f"without head 3.3 it is {losses['3', '3']:.2f}" in page
    ranked = sorted(losses, key=losses.get)
    assert (ranked[0], ranked[-1]) == (("3", "3"), ("0", "0"))
    assert sum(map(bool, data["headNames"])) == 6
    assert "Six of the 16 heads" in page
