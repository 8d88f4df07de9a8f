"""Exercises of chapter 14: the Vision Transformer."""

from unittest import mock

import einops.einops
import torch
import torch.nn.functional as F

from tutorial_exercises import Exercise
from tutorial_exercises.watch import Watch
from tutorial_lib.vit import VisionTransformer


@Exercise("14.1", "Cut an image into patches", axes="batch patch d_patch")
def cut_patches(images, patch_size):
    """Return patches as rows, flattened in the order of a convolution's weights."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (batch, row, column, channel, height, width)
    return x.reshape(batch, rows * columns, -1)


@cut_patches.oracle
def _(images, patch_size):
    _, _, height, width = images.shape
    patches = []
    for top in range(0, height, patch_size):
        for left in range(0, width, patch_size):
            down, across = slice(top, top + patch_size), slice(left, left + patch_size)
            patches.append(images[:, :, down, across].flatten(1))
    return torch.stack(patches, dim=1)


@cut_patches.cases
def _():
    yield "a gray image, cut into patches of 2 × 2", torch.randn(1, 1, 6, 6), 2
    yield "two images with three channels", torch.randn(2, 3, 6, 6), 3
    yield "images wider than high", torch.randn(2, 2, 4, 8), 2
    yield "patches of one pixel", torch.randn(2, 3, 2, 3), 1


@cut_patches.demand("by reshape and permute alone")
def _(answer):
    reduce = einops.einops.reduce  # which `rearrange` calls
    rearranged = mock.patch.object(einops.einops, "reduce", wraps=reduce)
    with rearranged as rearrange, Watch() as seen:
        answer(torch.randn(1, 2, 4, 4), 2)
    if rearrange.called or "unfold" in seen.sizes:
        return (
            "The patches are right, but this time do without `rearrange` and `unfold`: "
            "reshape, permute, reshape."
        )


@cut_patches.demand("gradients reach the images")
def _(answer):
    images = torch.randn(1, 1, 4, 4, requires_grad=True)
    answer(images, 2)
    answer.gradients(images)


cut_patches.hints = """
- There are `height // patch_size` rows of patches. A first reshape splits the height
  into (row, patch_size) and the width into (column, patch_size).
- That makes six axes: batch, channel, row, height, column, width. They must come out as
  batch, (row, column), (channel, height, width).
- `permute` takes the old indices of the axes in their new order: batch, row and column
  are 0, 2 and 4. A second reshape merges neighboring axes.
"""

cut_patches.mistakes = """
A reshape alone keeps the pixels in their order, so that your patches are pieces of
pixel rows. A patch has pixels of several rows: permute the axes before the last
reshape.
    x = x.permute(0, 2, 4, 1, 3, 5) → x = images
Your patches come column by column. They must come row by row: the second patch is the
right neighbor of the first.
    permute(0, 2, 4, → permute(0, 4, 2,
Each of your patches is transposed: within a patch, the pixels come row by row.
    4, 1, 3, 5) → 4, 1, 5, 3)
Within a patch, the channel axis comes first: all pixels of the first channel, then all
of the second.
    4, 1, 3, 5) → 4, 3, 5, 1)
The pixels of your patches are not neighbors in the image. Split the height into (row,
patch_size), not (patch_size, row), and the width likewise.
    rows, patch_size, columns, patch_size) → patch_size, rows, patch_size, columns)
    and permute(0, 2, 4, 1, 3, 5) → permute(0, 3, 5, 1, 2, 4)
Rows and columns of patches are still two axes. Merge them: (row column).
    rows * columns → rows, columns
You exchange height and width. The axes are (batch, channel, height, width).
    height, width = images.shape → width, height = images.shape
Your patches overlap: the window moves by one pixel. It must move by `patch_size`.
    return x.reshape(batch, rows * columns, -1) → return F.unfold(images, patch_size).mT
The channels of a patch are separated: move the channel axis behind those of rows and
columns before you merge axes.
    permute(0, 2, 4, 1, 3, 5) → permute(0, 1, 2, 4, 3, 5)
Your patches have only the first channel. A patch has all channels.
    channels, rows, patch_size, columns, patch_size) → channels, rows, patch_size, columns, patch_size)[:, :1]
Your patches are columns. Each patch is a row: transpose the last two axes.
    rows * columns, -1) → rows * columns, -1).mT
right:
    images.reshape → images.view
    and x.reshape(batch, rows * columns, -1) → x.flatten(3).flatten(1, 2)
"""


@Exercise("14.2", "A few squares will do", axes="batch class")
def read_some(model, images, kept):
    """Return the logits of a model that gets only some patches of each image."""
    x = model.embed(images)  # (batch, 1 + patch, d_model): the class token first
    tokens = F.pad(1 + kept, (1, 0))  # its index, 0, and those of the patches
    x = x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1]))
    for layer in model.layers:
        x = layer(x)
    x = model.norm(x)
    return model.head(x[:, 0])


@read_some.oracle
def _(model, images, kept):
    logits = []
    for image, patches in zip(images, kept.tolist(), strict=True):
        tokens = model.embed(image[None])[0]
        x = torch.stack([tokens[0], *(tokens[1 + i] for i in patches)])[None]
        for layer in model.layers:
            x = layer(x)
        logits.append(model.head(model.norm(x))[0, 0])
    return torch.stack(logits)


@torch.no_grad()
def small_model():
    """Return a small model, of 3 × 3 patches, in which every parameter matters."""
    sizes = {"d_model": 8, "num_layers": 2, "num_heads": 2, "mlp_dim": 16}
    model = VisionTransformer(6, 2, num_classes=4, **sizes).eval()
    for parameter in model.parameters():
        parameter.add_(0.4 * torch.randn_like(parameter))
    return model.requires_grad_(False)


def images_and_patches(batch, count):
    """Make images, and choose so many of the nine patches of each."""
    images = torch.rand(batch, 1, 6, 6)
    return images, torch.rand(batch, 9).argsort(dim=1)[:, :count]


@read_some.cases
def _():
    model = small_model()
    yield "all patches: the model's own logits", model, *images_and_patches(2, 9)
    label = "four patches of one image"
    yield label, model, *images_and_patches(1, 4)
    yield "each image keeps patches of its own", model, *images_and_patches(3, 5)
    yield "a single patch", model, *images_and_patches(2, 1)
    yield "no patch: the class token alone", model, *images_and_patches(2, 0)


read_some.hints = """
- `model.embed(images)` returns the tokens with their position embeddings: the class
  token first, then the patches. Select among them before the blocks.
- Token 0 is the class token, so patch i is token 1 + i. Every image needs its own token
  indices: first 0, then those of its patches.
- `gather` along axis 1 selects the tokens. Its index has the shape of its output,
  (batch, token, d_model): `expand` repeats the indices. Then go on as the model does.
"""

read_some.mistakes = """
Your patches are off by one: token 0 is the class token, so patch i is token 1 + i.
    1 + kept → kept
The class token is gone, and the head gets a patch. Keep token 0, in front.
    F.pad(1 + kept, (1, 0)) → 1 + kept
The class token comes last, and the head gets a patch. Put token 0 in front.
    (1, 0) → (0, 1)
You set the other tokens to 0. They are still in the sequence and get attention weight
in every softmax: leave them out.
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → x * torch.zeros(x.shape[:2]).scatter(1, tokens, 1.0)[..., None]
You set the other patches of the image to 0. A blank patch still makes a token with
information: leave its token out.
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → torch.zeros(x[:, 1:, 0].shape).scatter(1, kept, 1.0)
        side = round(x.shape[1] ** 0.5)
        shown = F.interpolate(x.view(-1, 1, side, side), size=images.shape[2:])
        x = model.embed(images * shown)
You select after the blocks, in which the tokens attended to all patches. Select before
them.
    x = layer(x) → pass
    and tokens = F.pad(1 + kept, (1, 0)) → for layer in model.layers:
            x = layer(x)
        tokens = F.pad(1 + kept, (1, 0))
Every image keeps the patches of the first image. Each has its own row of `kept`.
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → x[:, tokens[0]]
Your tokens get the first position embeddings of the table. Each keeps that of its
position in the image: select after the position embeddings are added.
    expand(-1, -1, x.shape[-1])) → expand(-1, -1, x.shape[-1]))
        x = x + model.position_embedding[: x.shape[1]]
    and model.embed(images) → model.embed(images) - model.position_embedding
Your tokens have no position embeddings. `model.embed(images)` adds them.
    model.embed(images) → model.embed(images) - model.position_embedding
You keep the patches that are not in `kept`.
    F.pad(1 + kept, (1, 0)) → torch.zeros(x.shape[:2]).scatter(1, 1 + kept, 1.0)
        tokens = tokens.argsort(dim=1, stable=True)[:, : x.shape[1] - kept.shape[1]]
The final norm is missing: `model.norm` comes between the blocks and the head.
    x = model.norm(x) →
The blocks are missing, so that no token attends to another: apply every layer of
`model.layers`.
    x = layer(x) → pass
You give the head the mean of the tokens. This model classifies from the class token.
    x[:, 0] → x.mean(dim=1)
You return logits for every token. Return those of the class token alone: `x[:, 0]`.
    x[:, 0] → x
right:
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → x[torch.arange(len(x))[:, None], tokens]
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → torch.stack([one[i] for one, i in zip(x, tokens, strict=True)])
    x.gather(1, tokens[..., None].expand(-1, -1, x.shape[-1])) → x[torch.zeros(x.shape[:2]).scatter(1, tokens, 1.0).bool()].unflatten(0, tokens.shape)
"""


@Exercise("14.3", "A larger image", axes="token d_model", tolerance=1e-4)
def stretch_positions(table, side):
    """Return position embeddings for side × side patches, from another grid's."""
    before = round((len(table) - 1) ** 0.5)
    grid = table[1:].T.unflatten(1, (before, before))[None]
    grid = F.interpolate(grid, size=side, mode="bicubic", align_corners=True)
    return torch.cat([table[:1], grid[0].flatten(1).T])


@stretch_positions.oracle
def _(table, side):
    before = round((len(table) - 1) ** 0.5)
    blend = torch.zeros(side, before)
    for i in range(side):
        position = i * (before - 1) / (side - 1)
        for near in range(int(position) - 1, int(position) + 3):
            at = min(max(near, 0), before - 1)
            blend[i, at] += bicubic(abs(position - near))
    rows = [table[0]]
    for i in range(side):
        for j in range(side):
            weights = torch.outer(blend[i], blend[j]).flatten()
            rows.append((weights[:, None] * table[1:]).sum(dim=0))
    return torch.stack(rows)


def bicubic(distance, a=-0.75):
    """Return the weight of a point so far away: Keys (1981), with torch's a."""
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    if distance < 2:
        return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return 0.0


@stretch_positions.cases
def _():
    yield "from 2 × 2 to 3 × 3 patches", torch.randn(5, 6), 3
    yield "from a single patch to 2 × 2", torch.randn(2, 6), 2
    yield "from 4 × 4 to 6 × 6 patches", torch.randn(17, 6), 6
    yield "back, from 6 × 6 to 3 × 3", torch.randn(37, 6), 3
    yield "a grid of the same size leaves the table as it is", torch.randn(17, 3), 4


@stretch_positions.demand("gradients reach the table")
def _(answer):
    table = torch.randn(5, 4, requires_grad=True)
    answer(table, 3)
    (gradient,) = answer.gradients(table)
    if not gradient[1:].any():
        return (
            "No gradient reaches the patches' rows: a `.detach()` or `torch.no_grad()` "
            "cuts the graph, so that they could not be fine-tuned."
        )


stretch_positions.hints = """
- Set `table[:1]`, the class token's row, aside. The other rows are a square grid of
  patches, row by row.
- `F.interpolate` wants (batch, channel, height, width): here (1, d_model, row, column).
  The side of the old grid follows from the length of the table.
- Transpose first, so that d_model stands in front, and then split the patches into rows
  and columns. Afterwards do the same in reverse.
"""

stretch_positions.mistakes = """
A reshape does not transpose: the table is (patch, d_model), F.interpolate wants d_model
in front. Take `table[1:].T` first, and transpose the result back.
    T.unflatten(1, (before, before))[None] → reshape(1, -1, before, before)
    T.unflatten(1, (before, before))[None] → reshape(1, -1, before, before)
    and grid[0].flatten(1).T → grid.reshape(-1, table.shape[1])
A reshape does not transpose: F.interpolate returns d_model in front, the table has it
last. Merge rows and columns, then transpose.
    grid[0].flatten(1).T → grid.reshape(-1, table.shape[1])
The class token's row is gone. It has no position in the image: keep it as it is, in
front.
    torch.cat([table[:1], grid[0].flatten(1).T]) → grid[0].flatten(1).T
The class token's row comes last. Put it in front, as in the old table.
    table[:1], grid[0].flatten(1).T → grid[0].flatten(1).T, table[:1]
You replace the class token's row. Keep it as it was learned.
    table[:1] → torch.zeros_like(table[:1])
You interpolate the table along one axis, and the class token's row with it. The patches
form a grid with two axes: interpolate along both, without the class token.
    torch.cat([table[:1], grid[0].flatten(1).T]) → F.interpolate(table.T[None], size=1 + side**2, mode="linear", align_corners=True)[0].T
Your grid is transposed: rows and columns of patches are exchanged.
    (before, before))[None] → (before, before))[None].mT
The corners of your grid have moved. With `align_corners=True` the corner patches keep
their embeddings.
    align_corners=True → align_corners=False
That is bilinear interpolation, of 2 × 2 neighbors. Use `mode="bicubic"`, which takes 4
× 4.
    "bicubic" → "bilinear"
You copy the nearest embedding. Those in between are to be interpolated:
`mode="bicubic"`.
    "bicubic", align_corners=True → "nearest"
Your reshape does not fit the number of rows. The first row is the class token's and not
part of the grid: set it aside before.
    table[1:].T.unflatten(1, (before, before))[None] → table.T.reshape(1, -1, before, before)
    table[1:].T.unflatten(1, (before, before))[None] → table.T.reshape(1, table.shape[1], before, before)
    table[1:].T.unflatten(1, (before, before))[None] → table.T.reshape(-1, before, before)[None]
    table[1:].T.unflatten(1, (before, before))[None] → table.reshape(before, before, -1).movedim(-1, 0)[None]
    table[1:].T.unflatten(1, (before, before))[None] → table.reshape(1, before, before, -1).permute(0, 3, 1, 2)
    table[1:].T → table.T
For bicubic interpolation `F.interpolate` needs four axes, (1, d_model, row, column). It
interpolates along the last two.
    (before, before))[None] → (before, before))
    (before, before))[None] → (before, before))
    and size=side → size=(side, side)
`F.interpolate` interpolates along the last two axes: these must be row and column, with
d_model in front of them.
    (before, before))[None] → (before, before))[None].movedim(1, -1)
    (before, before))[None] → (before, before))[None].movedim(1, -1)
    and grid[0].flatten(1).T → grid[0].flatten(0, 1)
    (before, before))[None] → (before, before))[None].movedim(1, -1)
    and grid[0].flatten(1).T → grid.reshape(-1, table.shape[1])
Tables are joined, but `table[0]` is a vector. `table[:1]` is a table with one row.
    table[:1] → table[0]
right:
    size=side → size=(side, side)
    (before, before))[None] → (before, before)).unsqueeze(0)
"""
