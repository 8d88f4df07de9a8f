"""The figures without a browser: what they carry, say and picture."""

import base64
import html
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
from figures_in_browser import (
    FIGURES,
    attention,
    drawn,
    every_figure,
    generation,
    kernel_regression,
    objects,
    softmaxed,
    windows,
    without_picture,
)

from tutorial_figures import (
    show_attention,
    show_generation,
    show_kernel_regression,
    show_learning,
    show_patch_attention,
    show_positions,
    show_sampling,
    show_softmax,
)
from tutorial_figures.fragment import HERE, shipped
from tutorial_figures.inputs import DEFLATE_ABOVE, pack
from tutorial_figures.learning import learn
from tutorial_figures.positions import turn
from tutorial_lib.plotting.colors import DARK, DARK_SCALES, LIGHT, LIGHT_SCALES

# Readable sources without comments: a chapter carries one or two such figures, and
# still a notebook stays within its 700 kB.
MOST_CODE = 28_600
# Whose pictures are drawn twice: a map, a diagram, curves and a photograph.
DRAWN_AGAIN = {"attention", "architecture", "learning", "patches"}
MOST_CODE_OF = {"writing": 38_000}  # of the front page, with a model
HOSTILE = "</script><!-- \u2028 <img src=x onerror=alert(1)> $x^2$ & \"'"
WORDS = ["I", "love", "cats"]
WEIGHTS = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0004, 0.1996, 0.8]])
CORNERS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
SHADES = torch.linspace(0, 1, 16).reshape(4, 4)  # 2 × 2 patches of 2 × 2 pixels
FRAGMENTS = ["base.js", "colors.js", "heads.js", "induction_model.js"]
FRAGMENTS += ["weights.js", "writing_model.js"]
SCRIPTS = [*FRAGMENTS, *(f"{name}.js" for name in FIGURES)]
WAYS_OUT = ("fetch", "import", "XMLHttpRequest", "url(", "<link", "eval")


def code_and_data(figure):
    """Split a figure's script at its data."""
    script = re.search(r"<script>(.*)</script>", figure.html, re.DOTALL)[1]
    code, call = script.rsplit('start("', 1)  # in the data the quote is escaped
    decoder = json.JSONDecoder()
    data, end = decoder.raw_decode(call, call.index("{"))
    css, _ = decoder.raw_decode(call, end + 2)
    return code + css, data


def codes_of(data, shape=-1):
    """Read packed weights back, in thousandths and 1."""
    raw = base64.b64decode(data["packed"])
    raw = zlib.decompress(raw) if data["deflated"] else raw
    return np.frombuffer(raw, "<u2").reshape(shape)


def picture_of(figure):
    from PIL import Image

    return Image.open(io.BytesIO(figure.png)).convert("RGB")


# ---- every figure


@every_figure
def test_a_figure_carries_all_it_needs_and_asks_nobody_for_anything(name):
    figure = without_picture(FIGURES[name](title=HOSTILE))
    code, data = code_and_data(figure)
    assert 5_000 < len(code.encode()) <= MOST_CODE_OF.get(name, MOST_CODE)
    assert data == json.loads(json.dumps(figure.data))
    assert data["title"] == HOSTILE.replace("\u2028", "\\u2028")
    page = figure.html
    assert page.count("<script") == page.count("</script") == page.count("<img") == 1
    assert "<!--" not in page and "\u2028" not in page
    assert [way for way in WAYS_OUT if way in code] == []
    assert "//" not in code.replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"\bsrc=\"data:.{9}", page) == ['src="data:image/png']
    assert figure.text.startswith(data["title"] + " · ")


@pytest.mark.parametrize(
    "style", sorted(HERE.glob("*.css")), ids=lambda file: file.stem
)
def test_a_style_loses_whole_comments_and_nothing_else(style):
    left = shipped(style.name)
    assert "*/" not in left and "/*" not in left
    assert left.count("{") == style.read_text(encoding="utf-8").count("{")


@pytest.mark.parametrize("name", ["kernel_regression", "learning"])
def test_what_has_a_role_has_its_color(name):
    left = shipped(f"{name}.css")
    assert "var(--value)" in left
    if name == "kernel_regression":
        assert "var(--query)" in left and "var(--key)" in left
        assert "var(--mark)" not in left and "var(--accent)" not in left


@every_figure
def test_a_figure_has_a_live_a_still_and_a_spoken_face_always_the_same(name):
    figure, again = FIGURES[name](), FIGURES[name].__wrapped__()
    bundle = figure._repr_mimebundle_()
    assert again is not figure
    if name not in DRAWN_AGAIN:
        vars(again)["png"] = figure.png  # full/test_figure_pages_browser.py draws it
    assert bundle == again._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]) == figure.png
    assert bundle["image/png"] in bundle["text/html"]
    assert bundle["text/plain"] == repr(figure) == figure.text
    assert f'alt="{html.escape(figure.text)}"' in figure.html
    image = picture_of(figure)
    assert len(figure.png) <= 20_000
    assert image.width >= 180 and image.height >= 120
    assert len(image.getcolors(maxcolors=10_000)) > 20


@pytest.mark.parametrize("word", ["$$", r"$\x$"])
def test_a_picture_takes_no_label_for_mathematics(word):
    framed = {"outline": {(0, 0)}, "outline_label": word, "title": word}
    for figure in (
        show_attention([[1.0]], [word], names=(word, word), **framed),
        show_softmax([1.0, 2.0], labels=[word, "b"], title=word),
    ):
        assert figure.png  # and nothing is said of wrong mathematics
        assert figure.still("png", dpi=50)


def test_a_figure_is_saved_as_a_page_or_a_picture_always_the_same(tmp_path):
    figure = attention()
    for ending, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        for name in ("a", "b"):
            figure.save(tmp_path / f"{name}{ending}")
        saved = (tmp_path / f"a{ending}").read_bytes()
        assert saved.startswith(start)
        assert saved == (tmp_path / f"b{ending}").read_bytes()
    figure.save(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and figure.html in page
    with pytest.raises(ValueError, match=r"end its name in \.html, \.js, \.png"):
        figure.save(tmp_path / "figure.gif")


# ---- what figures say


def chance(row, i):
    return f"{torch.tensor(row).softmax(0)[i]:.2f}"


def test_figures_say_what_is_seen_at_first():
    for figure, text in (
        (
            show_attention(WEIGHTS, WORDS, outline={(0, 0), (2, 1), (2, 2)}),
            "Attention weights of 3 query tokens over 3 key tokens. The largest, "
            "1.000, is that of query “love” for key “love”. 3 cells are framed (gold "
            "link): the largest weight of 2 of the 2 query tokens that have one.",
        ),
        (
            show_kernel_regression(
                [0, 1, 2, 3], [0.0, 1, 0, 1], query=1.5, bandwidth=0.3
            ),
            "Kernel regression of 4 points, gaussian kernel of bandwidth 0.3. At the "
            "query 1.50 the estimate is 0.50, as if 2.0 of them shared the weight "
            "equally.",
        ),
        (
            show_sampling([0.0, 0.0, 0.0, -50.0], "abcd", k=2, prompt="x y"),
            "The next token after “x y”, at temperature 1: 2 of 4 tokens may be "
            "sampled; the most probable, “c”, has probability 0.500; the entropy is "
            "0.69 nats, as if 2.0 tokens were equally probable.",
        ),
        (
            show_softmax([0.0, 0.0, 0.0, 0.0], labels="abcd", d_k=64),
            "Softmax of 4 scores at temperature 1: the largest weight, 0.250, is that "
            "of “a”; the entropy is 1.39 nats, as if 4.0 keys shared the weight "
            "equally.",
        ),
        (
            show_softmax([0.0, 0.0], labels="ab"),
            "Softmax of 2 scores at temperature 1: the largest weight, 0.500, is that "
            "of “a”.",
        ),
        (
            generation(),
            "After “<bos>” a model generates, each token with the probability that it "
            f"had: cats ({chance([2.0, 1, 0, 0], 1)}), "
            f"sleep ({chance([0.0, 2, 3, 1], 2)}), "
            f"<eos> ({chance([1.0, 0, 0, 2], 3)}).",
        ),
        (
            objects(),
            "After 500 steps of training query 0 predicts a cat, query 1 predicts a "
            "dog.",
        ),
        # One pair that turns by 1 radian a position: cos(8) = -0.1455.
        (
            show_positions(64, 2),
            "Sinusoidal encodings of 64 positions, 2 dimensions each, base 10000. "
            "Position 12 and position 20: dot product −0.15. All pairs at distance 8: "
            "−0.15.",
        ),
        # The query's pair is (cos 1, cos 4); the key is turned 3 on and stands 3 back:
        # cos(1)² + cos(4)² = 0.719.
        (
            show_positions(64, 2, kind="rotary"),
            "Rotary encodings of 64 positions, 2 dimensions each, base 10000. Query at "
            "position 12, key at position 9: score 0.719. All pairs at distance −3: "
            "0.719.",
        ),
        (
            windows(token=(0, 0), layers=3),
            "Token (0, 0) attends to 16 tokens in the last layer, whose windows are "
            "regular. After 3 layers its receptive field has 64 of 64 tokens.",
        ),
    ):
        assert figure.text == text


def test_learning_says_how_it_ends_in_the_unit_it_is_given():
    figure = show_learning(torch.eye(3), CORNERS, learning_rate=5)
    assert figure.text == (
        f"A query that learns. After {len(learn(figure.data)) - 1} steps of gradient "
        "descent its output is 0.01 from “key 0”, and the weights are 0.99 for “key "
        "0”, 0.01 for “key 1”, 0.01 for “key 2”."
    )
    figure = show_learning(torch.eye(3), CORNERS, learning_rate=1, unit=(1000, "km"))
    assert "is 10 km from “key 0”" in figure.text


def test_windows_without_a_shift_or_of_one_layer_have_a_smaller_receptive_field():
    for shifted, read, heard in ((True, 4, 16), (False, 16, 16)):
        text = windows(token=(0, 0), shifted=shifted).text
        assert f"attends to {read} tokens in the last layer" in text
        assert f"receptive field has {heard} of 64 tokens" in text
    assert "After 1 layer its receptive field has 16" in windows(layers=1).text


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
    text = show_sampling(logits, "abcd", **options).text
    assert f"{kept} of 4 tokens" in text
    assert f"“b”, has probability {first:.3f}" in text


def test_patches_say_where_the_query_looks_that_speaks_first():
    weights = torch.full((10, 10), 0.1)
    weights[0] = torch.tensor([0.4, 0.1, 0.3, *[0.2 / 7] * 7])
    weights[3] = torch.tensor([0.3, 0, 0, 0, 0, 0.6, 0.1, 0, 0, 0])
    image = torch.zeros(6, 6)
    assert show_patch_attention(weights, image).text == (
        "Attention weights among 3 × 3 patches of 2 × 2 pixels and a class token. The "
        "class token gives itself 0.400. Of the patches it attends most to (0, 1), "
        "0.300; equal shares would be 0.100."
    )
    named = show_patch_attention(weights, image, first=(0, 2))
    assert "Patch (0, 2) gives the class token 0.300. Of the patches it" in named.text
    assert "attends most to (1, 1), 0.600" in named.text
    heads = torch.full((2, 9, 9), 1 / 9)
    heads[1, 4] = torch.tensor([0, 0, 0, 0, 0.2, 0.1, 0, 0.7, 0])
    middle = show_patch_attention(heads, image, head=1, class_token=False)
    assert middle.text == (
        "Attention weights (head 1) among 3 × 3 patches of 2 × 2 pixels. Patch (1, 1) "
        "attends most to (2, 1), 0.700; equal shares would be 0.111."
    )
    assert middle.png != show_patch_attention(heads, image, class_token=False).png


def test_questions_say_where_each_of_them_looks():
    weights = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.0, 1.0, 0.0, 0.0]])
    asked = show_patch_attention(weights, SHADES, questions=["Who?", "Why?"])
    assert asked.text == (
        "Questions to an image of 2 × 2 patches of 2 × 2 pixels. Who? Attends most to "
        "(1, 0), 0.700. Why? Attends most to (0, 1), 1.000."
    )
    assert asked.data["questions"] == ["Who?", "Why?"]


# ---- what pages carry of weights


def test_packed_weights_come_back_to_the_thousandth():
    weights = torch.rand(2, 3, 4, 5).double().numpy()
    codes = codes_of(pack(weights), weights.shape)
    assert np.abs((codes - 1) / 1000 - weights).max() <= 0.0005
    apart = codes_of(pack(np.array([0.0, 1e-9, 0.0006, 1.0])))
    assert apart.tolist() == [0, 1, 2, 1001]
    few, many = np.zeros(DEFLATE_ABOVE // 2), np.zeros(DEFLATE_ABOVE // 2 + 1)
    assert not pack(few)["deflated"] and pack(many)["deflated"]
    assert codes_of(pack(many)).tolist() == many.tolist()


@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS.numpy(),
        WEIGHTS.tolist(),
        WEIGHTS.clone().requires_grad_(),
        WEIGHTS[None, None],
        [WEIGHTS[None, None]],
        (WEIGHTS[None, None].clone().requires_grad_(),),
    ],
)
def test_weights_come_in_any_shape_and_type(weights):
    data = show_attention(weights, WORDS).data
    assert codes_of(data).tolist() == [501, 251, 251, 0, 1001, 0, 1, 201, 801]


def test_half_precision_weights_are_welcome():
    for dtype in (torch.bfloat16, torch.float16):
        show_attention(softmaxed(3, 40, seed=1).to(dtype), WORDS, range(40))


@pytest.mark.parametrize(
    "show",
    [
        lambda weights, **shown: show_attention(weights, "abcde", **shown),
        lambda weights, **shown: show_patch_attention(weights, SHADES, **shown),
    ],
)
def test_layers_travel_with_the_mean_of_their_heads(show):
    weights = softmaxed(2, 3, 5, 5, seed=2)
    layers = list(weights[:, None])
    for given in (weights, layers, dict(enumerate(layers)), list(weights)):
        data = show(given, layer=1, head="mean").data
        numbers = (codes_of(data, (2, 4, 5, 5)) - 1.0) / 1000
        assert np.abs(numbers[:, :3] - weights.numpy()).max() <= 0.0005
        assert np.abs(numbers[:, 3] - weights.mean(1).numpy()).max() < 6e-4
        assert (data["layers"], data["heads"]) == (2, 3)
        assert data["shown"] == {"layer": 1, "head": 3}


def test_control_characters_in_tokens_are_written_out():
    data = show_attention(WEIGHTS, ["a\nb", "\t", "👩‍💻"]).data
    assert data["queries"] == ["a\\nb", "\\t", "👩‍💻"]


def test_masks_and_outlines_are_spread_over_the_cells():
    def sent(**options):
        return show_attention(WEIGHTS, WORDS, **options)

    assert sent(mask=torch.tensor([True, True, False])).data["mask"] == "110" * 3
    assert sent().data["mask"] is None
    gold = {(0, 0), (1, 1), (2, 1)}
    cells = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 1, 0]]).bool()
    for outline in (gold, frozenset(gold), cells, cells.numpy()):
        assert sent(outline=outline).data["outline"] == "100010010"
    for outline in (None, set(), torch.zeros(3).bool()):
        assert sent(outline=outline).data["outline"] is None
        assert sent(outline=outline).text == sent().text
    assert sent(outline={(0, 0)}).png != sent(outline={(1, 1)}).png


# ---- what pages carry of numbers and images


def test_the_frame_holds_points_truth_and_query():
    data = kernel_regression(query=9, truth=lambda x: 10 + x).data
    assert data["low"] <= 0 and data["high"] >= 9
    assert data["bottom"] <= 0 and data["top"] >= 14
    assert data["truth"][0] == (0.0, 10.0) and data["truth"][-1] == (4.0, 14.0)


def test_a_first_step_of_learning_worked_by_hand():
    # Equal weights read (1, 1)/3. The error is (1, -2)/3; its derivatives by the scores
    # are 2/3 (v - output)·error = (2, 8, -10)/27, and one step takes 9 of each.
    path = learn(
        show_learning(torch.eye(3), CORNERS, target="key 2", learning_rate=9).data
    )
    assert path[0][1] == pytest.approx([1 / 3, 1 / 3])
    powers = np.exp([-2 / 3, -8 / 3, 10 / 3])
    assert path[1][0] == pytest.approx(powers / powers.sum())


def test_temperature_divides_the_scores():
    assert "the largest weight, 0.881" in show_softmax([2.0, 0.0]).text
    assert "the largest weight, 0.731" in show_softmax([2.0, 0.0], temperature=2).text


def test_generation_keeps_the_drawn_word_however_unlikely_it_was():
    rows = torch.arange(8.0, 0, -1).expand(2, 8)
    figure = show_generation(rows, torch.ones(2, 2).tril() / 2, "ah", "abcdefgh")
    assert figure.data["steps"][0]["words"] == [*"abcdeh"]
    assert f"h ({rows[0].softmax(0)[7]:.2f})" in figure.text


def test_turning_is_the_matrix_of_the_paper():
    vector = torch.randn(6, dtype=torch.float64)
    for row, position in zip(
        turn(vector.numpy(), [0, 1, 7], 50), (0, 1, 7), strict=True
    ):
        for pair in range(3):
            angle = position * 50 ** (-2 * pair / 6)
            first, second = vector[2 * pair : 2 * pair + 2].tolist()
            assert row[2 * pair : 2 * pair + 2] == pytest.approx([
                first * math.cos(angle) - second * math.sin(angle),
                first * math.sin(angle) + second * math.cos(angle),
            ])  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "class_token", "size", "patch", "grid"),
    [
        (17, True, (8, 8), 2, [4, 4]),
        (49, False, (1, 28, 28), 4, [7, 7]),
        (197, True, (3, 224, 224), 16, [14, 14]),
        (8, False, (4, 8), 2, [2, 4]),
        (2, True, (3, 5, 5), 5, [1, 1]),
    ],
)
def test_the_size_of_the_patches_follows(tokens, class_token, size, patch, grid):
    weights = torch.full((tokens, tokens), 1 / tokens)
    data = show_patch_attention(weights, torch.ones(size), class_token=class_token).data
    assert (data["patch"], data["grid"], data["rows"]) == (patch, grid, tokens)
    assert data["classToken"] is class_token


def test_colors_up_to_1_are_not_offered_where_no_weight_would_be_seen():
    for largest, faint in ((0.0999, True), (0.1, False)):
        weights = torch.full((16, 16), (1 - largest) / 15)
        weights.fill_diagonal_(largest)
        weights[0] = torch.eye(16)[0]  # one query tells nothing of the others
        figure = show_patch_attention(weights, torch.zeros(8, 8), class_token=False)
        assert figure.data["faint"] is faint


def sent(figure):
    """Return the numbers of the image that a figure carries, from 0 to 1."""
    from PIL import Image

    head, _, file = figure.data["picture"].partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(file)))
    assert head == f"data:image/{image.format.lower()};base64"
    return torch.tensor(np.array(image)) / 255


def test_one_channel_is_ink_three_are_a_photograph_and_what_is_asked_has_colors():
    weights = torch.full((5, 5), 0.2)
    for image in (SHADES, SHADES[None], SHADES.tolist(), SHADES.double().numpy()):
        figure = show_patch_attention(weights, image)
        assert torch.allclose(sent(figure), SHADES) and not figure.data["faded"]
    photograph = drawn(3, 4, 4, seed=9)
    figure = show_patch_attention(weights, photograph)
    colors = photograph.permute(1, 2, 0)
    assert (sent(figure) - colors).abs().max() < 0.003 and figure.data["faded"]
    for image, seen in ((photograph, colors), (SHADES, 1 - SHADES[..., None])):
        asked = show_patch_attention(torch.eye(4)[:1], image, questions=["?"])
        assert (sent(asked) - seen).abs().max() < 0.003


def test_a_large_photograph_travels_as_a_small_file():
    across = torch.linspace(0, 1, 224).expand(224, 224)
    photograph = torch.stack([across, across.T, 1 - across])
    figure = show_patch_attention(torch.eye(196), photograph, class_token=False)
    assert figure.data["picture"].startswith("data:image/jpeg")
    assert len(figure.data["picture"]) < 20_000
    assert (sent(figure) - photograph.permute(1, 2, 0)).abs().mean() < 0.02


# ---- the sources that pages carry


def test_pages_carry_the_sources_without_their_comments():
    source = (HERE / "heads.js").read_text(encoding="utf-8")
    assert "// Weights travel" in source and "//" not in shipped("heads.js")
    lines = [line for line in source.splitlines() if line.strip()]
    code = [line for line in lines if not line.lstrip().startswith("//")]
    assert shipped("heads.js").splitlines() == code
    assert "/*" in (HERE / "base.css").read_text() and "/*" not in shipped("base.css")


@pytest.mark.parametrize("name", SCRIPTS)
def test_comments_fill_whole_lines_and_literals_one(name):
    source = (HERE / name).read_text(encoding="utf-8")
    code = [line for line in source.splitlines() if line.lstrip()[:2] != "//"]
    assert not [line for line in code if "//" in line.replace("http://", "")]
    assert not [line for line in code if "/*" in line or line.count("`") % 2]


@pytest.mark.parametrize("path", sorted(HERE.glob("*.css")), ids=lambda path: path.name)
def test_styles_have_whole_lines_of_comments_no_motion_and_no_color_of_their_own(path):
    source = path.read_text(encoding="utf-8")
    assert "/*" not in shipped(path.name) and "*/" not in shipped(path.name)
    assert not re.search("transition|animation", source)
    assert not re.findall(r"#[0-9a-f]{6}", source)


def test_colors_stand_in_one_palette_and_are_the_book_s():
    code, _ = code_and_data(FIGURES["softmax"]())
    for host, colors in ((":host", LIGHT), (":host([data-dark])", DARK)):
        rule = code[code.index(f"{host} {{") :].split("}")[0]
        for name, color in colors.items():
            assert f"--{name}: {color};" in rule
    book = (HERE.parent / "book" / "_static" / "book.css").read_text()
    light, dark = book.split('html[data-theme="dark"] {')[:2]
    for name in ("query", "key", "value", "ink", "quiet"):
        assert f"--book-{name}: {LIGHT[name]};" in light
        assert f"--book-{name}: {DARK[name]};" in dark
    assert f"--book-paper: {DARK['paper']};" in dark
    scales = [*LIGHT_SCALES.values(), *DARK_SCALES.values()]
    assert all(colors.replace("#", "") in shipped("colors.js") for colors in scales)


def test_the_sources_name_nothing_unknown_and_nothing_in_vain(tmp_path):
    parts = [(HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    text = "\n".join([*parts, f"start({', '.join(FIGURES)});\n"])
    (tmp_path / "all.js").write_text(text, encoding="utf-8")
    oxlint = pathlib.Path(sysconfig.get_path("scripts")) / "oxlint"
    command = [str(oxlint), "-c", str(HERE / ".oxlintrc.json"), "-D", "no-undef"]
    command += ["-D", "no-unused-vars", str(tmp_path / "all.js")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
