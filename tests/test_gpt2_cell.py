"""The optional cell of chapter 12 that loads GPT-2, tried on files of a tiny one."""

import json
from itertools import pairwise
from pathlib import Path

import torch
from test_gpt import published_weights

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import sample, top_p
from tutorial_lib.gpt import from_gpt2

CHAPTER = Path(__file__).parents[1] / "notebooks" / "12_decoding_and_gpt.ipynb"
PROMPT = "The cat sat down on the mat and"


def source_of(name):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == name)


def test_the_cell_generates_with_the_files_it_fetches(tmp_path, capsys):
    pieces = sorted({*PROMPT, "Ġ", "at", "Ġd"} - {" "})
    numbers = {piece: i for i, piece in enumerate([*pieces, "<|endoftext|>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    merges = "#version: 0.2\na t\nĠ d\n"
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    weights = published_weights(48, vocab=len(numbers), max_tokens=80)
    torch.save(weights, tmp_path / "pytorch_model.bin")
    asked = {}

    def fetch(address, checksum):
        name = address.rsplit("/", 1)[1]
        asked[name] = checksum
        return tmp_path / name

    names = {"torch": torch, "json": json, "pairwise": pairwise, "seed": 0}
    names |= {"top_p": top_p, "from_gpt2": from_gpt2, "fetch": fetch}
    names |= {"sample": sample, "KVCache": KVCache}
    exec(source_of("pieces-code"), names)
    cell = source_of("gpt2")
    assert "go = False" in cell  # so that nothing is downloaded unasked
    exec(cell, names)
    assert not asked
    exec(cell.replace("go = False", "go = True"), names)
    assert capsys.readouterr().out.startswith(PROMPT)
    assert [len(checksum) for checksum in asked.values()] == [64] * 3
    assert names["prompt"].count(numbers["at"]) == 3  # cat, sat, mat
    assert numbers["Ġd"] in names["prompt"]
