"""Known wrong answers of exercise 14.4, positions stretched over another grid.

This module does not know the right answers.
"""

import torch
import torch.nn.functional as F


def _stretch(*, first=slice(1), swap=False, last=False, **options):
    """Return a wrong interpolation of the positions."""
    options = {"mode": "bicubic", "align_corners": True} | options

    def stretch(table, side):
        before = round((len(table) - 1) ** 0.5)
        grid = table[1:].T.unflatten(1, (before, before))[None]
        grid = F.interpolate(grid.mT if swap else grid, size=side, **options)
        parts = [table[first], grid[0].flatten(1).T]
        return torch.cat(parts[::-1] if last else parts)

    return stretch


def _new_class_token(table, side):
    stretched = _stretch()(table, side)
    return torch.cat([torch.zeros_like(table[:1]), stretched[1:]])


def _all_in_a_line(table, side):
    line = table.T[None]
    stretched = F.interpolate(line, size=1 + side**2, mode="linear", align_corners=True)
    return stretched[0].T


def _scrambled(*, there, back):
    """Return an interpolation of a table that was reshaped where it must turn."""

    def stretch(table, side):
        before, d_model = round((len(table) - 1) ** 0.5), table.shape[1]
        rows = table[1:] if there else table[1:].T
        grid = rows.reshape(1, d_model, before, before)
        grid = F.interpolate(grid, size=side, mode="bicubic", align_corners=True)
        rows = grid.reshape(-1, d_model) if back else grid[0].flatten(1).T
        return torch.cat([table[:1], rows])

    return stretch


STRETCH = [
    (
        "scrambled",
        "A reshape does not transpose: the table is (patch, d_model), F.interpolate "
        "wants d_model in front. Take `table[1:].T` first, and turn the result back.",
        _scrambled(there=True, back=False),
    ),
    (
        "scrambled",
        "A reshape does not transpose: the table is (patch, d_model), F.interpolate "
        "wants d_model in front. Take `table[1:].T` first, and turn the result back.",
        _scrambled(there=True, back=True),
    ),
    (
        "scrambled-back",
        "A reshape does not transpose: F.interpolate returns d_model in front, the "
        "table has it last. Join the rows and columns, then transpose.",
        _scrambled(there=False, back=True),
    ),
    (
        "no-class-token",
        "The class token's row is gone. It has no place in the image, so it is kept "
        "as it is, in front.",
        _stretch(first=slice(0)),
    ),
    (
        "class-token-last",
        "The class token's row comes last. Put it in front, where the model expects "
        "it.",
        _stretch(last=True),
    ),
    (
        "new-class-token",
        "The class token's row is new. It is kept as it was learned: the token stands "
        "where it stood.",
        _new_class_token,
    ),
    (
        "line",
        "You stretch the table as one long line, and the class token with it. The "
        "patches lie on a square: two axes.",
        _all_in_a_line,
    ),
    (
        "mirrored",
        "Your grid is mirrored at its diagonal: rows and columns of patches have "
        "changed places.",
        _stretch(swap=True),
    ),
    (
        "corners",
        "Your corners have moved. With `align_corners=True` the corner patches of both "
        "grids have the same position.",
        _stretch(align_corners=False),
    ),
    (
        "bilinear",
        'That is bilinear: it blends 2 × 2 positions. Take `mode="bicubic"`, which '
        "blends 4 × 4.",
        _stretch(mode="bilinear"),
    ),
    (
        "nearest",
        "You copy the nearest position. Positions in between are to be blended: "
        '`mode="bicubic"`.',
        _stretch(mode="nearest", align_corners=None),
    ),
]

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
