"""Pictures of ideas: what stands in them, where, and in which color."""

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle, Wedge

from tutorial_lib.plotting import (
    show_asking,
    show_block,
    show_halves,
    show_heads,
    show_kernel,
    show_levels,
    show_looking_back,
    show_lookup,
    show_masks,
    show_question,
    show_scaled_dot_product,
    show_self_attention,
    show_turning,
    show_unrolled,
    show_vision_transformer,
    show_writing,
)
from tutorial_lib.plotting.colors import DARK, LIGHT, contrast
from tutorial_lib.plotting.dark import on_dark
from tutorial_lib.plotting.figure import DARK_PNG
from tutorial_lib.plotting.panels import WIDTH
from tutorial_lib.plotting.pictures import Box, Picture

SENTENCE = ["the", "animal", "slept", "for", "it", "was"]
WEIGHTS = torch.tensor([0.05, 0.62, 0.08, 0.05, 0.15, 0.05])


def lookup(**texts):
    two = {"query": "q?", "keys": ["a", "b"], "values": ["x", "y"], "output": "o"}
    return show_lookup(torch.tensor([0.1, 0.9]), **{**two, **texts})


def product(query=0):
    queries, keys, values = torch.eye(3), torch.ones(4, 3).tril(), torch.ones(4, 2)
    return show_scaled_dot_product(queries, keys, values, query=query)


def masks(**others):
    two = {"all": torch.ones(4, 4).bool(), "past": torch.ones(4, 4).tril().bool()}
    return show_masks(two | others, ["the", "cat", "sat", "up"], query=1)


def kernel(**numbers):
    two = {"keys": torch.tensor([1.0, 4.0]), "values": torch.tensor([3.0, 5.0])}
    return show_kernel(**{**two, "query": 2, "width": 1.0, **numbers})


def writing():
    return show_writing(["<bos>", "it"], ["was", "slept", "is"], [0.5, 0.3, 0.1])


def halves():
    source, target = ["the", "bird", "sleeps"], ["<bos>", "l'", "oiseau", "ne"]
    return show_halves(source, target, "dort", names=["BERT", "GPT"])


def looking_back(step=1):
    weights = torch.tensor([0.1, 0.1, 0.7, 0.1])
    source, target = ["the", "black", "cat", "sleeps"], ["le", "chat", "noir"]
    return show_looking_back(weights, source, target, step=step)


def heads(words=("dog", "gave", "a", "bone")):
    looks = torch.tensor([[0.8, 0.1, 0.1, 0.0], [0.1, 0.1, 0.1, 0.7]])
    return show_heads(looks, words, query=1)


def asking():
    changes = {"exchange": (2, "ran", "no"), "cover": (0, "▢", "yes")}
    return show_asking(SENTENCE, changes, "yes", at=4)


PICTURES = {
    "lookup": lookup,
    "crowded lookup": lambda: lookup(keys=["Mississippi", "b"], values=["2850", "y"]),
    "kernel": kernel,
    "kernel beyond the keys": lambda: kernel(query=4.9, key="km {:g}", value="{:g} m"),
    "masks": masks,
    "product": product,
    "self-attention": lambda: show_self_attention(WEIGHTS, SENTENCE, query=4),
    "heads": lambda: heads(),
    "unrolled": lambda: show_unrolled(SENTENCE[:4], ["il", "dormait"]),
    "looking back": lambda: looking_back(),
    "writing": lambda: writing(),
    "asking": lambda: asking(),
    "turning": lambda: show_turning([(3, 1), (10, 8)], degrees=[60, 25, 12]),
    "halves": lambda: halves(),
    "block": lambda: show_block(WEIGHTS, SENTENCE, query=4),
}


def texts(fig):
    """Map each text that stands once to its place, and others to several."""
    found = {}
    for text in fig.axes[0].texts:
        found.setdefault(text.get_text(), []).append(text.get_position())
    return found


def arrows(fig, color):
    """Return the arrows of a color as (x, y, end x, end y, width), in inches."""
    found = []
    for patch in fig.axes[0].patches:
        if (
            isinstance(patch, FancyArrowPatch)
            and to_hex(patch.get_ec()) == LIGHT[color]
        ):
            line = patch.get_path().vertices
            end = line[3] if len(line) in (4, 8) else line[1]  # a curve, or straight
            found.append((*line[0], *end, patch.get_linewidth()))
    return found


@pytest.mark.parametrize("name", list(PICTURES))
def test_a_picture_is_as_wide_as_a_phone_can_show_and_all_in_it_is_on_the_paper(name):
    fig = PICTURES[name]()
    fig.canvas.draw()
    assert fig.get_figwidth() == WIDTH
    for text in fig.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= fig.bbox.x1, text
        assert box.y0 >= 0 and box.y1 <= fig.bbox.y1, text
    assert fig._repr_mimebundle_() == PICTURES[name]()._repr_mimebundle_()
    assert DARK_PNG in fig._repr_mimebundle_()


@pytest.mark.parametrize("name", list(PICTURES))
def test_words_do_not_touch_each_other_and_are_large_enough_for_a_phone(name):
    fig = PICTURES[name]()
    fig.canvas.draw()
    boxes = [text.get_window_extent() for text in fig.axes[0].texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert min(text.get_size() for text in fig.axes[0].texts) >= 8


def ground(fig, text):
    """Return the color below a text: that of the washes over the paper."""
    below = np.array(to_rgb(fig.get_facecolor()))
    place = fig.axes[0].transData.transform(text.get_position())
    for patch in fig.axes[0].patches:
        if isinstance(patch, FancyBboxPatch) and patch.contains_point(place):
            *wash, opacity = patch.get_facecolor()
            below = below * (1 - opacity) + np.array(wash) * opacity
    return below


@pytest.mark.parametrize("name", list(PICTURES))
def test_every_word_can_be_read_on_either_paper(name):
    def worst(fig):
        pairs = [(to_rgb(t.get_color()), ground(fig, t)) for t in fig.axes[0].texts]
        return min(contrast(*pair) for pair in pairs)

    fig = PICTURES[name]()
    assert worst(fig) >= 4.5
    with on_dark(fig):
        assert worst(fig) >= 4.5


def test_a_lookup_shows_every_key_value_and_weight():
    found = texts(lookup())
    assert {"q?", "a", "b", "x", "y", "o", "0.10", "0.90"} <= set(found)
    assert {"query", "keys", "weights", "values", "output"} <= set(found)


def test_lines_of_a_lookup_are_as_thick_as_the_weights_from_query_to_output():
    fig = lookup()
    [[query], [output], *columns] = (texts(fig)[name] for name in ("q?", "o", *"abxy"))
    (a, b, x, y) = (place[0][0] for place in columns)
    looks, reads = arrows(fig, "query"), arrows(fig, "value")
    assert [line[0] for line in looks] == pytest.approx([query[0]] * 2)
    assert [line[2] for line in looks] == pytest.approx([a, b])
    assert [line[0] for line in reads] == pytest.approx([x, y])
    assert [line[2] for line in reads] == pytest.approx([output[0]] * 2)
    for light, heavy in (looks, reads):
        assert heavy[-1] - light[-1] == pytest.approx(8 * (0.9 - 0.1))


def test_the_same_colors_mean_query_key_and_value_in_every_picture_and_in_the_dark():
    fig = lookup()
    edges = {"q?": "query", "a": "key", "x": "value", "o": "value"}

    def edge_of(word):
        place = fig.axes[0].transData.transform(texts(fig)[word][0])
        patches = [p for p in fig.axes[0].patches if isinstance(p, FancyBboxPatch)]
        [*_, top] = [patch for patch in patches if patch.contains_point(place)]
        return to_hex(top.get_edgecolor())

    assert {word: edge_of(word) for word in edges} == {
        word: LIGHT[name] for word, name in edges.items()
    }
    with on_dark(fig):
        assert {word: edge_of(word) for word in edges} == {
            word: DARK[name] for word, name in edges.items()
        }


def cells(fig, color):
    """Return how full the cells of a color are, in the order they were drawn."""
    found = [p for p in fig.axes[0].patches if isinstance(p, Rectangle)]
    edges = [(to_hex(p.get_ec()), p.get_facecolor()[3]) for p in found]
    return [full for edge, full in edges if edge == LIGHT[color]]


def test_the_matrices_of_a_product_have_their_shapes_and_numbers():
    fig = product(query=1)
    found = texts(fig)
    shapes = {"(3, 3)": 1, "(4, 2)": 1, "(3, 4)": 3, "(3, 2)": 1}
    assert {text: len(found[text]) for text in shapes} == shapes
    assert {"queries", "keysᵀ", "scores", "weights", "values", "outputs"} <= set(found)
    assert {r"÷ $\sqrt{d_k}$", "softmax"} <= set(found)
    queries = cells(fig, "query")[:9]
    assert queries == pytest.approx([0.35, 0, 0, 0, 1, 0, 0, 0, 0.35])
    weights = cells(fig, "query")[9:]
    exact = torch.softmax(torch.ones(4, 3).tril().T / math.sqrt(3), dim=-1)
    strength = torch.tensor([[0.35], [1.0], [0.35]])
    assert weights == pytest.approx((exact / exact.max() * strength).flatten().tolist())


def test_in_self_attention_one_query_meets_all_keys_and_the_values_come_back_to_it():
    fig = show_self_attention(WEIGHTS, SENTENCE, query=4)
    found = texts(fig)
    assert all(len(found[word]) == 2 for word in SENTENCE)
    assert [len(found[name]) for name in "qkv"] == [6, 6, 6]
    asker = found["it"][0][0]
    looks, reads = arrows(fig, "query"), arrows(fig, "value")
    assert {round(line[0], 3) for line in looks} == {round(asker, 3)}
    assert {round(line[2], 3) for line in reads} == {round(asker, 3)}
    keys, values = ([x for x, _ in found[name]] for name in "kv")
    assert [line[2] for line in looks] == pytest.approx(keys)
    assert [line[0] for line in reads] == pytest.approx(values)
    widths = [line[-1] for line in looks]
    assert np.argsort(widths).tolist() == np.argsort(WEIGHTS.numpy()).tolist()


def test_in_a_block_every_stream_runs_through_and_one_query_looks_by_its_weights():
    fig = show_block(WEIGHTS, SENTENCE, query=4)
    found = texts(fig)
    assert all(len(found[word]) == 2 for word in SENTENCE)  # in and out
    assert len(found["+"]) == 2 * len(SENTENCE)
    streams = arrows(fig, "key")
    assert len(streams) == len(SENTENCE)
    assert all(line[0] == line[2] for line in streams)
    looks = arrows(fig, "query")
    assert len(looks) == len(SENTENCE) ** 2
    asker = looks[4 * len(SENTENCE) : 5 * len(SENTENCE)]
    assert len({round(line[2], 3) for line in asker}) == 1
    widths = [line[-1] for line in asker]
    assert np.argsort(widths).tolist() == np.argsort(WEIGHTS.numpy()).tolist()


def test_who_writes_looks_back_and_draws_what_stands_at_the_end():
    fig = writing()
    found = texts(fig)
    states = [x for x, _ in found["h"]]
    looks = arrows(fig, "query")
    assert len(looks) == 1 + 2
    assert all(line[0] <= line[2] + 1e-6 for line in looks)  # never from what follows
    (next_token, choice) = sorted(found["was"], key=lambda place: place[1])
    assert next_token[0] > found["it"][0][0]
    shares = [line for line in arrows(fig, "value") if line[0] == states[-1]]
    assert len(shares) == 3
    widest = max(shares, key=lambda line: line[-1])
    assert widest[2] == pytest.approx(choice[0])


def test_an_unrolled_decoder_begins_from_the_last_state_of_the_encoder():
    fig = show_unrolled(["she", "sleeps"], ["elle", "dort"])
    found = texts(fig)
    assert [len(found[name]) for name in "hcs"] == [2, 1, 4]
    [(card, _)] = found["c"]
    read, states = ([x for x, _ in found[name]] for name in "hs")
    into = [line for line in arrows(fig, "key") if line[3] > 1.5]
    assert [line[0:3:2] for line in into] == [pytest.approx((read[-1], card))]
    given = [line[0:3:2] for line in arrows(fig, "value")]
    assert given == [pytest.approx((card, states[0]))]
    for color, row in (("key", read), ("query", states)):  # from left to right
        along = [line for line in arrows(fig, color) if line[1] == line[3]]
        starts = [x + 0.14 for x in row[:-1]]
        assert [line[0] for line in along] == pytest.approx(starts, abs=0.05)


def test_an_unrolled_decoder_reads_what_it_wrote_one_place_later():
    fig = show_unrolled(["she", "sleeps"], ["elle", "dort"])
    found = texts(fig)
    states = [x for x, _ in found["s"]]
    words = ("<bos>", "elle", "dort", "<eos>")
    assert [found[word][0][0] for word in words] == states
    lines = [line for line in arrows(fig, "quiet") if line[1] > 2.5]
    read = [line for line in lines if line[0] != line[2]]
    assert [line[0] for line in read] == pytest.approx(states[:-1], abs=0.3)
    assert [line[2] for line in read] == pytest.approx(states[1:], abs=0.2)
    writes = [line[0] for line in lines if line[0] == line[2]]
    assert writes == pytest.approx(states[1:])


def test_the_half_that_reads_sees_everything_and_the_other_its_past():
    fig = halves()
    found = texts(fig)
    assert [len(found[name]) for name in "hs"] == [3, 4]
    assert len(arrows(fig, "key")) == 3 * 3  # from every word to every row
    back = arrows(fig, "query")
    assert len(back) == 1 + 2 + 3 + 4
    assert all(start <= end + 1e-6 for start, _, end, *_ in back)


def test_the_newest_word_looks_across_at_every_row_and_writes_the_next():
    fig = halves()
    found = texts(fig)
    *across, writes = arrows(fig, "value")
    assert len(across) == 3
    newest = max(found["s"])[0]
    assert all(line[2] == pytest.approx(newest) for line in across)
    assert writes[2:4] == pytest.approx(found["dort"][0], abs=0.2)
    [cut] = [line.get_xdata()[0] for line in fig.axes[0].lines]
    assert found["BERT"][0][0] < cut < found["GPT"][0][0]
    assert max(x for x, _ in found["h"]) < cut < found["s"][0][0]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_look_back_is_asked_by_the_state_before_a_word_and_read_by_its_own(step):
    found = texts(looking_back(step))
    before, own = found["s"][step][0], found["s"][step + 1][0]
    [(context, _)] = found["c"]
    memory = [x for x, _ in found["h"]]
    asked = [line for line in arrows(looking_back(step), "query") if line[3] < 2]
    assert [line[0] for line in asked] == pytest.approx([before] * 4)
    assert [line[2] for line in asked] == pytest.approx(memory)
    *read, given = arrows(looking_back(step), "value")
    assert [line[0] for line in read] == pytest.approx(memory)
    assert [line[2] for line in read] == pytest.approx([context] * 4)
    assert (
        max(read, key=lambda line: line[-1])[0]
        == max(asked, key=lambda line: line[-1])[2]
    )
    assert (given[0], given[2]) == pytest.approx((context, own))
    assert own == found[["le", "chat", "noir"][step]][0][0] == pytest.approx(context)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_no_weight_of_a_look_back_stands_on_its_own_lines(step):
    fig = looking_back(step)
    fig.canvas.draw()
    ax = fig.axes[0]
    memory = dict.fromkeys(x for x, _ in texts(fig)["h"])
    numbers = [text for text in ax.texts if text.get_text().startswith("0.")]
    for x, number in zip(memory, numbers, strict=True):
        box = number.get_window_extent().transformed(ax.transData.inverted())
        assert min(abs(box.x0 - x), abs(box.x1 - x)) > 0.1
        assert box.x1 < x or box.x0 > x


def test_a_look_back_needs_a_weight_for_each_word_and_a_step_that_writes():
    with pytest.raises(ValueError, match="4 weights for 2 source words"):
        show_looking_back(torch.ones(4), ["a", "b"], ["c"], step=0)
    with pytest.raises(ValueError, match="no word 3 of 3"):
        looking_back(3)


def test_a_changed_text_has_another_word_in_one_place():
    found = texts(asking())
    assert len(found["ran"]) == 1 and len(found["animal"]) == 3
    assert found["ran"][0][0] == found["slept"][0][0] == found["slept"][1][0]
    assert len(found["yes"]) == 2 and len(found["no"]) == 1
    assert {"as it is", "exchange", "cover"} <= found.keys()


def test_every_answer_stands_under_the_word_that_is_asked_for():
    found, led = texts(asking()), arrows(asking(), "value")
    [place] = {x for x, _ in found["it"]}
    assert [x for x, _ in found["yes"] + found["no"]] == pytest.approx([place] * 3)
    assert [line[0] for line in led] == pytest.approx([place] * 3)
    assert [line[2] for line in led] == pytest.approx([place] * 3)


def test_a_question_leads_to_every_patch_and_from_it_to_the_answer_by_weight():
    weights = [0.1, 0.6, 0.2, 0.1]
    image = torch.rand(3, 4, 4)
    fig = show_question(image, weights, question="What color?", answer="red")
    found = texts(fig)
    [(x, _)], [(answer, _)] = found["What color?"], found["red"]
    asked, read = arrows(fig, "query"), arrows(fig, "value")
    assert [line[0] for line in asked] == pytest.approx([x] * 4)
    assert [line[2] for line in read] == pytest.approx([answer] * 4)
    assert [line[2] for line in asked] == pytest.approx([line[0] for line in read])
    assert len({round(line[2], 3) for line in asked}) == 2  # columns of patches
    assert len(fig.axes) == 5


def test_an_image_becomes_tokens_of_which_the_first_says_what_it_is():
    image = torch.rand(3, 6, 6)
    fig = show_vision_transformer(image, answer="tower", rows=2)
    found = texts(fig)
    numbers = [found[str(i)][0][0] for i in range(5)]
    assert numbers == sorted(numbers) and len(found["h"]) == 5
    assert found["?"][0][0] == pytest.approx(numbers[0])
    shown = [ax.images[0].get_array() for ax in fig.axes[1:]]
    assert len(shown) == 8  # four patches, and the same ones in a row
    patches = image.unfold(1, 3, 3).unfold(2, 3, 3).flatten(1, 2)  # (color, patch, …)
    for i in range(4):
        for part in (shown[i], shown[4 + i]):
            assert torch.tensor(part).permute(2, 0, 1).allclose(patches[:, i])
    looks = [line for line in arrows(fig, "query") if line[1] != line[3]]
    assert len(looks) == 25 and "tower" in found


def test_every_patch_of_the_row_becomes_a_vector_and_no_line_crosses_the_image():
    image = torch.ones(3, 4, 4)
    image[:, :1, 2:] = 0.5  # the upper half of the second patch is grey
    fig = show_vision_transformer(image, answer="tower", rows=2)
    cells = [p for p in fig.axes[0].patches if isinstance(p, Rectangle)]
    strong = [round(cell.get_facecolor()[3], 2) for cell in cells]
    assert strong == [0] * 4 + [1, 1, 0, 0] + [0] * 8
    cut, *maps = sorted(arrows(fig, "quiet"), key=lambda line: line[1])
    assert len(maps) == 4 and cut[1] > 1.6  # the image ends there
    places = [texts(fig)[str(i)][0][0] for i in range(1, 5)]
    assert sorted(line[0] for line in maps) == pytest.approx(places)
    assert all(line[0] == pytest.approx(line[2]) for line in maps)


@pytest.mark.parametrize(
    ("show", "message"),
    [
        (
            lambda: show_question(torch.ones(3, 4, 4), [1, 0], question="", answer=""),
            "2 weights are no square of patches",
        ),
        (
            lambda: show_vision_transformer(torch.ones(3, 5, 5), answer="", rows=5),
            "rows must be 2 to 4",
        ),
        (lambda: lookup(keys=["a"]), "2 weights for 1 keys"),
        (lambda: show_block(WEIGHTS, ["a"], query=0), "6 weights for 1 tokens"),
        (lambda: show_writing(["a"], ["b"], [0.5, 0.5]), "2 weights for 1 words"),
        (lambda: show_asking(["a"], {"x": (1, "b", "c")}, "d", at=0), "no such place"),
        (lambda: lookup(values="xyz"), "2 weights for 3 values"),
        (lambda: show_self_attention(WEIGHTS, SENTENCE[1:], query=0), "for 5 tokens"),
        (lambda: show_self_attention(WEIGHTS, SENTENCE, query=6), "no token 6"),
        (
            lambda: show_scaled_dot_product(torch.eye(2), torch.eye(3), torch.eye(3)),
            "must end in the sizes 2 and 2",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_in_a_sentence(show, message):
    with pytest.raises(ValueError, match=message):
        show()


# --- What pictures are drawn with


def test_a_row_of_long_words_stays_between_its_ends_and_its_boxes_apart():
    picture = Picture(4.0, 1.0)
    boxes = picture.row(["convolutional", "an"] * 4, 0.5, "key", left=0.0, right=4.0)
    edges = [(box.left[0], box.right[0]) for box in boxes]
    assert edges[0][0] >= 0 and edges[-1][1] <= 4
    assert all(one[1] < other[0] for one, other in itertools.pairwise(edges))
    picture.figure.canvas.draw()
    for text, (left, right) in zip(picture.ax.texts, edges, strict=True):
        box = text.get_window_extent().transformed(picture.ax.transData.inverted())
        assert left < box.x0 < box.x1 < right


def test_an_arrow_between_neighbors_goes_over_and_its_thickness_is_the_weight():
    picture = Picture(4.0, 2.0)
    for weight in (0.0, 1.0):
        picture.arrow((3, 1), (1, 1), "query", weight=weight)
    thin, thick = (patch.get_linewidth() for patch in picture.ax.patches)
    assert thick - thin == 8
    assert picture.ax.patches[0].get_path().vertices[1, 1] < 1  # y points down


def test_the_hands_of_a_clock_turn_with_the_sun_from_twelve():
    picture = Picture(2.0, 2.0)
    picture.clock(1, 1, 0.5, {"query": (0, "query"), "key": (90, "key")})
    hands = {
        to_hex(line.get_color()): line.get_xydata()[1] for line in picture.ax.lines
    }
    assert hands[LIGHT["query"]] == pytest.approx([1, 1 - 0.85 * 0.5])
    assert hands[LIGHT["key"]] == pytest.approx([1 + 0.85 * 0.5, 1])


@pytest.mark.parametrize("channels", [None, 3])
def test_patches_are_pieces_of_the_image_row_by_row(channels):
    image = torch.rand(4, 4) if channels is None else torch.rand(channels, 4, 4)
    picture = Picture(2.0, 1.5)
    places = picture.patches(Box(1.0, 0.75, 1.0, 1.0), image, 2)
    assert [(place.x, place.y) for place in places] == [
        (0.75, 0.5),
        (1.25, 0.5),
        (0.75, 1.0),
        (1.25, 1.0),
    ]
    _, *axes = picture.figure.axes
    piece = image[..., :2, 2:].numpy()
    shown = piece if channels is None else piece.transpose(1, 2, 0)
    assert np.allclose(axes[1].images[0].get_array(), shown)
    corner = axes[1].get_position().extents * [2, 1.5, 2, 1.5]
    assert corner == pytest.approx([1.25 - 0.22, 1 - 0.22, 1.25 + 0.22, 1 + 0.22])


def test_a_vector_is_a_row_of_cells_fuller_where_its_numbers_are_larger():
    picture = Picture(2.0, 1.0)
    place = picture.cells(0.5, 0.25, [0.0, -1.0, 2.0], "value", side=0.2)
    assert place == pytest.approx((0.8, 0.35, 0.6, 0.2))
    assert [p.get_facecolor()[3] for p in picture.ax.patches] == [0.0, 0.5, 1.0]


def test_a_lane_lies_below_all_else_and_carries_its_name():
    picture = Picture(4.0, 1.0)
    inside = picture.box(2.0, 0.5, "a", "query")
    picture.lane(Box(2.0, 0.5, 3.8, 0.8), "key", "head 0")
    lane = picture.ax.patches[-1]
    assert lane.get_zorder() < min(
        patch.get_zorder() for patch in picture.ax.patches[:-1]
    )
    assert to_rgba(lane.get_facecolor())[:3] == to_rgb(LIGHT["key"])
    assert picture.ax.texts[-1].get_text() == "head 0"
    assert picture.ax.texts[-1].get_position()[0] < inside.left[0]


PLANE = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 1.0], [0.0, 1.0]])


def levels(labels="ABC"):
    def by_distance(queries, keys):
        return -torch.cdist(queries, keys).square() / 2

    scores = {"distance": by_distance, "product": lambda q, k: q @ k.T}
    return show_levels(scores, *PLANE, labels)


def test_keys_in_the_plane_stand_at_their_places_with_their_weights():
    fig = levels()
    assert [ax.get_title() for ax in fig.axes] == ["distance", "product"]
    for ax, weights in zip(fig.axes, ("0.69 0.06 0.25", "0.11 0.84 0.04"), strict=True):
        labels = [f"{a} {w}" for a, w in zip("ABC", weights.split(), strict=True)]
        assert [t.get_text() for t in ax.texts if t.get_text()[:1] in "ABC"][1:] == (
            labels
        )
        dots = ax.collections[-1].get_offsets()
        assert np.allclose(dots, PLANE[1])


def test_lines_of_equal_score_are_circles_round_the_query_and_parallels_across_it():
    circles, parallels = (ax.collections[0].get_paths() for ax in levels().axes)
    for path, score in zip(circles, range(-8, 9), strict=True):
        away = np.linalg.norm(path.vertices - PLANE[0].numpy(), axis=1)
        assert np.allclose(away, math.sqrt(max(-2 * score, 0)), atol=0.02)
    for path, score in zip(parallels, range(-8, 9), strict=True):
        assert np.allclose(path.vertices[:, 0], score)


def test_the_plane_is_dark_on_dark_paper_and_wants_a_label_for_each_key():
    fig = levels()
    dots, lines = fig.axes[0].collections[-1], fig.axes[0].collections[0]
    with on_dark(fig):
        assert to_hex(dots.get_facecolor()[0]) == DARK["key"]
        assert to_hex(lines.get_edgecolor()[0]) == DARK["line"]
    with pytest.raises(ValueError, match="2 labels for 3 keys"):
        levels("AB")


def test_every_head_has_a_lane_with_its_own_looks_and_they_are_joined():
    fig = heads()
    assert {"head 0", "head 1", "joined", "output"} <= set(texts(fig))
    dogs, bones = (
        sorted(texts(fig)[word], key=lambda at: at[1]) for word in ("dog", "bone")
    )
    looks = arrows(fig, "query")
    heaviest = sorted(looks, key=lambda line: line[-1])[-2:]
    assert {(round(x, 6), round(y, 6)) for *_, x, y, _ in heaviest} == {
        (round(dogs[0][0], 6), round(dogs[0][1] - 0.17, 6)),
        (round(bones[1][0], 6), round(bones[1][1] - 0.17, 6)),
    }
    assert len(looks) == 2 * 3  # not at itself
    with pytest.raises(ValueError, match="4 weights for 2 tokens"):
        heads(["dog", "gave"])


def test_every_head_leads_to_its_part_and_the_last_matrix_stands_on_an_arrow():
    fig = heads()
    found, (*to_parts, to_output) = texts(fig), arrows(fig, "value")
    lines = [line.get_xydata().tolist() for line in fig.axes[0].lines]
    for head, arrow in enumerate(to_parts):
        [(x, y)] = found[rf"$\mathbf{{H}}_{head}$"]
        [(_, name)] = found[f"head {head}"]
        assert (arrow[0], arrow[2]) == pytest.approx((x, x))
        assert arrow[1] < arrow[3] < y
        assert 0 < arrow[1] - name < 0.8  # from the height of its lane
        assert lines[head][1] == pytest.approx(arrow[:2])
    [(x, y)] = found[r"$\mathbf{W}_O$"]
    assert to_output[0] < x < to_output[2]
    assert to_output[1] == pytest.approx(y) == to_output[3]


def test_only_what_is_said_to_be_a_formula_is_one():
    picture = Picture(2.0, 1.0)
    for words, is_formula in ((r"$\mathbf{W}_O$", True), (r"$\x$", False)):
        picture.text(1, 0.5, words, math=is_formula)
        picture.box(1, 0.5, words, "value", math=is_formula)
    assert [text.get_parse_math() for text in picture.ax.texts] == [True] * 2 + [
        False
    ] * 2
    picture.figure.canvas.draw()


def test_a_kernel_puts_the_mean_of_the_values_over_the_query_and_between_them():
    found = texts(kernel())
    near = 1 / (1 + math.exp(-1.5))  # of scores -1/2 and -2
    assert {f"{near:.2f}", f"{1 - near:.2f}", f"{5 - 2 * near:.2f}"} <= {*found}
    thick = {round(width, 3) for *_, width in arrows(kernel(), "query")[:2]}
    assert thick == {round(0.6 + 8 * share, 3) for share in (near, 1 - near)}
    lines = {line.get_marker(): line for line in kernel().axes[0].lines}
    ring = kernel().axes[0].lines[-1]
    first, second = (x for x, _ in itertools.chain(found["1"], found["4"]))
    assert lines["o"] and ring.get_xdata()[0] == pytest.approx(
        first + (second - first) / 3
    )
    values = found["3"][0][1], found["5"][0][1]  # the place of a height
    assert ring.get_ydata()[0] == pytest.approx(
        values[0] + (1 - near) * (values[1] - values[0]), abs=1e-3
    )


def test_a_bell_is_as_wide_as_its_width_and_as_high_as_its_height():
    picture = Picture(4, 3)
    picture.bell((2, 2), 0.5, 1)
    [line] = picture.ax.lines
    x, y = line.get_data()
    assert y.min() == pytest.approx(1) and x[y.argmin()] == pytest.approx(2)
    assert np.interp(2.5, x, y) == pytest.approx(2 - math.exp(-0.5), abs=1e-3)


def test_a_kernel_needs_as_many_values_as_keys():
    with pytest.raises(ValueError, match="1 weights for 2 keys"):
        kernel(values=torch.ones(1))


def test_masks_draw_a_line_for_each_look_and_fill_its_cell():
    looks = arrows(masks(), "query")
    assert len(looks) == 4 + 2  # all four keys, and the two up to itself
    assert len(arrows(masks(), "line")) == 3 * 4 + 1 + 3 + 4
    assert len({(x, y) for x, y, *_ in looks}) == 2  # from one query in each mask
    cells = [p for p in masks().axes[0].patches if isinstance(p, Rectangle)]
    filled = [cell for cell in cells if cell.get_facecolor()[-1] > 0]
    assert len(filled) == 16 + 10


def test_masks_that_do_not_fit_their_words_are_named():
    with pytest.raises(ValueError, match=r"mask 'far' is \(3, 3\), not \(4, 4\)"):
        masks(far=torch.ones(3, 3).bool())


def test_hands_that_turn_together_keep_the_angle_between_them():
    fig = show_turning([(3, 1), (10, 8)], degrees=[60, 25])
    filled = [p for p in fig.axes[0].patches if isinstance(p, Wedge)]
    widths = [sector.theta2 - sector.theta1 for sector in filled]
    assert widths == [120, 120, 50, 50]
    assert [sector.theta1 for sector in filled] == [-30, 30, -65, 110]  # twelve is -90
    [near, far] = [lines.get_xydata()[1] for lines in fig.axes[0].lines[12:14]]
    assert near[1] > far[1]  # the query at three steps points down, the key up


def test_a_query_before_its_key_is_refused():
    with pytest.raises(ValueError, match="query must stand at a later position"):
        show_turning([(1, 3)], degrees=[60])
