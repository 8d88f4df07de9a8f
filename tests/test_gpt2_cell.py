"""The optional cell of chapter 12 that loads GPT-2, tried on files of a tiny one."""

import json
from pathlib import Path

import pytest
import torch
from test_gpt import published_weights

from tutorial_lib.attention import KVCache
from tutorial_lib.decoding import sample, top_p
from tutorial_lib.gpt import from_gpt2

CHAPTER = Path(__file__).parents[1] / "notebooks" / "12_decoding_and_gpt.ipynb"
PROMPT = "The cat sat down on the mat and"
MERGES = ["a t", "Ġ d", "Ã ©", "â Ģ", "âĢ Ļ", "l âĢĻ"]


def source_of(name):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == name)


@pytest.fixture
def gpt2(tmp_path):
    """Return a function that runs the cell on a prompt, with a tiny model's files."""
    unused = {*range(127, 161), 173}  # control characters and spaces
    symbols = [chr(i) for i in range(33, 324) if i not in unused]
    assert len(symbols) == 256  # one for each byte
    symbols += ["".join(line.split()) for line in MERGES]
    token_ids = {symbol: i for i, symbol in enumerate([*symbols, "<|endoftext|>"])}
    text = json.dumps(token_ids)
    (tmp_path / "vocab.json").write_text(text, encoding="utf-8")
    text = "\n".join(["#version: 0.2", *MERGES, ""])
    (tmp_path / "merges.txt").write_text(text, encoding="utf-8")
    weights = published_weights(48, vocab=len(token_ids), max_tokens=80)
    torch.save(weights, tmp_path / "pytorch_model.bin")
    asked = {}

    def fetch(address, checksum):
        name = address.rsplit("/", 1)[1]
        asked[name] = checksum
        return tmp_path / name

    def run(prompt, *, download=True):
        names = {"torch": torch, "seed": 0, "fetch": fetch, "top_p": top_p}
        names |= {"from_gpt2": from_gpt2, "sample": sample, "KVCache": KVCache}
        exec(source_of("merge"), names)
        cell = source_of("gpt2")
        assert "download = False" in cell and PROMPT in cell
        cell = cell.replace("download = False", f"download = {download}")
        exec(cell.replace(PROMPT, prompt), names)
        return [symbols[i] for i in names.get("gpt2_prompt", [])], asked

    return run


def test_nothing_is_downloaded_unasked(gpt2, capsys):
    assert gpt2(PROMPT, download=False) == ([], {})
    assert PROMPT not in capsys.readouterr().out


def test_the_cell_generates_with_the_files_it_fetches(gpt2, capsys):
    tokens, asked = gpt2(PROMPT)
    assert PROMPT in capsys.readouterr().out
    assert [len(checksum) for checksum in asked.values()] == [64] * 3
    assert tokens.count("at") == 3  # cat, sat, mat
    assert "Ġd" in tokens


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Le café", ["L", "e", "Ġ", "c", "a", "f", "Ã©"]),  # é is two bytes
        ("l’eau", ["l", "âĢĻ", "e", "a", "u"]),  # ’ is three, and a word of its own
        ("don't 42", ["d", "o", "n", "'", "t", "Ġ", "4", "2"]),
        ("日", ["æ", "Ĺ", "¥"]),
        ("a\n b_", ["a", "Ċ", "Ġ", "b", "_"]),
    ],
)
def test_bytes_are_written_and_read_back_as_gpt2_does(gpt2, capsys, prompt, expected):
    tokens, _ = gpt2(prompt.replace("\n", "\\n"))
    assert tokens == expected
    assert prompt in capsys.readouterr().out
