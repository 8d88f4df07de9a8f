"""The checks of three excursions' exercises tell right answers from likely mistakes.

They stand on the pages: their cells are run here.
"""

from pathlib import Path

import pytest
import torch

from tools.notebooks import read_notebook, source_of

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def names_on(page, *cells):
    """Run cells of a page by name, and return what they define."""
    names = {"torch": torch}
    sources = {c["id"]: source_of(c) for c in read_notebook(NOTEBOOKS / page)["cells"]}
    for cell in cells:
        exec(sources[cell], names)
    return names


DRAFTS = names_on(
    "x_speculative_decoding.ipynb", "simpler-check-code", "simpler-solution"
)
LLAMA = names_on("x_llama.ipynb", "pool-check-code", "pool-solution")
SIGNS = names_on("x_positions_beyond_text.ipynb", "signs-check-code", "signs-solution")
LONGITUDES = names_on(
    "x_positions_beyond_text.ipynb", "longitude-check-code", "longitude-solution"
)


def by_target(p, q):
    return p


def by_residual(p, q):
    return p.minimum(q) + (p - q).clamp(min=0)


def not_summing_to_one(p, q):
    return p.minimum(q) + p


def by_draft(p, q):
    return p.minimum(q) + (1 - p.minimum(q).sum()) * q


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (DRAFTS["simpler_frequencies_solved"], "✓"),
        (lambda p, q: None, "⬜"),
        (lambda p, q: p[:3], "✗ 5 tokens"),
        (by_target, "✗ These are the target's"),
        (by_residual, "✗ These are the target's"),
        (not_summing_to_one, "✗ The frequencies add up to"),
        (by_draft, "✗ They add up to 1"),
    ],
)
def test_the_check_of_frequencies_without_the_residual(function, message):
    assert DRAFTS["check_frequencies"](function).startswith(message)


def of_each_node(encoding):
    return encoding * (2 * torch.randint(2, encoding.shape) - 1)


def together(encoding):
    return encoding * (2 * torch.randint(2, (1,)) - 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (SIGNS["flip_signs_solved"], "✓"),
        (lambda encoding: None, "⬜"),
        (lambda encoding: encoding.T, "✗ An encoding"),
        (lambda encoding: 2 * encoding, "✗ An entry"),
        (of_each_node, "✗ Nodes got signs"),
        (together, "✗ In 100 calls two eigenvectors got 2 of 4"),
        (lambda encoding: -encoding, "✗ In 100 calls two eigenvectors got 1 of 4"),
    ],
)
def test_the_check_of_random_signs(function, message):
    assert SIGNS["check_flip_signs"](function).startswith(message)


def shifted(function):
    return lambda weight, heads, kv: function(weight, heads, kv).roll(1, 0)


def added(weight, num_heads, num_kv_heads):
    return weight.view(num_kv_heads, -1, 4, 10).sum(dim=1).flatten(0, 1)


def taken_in_turn(weight, num_heads, num_kv_heads):
    return weight.view(-1, num_kv_heads, 4, 10).mean(dim=0).flatten(0, 1)


def first_of_each_group(weight, num_heads, num_kv_heads):
    return weight.view(num_kv_heads, -1, 4, 10)[:, 0].flatten(0, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (LLAMA["pool_heads_solved"], "✓"),
        (lambda weight, heads, kv: None, "⬜"),
        (lambda weight, heads, kv: weight, "✗ 2 KV heads with d_k = 4"),
        (added, "✗ You add"),
        (taken_in_turn, "✗ You take the heads in turn"),
        (first_of_each_group, "✗ Row i"),
        (shifted(LLAMA["pool_heads_solved"]), "✗ Row i"),
    ],
)
def test_the_check_of_pooled_heads(function, message):
    assert LLAMA["check_pool_heads"](function).startswith(message)


SOLVED = LONGITUDES["encode_longitudes_solved"]


def half_periods(degrees, periods):
    return SOLVED(degrees / 2, periods)


def alternating(degrees, periods):
    sines, cosines = SOLVED(degrees, periods).chunk(2, dim=1)
    return torch.stack([sines, cosines], dim=2).flatten(1)


def cosines_first(degrees, periods):
    return SOLVED(degrees, periods).roll(periods, dims=1)


def in_degrees(degrees, periods):
    return SOLVED(degrees.rad2deg(), periods)


def from_no_period(degrees, periods):
    sines, cosines = SOLVED(degrees, periods).chunk(2, dim=1)
    zero, one = torch.zeros(len(degrees), 1), torch.ones(len(degrees), 1)
    return torch.cat([zero, sines[:, :-1], one, cosines[:, :-1]], dim=1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (SOLVED, "✓"),
        (lambda degrees, periods: None, "⬜"),
        (lambda degrees, periods: SOLVED(degrees, 2 * periods), "✗ Six longitudes"),
        (half_periods, "✗ 180° west and 180° east"),
        (in_degrees, "✗ 180° west and 180° east"),
        (alternating, "✗ Sines and cosines alternate"),
        (cosines_first, "✗ 30° became"),
        (from_no_period, "✗ 30° became"),
    ],
)
def test_the_check_of_whole_periods(function, message):
    assert LONGITUDES["check_encode_longitudes"](function).startswith(message)
