"""The model of the front page: what is told of it, and what it is."""

import base64
import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tutorial_figures import show_writing
from tutorial_figures.writing import MAPS, packed
from tutorial_lib.llama import Llama

ROOT = Path(__file__).parents[1]
NAMES = {short: name for name, short in MAPS.items() if "W_1" not in name}
NAMES |= {"down": "feed_forward.W_down"}


@pytest.fixture(scope="module")
def data():
    """Return what the stored figure is made of."""
    html = (ROOT / "book/diagrams/writing.html").read_text(encoding="utf-8")
    _, call = html.rsplit('start("', 1)
    return json.JSONDecoder().raw_decode(call[call.index("{") :])[0]


@pytest.fixture(scope="module")
def model(data):
    """Make the library's model of the stored weights."""
    sizes = data["sizes"]
    model = Llama(
        len(data["words"]),
        sizes["d_model"],
        sizes["num_heads"],
        sizes["num_kv_heads"],
        sizes["num_layers"],
        max_tokens=sizes["max_tokens"],
    )
    model.load_state_dict(dict(unpacked(data)), strict=False)  # the output is tied
    return model.eval()


def unpacked(data):
    """Yield the library's name of each weight, and the weight."""
    content, at = base64.b64decode(data["weights"]), 0
    for name, rows, columns in data["spec"]:
        scales = np.frombuffer(content, "<f4", rows or columns, at)
        at += scales.nbytes
        values = scales
        if rows:
            whole = np.frombuffer(content, "i1", rows * columns, at)
            at += -(-whole.nbytes // 4) * 4
            values = whole.reshape(rows, columns) * scales[:, None]
        *layer, part, kind = name.split(".")
        inner = f"layers.{layer[0]}.{NAMES[part]}" if layer else part
        yield f"{inner}.{kind}", torch.tensor(np.array(values))


def test_the_stored_figure_is_what_the_library_makes_of_its_model(data, model):
    figure = show_writing(model, data["words"], data["prompt"], length=128)
    assert figure.data["written"] == data["written"]
    assert packed(model)[0] == data["spec"]


def test_what_the_page_tells_of_the_model_is_so(data, model):
    page = (ROOT / "book/intro.md").read_text(encoding="utf-8")
    number = sum(weight.numel() for weight in model.parameters())
    assert f"{round(number, -3):,} weights" in page
    assert "four layers of four attention heads" in page
    assert (len(model.layers), data["sizes"]["num_heads"]) == (4, 4)
    with (ROOT / "benchmarks/front_page.csv").open(encoding="utf-8") as file:
        [row] = [row for row in csv.DictReader(file) if row["part"] == "page"]
    assert row["seconds"] == "720" and "for twelve minutes" in page
    assert 1.4 < float(row["test"]) < 1.75


def test_the_written_text_is_mostly_words(data):
    words = re.findall("[a-z]{4,}", data["written"].lower())
    shakespeare = ROOT.parent / "shared/data/shakespeare/input.txt"
    if not shakespeare.exists():
        pytest.skip("needs ../shared/data/shakespeare")
    known = {*re.findall("[a-z]+", shakespeare.read_text(encoding="utf-8").lower())}
    assert len(words) > 5 and sum(word in known for word in words) > len(words) / 2
