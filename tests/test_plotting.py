import base64
import io
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_hex, to_rgb
from matplotlib.text import Text
from PIL import Image
from readable import contrast

from tutorial_lib.masks import causal_mask
from tutorial_lib.plotting import (
    show_bars,
    show_curves,
    show_heatmaps,
    show_images,
)
from tutorial_lib.plotting.colors import CURVES, DARK_SCALES, LIGHT_SCALES, PALETTE
from tutorial_lib.plotting.colors import UNDEFINED as GRAY
from tutorial_lib.plotting.figure import in_few_colors
from tutorial_lib.plotting.panels import WIDTH

WORDS = ["the", "animal", "crossed", "the", "street"]
WHITE, DARK = PALETTE["paper"]


def heat(fig):
    """Return the panels of a heatmap figure, without the color bar."""
    return [ax for ax in fig.axes if ax.images]


def legend(fig):
    return [text.get_text() for part in fig.legends for text in part.get_texts()]


def written(labels):
    return [label.get_text() for label in labels]


# --- Heatmaps


def test_weights_share_the_scale_from_0_to_1_and_scores_one_centered_at_0():
    weights = show_heatmaps(torch.tensor([[[0.1]], [[0.9]]]))
    scores = show_heatmaps(torch.tensor([[[-3.0]], [[2.0]]]), scores=True)
    assert [ax.images[0].get_clim() for ax in heat(weights)] == [(0, 1)] * 2
    assert [ax.images[0].get_clim() for ax in heat(scores)] == [(-3, 3)] * 2


@pytest.mark.parametrize("panels", [1, 2])
@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ([[-1.0, 5.0]], (-1, 5)),
        ([[1.0, 5.0]], (0, 5)),
        ([[-2.0, -torch.inf]], (-2, 0)),
        ([[0.0, 0.0]], (-1, 1)),
    ],
)
def test_the_bar_of_scores_has_white_and_the_colors_that_are_there(
    scores, ends, panels
):
    fig = show_heatmaps(torch.tensor([scores] * panels), scores=True)
    [bar] = [ax for ax in fig.axes if ax not in heat(fig)]
    assert (bar.get_ylim() if panels == 1 else bar.get_xlim()) == ends


def test_rows_are_queries_and_columns_are_keys_labelled_by_words():
    weights = torch.tensor([[0.25, 0.75]])
    [ax] = heat(show_heatmaps(weights, query_labels=["it"], key_labels=["cat", "sat"]))
    assert written(ax.get_yticklabels()) == ["it"]
    assert written(ax.get_xticklabels()) == ["cat", "sat"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
    assert ax.images[0].get_array().tolist() == weights.tolist()


def test_an_axis_without_a_name_and_labels_has_no_numbers():
    [bare] = heat(show_heatmaps(torch.rand(4, 4), xlabel="", ylabel=""))
    [named] = heat(show_heatmaps(torch.rand(4, 4)))
    assert (len(bare.get_xticks()), len(bare.get_yticks())) == (0, 0)
    assert len(named.get_xticks()) > 0


def test_masked_cells_are_hatched_and_only_what_leaks_carries_a_number():
    mask = causal_mask(3)
    for weights, numbers in ((mask.float(), 6), (torch.full((3, 3), 0.5), 9)):
        [ax] = heat(show_heatmaps(weights, mask=mask))
        assert len(ax.texts) == numbers
        hatched = {p.get_xy() for p in ax.patches if p.get_hatch()}
        assert hatched == {(0.5, -0.5), (1.5, -0.5), (1.5, 0.5)}  # what is to come


def test_zeros_are_left_out_where_that_is_asked_for():
    weights = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    [ax] = heat(show_heatmaps(weights, write_zeros=False))
    assert written(ax.texts) == ["1.00", "0.50", "0.50"]
    [ax] = heat(show_heatmaps(weights))
    assert written(ax.texts) == ["1.00", "0.00", "0.50", "0.50"]


def frames(ax):
    """Return the cells (query, key) that are framed."""
    found = [patch for patch in ax.patches if not patch.get_hatch()]
    middles = [patch.get_bbox().extents.reshape(2, 2).mean(0) for patch in found]
    return {(round(float(y)), round(float(x))) for x, y in middles}


def test_outlined_cells_are_framed_and_the_legend_names_them():
    pairs = {(0, 0), (1, 2)}
    table = torch.eye(3).bool()
    fig = show_heatmaps(torch.rand(2, 3, 3), outline=pairs)
    assert [frames(ax) for ax in heat(fig)] == [pairs] * 2
    assert legend(fig) == ["gold link"]
    each = torch.stack([table, table.flip(0)])
    fig = show_heatmaps(torch.rand(2, 3, 3), outline=each, outline_label="x")
    expected = [{(0, 0), (1, 1), (2, 2)}, {(0, 2), (1, 1), (2, 0)}]
    assert [frames(ax) for ax in heat(fig)] == expected and legend(fig) == ["x"]
    for nothing in (None, set(), ~table & table):
        fig = show_heatmaps(torch.eye(3), outline=nothing)
        assert frames(*heat(fig)) == set() and legend(fig) == []


@pytest.mark.parametrize("size", [5, 16])
def test_a_frame_stands_out_from_a_cell_of_any_color_in_gray(size):
    weights = torch.zeros(size, size)
    weights[:, :5] = torch.tensor([0.0, 0.3, 0.5, 0.7, 1.0])
    outline = {(0, key) for key in range(5)}
    fig = show_heatmaps(weights, key_labels=["word"] * size, outline=outline)
    fig.canvas.draw()
    [ax] = heat(fig)
    for key in range(5):
        corners = ax.transData.transform([[key - 0.5, 0.5], [key + 0.5, -0.5]])
        (left, low), (right, high) = corners.astype(int)
        pixels = np.asarray(fig.canvas.buffer_rgba())[::-1][low:high, left:right, :3]
        printed = pixels @ [0.299, 0.587, 0.114] / 255
        assert np.ptp(printed) > 0.7


def test_numbers_are_whole_where_all_are_and_a_cell_without_one_is_gray():
    [ax] = heat(show_heatmaps([[-3.0, 2.0]], scores=True))
    assert written(ax.texts) == ["−3", "2"]
    [ax] = heat(show_heatmaps([[float("nan"), 0.5]]))
    assert written(ax.texts) == ["nan", "0.50"]
    assert to_hex(ax.images[0].to_rgba(ax.images[0].get_array())[0, 0]) == GRAY


def test_maps_of_yes_and_no_need_no_color_bar_and_others_name_it():
    maps = torch.rand(2, 2)
    assert len(show_heatmaps(torch.eye(2)).axes) == 1
    named = (show_heatmaps(maps), show_heatmaps(maps, label="ink"))
    assert [fig.axes[-1].get_ylabel() for fig in named] == ["weight", "ink"]


def test_a_line_parts_queries():
    fig = show_heatmaps(torch.eye(4)[None].expand(2, 4, 4), hline=3)
    assert [ax.lines[0].get_ydata()[0] for ax in fig.axes] == [2.5, 2.5]


@pytest.mark.parametrize(
    ("shape", "labels", "rows"),
    [
        ((3, 5, 5), WORDS, [3]),
        ((4, 5, 5), WORDS, [2, 2]),
        ((5, 5, 5), None, [3, 2]),
        ((2, 12, 12), ["animal"] * 12, [1, 1]),
        ((1, 4, 3, 3), None, [4]),
        ((2, 20), None, [1]),
        ((20, 2), None, [1]),
    ],
)
def test_panels_wrap_into_rows_that_leave_room_for_words(shape, labels, rows):
    titles = list("abcdef")[: len(shape) > 2 and sum(rows)]
    options = {"query_labels": labels, "key_labels": labels, "titles": titles}
    fig = show_heatmaps(torch.rand(shape), **options)
    fig.draw_without_rendering()
    places = [round(ax.get_position().y0, 3) for ax in heat(fig)]
    assert [len(list(group)) for _, group in itertools.groupby(places)] == rows
    assert [ax.get_title() for ax in heat(fig)] == (titles or [""])
    assert fig.get_tightbbox().width <= WIDTH  # and 0.1 inch of paper on either side


def test_sixteen_words_on_both_axes_of_two_panels_do_not_overlap():
    words = ["parce", "que", "la", "maison"] * 4
    weights = torch.eye(16).repeat(2, 1, 1)
    fig = show_heatmaps(weights, query_labels=words, key_labels=words)
    fig.canvas.draw()
    upper, lower = heat(fig)
    rows = [label.get_window_extent() for label in upper.get_yticklabels()]
    assert all(a.y0 >= b.y1 - 2 for a, b in itertools.pairwise(rows))
    assert written(lower.get_xticklabels()) == words
    steps = np.diff([label.get_window_extent().x1 for label in lower.get_xticklabels()])
    assert steps.min() > 10 * fig.dpi / 72  # slanted letters need their height
    assert upper.get_window_extent().y0 > lower.get_window_extent().y1


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (torch.tensor([[-0.1, 1.1]]), {}, "pass scores=True"),
        (torch.rand(2), {}, r"got \(2,\)"),
        ({"a": torch.rand(2, 2)}, {}, "one tensor, got a dict: of recorded maps pass"),
        ([torch.rand(2, 2)] * 2, {}, "one tensor, got a list"),
        (torch.rand(2, 2), {"key_labels": ["a"]}, "1 key_labels for 2 key"),
        (torch.rand(3, 2, 2), {"titles": ["a", "b"]}, "2 titles for 3 panels"),
        (torch.rand(2, 2), {"titles": ["a", "b"]}, "2 titles for 1 panels"),
        (torch.rand(3, 2), {"query_labels": ["a"]}, "1 query_labels for 3 query pos"),
        (
            torch.rand(2, 3),
            {"mask": torch.ones(2, 3)},
            "^mask must be boolean, got flo",
        ),
        (
            torch.rand(2, 3),
            {"mask": torch.ones(3, 2) > 0},
            r"mask \(3, 2\) does not br",
        ),
        (torch.rand(2, 3), {"outline": {(2, 1)}}, r"\(2, 1\) lies outside .* 2 quer"),
        (torch.rand(2, 3), {"outline": {(0, -1)}}, r"\(0, -1\) lies outside"),
        (torch.rand(2, 3), {"outline": torch.ones(2, 3)}, "boolean, .* got float32"),
    ],
)
def test_wrong_input_is_refused_with_advice(weights, options, message):
    with pytest.raises(ValueError, match=message):
        show_heatmaps(weights, **options)


# --- Charts


def test_curves_stand_in_one_panel_or_in_several_with_one_color_each():
    one = show_curves([0, 1], {"a": [0, 1], "b": [1, 0]})
    panels = {"left": {"a": [0, 1], "b": [1, 0]}, "right": {"b": [0, 1]}}
    left, right = show_curves([0, 1], panels).axes
    assert [len(ax.lines) for ax in one.axes] == [2] and legend(one) == ["a", "b"]
    assert [left.get_title(), right.get_title()] == ["left", "right"]
    assert left.lines[1].get_color() == right.lines[0].get_color()


def test_panels_may_have_an_x_of_their_own_each():
    curves = {"left": {"a": ([0, 1], [0, 1])}, "right": {"a": ([0, 9], [0, 1])}}
    left, right = show_curves(curves=curves, xlabel=["one", "other"]).axes
    assert [left.get_xlabel(), right.get_xlabel()] == ["one", "other"]
    assert left.get_xlim()[1] < 2 < right.get_xlim()[1]
    shared, _ = show_curves(curves=curves, xlabel="both").axes
    assert shared.get_xlim()[1] > 2


def test_what_curves_are_compared_with_is_dashed_in_every_panel():
    panels = {"left": {"a": [0, 1]}, "right": {"a": [1, 0]}}
    for ax in show_curves([0, 1], panels, dashed={"b": [2, 3], "c": 4}).axes:
        a, b, c = ax.lines
        assert (a.get_linestyle(), b.get_linestyle(), c.get_linestyle()) == (
            "-",
            "--",
            "--",
        )
        assert b.get_color() == c.get_color() != a.get_color()
        assert [*b.get_ydata()] == [2, 3] and {*c.get_ydata()} == {4}
    [ax] = show_curves(
        curves={"a": ([0, 1], [0, 1])}, dashed={"b": ([5, 6], [0, 1])}
    ).axes
    assert [*ax.lines[1].get_xdata()] == [5, 6]


def test_as_many_lines_are_drawn_as_are_given_and_numbers_may_be_numpys():
    lines = {f"step {i}": i for i in range(5)}
    limits = {"limit": np.float32(2), "other": torch.tensor(3.0)}
    [ax] = show_curves([0, 4], {"loss": [1, 2]}, vlines=lines, dashed=limits).axes
    assert len(ax.lines) == 1 + 5 + 2
    levels = {f"level {i}": i for i in range(30)}
    [ax] = show_bars({"": [1, 2]}, "ab", baselines=levels).axes
    assert len(ax.collections) == 30


def test_curves_are_compared_with_points_and_vertical_lines():
    extra = {"points": {"data": ([1], [2])}, "vlines": {"here": 1}}
    fig = show_curves([0, 1], {"a": [0, 1]}, **extra)
    assert legend(fig) == ["data", "a", "here"]
    assert fig.axes[0].collections[0].get_offsets().tolist() == [[1, 2]]
    assert fig.axes[0].lines[-1].get_xdata() == [1, 1]


def test_the_paper_between_the_ends_of_a_range_has_the_color_of_its_curve():
    ranges = {"b": ([0, 2], [1, 4])}
    fig = show_curves([0, 1], {"a": [1, 1], "b": [0.5, 3]}, ranges=ranges)
    [band] = fig.axes[0].collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert corners == {(0, 0), (1, 2), (1, 4), (0, 1)}
    assert to_hex(band.get_facecolor()[0]) == to_hex(fig.axes[0].lines[1].get_color())
    assert band.get_alpha() < 0.5 and legend(fig) == ["a", "b"]


def ticks(axis):
    """Return what is written along an axis, within what is seen of it."""
    low, high = axis.get_view_interval()
    found = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in found if low <= place <= high]


def test_axes_are_numbered_in_full_at_places_that_were_measured():
    curve = {"a": [0.1, 1, 3, 20]}
    fig = show_curves([128, 256, 512, 1024], curve, xscale="log", yscale="log")
    fig.canvas.draw()
    assert ticks(fig.axes[0].xaxis) == ["128", "256", "512", "1,024"]
    assert ticks(fig.axes[0].yaxis) == ["0.1", "0.3", "1", "3", "10"]
    sizes = [1, 4, 16, 64, 256, 1024]
    narrow = show_curves(sizes, {name: {"a": sizes} for name in "ab"}, xscale="log")
    narrow.canvas.draw()
    assert ticks(narrow.axes[0].xaxis) == ["4", "64", "1,024"]
    epochs = show_curves(range(1, 4), {"loss": [3, 2, 1]})
    epochs.canvas.draw()
    assert ticks(epochs.axes[0].xaxis) == ["1", "2", "3"]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_legend_lies_beside_the_panels_and_on_the_paper(count):
    curves = {f"curve number {i}": [0, i] for i in range(count)}
    fig = show_curves([0, 1], {"left": curves, "right": curves})
    fig.canvas.draw()
    box = fig.legends[0].get_window_extent()
    assert not any(box.overlaps(ax.get_window_extent()) for ax in fig.axes)
    assert fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1


def test_bars_carry_their_values_and_are_compared_with_baselines():
    baselines = {"chance": 0.5, "best": [0.6, 0.9]}
    fig = show_bars({"": torch.tensor([0.25, 0.75])}, "ab", baselines=baselines)
    assert written(fig.axes[0].texts) == ["0.25", "0.75"]
    levels = []
    for collection in fig.axes[0].collections:
        levels.append([line[0, 1] for line in collection.get_segments()])
    assert levels == [pytest.approx([0.5, 0.5]), pytest.approx([0.6, 0.9])]
    assert legend(fig) == ["chance", "best"]


def test_marked_bars_are_hatched_and_the_legend_names_them():
    fig = show_bars({"": [0.2, 0.3, 0.5]}, "abc", marked={"wrong": [True, False, True]})
    assert [bool(bar.get_hatch()) for bar in fig.axes[0].patches] == [True, False, True]
    assert legend(fig) == ["wrong"]
    fig = show_bars({"": [0.2, 0.8]}, "ab", marked={"wrong": [False, False]})
    assert legend(fig) == []


@pytest.mark.parametrize("words", [["a", "b"], ["word only", "+ positions"] * 3])
def test_the_words_below_bars_do_not_touch(words):
    fig = show_bars({"left": [0.5] * len(words), "right": [1] * len(words)}, words)
    fig.canvas.draw()
    labels = fig.axes[-1].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    for one, other in itertools.pairwise(boxes):  # slanted letters need their height
        slanted = labels[0].get_rotation() == 40
        assert other.x1 - one.x1 > 10 * fig.dpi / 72 if slanted else other.x0 > one.x1


@pytest.mark.parametrize("count", [10, 13, 17, 20])
def test_many_words_below_bars_do_not_touch(count):
    fig = show_bars({"": [0.5] * count}, ["cuisiniers"] * count)
    fig.canvas.draw()
    labels = fig.axes[0].get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    slope = math.radians(labels[0].get_rotation())
    for one, other in itertools.pairwise(boxes):
        gap = (other.x1 - one.x1) * math.sin(slope)  # across the lines of writing
        assert gap > 12 * fig.dpi / 72  # letters of 10 points, and room


# --- Images


def test_images_have_a_frame_and_those_in_ink_share_a_scale():
    pale = torch.zeros(2, 2)
    pale[0, 0] = 0.5
    black = torch.zeros(4, 4)
    black[0, 0] = 1.0
    photograph = torch.rand(3, 4, 4)
    fig = show_images([pale, black, photograph], titles=["pale", "black", "photo"])
    shown = [ax.images[0].get_array() for ax in fig.axes]
    assert shown[0][0].tolist() == [[0.5] * 3, [1] * 3]
    assert shown[1][0, 0].tolist() == [0, 0, 0]
    assert np.allclose(shown[2], photograph.permute(1, 2, 0))
    assert all(ax.spines["top"].get_visible() for ax in fig.axes)
    assert not any(len(ax.get_xticks()) for ax in fig.axes)


def test_colors_lie_where_the_weights_do_and_what_is_outlined_is_one_box():
    photo = torch.rand(3, 4, 6)
    ink = torch.rand(4, 6)
    ink[0, 0] = 1
    weights = torch.tensor([[0.0, 0.4, 0.0], [0.0, 0.0, 0.0]])
    outline = torch.tensor([[False, False, True]] * 2)
    fig = show_images([photo, ink], [weights, weights], outline=[None, outline])
    photo_shown, ink_shown = (
        torch.tensor(ax.images[0].get_array()).float() for ax in fig.axes
    )
    read = weights.repeat_interleave(2, 0).repeat_interleave(2, 1) > 0
    colors = photo.permute(1, 2, 0)
    assert torch.allclose(photo_shown[read], colors[read])
    veiled = 0.5 * colors[~read].mean(dim=-1, keepdim=True).expand(-1, 3)
    assert torch.allclose(photo_shown[~read], veiled)
    assert torch.allclose(ink_shown[~read], (1 - ink[~read])[:, None].expand(-1, 3))
    red, green, blue = ink_shown[read].T
    assert torch.allclose(blue, 1 - ink[read])
    assert (red < green).all() and (green < blue).all()
    [frame] = fig.axes[1].patches
    assert frame.get_bbox().bounds == pytest.approx((3.5, -0.5, 2, 4))
    assert not fig.axes[0].patches


@pytest.mark.parametrize(
    ("show", "message"),
    [
        (lambda: show_curves([0], {}), "no curve to show"),
        (lambda: show_bars({"T = 1": [0.5, 0.3, 0.2]}, "ab"), "3 values for 2 bars in"),
        (lambda: show_bars({"T = 1": [0.5]}, "ab"), "1 values for 2 bars in 'T = 1'"),
        (lambda: show_images([]), "not alike"),
        (
            lambda: show_images(torch.zeros(2, 2, 2), [None]),
            r"\[2, 1, 2, 2, 2\]: not alike",
        ),
        (lambda: show_images(torch.rand(2, 4, 5, 3)), r"got \(4, 5, 3"),
        (lambda: show_images(255 * torch.ones(1, 3, 5, 5)), "divide bytes by 255"),
        (lambda: show_images(torch.rand(1, 4, 4), [-torch.ones(2, 2)]), "negative"),
    ],
)
def test_a_chart_of_nothing_or_of_what_does_not_fit_is_refused(show, message):
    with pytest.raises(ValueError, match=message):
        show()


# --- Labels


ODD = ["$$", r"$\x$", "$5 and $6"]
WITH_ODD_LABELS = {
    "bars": lambda: show_bars({"$$": [1] * 3}, ODD, ylabel="$$"),
    "curves": lambda: show_curves(
        [1, 2],
        {"$$": {word: [0.1, 1000] for word in ODD}, "linear": {"x": [1, 2]}},
        vlines={ODD[1]: 1},
        points={"$$": ([1], [1])},
        xlabel=ODD[2],
        yscale="log",
    ),
    "heatmaps": lambda: show_heatmaps(
        torch.eye(3)[None],
        query_labels=ODD,
        key_labels=ODD,
        titles=ODD[:1],
        outline={(0, 1)},
        outline_label="$$",
        ylabel=ODD[2],
    ),
    "images": lambda: show_images(torch.ones(3, 2, 2), titles=ODD),
}


@pytest.mark.parametrize("name", WITH_ODD_LABELS)
def test_a_label_with_dollars_is_shown_as_it_is_and_a_power_of_ten_as_one(name):
    fig = WITH_ODD_LABELS[name]()
    fig.savefig(io.BytesIO())  # which makes the ticks, too
    texts = [text for text in fig.findobj(Text) if "$" in text.get_text()]
    odd = [text for text in texts if text.get_text() in ODD]
    assert {text.get_text() for text in odd} == {*ODD}
    assert not any(text.get_parse_math() for text in odd)
    powers = [text for text in texts if text not in odd]
    assert all(text.get_parse_math() for text in powers)
    assert any("10^{2}" in text for text in written(powers)) == (name == "curves")


# --- In a notebook, and on a dark page


def stored(fig):
    """Return what a notebook stores of a figure, as an image of Pillow."""
    data, _ = DisplayFormatter().format(fig)
    content = base64.b64decode(data["image/png"])
    assert len(content) < 60_000
    return Image.open(io.BytesIO(content)).convert("RGB")


STEPS = torch.linspace(-3, 3, 49).view(7, 7)
CURVE = {"a": [1, 2, 3], "b": [2, 2, 2], "c": [1, 1, 2]}
LINES = {"dashed": {"d": [3, 2, 1], "e": 2}, "vlines": {"here": 1}}
EXAMPLES = {
    "weights": lambda: show_heatmaps(
        torch.tensor([[0.0, 0.1, 0.9], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]]),
        query_labels=WORDS[:3],
        key_labels=WORDS[:3],
        mask=causal_mask(3),
    ),
    "scale": lambda: show_heatmaps((STEPS + 3) / 6, outline={(0, 0)}, titles=["all"]),
    "scores": lambda: show_heatmaps(STEPS, scores=True),
    "curves": lambda: show_curves(range(3), CURVE, **LINES, xlabel="step"),
    "bars": lambda: show_bars({"left": [0.1, 0.9]}, "ab", baselines={"chance": 0.5}),
    "images": lambda: show_images(torch.eye(8)[None], titles=["digit"]),
}


def as_seen(color):
    """Return a color as it is: that of a light page."""
    return color


def in_the_dark(color):
    """Return a color as `invert(1) hue-rotate(180deg)`, blended into a dark page."""
    shares = np.array([0.213, 0.715, 0.072])  # of red, green and blue in what is seen
    inverted = 1 - np.array(color)
    rotated = (2 * shares @ inverted - inverted).clip(0, 1)
    return 1 - (1 - rotated) * (1 - np.array(to_rgb(DARK)))


def worst_contrast(fig, page):
    """Return the least contrast of a text with what surrounds it, on a page."""
    fig.draw_without_rendering()
    contrasts = []
    for text in fig.findobj(Text):
        ground = fig.get_facecolor()
        for outline in text.get_path_effects():
            ground = outline._gc["foreground"]
        if text.get_text():
            colors = to_rgb(text.get_color()), to_rgb(ground)
            contrasts.append(contrast(*map(page, colors)))
    return min(contrasts)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_stores_every_figure_once_on_white_and_to_the_byte(name):
    image = stored(EXAMPLES[name]())
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert image.width <= (WIDTH + 0.2) * 110
    if name in ("weights", "curves", "images"):  # of which each is drawn its own way
        assert image.tobytes() == stored(EXAMPLES[name]()).tobytes()


@pytest.mark.parametrize("page", [as_seen, in_the_dark])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_text_can_be_read_on_a_light_page_and_on_a_dark_one(name, page):
    assert worst_contrast(EXAMPLES[name](), page) >= 4.5


def test_in_the_dark_white_is_the_page_and_a_query_blue_and_a_key_orange():
    assert in_the_dark((1, 1, 1)) == pytest.approx(to_rgb(DARK))
    for name in ("query", "key", "value", "ink"):
        light, dark = PALETTE[name]
        assert in_the_dark(to_rgb(light)) == pytest.approx(to_rgb(dark), abs=0.15)
    for light, _ in CURVES:
        assert contrast(in_the_dark(to_rgb(light)), to_rgb(DARK)) > 4.5


@pytest.mark.parametrize("name", ["weights", "scores"])
def test_in_the_dark_more_is_still_more_color(name):
    colors = [to_rgb(color) for color in LIGHT_SCALES[name].split()]
    middle = len(colors) // 2 if name == "scores" else 0
    for side in (colors[middle:], colors[middle::-1]):
        away = [contrast(in_the_dark(color), to_rgb(DARK)) for color in side]
        assert away == sorted(away)


def test_what_shows_a_photograph_asks_to_stay_light_and_nothing_else_does():
    shown = DisplayFormatter()
    on_paper = torch.ones(3, 8, 8)
    on_paper[0, :4, :6] = 0.3  # turquoise, on less than half of it
    for image in (torch.rand(8, 8), on_paper):
        assert shown.format(show_images([image]))[1] == {}
    photograph = show_images(torch.rand(1, 3, 8, 8), titles=["photograph"])
    _, metadata = shown.format(photograph)
    assert metadata == {"image/png": {"needs_background": "light"}}
    _, metadata = shown.format(show_heatmaps(torch.eye(3)))
    assert metadata == {}


def test_figures_are_drawn_without_pyplot_so_that_a_notebook_shows_them_once():
    code = (
        "import sys; from tutorial_lib.plotting import show_bars; "
        "show_bars({'': [1]}, 'a')._repr_mimebundle_(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("scales", [(LIGHT_SCALES, WHITE), (DARK_SCALES, DARK)])
def test_no_weight_and_the_score_0_are_the_paper_and_more_is_more_color(scales):
    colors, paper = scales
    weights = colors["weights"].split()
    scores = colors["scores"].split()
    middle = len(scores) // 2
    assert to_rgb(weights[0]) == to_rgb(scores[middle]) == to_rgb(paper)
    for side in (weights, scores[middle:], scores[middle::-1]):
        away = [contrast(to_rgb(color), to_rgb(paper)) for color in side]
        assert away == sorted(away) and away[-1] > 10


@pytest.mark.parametrize("scores", [False, True])
def test_a_cell_of_0_is_drawn_as_the_paper_is(scores):
    fig = show_heatmaps([[0.0, 0.5, 1.0]], key_labels="abc", scores=scores)
    fig.canvas.draw()
    [ax] = heat(fig)
    pixels = np.asarray(fig.canvas.buffer_rgba())[::-1]
    x, y = ax.transData.transform((-0.3, -0.35)).astype(int)
    assert to_hex(pixels[y, x] / 255) == to_hex(WHITE)


def test_few_colors_are_enough_for_a_drawing_and_the_paper_stays_exact():
    noise = np.random.default_rng(0).integers(0, 255, (80, 80, 3), np.uint8)
    for pixels, most in ((noise // 16 * 16, 128), (noise, 256)):
        pixels[0, 0] = paper = (20, 24, 30)
        png = io.BytesIO()
        Image.fromarray(pixels).save(png, "png", dpi=(110, 110))
        few = Image.open(io.BytesIO(in_few_colors(png.getvalue()))).convert("RGB")
        assert len(few.getcolors()) <= most
        assert few.getpixel((0, 0)) == paper


def test_boxes_of_an_image_are_framed_where_they_lie():
    images = torch.rand(2, 4, 8)
    boxes = [torch.tensor([[0.25, 0.5, 0.5, 0.5], [0.75, 0.25, 0.25, 0.5]]), None]
    first, second = show_images(images, boxes=boxes).axes
    frames = [
        (*patch.get_xy(), patch.get_width(), patch.get_height())
        for patch in first.patches
    ]
    assert frames == [(-0.5, 0.5, 4.0, 2.0), (4.5, -0.5, 2.0, 2.0)]
    assert len(second.patches) == 0
