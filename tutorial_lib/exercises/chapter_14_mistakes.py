"""Known wrong answers of chapter 14, as (code, message, answer).

This module does not know the right answers.
"""

import torch.nn.functional as F
from einops import rearrange


def sizes_of(numbers, tokens, scores, parameters):
    """Name four numbers as the exercise does."""
    return {
        "numbers in a patch": numbers,
        "tokens": tokens,
        "scores of a head": scores,
        "parameters among them": parameters,
    }


SIZES = [
    (
        "scores-as-parameters",
        "You count the scores as parameters. A parameter is stored in the model and "
        "learned; a score is computed anew from each image, and thrown away.",
        sizes_of(768, 577, 577**2, 577**2),
    ),
    (
        "no-class-token",
        "576 are the patches. The class token is a token, too: it looks, and is "
        "looked at.",
        sizes_of(768, 576, 576**2, 0),
    ),
    (
        "scores-of-patches",
        "Your 577 tokens are right, but your scores are those of 576. Each of the 577 "
        "tokens looks at each, the class token, too.",
        sizes_of(768, 577, 576**2, 0),
    ),
    (
        "one-query",
        "577 are the scores of one query. Each of the 577 tokens asks.",
        sizes_of(768, 577, 577, 0),
    ),
    (
        "one-channel",
        "A pixel of a color photograph has three numbers.",
        sizes_of(256, 577, 577**2, 0),
    ),
    (
        "one-row",
        "24 patches stand side by side, and there are 24 such rows.",
        sizes_of(768, 25, 625, 0),
    ),
    (
        "one-row",
        "24 patches stand side by side, and there are 24 such rows. The class token "
        "is one token more.",
        sizes_of(768, 24, 576, 0),
    ),
    (
        "a-token-per-pixel",
        "You made every pixel a token. Here a token is a patch of 16 × 16 pixels.",
        sizes_of(768, 384**2 + 1, (384**2 + 1) ** 2, 0),
    ),
    (
        "a-token-per-channel",
        "You cut each color by itself. A patch goes through all channels: its three "
        "colors are one token.",
        sizes_of(256, 3 * 576 + 1, (3 * 576 + 1) ** 2, 0),
    ),
]


def _rearranged(after, before="(row height) (column width)"):
    """Return a cut whose axes are split or come out in another order."""
    pattern = f"batch channel {before} -> batch {after}"

    def cut(images, patch_size):
        return rearrange(images, pattern, height=patch_size, width=patch_size)

    return cut


def _reshaped(images, patch_size):
    batch, channels, *_ = images.shape
    return images.reshape(batch, -1, channels * patch_size**2)


def _channels_split(images, patch_size):
    rows = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    batch, channels = images.shape[:2]
    return rows.reshape(batch, -1, channels * patch_size**2)


def _first_channel(images, patch_size):
    return F.unfold(images[:, :1], patch_size, stride=patch_size).mT


def _in_columns(images, patch_size):
    return F.unfold(images, patch_size, stride=patch_size)


def _sides_swapped(images, patch_size):
    batch, channels, width, height = images.shape
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


PATCHES = [
    (
        "reshaped",
        "A reshape alone keeps the order of the numbers: it cuts off stretches of "
        "pixel rows. A patch takes its numbers from several rows, so axes must change "
        "places.",
        _reshaped,
    ),
    (
        "patches-by-column",
        "Your patches are numbered column by column. Row by row, the second one is "
        "the right neighbor of the first.",
        _rearranged("(column row) (channel height width)"),
    ),
    (
        "mirrored",
        "Your patches are mirrored at their diagonal: within a patch, go along the "
        "pixel rows.",
        _rearranged("(row column) (channel width height)"),
    ),
    (
        "channel-last",
        "Within a patch, the channels come first: all numbers of the first channel, "
        "then all of the second.",
        _rearranged("(row column) (height width channel)"),
    ),
    (
        "pixels-apart",
        "Your patch takes every second or third pixel; neighbors belong together. The "
        "height is (row, patch_size), not (patch_size, row), and so is the width.",
        _rearranged(
            "(row column) (channel height width)", "(height row) (width column)"
        ),
    ),
    (
        "grid-kept",
        "Rows and columns of patches are still two axes. Join them: (row column).",
        _rearranged("row column (channel height width)"),
    ),
    (
        "sides-swapped",
        "You take the height for the width. The axes are (batch, channel, height, "
        "width).",
        _sides_swapped,
    ),
    (
        "overlapping",
        "Your window moves by one pixel, so that patches overlap. It moves by its own "
        "width: `stride=patch_size`.",
        lambda images, patch_size: F.unfold(images, patch_size).mT,
    ),
    (
        "channels-split",
        "Your channels are torn apart: the axis of the channels must move behind those "
        "of rows and columns before you join axes.",
        _channels_split,
    ),
    (
        "first-channel",
        "Only the first channel is in your patches. A patch goes through all.",
        _first_channel,
    ),
    (
        "columns",
        "Your patches are columns, as `F.unfold` returns them. One row for each: "
        "transpose the last two axes.",
        _in_columns,
    ),
]


def _count(missing, *, blocks_only=False):
    """Return a count from which ``missing``, a function of the sizes, is left out."""

    def count(image_size, patch_size, classes, d_model, blocks, d_ff, *, channels):
        d, patches = d_model, (image_size // patch_size) ** 2
        pixels = channels * patch_size**2
        inside = blocks * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
        around = (pixels + 1) * d + d + (patches + 1) * d + 2 * d + (d + 1) * classes
        return inside + (0 if blocks_only else around) - missing(d, patches, classes)

    return count


def _map_for_each_patch(
    image_size, patch_size, classes, d_model, blocks, d_ff, *, channels
):
    sizes = (image_size, patch_size, classes, d_model, blocks, d_ff)
    patch_map = (channels * patch_size**2 + 1) * d_model
    more = ((image_size // patch_size) ** 2 - 1) * patch_map
    return _count(lambda *_: -more)(*sizes, channels=channels)


def _one_channel(image_size, patch_size, classes, d_model, blocks, d_ff, *, channels):
    sizes = (image_size, patch_size, classes, d_model, blocks, d_ff)
    return _count(lambda d, *_: 0)(*sizes, channels=1)


COUNT = [
    (
        "blocks-only",
        "You counted the blocks. In front of them stand the map of the patches, the "
        "class token and the positions, behind them a norm and the head.",
        _count(lambda *_: 0, blocks_only=True),
    ),
    (
        "two-vectors-missing",
        "2 · d_model numbers are missing: those of the last norm, which has a gamma "
        "and a beta, or the class token and its position.",
        _count(lambda d, *_: 2 * d),
    ),
    (
        "one-vector-missing",
        "d_model numbers are missing: the class token, or its position (it has both), "
        "or the biases of the map of the patches.",
        _count(lambda d, *_: d),
    ),
    (
        "no-positions",
        "You left out the positions: one vector for the class token and for each "
        "patch.",
        _count(lambda d, patches, _: (patches + 1) * d),
    ),
    (
        "one-row",
        "A grid has rows *and* columns: `image_size // patch_size` is the number of "
        "patches in one row.",
        _count(lambda d, patches, _: (patches - round(patches**0.5)) * d),
    ),
    (
        "map-for-each-patch",
        "You gave each patch a map of its own. All patches share one.",
        _map_for_each_patch,
    ),
    (
        "one-channel",
        "A patch goes through all channels: patch_size² numbers in each.",
        _one_channel,
    ),
    (
        "head-of-all-tokens",
        "Your head reads all tokens. It reads the class token alone.",
        _count(lambda d, patches, classes: -patches * d * classes),
    ),
    (
        "matrices-only",
        "You counted matrices, and positions of patches. Biases are missing, those of "
        "the patches and of the head, and with them the class token, its position, "
        "and the last norm.",
        _count(lambda d, _, classes: 5 * d + classes),
    ),
    (
        "no-head",
        "You left out the head: a linear map from d_model to the classes.",
        _count(lambda d, _, classes: (d + 1) * classes),
    ),
    (
        "no-head-biases",
        "The head has a bias for every class.",
        _count(lambda d, _, classes: classes),
    ),
]
