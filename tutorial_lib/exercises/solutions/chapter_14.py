"""Solutions of chapter 14, and edits of them that must be caught or must pass."""

import torch
import torch.nn.functional as F


def cut_patches(images, patch_size):
    """Return the patches of images as rows, the way a convolution reads them."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    x = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (batch, row, column, channel, height, width)
    return x.reshape(batch, rows * columns, -1)


def vit_parameters(image_size, patch_size, classes, d_model, blocks, d_ff, *, channels):
    """Return how many numbers a Vision Transformer with a class token learns."""
    patches = (image_size // patch_size) ** 2
    embedding = (channels * patch_size**2 + 1) * d_model
    tokens = d_model + (patches + 1) * d_model  # the class token, and the positions
    block = 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff
    norm, head = 2 * d_model, (d_model + 1) * classes
    return embedding + tokens + blocks * block + norm + head


def stretch_positions(table, side):
    """Return positions for side × side patches, from those of another square."""
    before = round((len(table) - 1) ** 0.5)
    grid = table[1:].T.unflatten(1, (before, before))[None]
    grid = F.interpolate(grid, size=side, mode="bicubic", align_corners=True)
    return torch.cat([table[:1], grid[0].flatten(1).T])


def _sizes(*four):
    names = ("numbers in a patch", "tokens", "scores of a head")
    return dict(zip((*names, "parameters among them"), four, strict=True))


ANSWERS = {
    # 3 · 16 · 16 numbers; 24 · 24 patches and a class token; a score for each pair
    # of tokens; and no score is learned.
    "14.1": {
        "numbers in a patch": 768,
        "tokens": 577,
        "scores of a head": 332929,
        "parameters among them": 0,
    },
}
WRONG_ANSWERS = [
    ("14.1", _sizes(768, 577, 332_929, 332_929), "scores-as-parameters"),
    ("14.1", _sizes(768, 576, 331_776, 0), "no-class-token"),
    ("14.1", _sizes(256, 577, 332_929, 0), "one-channel"),
    ("14.1", _sizes(768, 147_457, 147_457**2, 0), "a-token-per-pixel"),
    ("14.1", _sizes(256, 1729, 1729**2, 0), "a-token-per-channel"),
    ("14.1", _sizes(768, 577, 331_776, 0), "scores-of-patches"),
    ("14.1", _sizes(768, 25, 625, 0), "one-row"),
    ("14.1", _sizes(768, 24, 576, 0), "one-row"),
    ("14.1", _sizes(768, 577, 577, 0), "one-query"),
    ("14.1", _sizes(256, 576, 331_776, 0), "no-class-token"),
    ("14.1", _sizes(768, 577, 577 * 576, 0), "value"),
]

_ORDER = "permute(0, 2, 4, 1, 3, 5)"
_JOIN = "rows * columns, -1)"
_HEAD = "(d_model + 1) * classes"
_SUM = "embedding + tokens + blocks * block + norm + head"
_TABLE = "torch.cat([table[:1], grid[0].flatten(1).T])"
_ROWS = "    rows, columns = height // patch_size, width // patch_size\n"
_SPLIT = "images.reshape(batch, channels, rows, patch_size, columns, patch_size)"
_CUT = f"""\
    batch, channels, height, width = images.shape
{_ROWS}    x = {_SPLIT}
    x = x.permute(0, 2, 4, 1, 3, 5)  # (batch, row, column, channel, height, width)
    return x.reshape(batch, rows * columns, -1)"""
_ONE_LINE = """\
    table = table.T[None]
    options = {"mode": "linear", "align_corners": True}
    return F.interpolate(table, size=1 + side**2, **options)[0].T"""
_BODY = """\
    before = round((len(table) - 1) ** 0.5)
    grid = table[1:].T.unflatten(1, (before, before))[None]
    grid = F.interpolate(grid, size=side, mode="bicubic", align_corners=True)
    return torch.cat([table[:1], grid[0].flatten(1).T])"""
MUTANTS = [
    (
        "cut_patches",
        _CUT,
        "    return images.reshape(len(images), -1, images.shape[1] * patch_size**2)",
        "reshaped",
    ),
    ("cut_patches", _ORDER, "permute(0, 4, 2, 1, 3, 5)", "patches-by-column"),
    ("cut_patches", _ORDER, "permute(0, 2, 4, 1, 5, 3)", "mirrored"),
    ("cut_patches", _ORDER, "permute(0, 2, 4, 3, 5, 1)", "channel-last"),
    ("cut_patches", _ORDER, "permute(0, 1, 2, 4, 3, 5)", "channels-split"),
    (
        "cut_patches",
        _CUT,
        _CUT.replace("rows, patch_size, columns, patch_size", "p, rows, p, columns")
        .replace(_ORDER, "permute(0, 3, 5, 1, 2, 4)")
        .replace(_ROWS, f"{_ROWS}    p = patch_size\n"),
        "pixels-apart",
    ),
    (
        "cut_patches",
        _SPLIT,
        _SPLIT.replace("images", "images[:, :1]").replace("channels", "1"),
        "first-channel",
    ),
    ("cut_patches", _JOIN, f"{_JOIN}.mT", "columns"),
    ("cut_patches", _SPLIT, _SPLIT.replace("images", "images.detach()"), "no-gradient"),
    ("cut_patches", _JOIN, "rows, columns, -1)", "grid-kept"),
    (
        "cut_patches",
        _CUT,
        "    return F.unfold(images, patch_size).mT",
        "overlapping",
    ),
    (
        "cut_patches",
        "batch, channels, height, width = images",
        "batch, channels, width, height = images",
        "sides-swapped",
    ),
    (
        "vit_parameters",
        "embedding = (",
        "embedding = patches * (",
        "map-for-each-patch",
    ),
    ("vit_parameters", _SUM, "blocks * block", "blocks-only"),
    ("vit_parameters", "norm, head = 2 *", "norm, head = 0 *", "two-vectors-missing"),
    (
        "vit_parameters",
        "d_model + (patches + 1) * d_model",
        "patches * d_model",
        "two-vectors-missing",
    ),
    ("vit_parameters", "(patches + 1)", "patches", "one-vector-missing"),
    ("vit_parameters", "patch_size**2 + 1)", "patch_size**2)", "one-vector-missing"),
    ("vit_parameters", "norm, head = 2 *", "norm, head =", "one-vector-missing"),
    ("vit_parameters", " + (patches + 1) * d_model", "", "no-positions"),
    (
        "vit_parameters",
        "(image_size // patch_size) ** 2",
        "image_size // patch_size",
        "one-row",
    ),
    ("vit_parameters", "(channels * ", "(", "one-channel"),
    ("vit_parameters", " + head", "", "no-head"),
    (
        "vit_parameters",
        _HEAD,
        "((patches + 1) * d_model + 1) * classes",
        "head-of-all-tokens",
    ),
    (
        "vit_parameters",
        _SUM,
        "embedding + tokens + blocks * block + head - 3 * d_model - classes",
        "matrices-only",
    ),
    ("vit_parameters", _HEAD, "d_model * classes", "no-head-biases"),
    ("vit_parameters", "9 * d_model", "5 * d_model", "value"),
    (
        "stretch_positions",
        "table[1:].T.unflatten(1, (before, before))[None]",
        "table[1:].reshape(1, -1, before, before)",
        "scrambled",
    ),
    (
        "stretch_positions",
        _BODY,
        _BODY.replace(
            "table[1:].T.unflatten(1, (before, before))[None]",
            "table[1:].reshape(1, -1, before, before)",
        ).replace("grid[0].flatten(1).T", "grid.reshape(-1, table.shape[1])"),
        "scrambled",
    ),
    (
        "stretch_positions",
        "grid[0].flatten(1).T",
        "grid.reshape(-1, table.shape[1])",
        "scrambled-back",
    ),
    ("stretch_positions", _TABLE, "grid[0].flatten(1).T", "no-class-token"),
    (
        "stretch_positions",
        "[table[:1], grid[0].flatten(1).T]",
        "[grid[0].flatten(1).T, table[:1]]",
        "class-token-last",
    ),
    (
        "stretch_positions",
        "[table[:1],",
        "[torch.zeros_like(table[:1]),",
        "new-class-token",
    ),
    ("stretch_positions", "table[1:].T", "table[1:].detach().T", "no-gradient"),
    ("stretch_positions", _BODY, _ONE_LINE, "line"),
    (
        "stretch_positions",
        "table[1:].T.unflatten(1, (before, before))[None]",
        "table.T.reshape(1, -1, before, before)",
        "class-token-in-square",
    ),
    ("stretch_positions", "(before, before))[None]", "(before, before))", "no-batch"),
    ("stretch_positions", "[None]", "[None].movedim(1, -1)", "d_model-stretched"),
    ("stretch_positions", "[table[:1],", "[table[0],", "row-lost"),
    ("stretch_positions", "[None]", "[None].mT", "mirrored"),
    ("stretch_positions", "corners=True", "corners=False", "corners"),
    ("stretch_positions", "bicubic", "bilinear", "bilinear"),
    (
        "stretch_positions",
        'mode="bicubic", align_corners=True',
        'mode="nearest"',
        "nearest",
    ),
]

ACCEPT = [
    (
        "cut_patches",
        _CUT,
        "    return F.unfold(images, patch_size, stride=patch_size).mT",
    ),
    (
        "cut_patches",
        _CUT,
        "    p, (batch, channels, height, width) = patch_size, images.shape\n"
        "    x = images.view(batch, channels, height // p, p, width // p, p)\n"
        "    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)",
    ),
    (
        "cut_patches",
        _CUT,
        "    p, x = patch_size, images.unfold(2, patch_size, patch_size)\n"
        "    x = x.unfold(3, p, p).permute(0, 2, 3, 1, 4, 5)\n"
        "    return x.flatten(3).flatten(1, 2)",
    ),
    ("vit_parameters", "+ (patches + 1) * d_model", "+ d_model + patches * d_model"),
    ("stretch_positions", "size=side", "size=(side, side)"),
    ("stretch_positions", "[None]", ".unsqueeze(0)"),
]
