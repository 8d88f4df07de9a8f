"""Dot products of positions by the papers' formulas, and as a figure shows them."""

import pytest
import torch


def rotate(pairs, angles):
    """Rotate complex numbers (…, pair) by angles."""
    return pairs * torch.polar(torch.ones_like(angles), angles)


def queries_and_keys(kind, base=10_000, key=1, tokens=40, d_model=8):
    """Return queries and keys (token, d_model) of the papers' formulas."""
    frequencies = base ** (-torch.arange(0, d_model, 2).double() / d_model)
    positions = torch.arange(tokens).double()[:, None]
    angles = positions * frequencies  # (token, pair)
    if kind == "sinusoidal":
        encoding = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        return encoding, encoding
    squares = torch.arange(1, d_model + 1).double().square()
    query = torch.view_as_complex(squares.cos().view(-1, 2))
    other = torch.view_as_complex(squares.sin().view(-1, 2))
    contents = [query, rotate(query, 3 * frequencies), other]
    queries = rotate(query, angles)
    keys = rotate(contents[key], angles)
    return torch.view_as_real(queries).flatten(1), torch.view_as_real(keys).flatten(1)


def dot_products(kind, **options):
    queries, keys = queries_and_keys(kind, **options)
    return queries @ keys.T


def points_of(path):
    """Return the points (point, 2) of a path."""
    points = []
    for point in path[1:].split("L"):
        points.append([float(number) for number in point.split(",")])
    return torch.tensor(points, dtype=torch.float64)


def curve_shown(page, products, which="path.first"):
    """Return a curve as {distance: value}, read by the lines of its axes."""
    lines = page.locator(".stage g line").evaluate_all(
        "lines => lines.map(line => ['x1', 'x2', 'y1', 'y2'].map("
        "name => Number(line.getAttribute(name))))"
    )
    flat = [line for line in lines if line[2] == line[3]]
    left, right = flat[0][:2]
    top = min(line[2] for line in flat)
    bottom = max(line[2] for line in flat)
    low = min(0, products.min())
    high = max(0, products.max())
    x, y = points_of(page.locator(which).get_attribute("d")).T
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

    def rounded(value):
        return f"{value:.{digits}f}".replace("-", "−")

    pairs = products.diagonal(j - t)
    low = rounded(pairs.min())
    high = rounded(pairs.max())
    product = rounded(products[t, j])
    pair = f"Position {t} and position {j}: dot product {product}."
    if kind == "rotary":
        pair = f"Query at position {t}, key at position {j}: score {product}."
    distance = str(j - t).replace("-", "−")
    bounds = low if low == high else f"{low} to {high}"
    return f"{pair} All pairs at distance {distance}: {bounds}."
