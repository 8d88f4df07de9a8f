"""Encodings of places: grids, points in space, nodes of graphs."""

import math

import pytest
import torch

from tutorial_lib.position import (
    SinusoidalEncoding,
    fourier_features,
    laplacian_eigenvectors,
    sinusoidal_grid,
)


def ring(nodes):
    steps = torch.eye(nodes).roll(1, dims=1)
    return steps + steps.T


def test_a_cell_of_the_grid_is_its_row_and_then_its_column():
    table = sinusoidal_grid(3, 5, 8).view(3, 5, 8)
    line = SinusoidalEncoding(4, 5).table
    for i in range(3):
        for j in range(5):
            torch.testing.assert_close(table[i, j], torch.cat((line[i], line[j])))


def test_a_grid_needs_pairs_for_rows_and_for_columns():
    with pytest.raises(ValueError, match=r"4 must divide d_model.*got 6, use 8"):
        sinusoidal_grid(2, 2, 6)


class TestFourierFeatures:
    def test_one_direction_worked_by_hand(self):
        points, directions = torch.tensor([[0.25, 1.0]]), torch.tensor([[1.0, 0.5]])
        angle = 2 * math.pi * (0.25 * 1 + 1.0 * 0.5)
        by_hand = torch.tensor([[math.sin(angle), math.cos(angle)]])
        features = fourier_features(points, directions)
        torch.testing.assert_close(features, by_hand, atol=1e-6, rtol=0)
        batch = points.expand(4, 3, 1, 2)
        assert fourier_features(batch, directions).equal(features.expand(4, 3, 1, 2))

    def test_random_directions_make_a_gaussian_kernel_of_the_distance(self):
        generator = torch.Generator().manual_seed(0)
        points = torch.rand(20, 2, generator=generator)
        directions = torch.randn(20_000, 2, generator=generator) * 0.5
        features = fourier_features(points, directions)
        apart = torch.cdist(points, points)
        kernel = torch.exp(-((2 * math.pi * 0.5 * apart) ** 2) / 2)
        torch.testing.assert_close(
            features @ features.T / 20_000, kernel, atol=0.03, rtol=0
        )

    def test_directions_of_another_space_are_refused(self):
        with pytest.raises(ValueError, match=r"3 coordinates.*\(4, 2\) are for 2"):
            fourier_features(torch.rand(5, 3), torch.rand(4, 2))


class TestLaplacian:
    def test_a_path_of_three_nodes_worked_by_hand(self):
        path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        values, vectors = laplacian_eigenvectors(path, 3)
        torch.testing.assert_close(values, torch.tensor([0.0, 1, 3]), atol=1e-6, rtol=0)
        by_hand = torch.tensor([[1.0, 1, 1], [1, 0, -1], [1, -2, 1]]).T
        by_hand /= by_hand.norm(dim=0)
        overlap = (vectors.T @ by_hand).abs()  # signs are arbitrary
        torch.testing.assert_close(overlap, torch.eye(3), atol=1e-5, rtol=0)

    def test_on_a_ring_they_are_sines_and_cosines(self):
        values, vectors = laplacian_eigenvectors(ring(12).double(), 12)
        frequencies = torch.tensor([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6])
        by_hand = 2 - 2 * torch.cos(2 * math.pi * frequencies.double() / 12)
        torch.testing.assert_close(values, by_hand)
        node = torch.arange(12).double()
        for k in range(1, 6):
            wave = torch.cos(2 * math.pi * k * node / 12)
            pair = vectors[:, 2 * k - 1 : 2 * k + 1]
            torch.testing.assert_close(pair @ (pair.T @ wave), wave)

    @pytest.mark.parametrize("count", [1, 4, 5])
    def test_the_smoothest_waves_come_first(self, count):
        values, vectors = laplacian_eigenvectors(ring(5), count)
        everything = laplacian_eigenvectors(ring(5), 5)
        assert values.equal(everything[0][:count])
        assert vectors.equal(everything[1][:, :count])

    def test_a_weighted_edge_counts_by_its_weight(self):
        values, _ = laplacian_eigenvectors(torch.tensor([[0, 2.5], [2.5, 0]]), 2)
        torch.testing.assert_close(values, torch.tensor([0, 5.0]))

    @pytest.mark.parametrize(
        "adjacency", [torch.ones(2, 3), torch.ones(3), torch.ones(3, 3).tril()]
    )
    def test_a_directed_or_lopsided_graph_is_refused(self, adjacency):
        with pytest.raises(ValueError, match="square and symmetric"):
            laplacian_eigenvectors(adjacency, 1)

    @pytest.mark.parametrize("count", [0, 5])
    def test_more_waves_than_nodes_are_refused(self, count):
        with pytest.raises(ValueError, match=f"between 1 and 4, got {count}"):
            laplacian_eigenvectors(ring(4), count)
