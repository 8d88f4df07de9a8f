"""What the excursion on the cost of attention measures with, and its exercise's check.

Both stand on the page: their cells are run here.
"""

from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tools.notebooks import read_notebook, source_of

PAGE = read_notebook(Path(__file__).parents[1] / "notebooks/x_cost_of_attention.ipynb")
NAMES = {"__name__": "page"}
SETUP = """
import weakref
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
"""
exec(SETUP, NAMES)


def run(name, until=None):
    """Run a cell of the page, up to a line that begins with ``until``."""
    [source] = [source_of(cell) for cell in PAGE["cells"] if cell["id"] == name]
    exec(source.split(f"\n{until}")[0] if until else source, NAMES)
    return source


run("core", until="print(")
run("peak")
run("count", until="d = ")
run("tiles-check-code")
SOLUTION = run("tiles-solution")


def test_a_sum_of_ten_numbers_holds_them_and_their_result():
    assert issubclass(NAMES["Peak"], TorchDispatchMode)
    megabytes = NAMES["peak_megabytes"](lambda: torch.ones(10).add(1))
    assert megabytes * 1e6 == 80


def test_what_is_gone_is_held_no_longer_and_a_view_is_nothing_new():
    def in_turn(x):
        for _ in range(5):
            x = (x + 1).view(-1)
        return x

    assert NAMES["peak_megabytes"](in_turn, torch.ones(10)) * 1e6 == 80


def solved(old="", new=""):
    """Return the page's solution, with one thing changed."""
    assert SOLUTION.count(old) == 1 or not old
    names = dict(NAMES)
    with torch.no_grad():
        exec(SOLUTION.replace(old, new) if old else SOLUTION, names)
    return names["causal_attention_solved"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "✓"),
        ("return torch.cat(outputs)", "...", "⬜"),
        ("torch.cat(outputs)", "torch.cat(outputs)[1:]", "✗ 8 queries have outputs"),
        ("range(0, first + 1, ", "range(0, len(K), ", "✗ Not PyTorch's outputs"),
        ("triu(1)", "triu(0)", "✗ Not PyTorch's outputs"),
        ("start == first", "start > first", "✗ Not PyTorch's outputs"),
        ("correction * numerator", "numerator", "✗ Not PyTorch's outputs"),
    ],
)
def test_the_check_says_what_is_wrong_with_tiles(old, new, message):
    assert NAMES["check_tiles"](solved(old, new)).startswith(message)


def test_the_check_wants_no_tiles_of_the_future_and_no_whole_matrix():
    def attends_to_all(Q, K, V, block_size):
        return NAMES["attention_in_blocks"](Q, K, V, block_size)

    def with_matrix(Q, K, V, block_size):
        future = torch.ones(len(Q), len(K)).triu(1).bool()
        scores = (Q @ K.T / K.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        return scores.softmax(dim=-1) @ V

    assert "mask the tiles" in NAMES["check_tiles"](attends_to_all)
    assert "skip them" in NAMES["check_tiles"](with_matrix)
    assert "holds more" in NAMES["check_tiles"](with_everything_held(solved()))


def with_everything_held(function):
    def hold(Q, K, V, block_size):
        held = torch.zeros(len(Q), len(K))
        return function(Q, K, V, block_size) + held[0, 0]

    return hold
