import base64
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb, to_rgba
from PIL import Image

from tutorial_lib.masks import causal_mask
from tutorial_lib.plotting import (
    show_asking,
    show_bars,
    show_curves,
    show_halves,
    show_heatmaps,
    show_images,
    show_looking_back,
    show_looks,
    show_lookup,
    show_paths,
    show_unrolled,
    show_writing,
)
from tutorial_lib.plotting.colors import (
    DARK,
    DARK_SCALES,
    LIGHT,
    LIGHT_SCALES,
    UNDEFINED,
    contrast,
    luminance,
    to_light,
)
from tutorial_lib.plotting.dark import PAPER, darkened, on_dark
from tutorial_lib.plotting.figure import DARK_PNG, draw, in_few_colors
from tutorial_lib.plotting.panels import WIDTH

WORDS = ["the", "animal", "crossed", "the", "street"]


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
    found = [patch for patch in ax.patches if not patch.get_hatch()]
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


def test_a_cell_without_a_number_is_grey_and_says_so():
    fig = show_heatmaps([[float("nan"), 0.5]])
    [ax] = heat(fig)
    assert [text.get_text() for text in ax.texts] == ["NaN", "0.50"]
    cells = ax.images[0].to_rgba(ax.images[0].get_array())
    assert to_hex(cells[0, 0]) == UNDEFINED


def test_whole_numbers_are_written_without_decimals_and_minus_is_no_hyphen():
    [ax] = heat(show_heatmaps([[-3.0, 2.0]], scores=True))
    assert [text.get_text() for text in ax.texts] == ["−3", "2"]


def test_maps_of_yes_and_no_need_no_color_bar_and_others_name_it():
    assert len(show_heatmaps(torch.eye(2)).axes) == 1
    maps = torch.rand(2, 2)
    named = (show_heatmaps(maps), show_heatmaps(maps, label="ink"))
    assert [fig.axes[-1].get_ylabel() for fig in named] == ["weight", "ink"]


def test_an_axis_without_a_name_and_labels_has_no_numbers():
    maps = torch.rand(4, 4)
    [bare] = heat(show_heatmaps(maps, xlabel="", ylabel=""))
    [named] = heat(show_heatmaps(maps))
    assert (len(bare.get_xticks()), len(bare.get_yticks())) == (0, 0)
    assert len(named.get_xticks()) > 0


def rows_of(fig):
    """Return how many panels stand in each row."""
    places = [round(ax.get_position().y0, 3) for ax in heat(fig)]
    return [len(list(group)) for _, group in itertools.groupby(places)]


@pytest.mark.parametrize(
    ("shape", "labels", "rows"),
    [
        ((3, 5, 5), WORDS, [3]),
        ((4, 5, 5), WORDS, [2, 2]),
        ((5, 5, 5), None, [3, 2]),
        ((2, 12, 12), ["animal"] * 12, [1, 1]),
        ((1, 4, 3, 3), None, [4]),
    ],
)
def test_panels_wrap_into_rows_that_leave_room_for_words(shape, labels, rows):
    fig = show_heatmaps(torch.rand(shape), query_labels=labels, key_labels=labels)
    fig.canvas.draw()
    assert rows_of(fig) == rows


@pytest.mark.parametrize("shape", [(1, 2), (2, 20), (20, 2), (3, 5, 5), (2, 4, 4, 4)])
def test_a_heatmap_is_no_wider_than_a_phone_can_show(shape):
    words = ["crossed"] * shape[-2], ["street"] * shape[-1]
    fig = show_heatmaps(torch.rand(shape), query_labels=words[0], key_labels=words[1])
    assert picture_of(fig).width <= (WIDTH + 0.2) * fig.dpi


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
    assert left.get_window_extent().y0 > right.get_window_extent().y1
    assert fig.get_figwidth() <= WIDTH


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (torch.tensor([[-0.1, 1.1]]), {}, "pass scores=True"),
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


def test_a_curve_has_the_same_color_in_every_panel():
    panels = {"left": {"a": [0, 1], "b": [1, 0]}, "right": {"b": [0, 1]}}
    left, right = show_curves([0, 1], panels).axes
    assert left.lines[1].get_color() == right.lines[0].get_color()


def ticks(axis):
    """Return what is written along an axis, within what is seen of it."""
    low, high = axis.get_view_interval()
    labels = axis.get_majorticklabels()
    written = zip(axis.get_majorticklocs(), labels, strict=True)
    return [label.get_text() for place, label in written if low <= place <= high]


def test_logarithmic_axes_are_numbered_in_full_at_the_places_that_were_measured():
    sizes = [128, 256, 512, 1024]
    fig = show_curves(
        sizes, {"a": [0.1, 1, 3, 20]}, xscale="log", yscale="log", xlabel="tokens"
    )
    fig.canvas.draw()
    [ax] = fig.axes
    assert ticks(ax.xaxis) == ["128", "256", "512", "1,024"]
    assert ticks(ax.yaxis) == ["0.1", "0.3", "1", "3", "10"]
    assert not ax.xaxis.get_minorticklocs().size + ax.yaxis.get_minorticklocs().size


def test_a_panel_too_narrow_for_all_places_keeps_the_last_and_some_others():
    sizes = [1, 4, 16, 64, 256, 1024]
    panels = {name: {"a": sizes} for name in "ab"}
    fig = show_curves(sizes, panels, xscale="log")
    fig.canvas.draw()
    assert ticks(fig.axes[0].xaxis) == ["4", "64", "1,024"]


def test_epochs_are_numbered_by_whole_numbers():
    fig = show_curves(range(1, 4), {"loss": [3, 2, 1]}, xlabel="epoch")
    fig.canvas.draw()
    assert ticks(fig.axes[0].xaxis) == ["1", "2", "3"]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_legend_lies_beside_the_panels_and_on_the_paper(count):
    curves = {f"curve number {i}": [0, i] for i in range(count)}
    fig = show_curves([0, 1], {"left": curves, "right": curves})
    fig.canvas.draw()
    [names] = fig.legends
    box = names.get_window_extent()
    assert not any(box.overlaps(ax.get_window_extent()) for ax in fig.axes)
    assert fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1


def test_bars_carry_their_values():
    fig = show_bars({"T = 1": torch.tensor([0.25, 0.75])}, ["a", "b"])
    assert [text.get_text() for text in fig.axes[0].texts] == ["0.25", "0.75"]


def test_bars_are_compared_with_a_level_for_all_or_for_each():
    marks = {"chance": 0.5, "best": [0.6, 0.9]}
    fig = show_bars({"": [0.2, 0.8]}, "ab", marks=marks)
    heights = [lines.get_segments() for lines in fig.axes[0].collections]
    assert [[line[0, 1] for line in lines] for lines in heights] == [
        pytest.approx([0.5, 0.5]),
        pytest.approx([0.6, 0.9]),
    ]
    assert legend(fig) == ["chance", "best"]


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
    "looks": lambda: show_looks(
        torch.ones(3, 2, 2), [None] * 3, found=[None] * 3, titles=ODD
    ),
    "lookup": lambda: show_lookup(
        torch.ones(3) / 3, query="$$", keys=ODD, values=ODD, output=ODD[2]
    ),
    "unrolled": lambda: show_unrolled(ODD, ODD),
    "halves": lambda: show_halves(ODD, ODD, "$$", names=ODD[:2]),
    "looking back": lambda: show_looking_back(torch.ones(3) / 3, ODD, ODD, step=0),
    "asking": lambda: show_asking(ODD[:1], {ODD[1]: (0, ODD[2], "x")}, "x", at=0),
    "writing": lambda: show_writing(ODD[:2], ODD, [0.5, 0.3, 0.2]),
    "paths": lambda: show_paths({label: ([0, 1], [0, 1]) for label in ODD}),
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


def test_a_path_s_settings_stand_beside_its_dots():
    paths = {"T": ([0, 1], [0, 1]), "p": ([0, 1], [1, 0]), "k": ([0], [0])}
    fig = show_paths(paths, settings={"T": [0.5, 1], "p": [0.7, 0.9]})
    [ax] = fig.axes
    said = {(text.get_text(), text.xy) for text in ax.texts}
    assert said == {
        ("0.5", (0, 0)),
        ("1", (1, 1)),
        ("0.7", (0, 1)),
        ("0.9", (1, 0)),
    }
    with pytest.raises(ValueError, match="zip"):
        show_paths(paths, settings={"T": [0.5]})


def test_the_powers_of_a_logarithmic_scale_are_mathematics():
    fig = show_curves([1, 2], {"loss": [1e-5, 1000.0]}, yscale="log")
    fig.savefig(io.BytesIO())
    ticks = fig.axes[0].get_yticklabels()
    powers = [tick for tick in ticks if "^" in tick.get_text()]
    assert "$10^{-4}$" in [tick.get_text() for tick in powers]
    assert all(tick.get_parse_math() for tick in powers)
    assert len(powers) == len(ticks)  # one notation for all


@pytest.mark.parametrize("words", [["a", "b"], ["word only", "+ positions"] * 3])
def test_the_words_below_bars_do_not_touch(words):
    fig = show_bars({"left": [0.5] * len(words), "right": [1] * len(words)}, words)
    fig.canvas.draw()
    boxes = [label.get_window_extent() for label in fig.axes[-1].get_xticklabels()]
    slanted = fig.axes[-1].get_xticklabels()[0].get_rotation() == 40
    for one, other in itertools.pairwise(boxes):  # slanted letters need their height
        assert other.x1 - one.x1 > 10 * fig.dpi / 72 if slanted else other.x0 > one.x1


def test_images_share_a_scale_and_have_a_frame():
    pale, black = torch.zeros(2, 2), torch.zeros(4, 4)
    pale[0, 0], black[0, 0] = 0.5, 1.0
    fig = show_images([pale, black], titles=["pale", "black"])
    assert [ax.images[0].get_clim() for ax in fig.axes] == [(0, 1), (0, 1)]
    assert all(ax.spines["top"].get_visible() for ax in fig.axes)
    assert not any(len(ax.get_xticks()) for ax in fig.axes)


def test_an_image_with_three_channels_is_colored():
    photograph = torch.rand(3, 4, 5)
    [ax] = show_images(photograph[None]).axes
    assert np.allclose(ax.images[0].get_array(), photograph.permute(1, 2, 0))


@pytest.mark.parametrize(
    ("show", "message"),
    [
        (lambda: show_curves([0], {}), "no curve to show"),
        (lambda: show_bars({"T = 1": [0.5]}, "ab"), "1 bars for 2 labels in 'T = 1'"),
        (lambda: show_images([]), "no image to show"),
        (lambda: show_images(torch.rand(2, 4, 5, 3)), r"width\), got \(4, 5, 3"),
    ],
)
def test_a_chart_of_nothing_or_of_what_does_not_fit_is_refused(show, message):
    with pytest.raises(ValueError, match=message):
        show()


# --- On white paper and on dark


def picture_of(fig, kind="image/png"):
    """Return what a notebook stores of a figure, as an image of Pillow."""
    content = base64.b64decode(fig._repr_mimebundle_()[kind])
    return Image.open(io.BytesIO(content)).convert("RGB")


def examples():
    """Return a figure of each kind, by its name."""
    weights = torch.tensor([[0.0, 0.1, 0.9], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]])
    labels = {"query_labels": WORDS[:3], "key_labels": WORDS[:3]}
    curves = {"a": [1, 2, 3], "true": [3, 2, 1], "b": [2, 2, 2]}
    steps = torch.linspace(-3, 3, 49).view(7, 7)
    return {
        "weights": show_heatmaps(weights, **labels, mask=causal_mask(3)),
        "scale": show_heatmaps((steps + 3) / 6, outline={(0, 0)}, titles=["all"]),
        "scores": show_heatmaps(steps, scores=True),
        "curves": show_curves(range(3), curves, marks={"here": 1}, xlabel="step"),
        "bars": show_bars({"left": [0.1, 0.9]}, "ab", marks={"chance": 0.5}),
        "images": show_images(torch.eye(8)[None], titles=["digit"]),
    }


@pytest.mark.parametrize("name", list(examples()))
def test_a_notebook_stores_every_figure_on_white_paper_and_on_dark(name):
    bundle = examples()[name]._repr_mimebundle_()
    assert list(bundle) == ["image/png", DARK_PNG]
    light, dark = (base64.b64decode(content) for content in bundle.values())
    assert max(len(light), len(dark)) < 60_000
    light, dark = (Image.open(io.BytesIO(png)).convert("RGB") for png in (light, dark))
    assert light.size == dark.size and light.width <= (WIDTH + 0.2) * 110
    assert light.getpixel((0, 0)) == (255, 255, 255)
    assert dark.getpixel((0, 0)) == tuple(round(255 * c) for c in to_rgb(DARK["paper"]))
    assert examples()[name]._repr_mimebundle_() == bundle  # to the byte


def test_jupyter_shows_both_and_keeps_the_dark_one_where_pyplot_takes_the_other():
    import matplotlib.figure
    from IPython.core.formatters import DisplayFormatter

    shown, fig = DisplayFormatter(), show_bars({"": [1]}, "a")
    data, _ = shown.format(fig)
    assert set(data) == {"image/png", DARK_PNG, "text/plain"}
    shown.formatters["image/png"].for_type(matplotlib.figure.Figure, lambda _: b"own")
    own, _ = shown.format(fig)
    assert own["image/png"] == b"own" and own[DARK_PNG] == data[DARK_PNG]


def test_figures_are_drawn_without_pyplot_so_that_a_notebook_shows_them_once():
    code = (
        "import sys; from tutorial_lib.plotting import show_bars; "
        "show_bars({'': [1]}, 'a')._repr_mimebundle_(); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def brightness(color):
    return luminance(to_light(to_rgb(color)))


@pytest.mark.parametrize(
    ("scales", "paper"), [(LIGHT_SCALES, LIGHT["paper"]), (DARK_SCALES, PAPER)]
)
def test_no_weight_and_the_score_0_are_the_paper_and_more_is_more_color(scales, paper):
    weights, scores = scales["weights"].split(), scales["scores"].split()
    middle = len(scores) // 2
    assert to_rgb(weights[0]) == to_rgb(scores[middle]) == to_rgb(paper)
    for colors in (weights, scores[middle:], scores[middle::-1]):
        away = [contrast(to_rgb(color), to_rgb(paper)) for color in colors]
        assert away == sorted(away) and away[-1] > 10


def cell_colors(fig):
    """Draw a figure and return the colors in the upper left corners of its cells."""
    fig.canvas.draw()
    [ax] = heat(fig)
    pixels = np.asarray(fig.canvas.buffer_rgba())[::-1]
    rows, columns = ax.images[0].get_array().shape
    corners = [(j - 0.3, i - 0.35) for i in range(rows) for j in range(columns)]
    places = ax.transData.transform(corners).astype(int)
    return [to_hex(pixels[y, x] / 255) for x, y in places]


@pytest.mark.parametrize("scores", [False, True])
def test_a_cell_of_0_is_drawn_as_the_paper_is(scores):
    fig = show_heatmaps([[0.0, 0.5, 1.0]], key_labels="abc", scores=scores)
    assert cell_colors(fig)[0] == "#ffffff"
    with on_dark(fig):
        nothing, _, everything = cell_colors(fig)
        assert nothing == PAPER
        last = DARK_SCALES["scores" if scores else "weights"].split()[-1]
        assert everything == last
        assert to_hex(fig.axes[-1].collections[-1].get_cmap()(1.0)) == last


def written(fig):
    """Pair the color of every text of a figure with that of what lies below it."""
    from matplotlib.text import Text

    below = {}
    for ax in heat(fig):
        cells = ax.images[0].to_rgba(ax.images[0].get_array())
        for text in ax.texts:
            x, y = text.get_position()
            below[text] = cells[round(y), round(x)]
    fig.draw_without_rendering()
    texts = [text for text in fig.findobj(Text) if text.get_text()]
    paper = fig.get_facecolor()
    return [(to_rgb(t.get_color()), to_rgb(below.get(t, paper))) for t in texts]


@pytest.mark.parametrize("name", list(examples()))
def test_everything_written_can_be_read_on_either_paper(name):
    fig = examples()[name]
    assert written(fig) and min(contrast(*pair) for pair in written(fig)) >= 4.5
    with on_dark(fig):
        assert min(contrast(*pair) for pair in written(fig)) >= 4.5


def test_a_rule_parts_the_queries_above_it_from_the_others():
    fig = show_heatmaps(torch.eye(4)[None].expand(2, 4, 4), rule=3)
    assert [ax.lines[0].get_ydata()[0] for ax in fig.axes] == [2.5, 2.5]


@pytest.mark.parametrize("name", ["query", "key", "value", "ink", "quiet", "line"])
def test_a_color_of_the_palette_becomes_its_twin(name):
    assert darkened(LIGHT[name]) == pytest.approx(to_rgba(DARK[name]))


@pytest.mark.parametrize("color", ["#7e22ce", "#0e7490", "#a16207"])
def test_another_color_keeps_on_dark_the_contrast_that_it_had_on_white(color):
    expected = contrast(to_rgb(color), (1, 1, 1))
    dark = contrast(darkened(color)[:3], to_rgb(PAPER))
    assert dark == pytest.approx(expected, rel=0.01)


def test_paper_and_ink_change_places_and_transparency_stays():
    assert darkened("white") == pytest.approx(to_rgba(PAPER))
    assert darkened("black") == pytest.approx((1, 1, 1, 1))
    assert darkened((0, 0, 0, 0.3))[3] == 0.3
    assert len(darkened(np.ones((2, 4)))) == 2


def test_photographs_and_what_is_drawn_on_them_stay_as_they_are():
    fig = show_images(torch.rand(1, 3, 8, 8), titles=["photograph"])
    [ax] = fig.axes
    ax.text(1, 1, "on it", color="white")
    before = np.asarray(ax.images[0].get_array())
    with on_dark(fig):
        assert (ax.images[0].get_array() == before).all()
        assert ax.images[0].get_cmap().name == "Greys"
        assert ax.texts[0].get_color() == "white"
        assert to_rgba(ax.title.get_color()) == to_rgba(DARK["ink"])


@pytest.mark.parametrize("name", list(examples()))
def test_a_figure_is_as_it_was_after_it_was_drawn_dark(name):
    fig = examples()[name]
    draw(fig, "png", dpi=60)  # a second layout moves panels by parts of a pixel
    before = draw(fig, "png", dpi=60)
    assert draw(fig, "png", dpi=60, dark=True) != before
    assert draw(fig, "png", dpi=60) == before


def test_few_colors_are_enough_for_a_drawing_and_the_paper_stays_exact():
    noise = np.random.default_rng(0).integers(0, 255, (80, 80, 3), np.uint8)
    for pixels, most in ((noise // 16 * 16, 128), (noise, 256)):
        pixels[0, 0] = paper = (20, 24, 30)
        png = io.BytesIO()
        Image.fromarray(pixels).save(png, "png", dpi=(110, 110))
        few = Image.open(io.BytesIO(in_few_colors(png.getvalue()))).convert("RGB")
        assert len(few.getcolors()) <= most
        assert few.getpixel((0, 0)) == paper


# --- Looks


@pytest.mark.parametrize("colored", [False, True])
def test_an_image_is_as_it_is_where_the_largest_weight_lies_and_veiled_elsewhere(
    colored,
):
    image = torch.rand(3, 4, 6) if colored else torch.rand(4, 6)
    weights = torch.tensor([[0.1, 0.4, 0.0], [0.2, 0.1, 0.2]])
    fig = show_looks([image, image], [weights, None], titles=["a", "b"])
    faded, alone = (torch.as_tensor(ax.images[0].get_array()) for ax in fig.axes)
    colors = image.permute(1, 2, 0) if colored else 1 - image[..., None]
    assert torch.allclose(alone.float(), colors.expand(4, 6, 3))
    shares = (weights / 0.4).repeat_interleave(2, 0).repeat_interleave(2, 1)
    expected = 0.5 + (0.22 + 0.78 * shares[..., None]) * (colors - 0.5)
    assert torch.allclose(faded.float(), expected.expand(4, 6, 3), atol=1e-6)


def test_without_a_veil_colors_lie_where_the_weights_do():
    photo, ink = torch.rand(3, 4, 6), torch.rand(4, 6)
    weights = torch.tensor([[0.0, 0.4, 0.0], [0.0, 0.0, 0.0]])
    fig = show_looks([photo, ink], [weights, weights], veiled=False)
    photo_shown, ink_shown = (
        torch.as_tensor(ax.images[0].get_array()).float() for ax in fig.axes
    )
    read = torch.zeros(4, 6, dtype=torch.bool)
    read[:2, 2:4] = True
    colors = photo.permute(1, 2, 0)
    assert torch.allclose(photo_shown[read], colors[read])
    pale = 0.5 + 0.5 * colors[~read].mean(dim=-1, keepdim=True).expand(-1, 3)
    assert torch.allclose(photo_shown[~read], pale)
    red, green, blue = ink_shown.unbind(dim=-1)
    assert torch.allclose(ink_shown[~read], (1 - ink[~read])[:, None].expand(-1, 3))
    assert torch.allclose(blue, 1 - ink)
    assert (red[read] < green[read]).all() and (green[read] < blue[read]).all()


def test_what_is_to_be_found_is_framed_as_one_box():
    found = torch.zeros(3, 3, dtype=torch.bool)
    found[1:, 2] = True
    fig = show_looks([torch.zeros(6, 6)], [None], found=[found])
    [frame] = fig.axes[0].patches
    assert frame.get_bbox().bounds == pytest.approx((3.5, 1.5, 2, 4))


def test_looks_without_a_map_for_each_image_are_refused():
    with pytest.raises(ValueError, match=r"2 images need as many weights, .* got 1"):
        show_looks(torch.zeros(2, 2, 2), [None])
