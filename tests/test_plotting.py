import io
import itertools

import numpy as np
import pytest
import torch

from tutorial_lib.masks import causal_mask
from tutorial_lib.plotting import (
    show_bars,
    show_curves,
    show_heatmaps,
    show_images,
    show_lookup,
    show_losses,
    show_unrolled,
)
from tutorial_lib.plotting.charts import running_mean
from tutorial_lib.training import History


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


def frames(ax):
    """Return the cells (query, key) that are framed."""
    found = [patch for patch in ax.patches if patch.get_path_effects()]
    middles = [patch.get_bbox().extents.reshape(2, 2).mean(0) for patch in found]
    return {(round(float(y)), round(float(x))) for x, y in middles}


def legend(fig):
    return [text.get_text() for part in fig.legends for text in part.get_texts()]


def test_gold_cells_are_framed_and_the_legend_names_them():
    gold = {(0, 0), (1, 2), (1, 1)}
    fig = show_heatmaps(torch.rand(2, 3), outline=gold)
    assert frames(*heat(fig)) == gold
    assert legend(fig) == ["gold link"]
    assert legend(show_heatmaps(torch.eye(2), outline={(0, 1)}, outline_label="x")) == [
        "x"
    ]


def test_a_boolean_outline_may_differ_between_panels_and_a_set_is_for_all():
    weights = torch.rand(2, 3, 3)
    both = [frames(ax) for ax in heat(show_heatmaps(weights, outline={(2, 0)}))]
    assert both == [{(2, 0)}, {(2, 0)}]
    gold = torch.eye(3).bool()
    fig = show_heatmaps(weights, outline=torch.stack([gold, gold.flip(0)]))
    diagonal, other = {(0, 0), (1, 1), (2, 2)}, {(0, 2), (1, 1), (2, 0)}
    assert [frames(ax) for ax in heat(fig)] == [diagonal, other]
    first_key = torch.tensor([True, False, False])
    assert frames(heat(show_heatmaps(weights, outline=first_key))[0]) == {
        (query, 0) for query in range(3)
    }


@pytest.mark.parametrize("outline", [None, set(), torch.zeros(2, 2).bool()])
def test_without_an_outlined_cell_there_is_no_frame_and_no_legend(outline):
    fig = show_heatmaps(torch.eye(2), outline=outline)
    assert frames(*heat(fig)) == set() and legend(fig) == []


def grey(fig, query, key):
    """Return the grey values, 0 black to 1 white, that a printer gives a cell."""
    (ax,) = heat(fig)
    corners = [[key - 0.5, query + 0.5], [key + 0.5, query - 0.5]]
    (left, low), (right, high) = ax.transData.transform(corners).astype(int)
    pixels = np.asarray(fig.canvas.buffer_rgba())[::-1][low:high, left:right, :3]
    return pixels @ [0.299, 0.587, 0.114] / 255


@pytest.mark.parametrize("size", [5, 16])
def test_a_frame_stands_out_from_a_cell_of_any_color_in_grey(size):
    weights = torch.zeros(size, size)
    weights[:, :5] = torch.tensor([0.0, 0.3, 0.5, 0.7, 1.0])
    cells = {(0, key) for key in range(5)}
    fig = show_heatmaps(weights, key_labels=["word"] * size, outline=cells)
    fig.canvas.draw()
    for query, key in cells:
        framed = grey(fig, query, key)
        assert framed.max() - framed.min() > 0.7


def test_sixteen_words_on_both_axes_of_two_panels_do_not_overlap():
    words = ["parce", "que", "la", "maison"] * 4
    fig = show_heatmaps(
        torch.eye(16).repeat(2, 1, 1),
        query_labels=words,
        key_labels=words,
        titles=["attention", "gold"],
        outline=torch.eye(16).bool(),
    )
    fig.canvas.draw()
    left, right = heat(fig)
    rows = [label.get_window_extent() for label in left.get_yticklabels()]
    assert all(a.y0 >= b.y1 - 2 for a, b in itertools.pairwise(rows))
    assert [label.get_text() for label in right.get_xticklabels()] == words
    steps = np.diff([label.get_window_extent().x1 for label in right.get_xticklabels()])
    letters = 10 * fig.dpi / 72  # a slanted line of letters needs its height, slanted
    assert steps.min() > letters
    assert left.get_window_extent().x1 < right.get_window_extent().x0
    assert max(fig.get_size_inches()) < 9


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (torch.tensor([[-0.1, 1.1]]), {}, "pass scores=True"),
        (torch.tensor([[float("nan")]]), {}, "must lie in 0 to 1"),
        (torch.rand(2), {}, r"got \(2,\)"),
        (torch.rand(2, 2), {"key_labels": ["a"]}, "1 key_labels for 2 key"),
        (torch.rand(2, 3), {"outline": {(2, 1)}}, r"\(2, 1\) lies outside .* 2 quer"),
        (torch.rand(2, 3), {"outline": {(0, -1)}}, r"\(0, -1\) lies outside"),
        (torch.rand(2, 3), {"outline": {(-1, 0)}}, r"\(-1, 0\) lies outside"),
        (torch.rand(2, 3), {"outline": torch.ones(2, 3)}, "boolean, .* got float32"),
        (torch.rand(2, 3), {"outline": torch.ones(3, 2).bool()}, r"\(3, 2\) must br"),
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


ODD = ["$$", r"$\x$", "$5 and $6"]
WITH_ODD_LABELS = {
    "bars": lambda: show_bars({"$$": torch.ones(3)}, ODD, xlabel=ODD[1], ylabel="$$"),
    "curves": lambda: show_curves(
        [1, 2],
        {"$$": {word: [0.1, 1000] for word in ODD}, "linear": {"x": [1, 2]}},
        marks={ODD[1]: 1},
        points=([1], [1]),
        points_label="$$",
        xlabel=ODD[2],
        ylabel="$$",
        yscale="log",
    ),
    "heatmaps": lambda: show_heatmaps(
        torch.eye(3)[None],
        query_labels=ODD,
        key_labels=ODD,
        titles=ODD[:1],
        outline={(0, 1)},
        outline_label="$$",
        xlabel="$$",
        ylabel=ODD[2],
    ),
    "images": lambda: show_images(torch.ones(3, 2, 2), titles=ODD),
    "lookup": lambda: show_lookup(
        torch.ones(3) / 3, query="$$", keys=ODD, values=ODD, output=ODD[2]
    ),
    "unrolled": lambda: show_unrolled(ODD, ODD),
}


@pytest.mark.parametrize("name", WITH_ODD_LABELS)
def test_a_label_with_dollars_is_shown_as_it_is_written(name):
    from matplotlib.text import Text

    fig = WITH_ODD_LABELS[name]()
    fig.savefig(io.BytesIO())  # which makes the ticks, too
    texts = [text for text in fig.findobj(Text) if "$" in text.get_text()]
    odd = [text for text in texts if text.get_text() in ODD]
    assert {text.get_text() for text in odd} == {*ODD}
    assert not any(text.get_parse_math() for text in odd)
    assert all(text.get_parse_math() for text in texts if text not in odd)


def test_the_powers_of_a_logarithmic_scale_are_mathematics():
    history = History()
    for loss in (1e-5, 1000.0):
        history.append(1, loss, 0.1, 1.0)
    fig = show_losses(history)
    fig.savefig(io.BytesIO())
    ticks = fig.axes[0].get_yticklabels()
    assert r"$\mathdefault{10^{2}}$" in [tick.get_text() for tick in ticks]
    assert all(tick.get_parse_math() for tick in ticks)


def test_figures_are_closed_so_that_a_notebook_shows_them_once():
    import matplotlib.pyplot as plt

    show_heatmaps(torch.eye(2))
    assert plt.get_fignums() == []


def unrolled():
    (ax,) = show_unrolled(["she", "sleeps"], ["elle", "dort"]).axes
    return ax


def test_an_unrolled_decoder_reads_what_it_wrote_one_place_later():
    places = {}
    for text in unrolled().texts:
        places.setdefault(text.get_text(), []).append(text.get_position()[0])
    assert sorted(places["elle"]) == [3, 4]
    assert sorted(places["dort"]) == [4, 5]
    assert (places["<bos>"], places["<eos>"]) == ([3], [5])


def test_an_unrolled_decoder_gets_the_context_at_every_step_and_nothing_else():
    arrows = [text for text in unrolled().texts if getattr(text, "arrow_patch", None)]
    steps = [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows]
    assert sorted(end for start, end in steps if start == 2) == [3, 4, 5]
    assert all(start == 2 for start, end in steps if start < 3 <= end)


def test_a_running_mean_takes_what_there_is_at_the_ends():
    assert running_mean([1, 3, 8, 0, 4], 1) == [2, 4, 11 / 3, 4, 2]
    assert running_mean([1, 3, 8], 0) == [1, 3, 8]
    assert running_mean([1, 3, 8], 9) == [4, 4, 4]


@pytest.mark.parametrize("yscale", ["log", "linear"])
def test_the_plot_shows_every_loss_and_their_running_mean(yscale):
    history = History()
    for step in range(100):
        history.append(1, 1 / (step + 1), 0.1, 1.0)
    [ax] = show_losses(history, yscale=yscale).axes
    assert ax.get_yscale() == yscale
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    [points] = ax.collections
    assert points.get_offsets()[:, 0].tolist() == history.steps
    assert points.get_offsets()[:, 1].tolist() == pytest.approx(history.losses)
    [curve] = ax.lines
    assert curve.get_label() == "mean of 5 steps"
    assert curve.get_ydata().tolist() == pytest.approx(running_mean(history.losses, 2))


def test_the_plot_of_a_long_run_shows_some_of_its_steps_and_says_so():
    history = History()
    for _ in range(1001):
        history.append(1, 1.0, 0.1, 1.0)
    [ax] = show_losses(history).axes
    [points] = ax.collections
    assert points.get_label() == "one step in 3"
    assert points.get_offsets()[:, 0].tolist() == list(range(1, 1002, 3))


def test_a_history_without_a_step_cannot_be_plotted():
    with pytest.raises(ValueError, match="no step to plot: train first"):
        show_losses(History())
