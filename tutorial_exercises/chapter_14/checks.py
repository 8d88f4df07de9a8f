"""Checks for chapter 14: the Vision Transformer.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

from unittest import mock

import einops.einops
import torch

from tutorial_exercises.exercise import Exercise
from tutorial_exercises.memory import Watch
from tutorial_exercises.probe import call_advising
from tutorial_lib.vit import VisionTransformer

__all__ = ["cutting", "some", "stretching"]

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


cutting = Exercise(
    "14.1",
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


some = Exercise(
    "14.2",
    "A few squares will do",
    name="read_some",
    returns="batch class",
    hints=[
        "`model.embed(images)` makes the tokens, with their places: the class token "
        "first, then the patches. Choose among them before the blocks.",
        "Row 0 is the class token's, so patch i is row 1 + i. Every image needs a list "
        "of rows of its own: first 0, and then those of its patches.",
        "`gather` along axis 1 takes the rows. It wants a row number for every entry, "
        "(batch, row, d_model): `expand` repeats them. Then go on as the model does.",
    ],
)


@some.spec
def read_some(model, images, kept):
    """Read one image after the other, and pick its tokens one by one."""
    logits = []
    for image, patches in zip(images, kept.tolist(), strict=True):
        tokens = model.embed(image[None])[0]
        x = torch.stack([tokens[0], *(tokens[1 + i] for i in patches)])[None]
        for layer in model.layers:
            x = layer(x)
        logits.append(model.head(model.norm(x))[0, 0])
    return torch.stack(logits)


@torch.no_grad()
def _reader():
    """Return a small model, of 3 × 3 patches, whose every number counts."""
    sizes = {"d_model": 8, "num_layers": 2, "num_heads": 2, "mlp_dim": 16}
    model = VisionTransformer(6, 2, num_classes=4, **sizes).eval()
    for parameter in model.parameters():
        parameter.add_(0.4 * torch.randn_like(parameter))
    return model.requires_grad_(False)


for _label, _batch, _count in [
    ("all patches: the model's own answer", 2, 9),
    ("one image of which four patches are left", 1, 4),
    ("each image keeps patches of its own", 3, 5),
    ("a single patch", 2, 1),
    ("none: the class token is alone", 2, 0),
]:

    @some.step(_label)
    def _(probe, batch=_batch, count=_count):
        kept = torch.rand(batch, 9).argsort(dim=1)[:, :count]
        logits = probe(_reader(), torch.rand(batch, 1, 6, 6), kept)
        probe.shape(logits, **{"batch": batch, "class": 4})
        probe.same()


stretching = Exercise(
    "14.3",
    "A larger image",
    name="stretch_positions",
    returns="token d_model",
    tolerance=1e-4,
    hints=[
        "Set `table[:1]` aside. The other rows are a square of patches, row by row.",
        "`F.interpolate` wants (batch, channel, height, width): here (1, d_model, row, "
        "column). How many rows the old square has follows from the table's length.",
        "Transpose first, so that d_model stands in front, and then split the patches "
        "into rows and columns. Afterwards go the same way back.",
    ],
)


@stretching.spec
def stretch_positions(table, side):
    """Blend the four nearest places along each axis, number by number."""
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
