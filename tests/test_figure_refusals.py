"""What figures refuse, in one line that says what to do."""

import numpy as np
import pytest
import torch
from figures_in_browser import (
    BACKWARD,
    LOGITS,
    SCENE_BOXES,
    SCENE_WEIGHTS,
    SCENES,
    STEPS,
    TEXT,
    learning,
    positions,
    windows,
)
from figures_in_browser import SAID_OF_SCENES as SAID

from tutorial_figures import (
    show_attention,
    show_generation,
    show_kernel_regression,
    show_learning,
    show_objects,
    show_patch_attention,
    show_positions,
    show_sampling,
    show_softmax,
)
from tutorial_figures.inputs import pack

WORDS = ["I", "love", "cats"]
WEIGHTS = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0004, 0.1996, 0.8]])
BATCH = torch.stack(2 * [WEIGHTS[None]])  # of two sentences
IMAGE = torch.linspace(0, 1, 16).reshape(4, 4)
CORNERS = [[0, 0], [1, 0], [0, 1]]
FIVE = torch.full((5, 5), 0.2)
NOISE = np.random.default_rng(0).random((900, 900))


def attend(weights=WEIGHTS, words=WORDS, keys=None, **options):
    return show_attention(weights, words, keys, **options)


def regress(x=(0, 1), y=(0, 1), **options):
    return show_kernel_regression(x, y, **options)


def learn(keys=None, values=CORNERS, **options):
    return show_learning(torch.eye(3) if keys is None else keys, values, **options)


def sample(logits=(1.0, 2.0), words="ab", **options):
    return show_sampling(logits, words, **options)


def generate(logits=LOGITS, maps=BACKWARD, tokens=TEXT, words=TEXT, **options):
    return show_generation(logits, maps, tokens, words, **options)


def look(tokens=5, image=IMAGE, *, weights=None, **options):
    alike = torch.full((tokens, tokens), 1 / tokens)
    return show_patch_attention(alike if weights is None else weights, image, **options)


def detect(
    images=SCENES, names=SAID, boxes=SCENE_BOXES, weights=SCENE_WEIGHTS, steps=STEPS
):
    return show_objects(images, names, boxes, weights, steps=steps)


REFUSED = [
    (
        lambda: attend(WEIGHTS * 3),
        "between 0 and 1, got 0 to 3: pass the output of the",
    ),
    (lambda: attend(WEIGHTS - 1), "between 0 and 1, got -1 to 0"),
    (lambda: attend(WEIGHTS.T), r"sum to 1\.45, not 1: rows are queries"),
    (lambda: attend(WEIGHTS * torch.nan), "weights contain NaN or infinity"),
    (lambda: attend(words=WORDS[:2]), "3 queries × 3 keys, but there are 2 query tok"),
    (lambda: attend(keys=WORDS[:1]), "there are 3 query tokens and 1 key tokens"),
    (lambda: attend(WEIGHTS[0]), r"must be \(query, key\), .* got \(3,\)"),
    (lambda: attend(WEIGHTS[None, None, None]), r"got \(1, 1, 1, 3, 3\)"),
    (lambda: attend(BATCH), r"\(2, 1, 3, 3\) may be 2 layers or sentences: pass layer"),
    (lambda: look(weights=torch.stack(2 * [FIVE[None]])), "2 layers or sentences"),
    (
        lambda: attend([BATCH, BATCH]),
        r"one \(1, head, query, key\) for each layer, got",
    ),
    (
        lambda: attend({"a": BATCH}),
        r"pick a sentence, as in \[one\[:1\] for one in maps",
    ),
    (
        lambda: attend([BATCH[:1], BATCH[0, :, :2]]),
        "layers must have maps of one shape",
    ),
    (lambda: attend([]), r"must be \(query, key\), .* got \(0,\)"),
    (lambda: attend(torch.eye(257), range(257)), "257 tokens are more than the 256"),
    (lambda: pack(NOISE), r"make a cell of 1\.\d MB, more than 1: pass"),
    (lambda: attend(layer=1), "layer 1 does not exist: choose 0 to 0"),
    (lambda: attend(head=-1), "head -1 does not exist"),
    (lambda: attend(head="mean"), "head 'mean' does not exist: choose 0 to 0"),
    (lambda: attend(mask=torch.ones(3, 3)), "mask must be boolean, .* got float"),
    (lambda: attend(mask=torch.ones(2, 3).bool()), r"\(2, 3\) must broadcast .*\(3, 3"),
    (
        lambda: attend(outline={(0, 3)}),
        r"outline \(0, 3\) lies outside a map of 3 quer",
    ),
    (lambda: attend(outline=torch.ones(3, 3)), "boolean, or a set .* got float32"),
    (lambda: regress(y=(0, 1, 2)), r"two vectors of one length, got \(2,\) and \(3,\)"),
    (lambda: regress(x=(0, torch.nan)), "x contain NaN"),
    (lambda: regress(y=(0, torch.inf)), "y contain NaN or infinity"),
    (lambda: regress([1], [1]), "1 points: pass 2 to 500"),
    (lambda: regress(range(501), range(501)), "501 points: pass 2 to 500"),
    (lambda: regress((2, 2)), "all points lie at x = 2: pass at least two places"),
    (lambda: regress(bandwidth=0), "bandwidth must be positive, got 0"),
    (lambda: regress(query=torch.nan), "query must be a finite number"),
    (lambda: regress(truth=lambda x: x / 0), "values of truth contain NaN"),
    (lambda: learn(values=[0, 1, 2]), r"values \(key, 2\).* got \(3, 3\) and \(3,\)"),
    (lambda: learn(torch.eye(2), CORNERS[:2]), "2 keys: pass 3 to 12"),
    (lambda: learn(labels="ab"), "3 keys need as many labels, got 2"),
    (lambda: learn(values=[[0, 0], [1, 1], [2, 2]]), "all values lie on one line"),
    (lambda: learn(target="d"), "target must be one of key 0, key 1, key 2, got 'd'"),
    (lambda: learning(learning_rate=0), "learning_rate must be positive, got 0"),
    (lambda: sample([[1.0, 2.0]]), r"vector of 2 to 2,000 numbers, .* got \(1, 2\)"),
    (lambda: sample([1.0, torch.nan]), "logits contain NaN"),
    (lambda: sample(words="a"), "2 logits need as many words, got 1"),
    (lambda: sample(temperature=0), "temperature must be positive, got 0"),
    (lambda: sample(k=0), "k must be positive"),
    (lambda: sample(p=0), "p must be above 0 and at most 1, got 0"),
    (lambda: sample(least=2), "least must be from 0 to 1, got 2"),
    (lambda: generate(tokens=TEXT[:1]), "2 to 40 tokens, .* got 1, of which 1"),
    (lambda: generate(begin=4), "got 4, of which 4 are given"),
    (lambda: generate(LOGITS[:2]), r"4 tokens and 4 words need logits \(4, 4\)"),
    (lambda: generate(words=["<bos>", "cats", "x", "y"]), "the words lack “sleep”"),
    (lambda: generate(maps=[[0.25] * 4] * 4), "attends to none that comes later"),
    (lambda: generate(maps=2 * BACKWARD), "the output of the softmax"),
    (lambda: show_softmax([[1.0, 2.0]]), r"vector of 2 to 40 numbers, .* got \(1, 2\)"),
    (lambda: show_softmax(range(41)), r"got \(41,\)"),
    (lambda: show_softmax([1.0, 2.0], labels=["a"]), "2 scores need as many labels"),
    (lambda: show_softmax([1.0, 2.0], temperature=0), "temperature must be positive"),
    (lambda: show_softmax([1.0, 2.0], d_k=0), "d_k must be positive"),
    (lambda: show_positions(1), "tokens must be a whole number from 2 to 256, got 1"),
    (lambda: show_positions(8.5), r"a whole number from 2 to 256, got 8\.5"),
    (lambda: show_positions(64, 33), "d_model must be even, .* pass 32 or 34"),
    (lambda: show_positions(64, 1026), "from 2 to 1024 with 64 tokens, got 1026"),
    (lambda: positions(kind="alibi"), "'alibi' does not exist: choose sinusoidal, ro"),
    (lambda: look(4), r"is not cut into 3 squares: pass class_token=False"),
    (lambda: look(class_token=False), "5 patches, but .* pass class_token=True"),
    (lambda: look(17, torch.zeros(28, 30)), "pass the image that the model saw"),
    (lambda: look(1), "1 tokens are 0 patches and a class token"),
    (lambda: look(290, torch.ones(17, 17)), "289 patches are more than the 256"),
    (lambda: look(image=IMAGE * 255), "between 0 and 1, got 0 to 255: divide by"),
    (lambda: look(image=IMAGE * 65_535), r"got 0 to 6\.55e\+04: .* 16 bits by 65,535"),
    (lambda: look(image=IMAGE - 0.5), r"got -0\.5 to 0\.5: .*undo a normalization"),
    (lambda: look(image=IMAGE * torch.nan), "pixels of the image contain NaN"),
    (lambda: look(image=torch.ones(4, 4, 3)), r"got \(4, 4, 3\): .*channels first"),
    (lambda: look(image=torch.ones(1, 1, 4, 4)), r"got \(1, 1, 4, 4\): pass one image"),
    (lambda: look(image=torch.ones(0, 4)), r"got \(0, 4\)"),
    (lambda: look(image=torch.ones(258, 258)), "258 × 258 pixels are more than the"),
    (lambda: look(first=(2, 1)), r"no patch \(2, 1\) among 2 × 2"),
    (lambda: show_patch_attention(FIVE[:3], IMAGE), "3 queries × 5 keys: here both"),
    (lambda: look(4, questions=["?"]), "1 questions need as many queries, got 4"),
    (lambda: detect(steps=[1, 2]), "for 2 steps, got"),
    (lambda: detect(images=SCENES[0]), r"images must be \(scene, height, width\)"),
    (lambda: detect(images=torch.ones(2, 5, 6)), "cut into 2 × 3 equal patches"),
    (lambda: detect(images=torch.ones(2, 80, 90)), "pass at most 4,096"),
    (lambda: detect(images=2 * SCENES), "image must lie between 0 and 1"),
    (lambda: detect(weights=2 + SCENE_WEIGHTS), "weights must lie between 0 and 1"),
    (lambda: detect(boxes=2 * SCENE_BOXES), "boxes must lie between 0 and 1"),
    (lambda: detect(boxes=SCENE_BOXES[..., :2]), r"boxes must be \(3, 2, 2, 4\), got"),
    (
        lambda: detect(boxes=torch.ones(3, 2, 9, 4), weights=torch.ones(3, 2, 9, 2, 3)),
        "16, 8, 8",
    ),
    (lambda: detect(names=SAID[:1]), r"names must be \(3, 2, 2\)"),
    (lambda: windows(side=16), "divide a side of at most 8: got 4 and 16"),
    (lambda: windows(size=3, side=6), "got 3 and 6"),
    (lambda: windows(size=6), "got 6 and 8"),
    (lambda: windows(token=(3, 8)), r"a row and a column below 8, got \(3, 8\)"),
    (lambda: windows(layers=5), "layers must be 1 to 4, got 5"),
]


@pytest.mark.parametrize(("show", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_with_advice(show, message):
    with pytest.raises(ValueError, match=message) as refusal:
        show()
    assert "\n" not in str(refusal.value)
