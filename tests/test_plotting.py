import pytest
import torch

from tutorial_lib.masks import causal_mask
from tutorial_lib.plotting import show_bars, show_curves, show_heatmaps, show_lookup


def heat(fig):
    """Return the panels of a heatmap figure, without the colour bar."""
    return [ax for ax in fig.axes if ax.images]


def test_all_heatmaps_share_the_scale_from_zero_to_one():
    fig = show_heatmaps(torch.tensor([[[0.1]], [[0.9]]]))
    assert [ax.images[0].get_clim() for ax in heat(fig)] == [(0, 1), (0, 1)]


def test_scores_share_a_scale_centred_at_zero():
    fig = show_heatmaps(torch.tensor([[[-3.0]], [[2.0]]]), scores=True)
    assert [ax.images[0].get_clim() for ax in heat(fig)] == [(-3, 3), (-3, 3)]


def test_rows_are_queries_and_columns_are_keys_labelled_by_words():
    weights = torch.tensor([[0.25, 0.75]])
    fig = show_heatmaps(weights, query_labels=["it"], key_labels=["cat", "sat"])
    (ax,) = heat(fig)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["it"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["cat", "sat"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
    assert ax.images[0].get_array().tolist() == weights.tolist()


def test_a_grid_has_a_row_and_a_column_of_panels():
    fig = show_heatmaps(torch.full((2, 3, 4, 5), 0.2), titles=list("abcdef"))
    assert [ax.get_title() for ax in heat(fig)] == list("abcdef")


def test_masked_cells_are_hatched_and_carry_no_number():
    weights = causal_mask(3).float()
    (ax,) = heat(show_heatmaps(weights, mask=causal_mask(3)))
    assert len(ax.patches) == 3
    assert len(ax.texts) == 6


def test_a_weight_that_leaks_through_the_mask_stays_visible():
    (ax,) = heat(show_heatmaps(torch.full((2, 2), 0.5), mask=causal_mask(2)))
    assert ax.images[0].get_array()[0, 1] == 0.5
    assert len(ax.texts) == 4


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (torch.tensor([[-0.1, 1.1]]), {}, "pass scores=True"),
        (torch.tensor([[float("nan")]]), {}, "must lie in 0 to 1"),
        (torch.rand(2), {}, r"got \(2,\)"),
        (torch.rand(2, 2), {"key_labels": ["a"]}, "1 key_labels for 2 key"),
    ],
)
def test_wrong_input_is_refused_with_advice(weights, options, message):
    with pytest.raises(ValueError, match=message):
        show_heatmaps(weights, **options)


def test_curves_may_stand_in_one_panel_or_in_several():
    x = torch.arange(3.0)
    one = show_curves(x, {"a": x, "b": -x})
    several = show_curves(x, {"left": {"a": x}, "right": {"a": -x}})
    assert [len(ax.lines) for ax in one.axes] == [2]
    assert [ax.get_title() for ax in several.axes] == ["left", "right"]


def test_bars_carry_their_values():
    fig = show_bars({"T = 1": torch.tensor([0.25, 0.75])}, ["a", "b"])
    assert [text.get_text() for text in fig.axes[0].texts] == ["0.25", "0.75"]


def test_a_lookup_shows_every_key_value_and_weight():
    fig = show_lookup(
        torch.tensor([0.1, 0.9]), query="q", keys="ab", values="xy", output="o"
    )
    texts = {text.get_text() for text in fig.axes[0].texts}
    assert {"q", "a", "b", "x", "y", "o", "0.10", "0.90"} <= texts


def test_figures_are_closed_so_that_a_notebook_shows_them_once():
    import matplotlib.pyplot as plt

    show_heatmaps(torch.eye(2))
    assert plt.get_fignums() == []
