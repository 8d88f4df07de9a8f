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
    yield "images wider than tall", torch.randn(2, 2, 4, 8), 2
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


@Exercise("14.2", "Only some patches", axes="batch class")
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
    model = VisionTransformer(
        8, 2, 2, d_ff=16, image_size=6, patch_size=2, num_classes=4
    )
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


@Exercise("14.3", "Average pooling", axes="batch class")
def pooled_logits(model, images):
    """Return logits from the mean of the patches, without a class token."""
    x = model.embed(images)[:, 1:]  # (batch, patch, d_model)
    for layer in model.layers:
        x = layer(x)
    x = model.norm(x).mean(dim=1)  # (batch, d_model)
    return model.head(x)


@pooled_logits.oracle
def _(model, images):
    logits = []
    for image in images:
        _, *patches = model.embed(image[None])[0]
        x = torch.stack(patches)[None]
        for layer in model.layers:
            x = layer(x)
        total = sum(model.norm(token) for token in x[0])
        logits.append(model.head(total / len(patches)))
    return torch.stack(logits)


@pooled_logits.cases
def _():
    model = small_model()
    yield "one image", model, torch.rand(1, 1, 6, 6)
    yield "three images", model, torch.rand(3, 1, 6, 6)


@pooled_logits.demand("gradients reach the parameters")
def _(answer):
    model = small_model().requires_grad_(True)
    answer(model, torch.rand(2, 1, 6, 6))
    answer.gradients(model.head.weight, model.position_embedding)


pooled_logits.hints = """
- `model.embed(images)` returns the class token first, then the patches. Drop the class
  token before the blocks, so that no patch attends to it.
- The blocks and the final norm are applied as before. Then take the mean over the
  tokens, which are axis 1.
- The head is a linear map from (batch, d_model) to (batch, class).
"""

pooled_logits.mistakes = """
The class token is still in the sequence. Drop it before the blocks: `[:, 1:]`.
    model.embed(images)[:, 1:] → model.embed(images)
You drop the class token after the blocks, in which the patches attended to it. Drop it
before them.
    model.embed(images)[:, 1:] → model.embed(images)
    and model.norm(x).mean(dim=1) → model.norm(x)[:, 1:].mean(dim=1)
You drop the last patch. The class token is token 0.
    [:, 1:] → [:, :-1]
You give the head the first patch alone. Take the mean of all patches.
    model.norm(x).mean(dim=1) → model.norm(x)[:, 0]
You average before the final norm. Every token is normalized first.
    model.norm(x).mean(dim=1) → model.norm(x.mean(dim=1))
The final norm is missing: `model.norm` comes between the blocks and the mean.
    model.norm(x).mean(dim=1) → x.mean(dim=1)
You average before the blocks, so that no patch can attend to another.
    x = layer(x) → pass
    and model.embed(images)[:, 1:] → model.embed(images)[:, 1:].mean(dim=1, keepdim=True)
        for layer in model.layers:
            x = layer(x)
The blocks are missing: apply every layer of `model.layers`.
    x = layer(x) → pass
You take the sum of the patches. Take their mean.
    model.norm(x).mean(dim=1) → model.norm(x).sum(dim=1)
You take the largest value of each dimension, which is max pooling. Take the mean.
    model.norm(x).mean(dim=1) → model.norm(x).amax(dim=1)
You return logits for every patch. Take the mean over the patches, axis 1.
    model.norm(x).mean(dim=1) → model.norm(x)
right:
    model.norm(x).mean(dim=1) → model.norm(x)
    and model.head(x) → model.head(x).mean(dim=1)
    model.norm(x).mean(dim=1) → model.norm(x).sum(dim=1) / x.shape[1]
"""
