"""Places that are not numbers in a row: pictures, points in space, nodes of a graph.

Each function returns a table of encodings, one row for each place, to be added to the
tokens that stand there.

This module does not know what stands at the places.
"""

import torch

from tutorial_lib.position.absolute import sinusoids


def sinusoidal_grid(height, width, d_model):
    """Encode the cells of a grid: half of ``d_model`` for the row, half for the column.

    Returns (height · width, d_model), row by row. Raises ValueError unless 4 divides
    d_model. Parmar et al. (2018), section 3.2.
    """
    if d_model % 4:
        raise ValueError(
            f"4 must divide d_model, for pairs of columns for row and column: got "
            f"{d_model}, use {d_model + 4 - d_model % 4}"
        )
    rows = sinusoids(torch.arange(height), d_model // 2)  # (height, d_model / 2)
    columns = sinusoids(torch.arange(width), d_model // 2)  # (width, d_model / 2)
    rows, columns = rows[:, None].expand(-1, width, -1), columns.expand(height, -1, -1)
    return torch.cat((rows, columns), dim=-1).flatten(0, 1)


def fourier_features(coordinates, frequencies):
    """Turn points in space into sines and cosines along given directions.

    ``coordinates`` (..., coordinate) are numbers; ``frequencies`` (feature, coordinate)
    are turns per unit along each direction. Returns (..., 2 · feature), sines first.
    With random normal frequencies two points' dot product depends on their distance
    alone, nearly, as a Gaussian kernel does: Rahimi and Recht (2007); Tancik et al.
    (2020). Raises ValueError if the numbers of coordinates differ.
    """
    if coordinates.shape[-1] != frequencies.shape[-1]:
        raise ValueError(
            f"points have {coordinates.shape[-1]} coordinates, but frequencies "
            f"{tuple(frequencies.shape)} are for {frequencies.shape[-1]}: give one row "
            "per feature and one column per coordinate"
        )
    angles = 2 * torch.pi * coordinates @ frequencies.T  # (..., feature)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def laplacian_eigenvectors(adjacency, count):
    """Encode the nodes of a graph by the ``count`` smoothest waves on it.

    ``adjacency`` (node, node) is symmetric and holds the weight of each edge, 0 for
    none. Returns the eigenvalues (count,) of the Laplacian D - A, ascending, and the
    eigenvectors (node, count), of length 1 and each with an arbitrary sign. The first
    one is the constant and tells nothing. Raises ValueError if adjacency is not square
    and symmetric, or has fewer than ``count`` nodes. Dwivedi and Bresson (2021), who
    normalize by the nodes' degrees.
    """
    square = adjacency.ndim == 2 and adjacency.shape[0] == adjacency.shape[1]
    if not (square and torch.equal(adjacency, adjacency.T)):
        raise ValueError(
            f"adjacency must be square and symmetric, (node, node): got "
            f"{tuple(adjacency.shape)}; for a directed graph use (A + A.T) / 2"
        )
    if not 1 <= count <= len(adjacency):
        raise ValueError(
            f"a graph of {len(adjacency)} nodes has as many eigenvectors: count must "
            f"lie between 1 and {len(adjacency)}, got {count}"
        )
    adjacency = adjacency.to(torch.promote_types(adjacency.dtype, torch.float32))
    laplacian = adjacency.sum(dim=-1).diag() - adjacency
    values, vectors = torch.linalg.eigh(laplacian)
    return values[:count], vectors[:, :count]
