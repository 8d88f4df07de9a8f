"""Object queries over training: what each predicts, and where it attends.

Names, boxes and attention weights go in, as a model gave them during its training.
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


def show_objects(images, names, boxes, weights, *, steps, title=None):
    """Show what each object query predicts for an image over training.

    ``images`` are (scene, height, width), ink from 0 to 1. After each number of
    training ``steps`` a model gave ``names`` [step][scene][query]: a text, or None for
    no object; ``boxes`` (step, scene, query, 4): the center's x and y, width and
    height, as fractions of the image; and ``weights`` (step, scene, query, row,
    column), with which each query attends to the patches. The box of no object is not
    drawn. Raises ValueError for shapes that do not fit, numbers outside 0…1, and more
    than 8 scenes, 16 steps, 8 queries or 4,096 pixels.
    """
    images, boxes = as_array(images, "images"), as_array(boxes, "boxes")
    weights = as_array(weights, "weights")
    _check(images, boxes, weights, names, steps)
    predicted = []
    for step in names:
        predicted.append([_as_texts(scene) for scene in step])
    _, _, queries, *grid = weights.shape
    data = {"steps": [int(step) for step in steps], "queries": queries, "grid": grid}
    data.update({"names": predicted, "size": list(images.shape[1:])})
    data["images"] = [_packed(as_pixels(image)) for image in images]
    data["boxes"] = boxes.round(3).tolist()
    largest = weights.max(axis=(-2, -1), keepdims=True)
    data["maps"] = _packed(np.round(255 * weights / np.maximum(largest, 1e-6)))
    return Figure(
        "objects",
        data,
        text=_sentence(predicted[-1][0], data),
        title=title,
        shared=("colors.js",),
        draw=lambda _: _draw(images[0], predicted[-1][0], boxes[-1, 0], weights[-1, 0]),
    )


def _as_texts(names):
    return [as_text(name) if name else None for name in names]


def _check(images, boxes, weights, names, steps):
    shape = weights.shape
    if images.ndim != 3 or len(shape) != 5 or shape[:2] != (len(steps), len(images)):
        raise ValueError(
            "images must be (scene, height, width) and weights (step, scene, query, "
            f"row, column) for {len(steps)} steps, got {images.shape} and {shape}"
        )
    if boxes.shape != (*shape[:3], 4):
        raise ValueError(f"boxes must be {(*shape[:3], 4)}, got {boxes.shape}")
    most = MOST_STEPS, MOST_SCENES, MOST_QUERIES
    if any(got > limit for got, limit in zip(shape, most, strict=False)):
        raise ValueError(f"a reader can tell apart {most} steps, scenes and queries")
    if images[0].size > MOST_PIXELS or np.remainder(images.shape[1:], shape[3:]).any():
        raise ValueError(
            f"images of {images.shape[1:]} pixels: pass at most {MOST_PIXELS:,}, cut "
            f"into {shape[3]} × {shape[4]} equal patches"
        )
    for numbers, name in ((boxes, "boxes"), (weights, "weights")):
        if numbers.min() < 0 or numbers.max() > 1:
            raise ValueError(f"{name} must lie between 0 and 1")
    if np.shape(names) != shape[:3]:
        raise ValueError(
            f"names must be {shape[:3]}, as weights, got {np.shape(names)}"
        )


def _packed(numbers):
    """Return whole numbers from 0 to 255 as base64."""
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()


def _sentence(names, data):
    parts = (
        f"query {i} predicts {name or 'no object'}" for i, name in enumerate(names)
    )
    return f"After {data['steps'][-1]} steps of training {', '.join(parts)}."


def _draw(image, names, boxes, weights):
    titles = [f"query {i}: {name or '∅'}" for i, name in enumerate(names)]
    drawn = []
    for name, box in zip(names, boxes, strict=True):
        drawn.append(box[None] if name else None)
    shown = {"titles": titles, "boxes": drawn, "columns": 3}
    return show_images([image] * len(names), weights, **shown)
