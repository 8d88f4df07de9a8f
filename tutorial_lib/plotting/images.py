"""Images: in rows, with a frame each, and colored where attention lies."""

import numpy as np

from tutorial_lib.plotting.colors import LIGHT, ON_PAPER
from tutorial_lib.plotting.panels import WIDTH, array, open_panels

BLUE = np.array([0.31, 0.58, 1.0])  # of white paper where most is read
VEIL = 0.5  # how much of its brightness a photograph has where nothing is read


def show_images(
    images, weights=None, *, outline=None, boxes=None, titles=None, columns=None
):
    """Show images in rows of ``columns``, and the weights of their patches as color.

    An image is ink, (height, width), dark on white and all on one scale, or colored,
    (3, height, width), red, green and blue from 0 to 1. ``weights`` are a map (row,
    column) of patches for each image, or None for one that is shown as it is: where
    they lie a photograph keeps its colors, gray and dark elsewhere, and the paper
    behind ink turns blue. ``outline`` are tables (row, column) or None for each image,
    of booleans: one frame goes around all that are True. ``boxes`` are framed, too,
    each (box, 4): the center's x and y, width and height, as fractions of the image. On
    dark pages ink turns around, and so do colors on mostly white paper; other colored
    images are photographs and stay. Raises ValueError for images of another shape,
    colors outside 0 to 1, negative weights, and unless there are as many of all that is
    given.
    """
    images = [array(image) for image in images]
    none = [None] * len(images)
    given = weights, outline, boxes, titles
    beside = [none if one is None else one for one in given]
    _check(images, beside)
    ink = np.concatenate([[0], *(one.ravel() for one in images if one.ndim == 2)])
    columns = min(columns or (8 if titles is None else 4), len(images))
    height, width = images[0].shape[-2:]
    side = min(WIDTH / columns, 2.3)
    rows = -(-len(images) // columns)
    size = side * columns, rows * (side * height / width + 0.3 * (titles is not None))
    options = {"size": size, "layout": "compressed"}
    with open_panels(len(images), columns, **options) as (fig, axes):
        for ax, image, *look, title in zip(axes, images, *beside, strict=True):
            _draw(ax, image if image.ndim == 3 else image / (ink.max() or 1), *look)
            ax.set_title(title or "", fontsize=9)
    return fig


def _check(images, beside):
    counts = [len(one) for one in (images, *beside)]
    if len(set(counts)) > 1 or not images:
        raise ValueError(
            f"images, weights, outlines, boxes and titles are {counts}: not alike"
        )
    for shape in (image.shape for image in images):
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[0] != 3):
            raise ValueError(f"images are (height, width) or (3, …), got {shape}")
    for image in images:
        if image.ndim == 3 and not (image.min() > -1e-4 and image.max() < 1 + 1e-4):
            raise ValueError("colors are from 0 to 1: divide bytes by 255")
    for weights in beside[0]:
        if weights is not None and not array(weights).min() > -1e-4:
            raise ValueError("weights of patches must not be negative or NaN")


def _draw(ax, image, weights, outline, boxes):
    shown = ax.imshow(_colors(image, weights))
    if _is_on_paper(image):
        shown.set_gid(ON_PAPER)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, lw=0.6)
    if outline is not None:
        ax.add_patch(_frame(image, array(outline)))
    for box in [] if boxes is None else array(boxes):
        ax.add_patch(_box(image, box))


def _is_on_paper(image):
    """Say whether an image is ink, or colors on paper that is mostly white."""
    return image.ndim == 2 or (image == 1).all(axis=0).mean() > 0.5


def _colors(image, weights):
    """Return the colors (height, width, 3) of an image, by the weights of patches."""
    is_ink = image.ndim == 2
    colors = 1 - image[..., None] if is_ink else image.transpose(1, 2, 0)
    colors = np.broadcast_to(colors, (*colors.shape[:2], 3))
    if weights is None:
        return colors
    weights = array(weights)
    patch = np.array(colors.shape[:2]) // weights.shape
    shares = np.kron(weights / max(weights.max(), 1e-6), np.ones(patch))[..., None]
    if is_ink:
        return colors * (1 + shares * (BLUE - 1))
    gray = VEIL * colors.mean(axis=-1, keepdims=True)
    return (gray + shares * (colors - gray)).clip(0, 1)  # 1 + 1e-8 is a warning


def _frame(image, outline):
    """Return a box around all patches of a table that are True."""
    from matplotlib.patches import Rectangle

    high, wide = np.divide(image.shape[-2:], outline.shape)
    rows, columns = np.nonzero(outline)
    corner = columns.min() * wide - 0.5, rows.min() * high - 0.5
    size = (np.ptp(columns) + 1) * wide, (np.ptp(rows) + 1) * high
    return Rectangle(corner, *size, fill=False, ec=LIGHT["mark"], lw=2)


def _box(image, box):
    """Return the frame of a box (center x, center y, width, height)."""
    from matplotlib.patches import Rectangle

    height, width = image.shape[-2:]
    center_x, center_y, box_width, box_height = box
    corner = (
        (center_x - box_width / 2) * width - 0.5,
        (center_y - box_height / 2) * height - 0.5,
    )
    size = box_width * width, box_height * height
    return Rectangle(corner, *size, fill=False, ec=LIGHT["mark"], lw=2)
