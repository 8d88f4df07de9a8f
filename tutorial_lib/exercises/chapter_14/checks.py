"""Checks for chapter 14: the Vision Transformer.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

from unittest import mock

import einops.einops
import torch

from tutorial_lib.exercises.counting import Count
from tutorial_lib.exercises.exercise import Exercise
from tutorial_lib.exercises.memory import Watch
from tutorial_lib.exercises.probe import call_advising

__all__ = ["counting", "cutting", "sizes", "stretching"]

_FOUR_AXES = (
    "`F.interpolate` wants four axes, (1, d_model, row, column), and stretches the "
    "last two."
)

STRETCH_ERRORS = [  # part of what Python says, code, message
    (
        "invalid for input of size",
        "class-token-in-square",
        "Your reshape does not come out even. The first row, the class token's, is no "
        "place in the square: set it aside before.",
    ),
    ("number of spatial dimensions", "no-batch", _FOUR_AXES),
    ("supported (got 3D)", "no-batch", _FOUR_AXES),
    (
        "except in dimension",
        "d_model-stretched",
        "`F.interpolate` stretches the last two axes: rows and columns must stand "
        "there, and d_model in front of them.",
    ),
    (
        "same number of dimensions",
        "row-lost",
        "`table[0]` is a vector, and the rest is a table. With `table[:1]` the class "
        "token's row stays a row.",
    ),
]


sizes = Exercise(
    "14.1",
    "Sizes of a larger photograph",
    hints=[
        "A patch is 16 pixels high and 16 wide, and each pixel has three numbers.",
        "384 / 16 patches stand side by side, and as many one below the other. One "
        "token more is no patch.",
        "A head has a score for each query with each key. What is computed from an "
        "image is not stored in the model.",
    ],
)


@sizes.spec
def photograph():
    """Cut an image, and count."""
    patches = torch.zeros(3, 384, 384).unfold(1, 16, 16).unfold(2, 16, 16)
    tokens = 1 + patches.shape[1] * patches.shape[2]
    return {
        "numbers in a patch": patches[:, 0, 0].numel(),
        "tokens": tokens,
        "scores of a head": tokens**2,
        "parameters among them": 0,
    }


cutting = Exercise(
    "14.2",
    "Cut an image into patches",
    name="cut_patches",
    returns="batch patch number",
    hints=[
        "There are `height // patch_size` rows of patches. A first reshape splits the "
        "height into (row, patch_size), and the width into (column, patch_size).",
        "That makes six axes: batch, channel, row, height, column, width. They must "
        "come out as batch, (row, column), (channel, height, width).",
        "`permute` takes the old numbers of the axes in their new order: batch, row "
        "and column are 0, 2 and 4. A second reshape joins what stands together.",
    ],
)


@cutting.spec
def cut_patches(images, patch_size):
    """Cut one patch after the other."""
    _, _, height, width = images.shape
    patches = []
    for top in range(0, height, patch_size):
        for left in range(0, width, patch_size):
            down, across = slice(top, top + patch_size), slice(left, left + patch_size)
            patches.append(images[:, :, down, across].flatten(1))
    return torch.stack(patches, dim=1)


for _label, _shape, _size in [
    ("a grey image, cut into patches of 2 × 2", (1, 1, 6, 6), 2),
    ("two images with three channels", (2, 3, 6, 6), 3),
    ("a landscape: wider than high", (2, 2, 4, 8), 2),
    ("patches of one pixel", (2, 3, 2, 3), 1),
]:

    @cutting.step(_label)
    def _(probe, shape=_shape, size=_size):
        patches = probe(torch.randn(shape), size)
        batch, channels, height, width = shape
        count, numbers = height * width // size**2, channels * size**2
        probe.shape(patches, batch=batch, patch=count, number=numbers)
        probe.same()


@cutting.step("by reshape and permute, with nothing ready-made")
def _(probe):
    rearranged = mock.patch.object(einops.einops, "reduce", wraps=einops.einops.reduce)
    with rearranged as rearrange, Watch() as seen:
        probe(torch.randn(1, 2, 4, 4), 2)
    message = (
        "The patches are right, but this time do without `rearrange` and `unfold`: "
        "reshape, permute, reshape."
    )
    ready_made = rearrange.called or "unfold" in seen.sizes
    probe.require(not ready_made, "ready-made", message)


@cutting.step("gradients reach the pixels")
def _(probe):
    images = torch.randn(1, 1, 4, 4, requires_grad=True)
    probe(images, 2)
    probe.gradients(images)


counting = Exercise(
    "14.3",
    "Count before you build",
    name="vit_parameters",
    hints=[
        "A block has 4 · d_model² + 2 · d_model · d_ff + 9 · d_model + d_ff, as in "
        "exercise 10.3. What stands in front of the blocks, and what behind them?",
        "In front: the linear map of a patch with its biases, the class token, and a "
        "position for every token.",
        "Behind: one norm with a gamma and a beta, and a linear map to the classes "
        "with its biases.",
    ],
)


@counting.spec
def vit_parameters(image_size, patch_size, classes, d_model, blocks, d_ff, *, channels):
    """Add up the layers as (numbers in, numbers out), then the vectors one by one."""
    maps = [(channels * patch_size**2, d_model), (d_model, classes)]
    for _ in range(blocks):
        maps += [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    vectors = 1  # the class token
    for _ in range(1 + (image_size // patch_size) ** 2):
        vectors += 1  # a position
    for _ in range(2 * blocks + 1):
        vectors += 2  # gamma and beta of a norm
    return sum((read + 1) * written for read, written in maps) + vectors * d_model


def _called(side, patch_size, *sizes):
    """Return the arguments for an image of side × side patches."""
    *sizes, channels = sizes
    return (side * patch_size, patch_size, *sizes), {"channels": channels}


COUNT = Count(
    ("side", "patch_size", "classes", "d_model", "blocks", "d_ff", "channels"),
    degree=6,
    call=_called,
    about={
        "side²·d_model": "the positions of the patches: side is image_size // "
        "patch_size, and a grid has as many rows as columns",
        "side·d_model": "the positions of one row of patches: a grid has several rows",
        "patch_size²·d_model·channels": "the map of a patch, which all patches share, "
        "from all channels of its pixels",
        "patch_size²·d_model": "a map from one channel: a patch goes through all",
        "side²·patch_size²·d_model·channels": "a map for each patch: they share one",
        "d_model": "single vectors: the biases of a patch's map, the class token, its "
        "position, and gamma and beta of the last norm",
        "classes·d_model": "the head, which reads the class token alone",
        "side²·classes·d_model": "a head that reads all tokens, not the class token "
        "alone",
        "classes": "the biases of the head",
        "d_model²·blocks": "attention's four matrices in every block",
        "d_model·blocks·d_ff": "the network's two matrices in every block",
        "d_model·blocks": "biases and norms in every block",
        "blocks·d_ff": "the biases of the networks' inner layers",
    },
)

for _label, *_sizes in [
    ("the model of this chapter", 4, 2, 10, 32, 2, 64, 1),
    ("three channels, and four times the patches", 8, 3, 5, 6, 3, 16, 3),
    ("ViT-B/16", 14, 16, 1000, 768, 12, 3072, 3),
]:

    @counting.step(_label)
    def _(probe, sizes=tuple(_sizes)):
        COUNT.expect(probe, *sizes)


stretching = Exercise(
    "14.4",
    "A larger image",
    name="stretch_positions",
    returns="token d_model",
    tolerance=1e-4,
    hints=[
        "Set `table[:1]` aside. The other rows are a square of patches, row by row.",
        "`F.interpolate` wants (batch, channel, height, width): here (1, d_model, row, "
        "column). With `before` rows in the old square, "
        "`grid = table[1:].T.unflatten(1, (before, before))[None]` gets there.",
        '`F.interpolate(grid, size=side, mode="bicubic", align_corners=True)`, then '
        "flatten, transpose and put the class token's row in front again.",
    ],
)


@stretching.spec
def stretch_positions(table, side):
    """Blend the four nearest positions along each axis, number by number."""
    before = round((len(table) - 1) ** 0.5)
    blend = torch.zeros(side, before)
    for i in range(side):
        place = i * (before - 1) / (side - 1)
        for near in range(int(place) - 1, int(place) + 3):
            at = min(max(near, 0), before - 1)
            blend[i, at] += _bicubic(abs(place - near))
    rows = [table[0]]
    for i in range(side):
        for j in range(side):
            weights = torch.outer(blend[i], blend[j]).flatten()
            rows.append((weights[:, None] * table[1:]).sum(dim=0))
    return torch.stack(rows)


def _bicubic(distance, a=-0.75):
    """Return the weight of a point so far away: Keys (1981), with torch's a."""
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    if distance < 2:
        return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return 0.0


for _label, _before, _side in [
    ("from 2 × 2 to 3 × 3 patches", 2, 3),
    ("from a single patch to 2 × 2", 1, 2),
    ("from 4 × 4 to 6 × 6 patches", 4, 6),
    ("back, from 6 × 6 to 3 × 3", 6, 3),
]:

    @stretching.step(_label)
    def _(probe, before=_before, side=_side):
        table = torch.randn(1 + before**2, 6)
        stretched = call_advising(probe, (table, side), STRETCH_ERRORS)
        probe.shape(stretched, token=1 + side**2, d_model=6)
        probe.same()


@stretching.step("the same grid leaves the table as it is")
def _(probe):
    table = torch.randn(17, 3)
    probe.same(table, output=probe(table, 4))


@stretching.step("gradients reach the table")
def _(probe):
    table = torch.randn(5, 4, requires_grad=True)
    probe(table, 3)
    [slopes] = probe.gradients(table)
    message = (
        "No gradient reaches the patches' rows: a `.detach()` or `torch.no_grad()` "
        "cuts the graph, so that they could not be trained further."
    )
    probe.require(slopes[1:].any(), "no-gradient", message)
