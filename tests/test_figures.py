import base64
import functools
import io
import json
import math
import pathlib
import re
import subprocess
import sysconfig
import zlib

import numpy as np
import pytest
import torch
from architecture_code import CODE

from tutorial_figures import (
    show_architecture,
    show_attention,
    show_generation,
    show_induction,
    show_kernel_regression,
    show_learning,
    show_objects,
    show_patch_attention,
    show_positions,
    show_sampling,
    show_softmax,
    show_windows,
)
from tutorial_figures.figure import HERE, shipped
from tutorial_figures.inputs import DEFLATE_ABOVE, pack
from tutorial_figures.learning import learn
from tutorial_figures.positions import turn
from tutorial_lib.plotting.colors import DARK, DARK_SCALES, LIGHT, LIGHT_SCALES

# Readable sources without comments: a chapter carries one or two such figures, and
# still a notebook stays within its 700 kB.
MOST_CODE = 25_000
HOSTILE = "</script><!-- \u2028 <img src=x onerror=alert(1)> $x^2$ & \"'"
WORDS = ["I", "love", "cats"]
PATCH_WEIGHTS = torch.tensor([[0.4, 0.1, 0.3, 0.15, 0.05], *[[0.2] * 5] * 4])
IMAGE = torch.linspace(0, 1, 16).reshape(4, 4)  # 2 × 2 patches of 2 × 2 pixels
WEIGHTS = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0004, 0.1996, 0.8]])
CORNERS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
FRAGMENTS = ["base.js", "colors.js", "heads.js", "induction_model.js"]
FIGURES = [
    "architecture.js",
    "attention.js",
    "generation.js",
    "induction.js",
    "kernel_regression.js",
    "learning.js",
    "objects.js",
    "patches.js",
    "positions.js",
    "sampling.js",
    "softmax.js",
    "windows.js",
]


def architecture(**options):
    return show_architecture(CODE, **options)


def attention(**options):
    return show_attention(WEIGHTS, WORDS, **options)


def generation(**options):
    maps = [[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0, 0.5]]
    rows = [[2.0, 1, 0], [0, 0, 1], [1, 0, 0]]
    return show_generation(rows, maps, "abc", "abc", **options)


def kernel_regression(**options):
    return show_kernel_regression([0.0, 1, 2, 3], [0.0, 1, 0, 2], **options)


def induction(**options):
    return show_induction(**options)


def learning(**options):
    return show_learning(torch.eye(3), CORNERS, **options)


def objects(**options):
    scene, masks = torch.eye(4)[None], torch.tensor([[0.9, 0.1], [0.2, 0.6]])
    masks = torch.stack([1 - masks, masks])[None, None]
    shown = {"names": [[["a cat", None]]], "masks": masks, "steps": [20]}
    return show_objects(**{"images": scene, **shown, **options})


def sampling(**options):
    return show_sampling([2.0, 1, 0.1], "abc", **options)


def softmax(**options):
    return show_softmax([2.0, 1, 0.1], **options)


def windows(**options):
    return show_windows(**options)


def patches(**options):
    return show_patch_attention(PATCH_WEIGHTS, IMAGE, **options)


def positions(**options):
    return show_positions(**options)


SHOWN = [architecture, attention, generation, induction]
SHOWN += [kernel_regression, learning, objects]
SHOWN += [patches, positions, sampling, softmax, windows]
every_figure = pytest.mark.parametrize(
    "show", [functools.cache(show) for show in SHOWN], ids=lambda show: show.__name__
)


def code_and_data(figure):
    """Split a figure's script at its data."""
    script = re.search(r"<script>(.*)</script>", figure.html, re.DOTALL)[1]
    code, call = script.rsplit('start("', 1)  # in the data the quote is escaped
    decoder = json.JSONDecoder()
    data, end = decoder.raw_decode(call, call.index("{"))
    css, _ = decoder.raw_decode(call, end + 2)
    return code + css, data


def data_of(figure):
    """Return the data that a figure's script is given: those of ``code_and_data``."""
    return json.loads(json.dumps(figure.data))


def unpack(data, shape):
    """Read packed weights back, in thousandths."""
    raw = base64.b64decode(data["packed"])
    raw = zlib.decompress(raw) if data["deflated"] else raw
    return np.frombuffer(raw, "<u2").reshape(shape)


# ---- every figure


@every_figure
def test_a_figure_has_a_live_a_still_and_a_spoken_face(show):
    bundle = show()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == repr(show())
    assert bundle["image/png"] in bundle["text/html"]


@every_figure
def test_a_figure_ships_readable_code_that_a_page_can_carry(show):
    code, _ = code_and_data(show())
    assert 5_000 < len(code.encode()) <= MOST_CODE


@every_figure
def test_a_figure_asks_nobody_for_anything(show):
    code, _ = code_and_data(show())
    html = show().html.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in html and "//" not in code.replace("http://www.w3", "")
    for way in (
        "fetch",
        "import",
        "XMLHttpRequest",
        "@import",
        "url(",
        "<link",
        "eval",
    ):
        assert way not in code
    assert re.findall(r"\bsrc=.{11}", html) == ['src="data:image']


@every_figure
def test_the_same_input_gives_the_same_bytes(show):
    assert show.__wrapped__().html == show().html
    assert show(title="a title").html != show().html


@every_figure
def test_the_script_is_given_the_figure_s_data(show):
    _, data = code_and_data(show(title="a title"))
    assert data == data_of(show(title="a title")) and data["title"] == "a title"


@every_figure
def test_the_picture_is_small_and_not_blank(show):
    from PIL import Image

    figure = show(title="a title")
    image = Image.open(io.BytesIO(figure.png)).convert("RGB")
    assert len(figure.png) <= 20_000
    assert image.width >= 250 and image.height >= 150
    assert len(image.getcolors(maxcolors=10_000)) > 20


@every_figure
def test_the_sentence_is_the_alternative_text_and_begins_with_the_title(show):
    figure = show(title="a title")
    assert figure.text.startswith("a title · ")
    assert f'alt="{figure.text}"' in figure.html


@every_figure
def test_hostile_titles_end_no_script_and_open_no_tag(show):
    html = show(title=HOSTILE).html
    assert html.count("<script") == html.count("</script") == 1
    assert "<!--" not in html and "\u2028" not in html
    assert html.count("<img") == 1
    assert code_and_data(show(title=HOSTILE))[1]["title"] == HOSTILE.replace(
        "\u2028", "\\u2028"
    )


def test_hostile_tokens_and_labels_end_no_script_and_open_no_tag():
    for figure in (
        show_attention([[1.0]], [HOSTILE], names=(HOSTILE, HOSTILE)),
        show_softmax([1.0, 2.0], labels=[HOSTILE, "b"]),
        show_learning(torch.eye(3), CORNERS, labels=[HOSTILE, "b", "c"]),
    ):
        assert figure.html.count("<script") == figure.html.count("</script") == 1
        assert "<!--" not in figure.html and figure.html.count("<img") == 1


@pytest.mark.parametrize("word", ["$$", r"$\x$"])
def test_a_picture_takes_no_label_for_mathematics(word):
    framed = {"outline": {(0, 0)}, "outline_label": word, "title": word}
    for figure in (
        show_attention([[1.0]], [word], names=(word, word), **framed),
        show_softmax([1.0, 2.0], labels=[word, "b"], title=word),
    ):
        assert figure.png  # and nothing is said of wrong mathematics
        assert figure.still("png", dpi=50, dark=True)


@every_figure
def test_a_figure_is_saved_as_a_page_or_a_picture(show, tmp_path):
    for ending, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        show().save(tmp_path / f"figure{ending}")
        assert (tmp_path / f"figure{ending}").read_bytes().startswith(start)
    show().save(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and show().html in page
    with pytest.raises(ValueError, match=r"end its name in \.html, \.png"):
        show().save(tmp_path / "figure.gif")


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_saving_twice_gives_the_same_file(ending, tmp_path):
    for name in ("a", "b"):
        attention().save(tmp_path / f"{name}.{ending}")
    first, second = (tmp_path / f"{name}.{ending}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


# ---- attention


def test_packed_weights_come_back_to_the_thousandth():
    weights = torch.rand(2, 3, 4, 5).double().numpy()
    codes = unpack(pack(weights), weights.shape)
    assert np.abs((codes - 1) / 1000 - weights).max() <= 0.0005


def test_zero_and_tiny_weights_stay_apart():
    codes = unpack(pack(np.array([0.0, 1e-9, 0.0006, 1.0])), 4)
    assert codes.tolist() == [0, 1, 2, 1001]


def test_many_weights_are_deflated():
    few, many = np.zeros(DEFLATE_ABOVE // 2), np.zeros(DEFLATE_ABOVE // 2 + 1)
    assert not pack(few)["deflated"] and pack(many)["deflated"]
    assert unpack(pack(many), many.shape).tolist() == many.tolist()


def test_the_mean_over_the_heads_is_one_head_more():
    heads = torch.softmax(torch.randn(2, 3, 3, 3), -1)
    data = data_of(show_attention(heads, WORDS))
    codes = unpack(data, (2, 4, 3, 3))
    assert np.abs((codes[:, 3] - 1) / 1000 - heads.mean(1).numpy()).max() <= 0.0005


@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS.numpy(),
        WEIGHTS.tolist(),
        WEIGHTS.clone().requires_grad_(),
        WEIGHTS[None],
        WEIGHTS[None, None],
        [WEIGHTS[None, None]],
        (WEIGHTS[None, None].clone().requires_grad_(),),
    ],
)
def test_weights_come_in_any_shape_and_type(weights):
    data = data_of(show_attention(weights, WORDS))
    expected = [501, 251, 251, 0, 1001, 0, 1, 201, 801]
    assert unpack(data, -1).tolist() == expected


def test_half_precision_weights_are_welcome():
    for dtype in (torch.bfloat16, torch.float16):
        weights = torch.softmax(torch.randn(3, 40), -1).to(dtype)
        show_attention(weights, WORDS, range(40))


def test_a_list_of_layers_becomes_layers():
    layers = [torch.softmax(torch.randn(1, 2, 3, 3), -1) for _ in range(4)]
    data = data_of(show_attention(layers, WORDS, layer=3, head="mean"))
    assert (data["layers"], data["heads"]) == (4, 2)
    assert data["shown"] == {"layer": 3, "head": 2}


def test_the_sentence_names_the_largest_weight():
    assert attention().text == (
        "Attention weights of 3 query tokens over 3 key tokens. The largest, 1.000, is "
        "that of query «love» for key «love»."
    )


def test_control_characters_in_tokens_are_written_out():
    data = data_of(show_attention(WEIGHTS, ["a\nb", "\t", "👩‍💻"]))
    assert data["queries"] == ["a\\nb", "\\t", "👩‍💻"]


def test_a_mask_is_spread_over_the_cells():
    data = data_of(attention(mask=torch.tensor([True, True, False])))
    assert data["mask"] == "110" * 3
    assert data_of(attention())["mask"] is None


def test_an_outline_is_a_set_of_cells_or_a_boolean():
    gold = {(0, 0), (1, 1), (2, 1)}
    cells = torch.zeros(3, 3).bool()
    for cell in gold:
        cells[cell] = True
    for outline in (gold, frozenset(gold), cells, cells.numpy()):
        assert data_of(attention(outline=outline))["outline"] == "100010010"
    for outline in (None, set(), torch.zeros(3).bool()):
        assert data_of(attention(outline=outline))["outline"] is None
        assert attention(outline=outline).text == attention().text


def test_the_sentence_counts_the_largest_weights_that_are_framed():
    # Of the queries with a framed cell, "I" and "cats" look most at one: "love" does
    # not, and nothing is framed for it.
    figure = attention(outline={(0, 0), (2, 1), (2, 2)})
    assert figure.text.endswith(
        " 3 cells are framed (gold link): the largest weight of 2 of the 2 query "
        "tokens that have one."
    )
    figure = attention(outline={(0, 1), (1, 1)}, outline_label="true parent")
    assert figure.text.endswith(
        " 2 cells are framed (true parent): the largest weight of 1 of the 2 query "
        "tokens that have one."
    )


def test_the_picture_frames_the_outlined_cells():
    assert attention(outline={(0, 0)}).png != attention().png
    assert attention(outline={(0, 0)}).png != attention(outline={(1, 1)}).png


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (WEIGHTS * 3, WORDS),
            "between 0 and 1, got 0 to 3: pass the output of the so",
        ),
        ((WEIGHTS - 1, WORDS), "between 0 and 1, got -1 to 0"),
        ((WEIGHTS.T, WORDS), r"sum to 1\.45, not 1: rows are queries"),
        ((WEIGHTS * torch.nan, WORDS), "weights contain NaN or infinity"),
        (
            (WEIGHTS, WORDS[:2]),
            "3 queries × 3 keys, but there are 2 query tokens and 2",
        ),
        ((WEIGHTS, WORDS, WORDS[:1]), "but there are 3 query tokens and 1 key tokens"),
        ((WEIGHTS[0], WORDS), r"must be \(query, key\), .* got \(3,\)"),
        ((WEIGHTS[None, None, None], WORDS), r"got \(1, 1, 1, 3, 3\)"),
        ((torch.eye(257), range(257)), "257 tokens are more than the 256"),
    ],
)
def test_wrong_weights_and_tokens_are_refused_with_advice(arguments, message):
    with pytest.raises(ValueError, match=message) as refusal:
        show_attention(*arguments)
    assert "\n" not in str(refusal.value)


def test_more_than_a_megabyte_is_refused_with_advice():
    noise = np.random.default_rng(0).random((900, 900))
    with pytest.raises(ValueError, match=r"make a cell of 1\.\d MB, more than 1: pass"):
        pack(noise)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 1}, "layer 1 does not exist: choose 0 to 0"),
        ({"head": -1}, "head -1 does not exist"),
        ({"head": "mean"}, "head 'mean' does not exist: choose 0 to 0"),
        (
            {"mask": torch.ones(3, 3)},
            "mask must be boolean, True = may look, got float",
        ),
        (
            {"mask": torch.ones(2, 3).bool()},
            r"mask \(2, 3\) must broadcast to .*\(3, 3\)",
        ),
        ({"outline": {(0, 3)}}, r"outline \(0, 3\) lies outside a map of 3 queries"),
        ({"outline": torch.ones(3, 3)}, "boolean, or a set of pairs .* got float32"),
        (
            {"outline": torch.ones(1, 1, 3, 3).bool()},
            r"outline \(1, 1, 3, 3\) must broadcast to \(3, 3\)",
        ),
    ],
)
def test_wrong_options_of_attention_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        attention(**options)


# ---- kernel regression


def test_kernel_regression_says_its_estimate():
    figure = kernel_regression(query=1.0, width=1.0, kernel="triangular")
    assert figure.text == (
        "Kernel regression of 4 points, triangular kernel of width 1. At the query "
        "1.00 the estimate is 1.00, as if 1.0 of them shared the weight equally."
    )


def test_kernel_regression_averages_all_points_with_the_constant_kernel():
    assert "the estimate is 0.75, as if 4.0 of them shared the weight equally" in (
        kernel_regression(kernel="constant").text
    )


def test_an_empty_window_is_said_and_drawn():
    figure = kernel_regression(query=0.5, width=0.1, kernel="boxcar")
    assert figure.text.endswith("At the query 0.50 no point lies within the width.")
    assert figure.png.startswith(b"\x89PNG")


def test_the_frame_holds_points_truth_and_query():
    figure = kernel_regression(query=9, truth=lambda x: 10 + x)
    data = data_of(figure)
    assert data["low"] <= 0 and data["high"] >= 9
    assert data["bottom"] <= 0 and data["top"] >= 13
    assert data["truth"][0] == [0.0, 10.0] and data["truth"][-1] == [3.0, 13.0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0, 1, 2]), {}, r"two vectors of one length, got \(2,\) and \(3,\)"),
        (([0, 1, torch.nan], [0, 1, 2]), {}, "x contain NaN"),
        (([0, 1], [0, torch.inf]), {}, "y contain NaN or infinity"),
        (([1], [1]), {}, "1 points: pass 2 to 500"),
        ((torch.arange(501), torch.arange(501)), {}, "501 points: pass 2 to 500"),
        (([2, 2], [0, 1]), {}, "all points lie at x = 2: pass at least two places"),
        (([0, 1], [0, 1]), {"width": 0}, "width must be positive, got 0"),
        (([0, 1], [0, 1]), {"query": torch.nan}, "query must be a finite number"),
        (
            ([0, 1], [0, 1]),
            {"kernel": "box"},
            "kernel 'box' does not exist: choose gau",
        ),
        (([0, 1], [0, 1]), {"truth": lambda x: x / 0}, "values of truth contain NaN"),
    ],
)
def test_wrong_points_are_refused_with_advice(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        show_kernel_regression(*arguments, **options)


# ---- learning


def test_a_first_step_of_learning_worked_by_hand():
    # Equal weights read (1, 1)/3. The error is (1, -2)/3; the slopes of the scores by
    # it are 2/3 (v - output)·error = (2, 8, -10)/27, and one step takes 9 of each.
    path = learn(data_of(learning(wanted="key 2", step_size=9)))
    assert path[0][1] == pytest.approx([1 / 3, 1 / 3])
    powers = np.exp([-2 / 3, -8 / 3, 10 / 3])
    assert path[1][0] == pytest.approx(powers / powers.sum())


def test_learning_says_how_it_ends():
    figure = learning(step_size=5)
    steps = len(learn(data_of(figure))) - 1
    assert figure.text == (
        f"A query that learns. After {steps} steps of gradient descent its output is "
        "0.01 from «key 0», and the weights are 0.99 for «key 0», 0.01 for «key 1», "
        "0.01 for «key 2»."
    )


def test_learning_tells_distances_in_the_unit_it_is_given():
    assert "is 10 km from «key 0»" in learning(step_size=1, unit=(1000, "km")).text


def test_the_hull_of_a_map_is_its_corners_once_round():
    inside = [[0.2, 0.3], [0.5, 0.5]]  # the second lies on a side
    data = data_of(show_learning(torch.eye(5), inside + CORNERS))
    assert data["hull"] == [[0, 0], [1, 0], [0, 1]]


def test_the_sizes_to_choose_from_have_the_first_one_among_them():
    sizes = data_of(learning(step_size=0.25))["sizes"]
    assert sizes == sorted(sizes) and {0.01, 0.1, 0.2, 0.25, 0.3, 5.0} <= {*sizes}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((torch.eye(3), [0, 1, 2]), {}, r"values \(key, 2\).* got \(3, 3\) and \(3,\)"),
        ((torch.eye(2), CORNERS[:2]), {}, "2 keys: pass 3 to 12"),
        (
            (torch.eye(3), CORNERS),
            {"labels": "ab"},
            "3 keys need as many labels, got 2",
        ),
        ((torch.eye(3), [[0, 0], [1, 1], [2, 2]]), {}, "all values lie on one line"),
        (
            (torch.eye(3), CORNERS),
            {"wanted": "d"},
            "one of key 0, key 1, key 2, got 'd'",
        ),
        (
            (torch.eye(3), CORNERS),
            {"step_size": 0},
            "step_size must be positive, got 0",
        ),
    ],
)
def test_a_map_that_cannot_be_learned_on_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        show_learning(*arguments, **options)


# ---- sampling


def test_sampling_says_what_may_be_drawn_and_its_entropy():
    figure = show_sampling([0.0, 0.0, 0.0, -50.0], "abcd", k=2, prompt="x y")
    assert figure.text == (
        "The next word after «x y», at temperature 1: 2 of 4 words may be drawn; the "
        "likeliest, «c», has probability 0.500; the entropy is 0.69 nats, as if 2.0 "
        "words were as likely."
    )


@pytest.mark.parametrize(
    ("options", "kept", "first"),
    [
        ({}, 4, 0.4),
        ({"temperature": 0.5}, 4, 0.16 / 0.30),
        ({"k": 3}, 3, 0.4 / 0.9),
        ({"p": 0.69}, 2, 0.4 / 0.7),
        ({"p": 0.1}, 1, 1.0),
        ({"k": 3, "p": 0.75}, 2, 0.4 / 0.7),  # top-p among what top-k has left
        ({"least": 0.4}, 3, 0.4 / 0.9),
        ({"k": 2, "least": 0.4}, 2, 0.4 / 0.7),  # and min-p among what both have left
    ],
)
def test_sampling_keeps_what_its_numbers_say(options, kept, first):
    logits = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
    said = show_sampling(logits, "abcd", **options).text
    assert f"{kept} of 4 words" in said
    assert f"«b», has probability {first:.3f}" in said


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0, 2.0]], "a"), {}, r"vector of 2 to 2,000 numbers, .* got \(1, 2\)"),
        (([1.0, torch.nan], "ab"), {}, "logits contain NaN"),
        (([1.0, 2.0], "a"), {}, "2 logits need as many words, got 1"),
        (([1.0, 2.0], "ab"), {"temperature": 0}, "temperature must be positive, got 0"),
        (([1.0, 2.0], "ab"), {"k": 0}, "k must be positive"),
        (([1.0, 2.0], "ab"), {"p": 0}, "p must be above 0 and at most 1, got 0"),
        (([1.0, 2.0], "ab"), {"least": 2}, "least must be from 0 to 1, got 2"),
    ],
)
def test_a_step_that_cannot_be_drawn_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        show_sampling(*arguments, **options)


# ---- generation


def test_generation_says_each_word_with_the_probability_it_had():
    first, second = (torch.tensor(row).softmax(0) for row in ([2.0, 1, 0], [0.0, 0, 1]))
    assert generation().text == (
        "After «a» a model writes, each word with the probability that it had: "
        f"b ({first[1]:.2f}), c ({second[2]:.2f})."
    )
    assert generation(begin=2).text.startswith("After «a b» a model writes")


def test_generation_keeps_the_drawn_word_however_unlikely_it_was():
    words = "abcdefgh"
    rows = torch.arange(8.0, 0, -1).expand(2, 8)
    figure = show_generation(rows, torch.ones(2, 2).tril() / 2, "ah", words)
    assert data_of(figure)["steps"][0]["words"] == [*"abcdeh"]
    assert f"h ({rows[0].softmax(0)[7]:.2f})" in figure.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": "a"}, "2 to 40 tokens, .* got 1, of which 1"),
        ({"begin": 2}, "got 2, of which 2 are given"),
        ({"words": "abcd"}, r"2 tokens and 4 words need logits \(2, 4\)"),
        ({"tokens": "ax"}, "the words lack «x»"),
        ({"weights": [[0.5, 0.5], [0.5, 0.5]]}, "looks at none that comes later"),
        ({"weights": [[2.0, 0], [0.5, 0.5]]}, "the output of the softmax"),
    ],
)
def test_a_text_that_nobody_can_have_written_is_refused(change, message):
    right = {"logits": [[0.0, 1, 2]] * 2, "weights": [[1.0, 0], [0.5, 0.5]]}
    right |= {"tokens": "ab", "words": "abc"}
    with pytest.raises(ValueError, match=message):
        show_generation(**(right | change))


# ---- softmax


def test_softmax_says_its_largest_weight_and_entropy():
    figure = show_softmax([0.0, 0.0, 0.0, 0.0], labels="abcd")
    assert figure.text == (
        "Softmax of 4 scores at temperature 1: the largest weight, 0.250, is that of "
        "«a»; the entropy is 1.39 nats, as if 4.0 keys shared the weight equally."
    )


def test_temperature_divides_the_scores():
    assert "the largest weight, 0.881" in show_softmax([2.0, 0.0]).text
    assert "the largest weight, 0.731" in show_softmax([2.0, 0.0], temperature=2).text


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0, 2.0]],), {}, r"vector of 2 to 40 numbers, .* got \(1, 2\)"),
        ((range(41),), {}, r"got \(41,\)"),
        (([1.0, torch.nan],), {}, "scores contain NaN"),
        (([1.0, 2.0],), {"labels": ["a"]}, "2 scores need as many labels, got 1"),
        (([1.0, 2.0],), {"temperature": 0}, "temperature must be positive, got 0"),
        (([1.0, 2.0],), {"d_k": 0}, "d_k must be positive"),
    ],
)
def test_wrong_scores_are_refused_with_advice(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        show_softmax(*arguments, **options)


# ---- positions


def test_positions_say_a_dot_product_worked_by_hand():
    # One pair that turns by 1 radian a position: cos(8) = -0.1455.
    assert show_positions(64, 2).text == (
        "Sinusoidal encodings of 64 positions, 2 numbers each, base 10000. Position 12 "
        "and position 20: dot product −0.15. All pairs at distance 8: −0.15."
    )


def test_rotary_positions_say_a_score_worked_by_hand():
    # The query's pair is (cos 1, cos 4); the key is turned 3 on, and stands 3 back.
    score = math.cos(1) ** 2 + math.cos(4) ** 2
    assert f"{score:.3f}" == "0.719"
    assert show_positions(64, 2, kind="rotary").text == (
        "Rotary encodings of 64 positions, 2 numbers each, base 10000. Query at "
        "position 12, key at position 9: score 0.719. All pairs at distance −3: 0.719."
    )


def test_turning_is_the_matrix_of_the_paper():
    vector = torch.randn(6, dtype=torch.float64)
    turned = turn(vector.numpy(), [0, 1, 7], 50)
    for row, position in zip(turned, (0, 1, 7), strict=True):
        for pair in range(3):
            angle = position * 50 ** (-2 * pair / 6)
            first, second = vector[2 * pair : 2 * pair + 2].tolist()
            assert row[2 * pair : 2 * pair + 2] == pytest.approx([
                first * math.cos(angle) - second * math.sin(angle),
                first * math.sin(angle) + second * math.cos(angle),
            ])  # fmt: skip


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_positions_of_any_kind_and_size_have_a_picture(kind):
    for tokens, d_model in ((2, 2), (256, 256), (40, 6)):
        figure = show_positions(tokens, d_model, kind=kind)
        assert figure.png.startswith(b"\x89PNG")


def test_kind_and_base_change_the_picture():
    pictures = [
        positions().png,
        positions(kind="rotary").png,
        positions(base=10).png,
    ]
    assert len(set(pictures)) == 3


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((1,), {}, "tokens must be a whole number from 2 to 256, got 1"),
        ((257,), {}, "tokens must be a whole number from 2 to 256, got 257"),
        ((8.5,), {}, r"a whole number from 2 to 256, got 8\.5"),
        ((64, 33), {}, "d_model must be even, .* 33 is odd, pass 32 or 34"),
        ((64, 1026), {}, "from 2 to 1024 with 64 tokens, got 1026"),
        ((64, 0), {}, "d_model must be a whole number from 2 to 1024 .* got 0"),
        ((), {"kind": "alibi"}, "kind 'alibi' does not exist: choose sinusoidal, ro"),
        ((), {"base": 1}, "base must be larger than 1, got 1: 10000 is usual"),
        ((), {"base": -10}, "base must be positive, got -10"),
    ],
)
def test_wrong_positions_are_refused_with_advice(arguments, options, message):
    with pytest.raises(ValueError, match=message) as refusal:
        show_positions(*arguments, **options)
    assert "\n" not in str(refusal.value)


# ---- patches


def uniform(*shape):
    return torch.full(shape, 1 / shape[-1])


def test_patches_say_where_the_class_token_looks():
    assert patches().text == (
        "Attention weights among 2 × 2 patches of 2 × 2 pixels and a class token. The "
        "class token gives itself 0.400. Of the patches it looks most at (0, 1), "
        "0.300; equal shares would be 0.200."
    )


def test_without_a_class_token_the_patch_in_the_middle_speaks():
    weights = uniform(2, 9, 9)
    weights[1, 4] = torch.tensor([0, 0, 0, 0, 0.2, 0.1, 0, 0.7, 0])
    figure = show_patch_attention(weights, torch.zeros(6, 6), head=1, class_token=False)
    assert figure.text == (
        "Attention weights (head 1) among 3 × 3 patches of 2 × 2 pixels. Patch (1, 1) "
        "looks most at (2, 1), 0.700; equal shares would be 0.111."
    )


def test_a_patch_may_be_named_that_speaks_first():
    weights = uniform(10, 10)
    weights[3] = torch.tensor([0.3, 0, 0, 0, 0, 0.6, 0.1, 0, 0, 0])
    figure = show_patch_attention(weights, torch.zeros(6, 6), first=(0, 2))
    assert "Patch (0, 2) gives the class token 0.300. Of the patches it" in figure.text
    assert "looks most at (1, 1), 0.600" in figure.text
    alone = weights[1:, 1:] / weights[1:, 1:].sum(-1, keepdim=True)
    options = {"class_token": False, "first": (0, 2)}
    figure = show_patch_attention(alone, torch.zeros(6, 6), **options)
    assert "Patch (0, 2) looks most at (1, 1), 0.857" in figure.text
    assert figure.png != show_patch_attention(
        alone, torch.zeros(6, 6), class_token=False
    ).png  # fmt: skip


def test_colors_up_to_1_are_not_offered_where_no_weight_would_be_seen():
    for largest, faint in ((0.0999, True), (0.1, False)):
        weights = torch.full((16, 16), (1 - largest) / 15)
        weights.fill_diagonal_(largest)
        weights[0] = torch.eye(16)[0]  # one query tells nothing of the others
        figure = show_patch_attention(weights, torch.zeros(8, 8), class_token=False)
        assert ("faint" in figure.data) is faint


@pytest.mark.parametrize(
    ("tokens", "class_token", "size", "patch", "grid"),
    [
        (17, True, (8, 8), 2, [4, 4]),
        (50, True, (28, 28), 4, [7, 7]),
        (49, False, (1, 28, 28), 4, [7, 7]),
        (197, True, (3, 224, 224), 16, [14, 14]),
        (8, False, (4, 8), 2, [2, 4]),
        (2, True, (3, 5, 5), 5, [1, 1]),
    ],
)
def test_the_size_of_the_patches_follows(tokens, class_token, size, patch, grid):
    weights = uniform(tokens, tokens)
    figure = show_patch_attention(weights, torch.ones(size), class_token=class_token)
    data = data_of(figure)
    assert (data["patch"], data["grid"], data["rows"]) == (patch, grid, tokens)
    assert data["classToken"] is class_token


def sent(figure):
    """Return the bytes of the image that a figure carries, as Pillow reads the file."""
    from PIL import Image

    head, _, file = figure.data["picture"].partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(file)))
    assert head == f"data:image/{image.format.lower()};base64"
    return np.array(image)


def test_one_channel_is_ink_and_three_are_a_photograph():
    shades = [[17 * (4 * i + j) for j in range(4)] for i in range(4)]  # 255 / 15 a step
    for image in (IMAGE, IMAGE[None], IMAGE.tolist(), IMAGE.double().numpy()):
        figure = show_patch_attention(PATCH_WEIGHTS, image)
        assert sent(figure).tolist() == shades and not figure.data["faded"]
    photograph = torch.rand(3, 4, 4)
    figure = show_patch_attention(PATCH_WEIGHTS, photograph)
    assert (
        np.abs(sent(figure) / 255 - photograph.permute(1, 2, 0).numpy()).max() < 0.003
    )
    assert figure.data["faded"]


def test_a_large_photograph_travels_as_a_small_file():
    across = torch.linspace(0, 1, 224).expand(224, 224)
    photograph = torch.stack([across, across.T, 1 - across])
    figure = show_patch_attention(torch.eye(196), photograph, class_token=False)
    assert figure.data["picture"].startswith("data:image/jpeg")
    assert len(figure.data["picture"]) < 20_000
    assert (
        np.abs(sent(figure) / 255 - photograph.permute(1, 2, 0).numpy()).mean() < 0.02
    )


def test_weights_of_patches_travel_to_the_thousandth_with_the_mean_of_the_heads():
    weights = torch.softmax(torch.randn(2, 3, 5, 5), -1)
    for given in (weights, list(weights[:, None])):
        figure = show_patch_attention(given, IMAGE, layer=1, head="mean")
        data = data_of(figure)
        codes = unpack(data, (2, 4, 5, 5))
        assert np.abs((codes[:, :3] - 1) / 1000 - weights.numpy()).max() <= 0.0005
        assert np.abs((codes[:, 3] - 1) / 1000 - weights.mean(1).numpy()).max() < 6e-4
        assert (data["layers"], data["heads"]) == (2, 3)
        assert data["shown"] == {"layer": 1, "head": 3}


def test_questions_say_where_each_of_them_looks():
    weights = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.0, 1.0, 0.0, 0.0]])
    asked = show_patch_attention(weights, IMAGE, questions=["Who?", "Why?"])
    assert asked.text == (
        "Questions to an image of 2 × 2 patches of 2 × 2 pixels. Who? Looks most at "
        "(1, 0), 0.700. Why? Looks most at (0, 1), 1.000."
    )
    assert asked.data["questions"] == ["Who?", "Why?"]
    with pytest.raises(ValueError, match="1 questions need as many queries, got 2"):
        show_patch_attention(weights, IMAGE, questions=["Who?"])


@pytest.mark.parametrize("colored", [False, True])
def test_an_image_that_is_asked_keeps_its_colors(colored):
    image = torch.rand(3, 4, 4) if colored else IMAGE
    asked = show_patch_attention(torch.eye(4)[:1], image, questions=["?"])
    expected = image.permute(1, 2, 0) if colored else 1 - image[..., None]
    assert np.abs(sent(asked) / 255 - expected.numpy()).max() < 0.003


def test_layer_head_image_and_query_change_the_picture_of_the_patches():
    weights = torch.softmax(3 * torch.randn(2, 2, 5, 5), -1)
    figures = [
        show_patch_attention(weights, IMAGE),
        show_patch_attention(weights, IMAGE, layer=1),
        show_patch_attention(weights, IMAGE, head=1),
        show_patch_attention(weights, IMAGE, head="mean"),
        show_patch_attention(weights, IMAGE / 2),
        show_patch_attention(weights, IMAGE.expand(3, 4, 4)),
        show_patch_attention(weights[..., 1:, 1:], IMAGE, class_token=False),
    ]
    assert len({figure.png for figure in figures}) == 7


def test_the_picture_colors_the_patch_that_is_looked_at():
    from PIL import Image

    weights = uniform(5, 5)
    weights[0] = torch.tensor([0.0, 0, 0, 1, 0])  # to the patch (1, 0)
    figure = show_patch_attention(weights, torch.zeros(4, 4))
    picture = np.array(Image.open(io.BytesIO(figure.png)).convert("RGB")).astype(int)
    blue = picture[..., 2] - picture[..., 0] > 100
    rows, columns = blue[:, : picture.shape[1] // 2 + 40].nonzero()
    assert blue.sum() > 2_000
    middle = (picture.shape[0] / 2, picture.shape[1] / 2)
    assert rows.mean() > middle[0] and columns.mean() < middle[1]


@pytest.mark.parametrize(
    ("weights", "image", "options", "message"),
    [
        (
            uniform(4, 4),
            IMAGE,
            {},
            r"4 tokens are 3 patches and a class token, but an image of 4 × 4 pixels "
            r"is not cut into 3 squares: pass class_token=False",
        ),
        (
            uniform(5, 5),
            IMAGE,
            {"class_token": False},
            "5 tokens are 5 patches, but .* pass class_token=True",
        ),
        (uniform(17, 17), torch.zeros(28, 30), {}, "pass the image that the model s"),
        (uniform(1, 1), IMAGE, {}, "1 tokens are 0 patches and a class token"),
        (uniform(3, 5), IMAGE, {}, "3 queries × 5 keys: here both are the same tok"),
        (uniform(5), IMAGE, {}, r"weights must be \(query, key\), .* got \(5,\)"),
        (3 * uniform(5, 5), IMAGE, {}, "a query's weights sum to 3, not 1"),
        (uniform(5, 5) - 1, IMAGE, {}, "pass the output of the softmax, not the sc"),
        (uniform(5, 5), IMAGE * 255, {}, "between 0 and 1, got 0 to 255: divide by"),
        (uniform(5, 5), IMAGE - 0.5, {}, r"got -0\.5 to 0\.5: .*undo a normalization"),
        (uniform(5, 5), IMAGE * torch.nan, {}, "pixels of the image contain NaN"),
        (uniform(5, 5), torch.ones(4, 4, 3), {}, r"got \(4, 4, 3\): .*channels first"),
        (uniform(5, 5), torch.ones(2, 4, 4), {}, r"1 or 3 channels, got \(2, 4, 4\)"),
        (uniform(5, 5), torch.ones(1, 1, 4, 4), {}, r"got \(1, 1, 4, 4\): pass one im"),
        (uniform(5, 5), torch.ones(0, 4), {}, r"got \(0, 4\)"),
        (uniform(5, 5), torch.ones(258, 258), {}, "258 × 258 pixels are more than the"),
        (
            uniform(290, 290),
            torch.ones(17, 17),
            {},
            "289 patches are more than the 256",
        ),
        (uniform(5, 5), IMAGE, {"layer": 1}, "layer 1 does not exist: choose 0 to 0"),
        (uniform(5, 5), IMAGE, {"head": "mean"}, "head 'mean' does not exist"),
        (uniform(9, 9), torch.ones(4, 8), {"first": (2, 1)}, r"patch \(2, 1\) among 2"),
    ],
)
def test_wrong_patches_are_refused_with_advice(weights, image, options, message):
    with pytest.raises(ValueError, match=message) as refusal:
        show_patch_attention(weights, image, **options)
    assert "\n" not in str(refusal.value)


# ---- objects


def test_objects_say_what_each_query_says_at_last():
    said = "After 20 steps of training query 1 says a cat, query 2 says nothing."
    assert objects().text == said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": [1, 2]}, "for 2 steps, got"),
        ({"images": torch.eye(4)}, r"images must be \(scene, height, width\)"),
        ({"images": torch.ones(1, 4, 5)}, "cut into 2 × 2 equal patches"),
        ({"images": torch.ones(1, 80, 80)}, "pass at most 4,096"),
        ({"images": 2 * torch.eye(4)[None]}, "image must lie between 0 and 1"),
        ({"masks": torch.full((1, 1, 2, 2, 2), 1.5)}, "pass their sigmoid"),
        ({"masks": torch.ones(1, 1, 9, 2, 2)}, "16, 8, 8"),
        ({"names": [["a cat", None]]}, r"names must be \(1, 1, 2\)"),
    ],
)
def test_wrong_objects_are_refused_with_advice(options, message):
    with pytest.raises(ValueError, match=message):
        objects(**options)


# ---- windows


def test_windows_say_what_a_token_reads_and_has_heard_of():
    assert windows(token=(0, 0), layers=3).text == (
        "Token (0, 0) reads 16 tokens in layer 3, whose windows are plain. Through 3 "
        "layers it has heard of 64 of 64."
    )
    for shifted, read, heard in ((True, 4, 16), (False, 16, 16)):
        text = windows(token=(0, 0), shifted=shifted).text
        assert f"reads {read} tokens in layer 2" in text
        assert f"has heard of {heard} of 64" in text
    assert "Through 1 layer it has heard of 16" in windows(layers=1).text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": 16}, "an even size must divide a side of at most 8: got 4 and 16"),
        ({"size": 3, "side": 6}, "got 3 and 6"),
        ({"size": 6}, "got 6 and 8"),
        ({"token": (3, 8)}, r"a row and a column below 8, got \(3, 8\)"),
        ({"layers": 5}, "layers must be 1 to 4, got 5"),
    ],
)
def test_wrong_windows_are_refused_with_advice(options, message):
    with pytest.raises(ValueError, match=message):
        windows(**options)


# ---- the sources that pages carry


def test_pages_carry_the_sources_without_their_comments():
    source = (HERE / "heads.js").read_text(encoding="utf-8")
    assert "// Weights travel" in source and "//" not in shipped("heads.js")
    lines = [line for line in source.splitlines() if line.strip()]
    code = [line for line in lines if not line.lstrip().startswith("//")]
    assert shipped("heads.js").splitlines() == code
    assert "/*" in (HERE / "base.css").read_text() and "/*" not in shipped("base.css")


@pytest.mark.parametrize("name", FRAGMENTS + FIGURES)
def test_comments_fill_whole_lines_and_literals_one(name):
    source = (HERE / name).read_text(encoding="utf-8")
    code = [line for line in source.splitlines() if line.lstrip()[:2] != "//"]
    assert not [line for line in code if "//" in line.replace("http://", "")]
    assert not [line for line in code if "/*" in line or line.count("`") % 2]


@pytest.mark.parametrize("name", [path.name for path in sorted(HERE.glob("*.css"))])
def test_comments_of_styles_fill_whole_lines(name):
    assert "/*" not in shipped(name) and "*/" not in shipped(name)


def test_colors_stand_in_one_palette_and_are_the_book_s():
    code, _ = code_and_data(softmax())
    for host, colors in ((":host", LIGHT), (":host([data-dark])", DARK)):
        rule = code[code.index(f"{host} {{") :].split("}")[0]
        for name, color in colors.items():
            assert f"--{name}: {color};" in rule
    for path in HERE.glob("*.css"):
        assert not re.findall(r"#[0-9a-f]{6}", path.read_text()), path.name
    book = (HERE.parents[1] / "book" / "_static" / "book.css").read_text()
    light, dark = book.split('html[data-theme="dark"] {')[:2]
    for name in ("query", "key", "value", "ink", "quiet"):
        assert f"--book-{name}: {LIGHT[name]};" in light
        assert f"--book-{name}: {DARK[name]};" in dark
    assert f"--book-paper: {DARK['paper']};" in dark
    scales = [*LIGHT_SCALES.values(), *DARK_SCALES.values()]
    assert all(colors.replace("#", "") in shipped("colors.js") for colors in scales)


def test_styles_move_nothing_that_a_reader_asked_to_keep_still():
    for style in HERE.glob("*.css"):
        assert not re.search("transition|animation", style.read_text())


def test_the_sources_name_nothing_unknown_and_nothing_in_vain(tmp_path):
    parts = [(HERE / name).read_text(encoding="utf-8") for name in FRAGMENTS + FIGURES]
    used = ", ".join(name.removesuffix(".js") for name in FIGURES)
    text = "\n".join([*parts, f"start({used});\n"])
    (tmp_path / "all.js").write_text(text, encoding="utf-8")
    oxlint = pathlib.Path(sysconfig.get_path("scripts")) / "oxlint"
    config = str(HERE / ".oxlintrc.json")
    rules = ["-D", "no-undef", "-D", "no-unused-vars"]
    for place in (str(HERE), str(tmp_path / "all.js")):
        command = [str(oxlint), "-c", config, *(rules if "all" in place else []), place]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout
