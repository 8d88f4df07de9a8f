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
        ("triu(1)", "triu(0)", "✗ There is nan"),
        ("start == first", "start > first", "✗ Not PyTorch's outputs"),
        ("correction * numerator", "numerator", "✗ Not PyTorch's outputs"),
    ],
)
def test_the_check_says_what_is_wrong_with_tiles(old, new, message):
    assert NAMES["check_tiles"](solved(old, new)).startswith(message)


def with_matrix(Q, K, V, block_size):
    future = torch.ones(len(Q), len(K)).triu(1).bool()
    scores = (Q @ K.T / K.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
    return scores.softmax(dim=-1) @ V


def row_by_row(attend):
    """Return causal attention of a block of queries to all keys up to its end."""

    def attention(Q, K, V, block_size):
        outputs = []
        for first in range(0, len(Q), block_size):
            queries = Q[first : first + block_size]
            end = first + len(queries)
            mask = torch.ones(len(queries), end).tril(first).bool()
            outputs.append(attend(queries, K[:end], V[:end], mask))
        return torch.cat(outputs)

    return attention


def by_softmax(queries, keys, values, mask):
    scores = (queries @ keys.T / keys.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ values


def by_pytorch(queries, keys, values, mask):
    return torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask
    )


def without_maximum(queries, keys, values, mask):
    scores = (queries @ keys.T / keys.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    exp_scores = scores.exp()
    return exp_scores @ values / exp_scores.sum(dim=-1, keepdim=True)


def attends_to_all(Q, K, V, block_size):
    return NAMES["attention_in_blocks"](Q, K, V, block_size)


def not_a_number(Q, K, V, block_size):
    outputs = solved()(Q, K, V, block_size)
    outputs[0] = torch.nan
    return outputs


def with_everything_held(Q, K, V, block_size):
    held = torch.zeros(len(Q), len(K))
    return solved()(Q, K, V, block_size) + held[0, 0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (attends_to_all, "✗ Queries attend to later keys: mask the tiles"),
        (with_matrix, "✗ Right, but tiles of the future are computed: skip them"),
        (row_by_row(by_softmax), "✗ Right, but it holds more"),
        (row_by_row(by_pytorch), "✗ Right, but PyTorch's own"),
        (row_by_row(without_maximum), "✗ With scores in the hundreds"),
        (with_everything_held, "✗ Right, but it holds more"),
        (not_a_number, "✗ There is nan"),
        (lambda Q, K, V, block_size: Q * torch.nan, "✗ There is nan"),
    ],
)
def test_the_check_wants_an_online_softmax_in_tiles(function, message):
    assert NAMES["check_tiles"](function).startswith(message)


def keys_outside(Q, K, V, block_size):
    """Go through the keys outside and the queries inside, with sums for all queries."""
    maximum = torch.full((len(Q), 1), -torch.inf)
    total = torch.zeros(len(Q), 1)
    outputs = torch.zeros(len(Q), V.shape[-1])
    for start in range(0, len(K), block_size):
        for first in range(start, len(Q), block_size):
            rows = slice(first, first + block_size)
            keys = K[start : start + block_size]
            scores = Q[rows] @ keys.T / K.shape[-1] ** 0.5
            if first == start:
                future = torch.ones_like(scores).triu(1).bool()
                scores = scores.masked_fill(future, -torch.inf)
            new = torch.maximum(maximum[rows], scores.amax(dim=-1, keepdim=True))
            factor = (maximum[rows] - new).exp()
            exp_scores = (scores - new).exp()
            sums = exp_scores.sum(dim=-1, keepdim=True)
            total[rows] = factor * total[rows] + sums
            values = V[start : start + block_size]
            outputs[rows] = factor * outputs[rows] + exp_scores @ values
            maximum[rows] = new
    return outputs / total


def test_the_check_takes_another_right_answer():
    assert NAMES["check_tiles"](keys_outside).startswith("✓")
