"""Object queries over training: what each predicts, and the mask it draws.

Names and masks go in, as a model predicted them during its training.
"""

import base64

import numpy as np

from tutorial_lib.plotting.images import show_images

from .figure import Figure
from .inputs import as_array, as_text
from .patches import as_pixels

MOST_SCENES = 8
MOST_STEPS = 16
MOST_QUERIES = 8
MOST_PIXELS = 4096
THERE = 0.5  # a patch above it belongs to the mask


def show_objects(images, names, masks, *, steps, title=None):
    """Show what each object query predicts for an image over training.

    ``images`` are (scene, height, width), ink from 0 to 1. After each number of
    training ``steps`` a model gave ``masks`` (step, scene, query, row, column), from 0
    to 1 for each patch, and ``names`` [step][scene][query]: a text, or None for no
    object, whose mask is not drawn. Raises ValueError for
    shapes that do not fit, numbers outside 0…1, and more than 8 scenes, 16 steps, 8
    queries or 4,096 pixels.
    """
    images, masks = as_array(images, "images"), as_array(masks, "masks")
    _check(images, masks, names, steps)
    predicted = []
    for step in names:
        predicted.append([_as_texts(scene) for scene in step])
    _, _, queries, *grid = masks.shape
    data = {"steps": [int(step) for step in steps], "queries": queries, "grid": grid}
    data.update({"names": predicted, "size": list(images.shape[1:]), "there": THERE})
    data["images"] = [_packed(as_pixels(image)) for image in images]
    data["masks"] = _packed(np.round(255 * masks))
    return Figure(
        "objects",
        data,
        text=_sentence(predicted[-1][0], data),
        title=title,
        shared=("colors.js",),
        draw=lambda _: _draw(images[0], predicted[-1][0], masks[-1, 0]),
    )


def _as_texts(names):
    return [as_text(name) if name else None for name in names]


def _check(images, masks, names, steps):
    shape = masks.shape
    if images.ndim != 3 or len(shape) != 5 or shape[:2] != (len(steps), len(images)):
        raise ValueError(
            "images must be (scene, height, width) and masks (step, scene, query, row, "
            f"column) for {len(steps)} steps, got {images.shape} and {shape}"
        )
    most = MOST_STEPS, MOST_SCENES, MOST_QUERIES
    if any(got > limit for got, limit in zip(shape, most, strict=False)):
        raise ValueError(f"a reader can tell apart {most} steps, scenes and queries")
    if images[0].size > MOST_PIXELS or np.remainder(images.shape[1:], shape[3:]).any():
        raise ValueError(
            f"images of {images.shape[1:]} pixels: pass at most {MOST_PIXELS:,}, cut "
            f"into {shape[3]} × {shape[4]} equal patches"
        )
    if masks.min() < 0 or masks.max() > 1:
        raise ValueError("masks must lie between 0 and 1: pass their sigmoid")
    if np.shape(names) != shape[:3]:
        raise ValueError(f"names must be {shape[:3]}, as masks, got {np.shape(names)}")


def _packed(numbers):
    """Return whole numbers from 0 to 255 as base64."""
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()


def _sentence(names, data):
    parts = (
        f"query {i} predicts {name or 'no object'}" for i, name in enumerate(names)
    )
    return f"After {data['steps'][-1]} steps of training {', '.join(parts)}."


def _draw(image, names, masks):
    titles = [f"query {i}: {name or '∅'}" for i, name in enumerate(names)]
    seen = [mask if name else 0 * mask for name, mask in zip(names, masks, strict=True)]
    there = [mask > THERE for mask in seen]
    drawn = [mask if mask.any() else None for mask in there]
    shown = {"titles": titles, "outline": drawn, "columns": 4}
    return show_images([image] * len(seen), seen, **shown)
