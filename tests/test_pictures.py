"""Pictures of ideas: what stands in them, where, and in which color."""

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from readable import contrast

from tutorial_lib.plotting.colors import DARK, LIGHT
from tutorial_lib.plotting.dark import on_dark
from tutorial_lib.plotting.drawing import Box, Picture
from tutorial_lib.plotting.figure import DARK_PNG
from tutorial_lib.plotting.panels import WIDTH
from tutorial_lib.plotting.pictures import (
    show_autoregression,
    show_bahdanau_attention,
    show_encoder_decoder,
    show_induction_head,
    show_kernel,
    show_lookup,
    show_masks,
    show_multi_head_attention,
    show_rotary_encoding,
    show_scaled_dot_product,
    show_self_attention,
    show_shift,
    show_transformer,
    show_transformer_block,
    show_vision_transformer,
)

SENTENCE = ["the", "animal", "slept", "for", "it", "was"]
NAMED = ["then", "Mila", "Vargas", "smiled", "and", "Mila"]
WEIGHTS = torch.tensor([0.05, 0.62, 0.08, 0.05, 0.15, 0.05])
HEADS = torch.tensor([[0.8, 0.1, 0.1, 0.0], [0.1, 0.1, 0.1, 0.7]])
TWO = {"query": "q?", "keys": ["a", "b"], "values": ["x", "y"], "output": "o"}
KERNEL = torch.tensor([1.0, 4.0]), torch.tensor([3.0, 5.0])
PICTURES = {
    "lookup": lambda: show_lookup([0.1, 0.9], **TWO),
    "crowded lookup": lambda: show_lookup(
        [0.1, 0.9], **{**TWO, "keys": ["Mississippi", "b"], "values": ["2850", "y"]}
    ),
    "kernel": lambda: show_kernel(*KERNEL, query=2, width=1.0),
    "kernel beyond the keys": lambda: show_kernel(
        *KERNEL, query=4.9, width=1.0, key="km {:g}", value="{:g} m"
    ),
    "masks": lambda: show_masks(["the", "cat", "sat", "up"], query=1, prompt=3),
    "product": lambda: show_scaled_dot_product(
        torch.eye(3), torch.ones(4, 3).tril(), torch.ones(4, 2), query=1
    ),
    "product of words": lambda: show_scaled_dot_product(
        *torch.eye(6).view(3, 6, 2), query=4, tokens=SENTENCE
    ),
    "self-attention": lambda: show_self_attention(WEIGHTS, SENTENCE, query=4),
    "heads": lambda: show_multi_head_attention(
        HEADS, ["dog", "gave", "a", "bone"], query=1
    ),
    "encoder-decoder": lambda: show_encoder_decoder(SENTENCE[:4], ["il", "dormait"]),
    "Bahdanau": lambda: show_bahdanau_attention(
        [0.1, 0.1, 0.7, 0.1], ["the", "black", "cat", "sleeps"], ["le", "chat"], step=1
    ),
    "autoregression": lambda: show_autoregression(
        ["<bos>", "it"], ["was", "slept", "is"], [0.5, 0.3, 0.1]
    ),
    "induction head": lambda: show_induction_head(NAMED, earlier=1),
    "rotary": lambda: show_rotary_encoding([(3, 1), (10, 8)], degrees=[60, 25, 12]),
    "shift": lambda: show_shift(
        ["<bos>", "l'", "oiseau", "dort"], ["l'", "oiseau", "dort", "<eos>"], position=1
    ),
    "transformer": lambda: show_transformer(
        ["the", "bird", "sleeps"],
        ["<bos>", "l'", "oiseau", "ne"],
        "dort",
        names=["BERT", "GPT"],
    ),
    "block": lambda: show_transformer_block(WEIGHTS, SENTENCE, query=4),
    "ViT": lambda: show_vision_transformer(torch.rand(3, 6, 6), answer="tower"),
}


def texts(fig):
    """Map each text to the places where it stands."""
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


def cells(fig, color):
    """Return how full the cells of a color are, in the order they were drawn."""
    found = [p for p in fig.axes[0].patches if isinstance(p, Rectangle)]
    return [p.get_facecolor()[3] for p in found if to_hex(p.get_ec()) == LIGHT[color]]


def ground(fig, text):
    """Return the color below a text: that of the washes over the paper."""
    below = np.array(to_rgb(fig.get_facecolor()))
    place = fig.axes[0].transData.transform(text.get_position())
    for patch in fig.axes[0].patches:
        if isinstance(patch, FancyBboxPatch) and patch.contains_point(place):
            *wash, opacity = patch.get_facecolor()
            below = below * (1 - opacity) + np.array(wash) * opacity
    return below


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read_on_a_phone_and_on_either_paper(name):
    def worst(fig):
        pairs = [(to_rgb(t.get_color()), ground(fig, t)) for t in fig.axes[0].texts]
        return min(contrast(*pair) for pair in pairs)

    fig = PICTURES[name]()
    fig.canvas.draw()
    assert fig.get_figwidth() == WIDTH
    written = [text for text in fig.axes[0].texts if text.get_text()]
    assert written and min(text.get_size() for text in written) >= 8
    boxes = [text.get_window_extent() for text in written]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.x1 <= fig.bbox.x1 for box in boxes)
    assert all(box.y0 >= 0 and box.y1 <= fig.bbox.y1 for box in boxes)
    assert worst(fig) >= 4.5
    with on_dark(fig):
        assert worst(fig) >= 4.5


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_stored_on_both_papers_and_to_the_byte(name):
    torch.manual_seed(0)
    stored = PICTURES[name]()._repr_mimebundle_()
    torch.manual_seed(0)
    assert [*stored] == ["image/png", DARK_PNG]
    assert PICTURES[name]()._repr_mimebundle_() == stored


def test_a_lookup_shows_weights_as_numbers_and_as_the_width_of_its_lines():
    fig = PICTURES["lookup"]()
    found = texts(fig)
    names = {"query", "keys", "weights", "values", "output"}
    assert {"q?", *"abxyo", "0.10", "0.90"} | names <= set(found)
    x_of = {word: found[word][0][0] for word in ("q?", *"abxyo")}
    looks, reads = arrows(fig, "query"), arrows(fig, "value")
    ends = [sorted((line[0], line[2])) for line in (*looks, *reads)]
    led = [("q?", "a"), ("q?", "b"), ("x", "o"), ("y", "o")]
    assert ends == [pytest.approx(sorted(x_of[one] for one in pair)) for pair in led]
    for light, heavy in (looks, reads):
        assert heavy[-1] - light[-1] == pytest.approx(8 * (0.9 - 0.1))


def test_query_key_and_value_have_their_colors_on_either_paper():
    fig = PICTURES["lookup"]()

    def edge_of(word):
        place = fig.axes[0].transData.transform(texts(fig)[word][0])
        patches = [p for p in fig.axes[0].patches if isinstance(p, FancyBboxPatch)]
        [*_, top] = [patch for patch in patches if patch.contains_point(place)]
        return to_hex(top.get_edgecolor())

    roles = {"q?": "query", "a": "key", "x": "value", "o": "value"}
    assert all(edge_of(word) == LIGHT[role] for word, role in roles.items())
    with on_dark(fig):
        assert all(edge_of(word) == DARK[role] for word, role in roles.items())


def test_a_kernel_puts_the_mean_of_the_values_over_the_query_and_between_them():
    fig = PICTURES["kernel"]()
    near = 1 / (1 + math.exp(-1.5))  # of scores -1/2 and -2
    found = texts(fig)
    assert {f"{near:.2f}", f"{1 - near:.2f}", f"{5 - 2 * near:.2f}"} <= {*found}
    ring = fig.axes[0].lines[-1]
    (first, _), (second, _) = found["1"][0], found["4"][0]
    assert ring.get_xdata()[0] == pytest.approx(first + (second - first) / 3)
    low, high = found["3"][0][1], found["5"][0][1]  # the place of a height
    expected = low + (1 - near) * (high - low)
    assert ring.get_ydata()[0] == pytest.approx(expected, abs=1e-3)
    bell = fig.axes[0].lines[0]
    x, y = bell.get_data()
    assert x[y.argmin()] == pytest.approx(first + (second - first) / 3)  # y points down


def test_the_matrices_of_a_product_have_their_shapes_and_numbers():
    fig = PICTURES["product"]()
    found = texts(fig)
    shapes = {"(3, 3)": 1, "(4, 2)": 1, "(3, 4)": 3, "(3, 2)": 1}
    assert {text: len(found[text]) for text in shapes} == shapes
    assert {"queries", "keysᵀ", "scores", "weights", "values", "outputs"} <= set(found)
    queries, weights = cells(fig, "query")[:9], cells(fig, "query")[9:]
    assert queries == pytest.approx([0.35, 0, 0, 0, 1, 0, 0, 0, 0.35])
    exact = torch.softmax(torch.ones(4, 3).tril().T / math.sqrt(3), dim=-1)
    strength = torch.tensor([[0.35], [1.0], [0.35]])
    assert weights == pytest.approx((exact / exact.max() * strength).flatten().tolist())


def test_tokens_name_the_rows_of_queries_and_values_and_the_columns_of_keys():
    found = texts(PICTURES["product of words"]())
    query, key, value = np.array([found[token] for token in SENTENCE]).swapaxes(0, 1)
    for down in (query, value):
        assert np.ptp(down[:, 0]) == 0 and (np.diff(down[:, 1]) > 0).all()
    assert np.ptp(key[:, 1]) == 0 and (np.diff(key[:, 0]) > 0).all()
    assert query[0, 0] < key[0, 0] < key[-1, 0] < value[0, 0]
    assert key[0, 1] < query[0, 1] and value[-1, 1] < query[0, 1]


def test_masks_draw_a_line_for_each_pair_and_fill_its_cell():
    fig = PICTURES["masks"]()
    assert len(arrows(fig, "query")) == 4 + 2 + 3  # all keys, the past, the prompt
    assert len({line[:2] for line in arrows(fig, "query")}) == 3  # one query each
    assert len(arrows(fig, "line")) == 3 * 4 + (1 + 3 + 4) + (3 + 3 + 4)
    assert sum(full > 0 for full in cells(fig, "query")) == 16 + 10 + 13


def test_in_self_attention_one_query_meets_all_keys_and_the_values_come_back_to_it():
    fig = PICTURES["self-attention"]()
    found = texts(fig)
    assert [len(found[name]) for name in (*"qkv", *SENTENCE)] == 3 * [6] + 6 * [2]
    hubs = {"query": found["q"][4][0], "value": found["it"][1][0]}
    for (color, hub), others in zip(hubs.items(), "kv", strict=True):
        lines = arrows(fig, color)[6:]
        assert {round(line[0], 3) for line in lines} == {round(hub, 3)}
        assert [line[2] for line in lines] == pytest.approx(
            [x for x, _ in found[others]]
        )
        widths = [line[-1] for line in lines]
        assert widths == pytest.approx((0.6 + 8 * WEIGHTS).tolist())


def test_in_self_attention_no_line_to_a_vector_runs_through_another():
    fig = PICTURES["self-attention"]()
    found, ways = texts(fig), []
    for color, letter in (("query", "q"), ("key", "k"), ("value", "v")):
        lines = arrows(fig, color)[:6]
        assert [line[0] for line in lines] == [line[2] for line in lines]
        assert [line[2] for line in lines] == pytest.approx(
            [x for x, _ in found[letter]]
        )
        ways += [line[2] for line in lines]
    apart = [after - before for before, after in itertools.pairwise(sorted(ways))]
    assert min(apart) > 0.17  # half a box


def test_in_a_block_every_stream_runs_through_and_one_query_attends_by_its_weights():
    fig = PICTURES["block"]()
    found = texts(fig)
    assert all(len(found[word]) == 2 for word in SENTENCE)  # in and out
    assert len(found["+"]) == 2 * len(SENTENCE)
    streams = arrows(fig, "key")
    assert len(streams) == 6 and all(line[0] == line[2] for line in streams)
    looks = arrows(fig, "query")
    assert len(looks) == 36
    widths = [line[-1] for line in looks[24:30]]
    assert widths == pytest.approx((0.6 + 8 * WEIGHTS).tolist())


def test_every_head_attends_elsewhere_and_leads_to_its_part():
    fig = PICTURES["heads"]()
    found = texts(fig)
    assert {"head 0", "head 1", "concat", "output", "W_O"} <= set(found)
    looks = arrows(fig, "query")
    assert len(looks) == 2 * 3  # not at itself
    heaviest = sorted(looks, key=lambda line: line[-1])[-2:]
    dog, bone = found["dog"][0][0], found["bone"][1][0]
    assert {round(line[2], 6) for line in heaviest} == {round(dog, 6), round(bone, 6)}
    *parts, output = arrows(fig, "value")
    boxes = [found[f"H{i}"][0][0] for i in "₀₁"]
    assert [line[2] for line in parts] == pytest.approx(boxes)
    assert output[0] < found["W_O"][0][0] < output[2]


def test_an_encoder_gives_both_last_states_and_a_decoder_reads_what_it_wrote():
    fig = PICTURES["encoder-decoder"]()
    found = texts(fig)
    c = found["c"][0][0]
    h = [found[name][0][0] for name in ("h₁", "h₂", "h₃", "h₄")]
    s = [found[name][0][0] for name in ("s₀", "s₁", "s₂", "s₃")]
    assert [found[word][0][0] for word in ("<bos>", "il", "dormait", "<eos>")] == s
    into = [line[0:3:2] for line in arrows(fig, "key") if line[3] > 1.5]
    assert into == [pytest.approx((last, c)) for last in (h[0], h[-1])]
    given = [line[0:3:2] for line in arrows(fig, "value")]
    assert given == [pytest.approx((c, state)) for state in s]
    lines = [line for line in arrows(fig, "quiet") if line[1] > 2.5]
    read = [(line[0], line[2]) for line in lines if line[0] != line[2]]
    assert read == [pytest.approx(pair, abs=0.2) for pair in itertools.pairwise(s)]
    assert [line[0] for line in lines if line[0] == line[2]] == pytest.approx(s[1:])


def test_bahdanau_s_state_asks_and_the_next_one_reads():
    fig = PICTURES["Bahdanau"]()
    found = texts(fig)
    h = [found[name][0][0] for name in ("h₁", "h₂", "h₃", "h₄")]
    s = [found[name][0][0] for name in ("s₀", "s₁", "s₂")]
    asked = [line for line in arrows(fig, "query") if line[3] < 2]
    assert [line[0] for line in asked] == pytest.approx([s[1]] * 4)
    assert [line[2] for line in asked] == pytest.approx(h)
    *read, given = arrows(fig, "value")
    assert [line[0] for line in read] == pytest.approx([s[2]] * 4)
    assert max(read, key=lambda line: line[-1])[2] == pytest.approx(h[2])
    assert (given[0], given[2]) == pytest.approx((s[2], s[2]))
    assert found["chat"][0][0] == s[2]


def test_the_encoder_sees_everything_and_the_decoder_its_past():
    fig = PICTURES["transformer"]()
    assert len(arrows(fig, "key")) == 3 * 3  # from every word to every state
    back = arrows(fig, "query")
    assert len(back) == 1 + 2 + 3 + 4
    assert all(line[0] + 1e-6 >= line[2] for line in back)
    *across, writes = arrows(fig, "value")
    newest = max(texts(fig)["s"])[0]
    assert [line[0] for line in across] == pytest.approx([newest] * 3)
    assert writes[2:4] == pytest.approx(texts(fig)["dort"][0], abs=0.2)
    [cut] = [line.get_xdata()[0] for line in fig.axes[0].lines]
    assert texts(fig)["BERT"][0][0] < cut < texts(fig)["GPT"][0][0]


def test_the_masked_arrow_leads_from_a_target_s_copy_to_the_target():
    fig = PICTURES["shift"]()
    found = texts(fig)
    aim, copy = sorted(found["oiseau"], key=lambda place: place[1])
    seen = [line[2] for line in arrows(fig, "query")]
    assert seen == pytest.approx([found["<bos>"][0][0], aim[0]])  # not the copy
    [(start, _, end, *_)] = arrows(fig, "key")
    assert (start, end) == pytest.approx((copy[0], aim[0]), abs=0.05)
    assert copy[0] > aim[0]


def test_who_writes_looks_back_and_draws_what_stands_at_the_end():
    fig = PICTURES["autoregression"]()
    found = texts(fig)
    looks = arrows(fig, "query")
    assert len(looks) == 1 + 2 and all(line[0] + 1e-6 >= line[2] for line in looks)
    next_token, choice = sorted(found["was"], key=lambda place: place[1])
    assert next_token[0] > found["it"][0][0]
    shares = arrows(fig, "value")[:3]
    assert max(shares, key=lambda line: line[-1])[2] == pytest.approx(choice[0])


def test_the_strong_lines_lead_by_what_followed_the_last_token_earlier():
    fig = PICTURES["induction head"]()
    found = texts(fig)
    assert len(found["Mila"]) == 5 and len(found["Vargas"]) == 3
    assert [x for x, _ in found["← Mila"]] == [found["Vargas"][0][0]]
    assert found["Vargas"][-1][0] == found["← and"][0][0]  # the answer, below the last
    lines = arrows(fig, "query")
    thick = max(width for *_, width in lines)
    ends = [x for *path, width in lines if width == thick for x in path[::2]]
    mila, vargas, last = (found[word][0][0] for word in ("Mila", "Vargas", "← and"))
    assert ends == pytest.approx([mila, vargas, vargas, last])


def test_hands_that_rotate_together_keep_the_angle_between_them():
    fig = show_rotary_encoding([(3, 1), (10, 8)], degrees=[60, 25])
    sectors = [ax.patches[0] for ax in fig.axes[1:]]
    angles = [math.degrees(sector.get_width()) for sector in sectors]
    assert angles == pytest.approx([120, 120, 50, 50])
    starts = [math.degrees(sector.get_x()) for sector in sectors]
    assert starts == pytest.approx([60, 480, 25, 200])  # where the key points


def test_an_image_becomes_tokens_of_which_the_first_says_what_it_is():
    image = torch.ones(3, 6, 6)
    image[:, :1, 2:4] = 0.5  # the upper half of the second patch is gray
    fig = show_vision_transformer(image, answer="tower")
    numbers = [texts(fig)[str(i)][0][0] for i in range(10)]
    assert numbers == sorted(numbers) and len(texts(fig)["h"]) == 10
    assert texts(fig)["?"][0][0] == numbers[0] and "tower" in texts(fig)
    shown = [ax.images[0].get_array() for ax in fig.axes[1:]]
    for i, patch in enumerate(itertools.product(range(0, 6, 2), repeat=2)):
        part = image[:, patch[0] :, patch[1] :][:, :2, :2].permute(1, 2, 0)
        assert all(np.allclose(one, part) for one in shown[2 * i : 2 * i + 2])
    assert [round(full, 2) for full in cells(fig, "key")[4:8]] == [1, 1, 0, 0]
    assert len(arrows(fig, "query")) == 100


@pytest.mark.parametrize(
    ("show", "message"),
    [
        (lambda: show_lookup([1.0, 0.0, 0.0], **TWO), "broadcast"),
        (lambda: show_self_attention(WEIGHTS, SENTENCE[1:], query=0), "broadcast"),
        (
            lambda: show_scaled_dot_product(*map(torch.eye, (2, 3, 3)), query=0),
            "must end in the sizes 2 and 2",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_in_a_sentence(show, message):
    with pytest.raises(ValueError, match=message):
        show()


# --- What pictures are drawn with


def test_a_bow_goes_over_and_an_arrow_leaves_a_box_where_the_other_place_is():
    picture = Picture(2.0)
    picture.arrow((3, 1), (1, 1), "query", weight=1.0, curved=True)
    assert picture.ax.patches[0].get_path().vertices[1, 1] < 1  # y points down
    box = Box(2, 1, 0.6, 0.4)
    for other in ((4, 1), (0, 1), (3, 2), (3, 0)):
        picture.arrow(box, other, "query", weight=1.0)
    starts = [patch.get_path().vertices[0] for patch in picture.ax.patches[1:]]
    assert np.allclose(starts, [(2.3, 1), (1.7, 1), (2, 1.2), (2, 0.8)])
