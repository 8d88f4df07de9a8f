"""Looks: where a question looks in an image, as a picture and as faded patches.

This module knows no model: images and weights go in.
"""

import itertools

import numpy as np

from tutorial_lib.plotting.colors import LIGHT
from tutorial_lib.plotting.ideas import LEFT, MIDDLE
from tutorial_lib.plotting.panels import WIDTH, array, open_panels
from tutorial_lib.plotting.pictures import Box, Picture

FADED, VEIL = 0.78, 0.5  # how much of a patch is veiled, if its weight is 0; in gray
TINT = np.array([0.49, 0.72, 1.0])  # of white paper where most is read
PALE = 0.5  # how much white is in a photograph where nothing was read, if not veiled


def show_looks(images, weights, *, titles=None, found=None, columns=None, veiled=True):
    """Show images, each under a gray veil except where its weights lie.

    An image is ink, (height, width), or colored, (3, height, width), in 0…1. Its
    ``weights`` (row, column) are one for each patch, and the largest leaves its patch
    as it is; None shows the image alone. ``found`` are tables (row, column) or None,
    True in patches that get a frame. Not ``veiled``, colors lie where the weights do:
    those of a photograph, gray and pale elsewhere, or a blue behind ink. Raises
    ValueError unless there is one for each image.
    """
    found = [None] * len(images) if found is None else found
    titles = [""] * len(images) if titles is None else titles
    if not len(images) == len(weights) == len(found) == len(titles):
        raise ValueError(
            f"{len(images)} images need as many weights, frames and titles, got "
            f"{len(weights)}, {len(found)} and {len(titles)}"
        )
    columns = min(columns or 4, len(images))
    height, width = array(images[0]).shape[-2:]
    side = min(WIDTH / columns, 2.3)
    rows = -(-len(images) // columns)
    size = side * columns, rows * (side * height / width + 0.3 * any(titles))
    options = {"size": size, "layout": "compressed"}
    with open_panels(len(images), columns, **options) as (fig, axes):
        for ax, *shown in zip(axes, images, weights, found, titles, strict=True):
            _draw_look(ax, *map(array_or_none, shown[:3]), fade if veiled else tint)
            ax.set_title(shown[3], fontsize=9)
    return fig


def array_or_none(values):
    """Return an array of what there is."""
    return None if values is None else array(values)


def fade(image, weights):
    """Return the colors (height, width, 3) of an image under weights (row, column)."""
    colors = _colors(image)
    if weights is None:
        return colors
    return VEIL + (1 - FADED + FADED * _shares(image, weights)) * (colors - VEIL)


def tint(image, weights):
    """Return the colors (height, width, 3) of an image that has them where it is read.

    A photograph keeps its own there, and is gray and pale elsewhere; the paper of an
    image in ink turns blue.
    """
    colors = _colors(image)
    if weights is None:
        return colors
    if image.ndim == 3:
        plain, read = PALE + (1 - PALE) * colors.mean(axis=-1, keepdims=True), colors
    else:
        plain, read = colors, colors * TINT
    return plain + _shares(image, weights) * (read - plain)


def _colors(image):
    colors = image.transpose(1, 2, 0) if image.ndim == 3 else 1 - image[..., None]
    return np.broadcast_to(colors, (*colors.shape[:2], 3))


def _shares(image, weights):
    """Return for each pixel (height, width, 1) the weight as a share of the largest."""
    patch = [
        full // cut for full, cut in zip(image.shape[-2:], weights.shape, strict=True)
    ]
    return np.kron(weights / max(weights.max(), 1e-6), np.ones(patch))[..., None]


def _draw_look(ax, image, weights, found, colored):
    from matplotlib.patches import Rectangle

    ax.imshow(colored(image, weights), interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, lw=0.6)
    if found is not None:
        high, wide = (image.shape[-2 + axis] / found.shape[axis] for axis in (0, 1))
        rows, columns = np.nonzero(found)
        corner = columns.min() * wide - 0.5, rows.min() * high - 0.5
        across, down = np.ptp(columns) + 1, np.ptp(rows) + 1
        frame = {"fill": False, "edgecolor": LIGHT["mark"], "linewidth": 2}
        ax.add_patch(Rectangle(corner, across * wide, down * high, **frame))


def show_question(image, weights, *, question, answer):
    """Draw a question put to an image: it asks the patches, and reads the answer.

    ``image`` is (3, height, width), as high as wide; it is cut into as many patches as
    there are ``weights`` (patch,), a square number. ``question`` and ``answer`` are
    texts. Raises ValueError for a number of patches that is no square.
    """
    rows = round(len(weights) ** 0.5)
    if rows**2 != len(weights):
        raise ValueError(f"{len(weights)} weights are no square of patches")
    picture = Picture(WIDTH, 4.5)
    asks = picture.box(MIDDLE, 0.3, question, "query")
    answers = picture.box(MIDDLE, 4.2, answer, "value")
    patches = picture.patches(Box(MIDDLE, 2.25, 2.6, 2.6), image, rows)
    for patch, weight in zip(patches, array(weights), strict=True):
        picture.arrow(asks.bottom, patch.top, "query", weight=weight)
        picture.arrow(patch.bottom, answers.top, "value", weight=weight)
    for y, name, color in ((0.3, "query", "query"), (4.2, "output", "value")):
        picture.text(0, y, name, color=color, align="left")
    picture.text(0, 2.15, "keys", color="key", align="left")
    picture.text(0, 2.4, "values", color="value", align="left")
    return picture.figure


def show_vision_transformer(image, *, answer, rows=3):
    """Draw how a Vision Transformer reads an image: Dosovitskiy et al. (2021), fig. 1.

    ``image`` (3, height, width), as high as wide, is cut into ``rows`` × ``rows``
    patches; they become tokens, vectors, which get a class token and a number each for
    their place. From the class token the head reads ``answer``. Raises ValueError for
    more than 4 rows, which nobody could read on a phone.
    """
    if not 2 <= rows <= 4:
        raise ValueError(f"rows must be 2 to 4 to be drawn, got {rows}")
    picture = Picture(WIDTH, 5.3)
    step = (WIDTH - LEFT) / (1 + rows**2)
    colors, sides = ["value", *["key"] * rows**2], {"left": LEFT, "right": WIDTH}
    numbers = picture.row([*map(str, range(len(colors)))], 3.3, colors, **sides)
    states = picture.row("h" * len(colors), 4.25, colors, **sides)
    _cut_to_tokens(picture, array(image), rows, numbers[1:], 0.86 * step)
    first = picture.box(numbers[0].x, 2.8, "?", "value", width=0.86 * step, height=0.44)
    picture.lane(Box(MIDDLE, 4.02, WIDTH - LEFT, 0.95), "query")
    for query, key in itertools.product(states, numbers):
        weight = 0.12 if query is states[0] else 0.03
        picture.arrow(key.bottom, query.top, "query", weight=weight, straight=True)
    head = picture.box(first.x + 0.1, 4.97, "head", "value")
    picture.arrow(states[0].bottom, (states[0].x, head.top[1]), "value")
    said = picture.box(head.x + 1.4, 4.97, answer, "value")
    picture.arrow(head.right, said.left, "value", straight=True)
    names = {0.85: "image", 2.05: "patches", 2.8: "tokens", 3.3: "+ places"}
    for y, name in (names | {4.02: "encoder"}).items():
        picture.text(0, y, name, color="quiet", align="left")
    return picture.figure


def _cut_to_tokens(picture, image, rows, places, side):
    """Cut an image, lay its patches in a row, and draw a vector below each of them.

    The vector stands for what the linear map makes of a patch. Its cells are the mean
    darkness of the patch's four quarters, as shares of the largest.
    """
    picture.patches(Box(MIDDLE, 0.85, 1.5, 1.5), image, rows)
    high, wide = (size // rows for size in image.shape[-2:])
    for i, below in enumerate(places):
        row, column = divmod(i, rows)
        part = image[:, row * high : (row + 1) * high, column * wide :][..., :wide]
        patch = Box(below.x, 2.05, side, side)
        picture.patches(patch, part, 1)
        token = picture.cells(below.x - 0.055, 2.58, _darkness(part), "key", side=0.11)
        picture.arrow(patch.bottom, token.top, "quiet", straight=True)
    picture.arrow((MIDDLE, 1.62), (MIDDLE, 2.05 - side / 2 - 0.04), "quiet")


def _darkness(part):
    """Return the mean darkness of each quarter of a patch, as a column (4, 1)."""
    high, wide = (size // 2 for size in part.shape[-2:])
    rows, columns = (slice(high), slice(high, None)), (slice(wide), slice(wide, None))
    quarters = [part[:, row, column] for row in rows for column in columns]
    return np.array([[1 - quarter.mean()] for quarter in quarters])
