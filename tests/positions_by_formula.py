"""Dot products by the papers' formulas, and how a figure shows them."""

import re

import pytest
import torch


def as_hands(angles, lengths=1.0):
    """Return complex numbers (token, pair) that point to the angles."""
    return torch.polar(torch.ones_like(angles), angles) * lengths


def queries_and_keys(kind, base=10_000, key=1, tokens=40, d_model=8):
    """Return queries and keys (token, d_model) of the papers' formulas."""
    speeds = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    positions = torch.arange(tokens).double()[:, None]
    if kind == "sinusoidal":
        angles = positions * speeds
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return table, table
    squares = torch.arange(1, d_model + 1).double().square()
    query, other = (
        torch.view_as_complex(content.view(-1, 2))
        for content in (squares.cos(), squares.sin())
    )
    contents = [query, query * as_hands(3 * speeds), other]
    queries = as_hands(positions * speeds, query)
    keys = as_hands(positions * speeds, contents[key])
    return (torch.view_as_real(hands).flatten(1) for hands in (queries, keys))


def dot_products(kind, **options):
    queries, keys = queries_and_keys(kind, **options)
    return queries @ keys.T


def places(path):
    """Return the points (point, 2) of a path."""
    numbers = [float(number) for number in re.split("[L,]", path[1:])]
    return torch.tensor(numbers, dtype=torch.float64).reshape(-1, 2)


def curve_shown(page, products, which="path.first"):
    """Return a curve as {distance: value}, read by the lines of its axes."""
    lines = page.locator(".stage g line").evaluate_all(
        "lines => lines.map(line => ['x1', 'x2', 'y1', 'y2'].map("
        "name => Number(line.getAttribute(name))))"
    )
    flat = [line for line in lines if line[2] == line[3]]
    left, right = flat[0][:2]
    top, bottom = min(line[2] for line in flat), max(line[2] for line in flat)
    low, high = min(0, products.min()), max(0, products.max())
    x, y = places(page.locator(which).get_attribute("d")).T
    last = len(products) - 1
    distances = (x - left) / (right - left) * 2 * last - last
    assert (distances - distances.round()).abs().max() < 1e-6
    values = high - (y - top) / (bottom - top) * (high - low)
    return dict(zip(distances.round().int().tolist(), values.tolist(), strict=True))


def curve_of(products, t):
    """Return the curve that position t has by its dot products."""
    return {j - t: value for j, value in enumerate(products[t].tolist())}


def assert_curve(page, products, t, which="path.first"):
    assert curve_shown(page, products, which) == pytest.approx(
        curve_of(products, t), abs=2e-3 * float(products.abs().max())
    )


def sentence_of(kind, products, t, j, digits=2):
    """Return the sentence that the given dot products make."""
    low, high, shown = (
        f"{value:.{digits}f}".replace("-", "−")
        for pairs in [products.diagonal(j - t)]
        for value in (pairs.min(), pairs.max(), products[t, j])
    )
    pair = f"Position {t} and position {j}: dot product {shown}."
    if kind == "rotary":
        pair = f"Query at position {t}, key at position {j}: score {shown}."
    distance = str(j - t).replace("-", "−")
    bounds = low if low == high else f"{low} to {high}"
    return f"{pair} All pairs at distance {distance}: {bounds}."
