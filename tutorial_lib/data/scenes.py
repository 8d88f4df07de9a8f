"""Scenes: one whole digit somewhere among fragments of other digits.

Fragments are cut from digits of every class, the whole one's too, so that they tell
nothing about the label: who names the digit must have found it.

This module knows no file and no model, and takes its digits as they come.
"""

import random

import numpy as np
import torch

from tutorial_lib.data.counts import check_counts

TRIES = 1000  # pieces or places drawn in vain before there counts as being none
INK = 0.3  # the least mean brightness of a fragment: an empty one hides nothing


def make_scenes(
    images, labels, count, *, size=32, fragments=6, step=4, noise=0.0, seed=0
):
    """Make ``count`` scenes of ``size`` × ``size`` pixels from digits.

    ``images`` (image, channel, height, width), in 0…1, and ``labels`` (image,) are the
    digits. A scene holds one of them, unchanged, and ``fragments`` pieces half as high
    and wide, each cut from another; they lie on black at places drawn at random, with
    a blank row or column between any two. The whole digit's place is a multiple of
    ``step`` pixels from the top and the left, so that patches of that size cut every
    digit alike; with 1 it may lie anywhere, which is far harder to learn.
    ``noise`` is the standard deviation of what is added to each pixel, which then is
    cut off at 0 and 1. A smaller ``count`` with the same ``seed`` gives the first of
    the same scenes.

    Returns the scenes (image, channel, height, width), the labels of their digits
    (image,) and the boxes of these (image, 4): top, left, bottom, right in pixels,
    where bottom and right are the first row and column behind. Raises ValueError for
    numbers that make no scene, and if there is no room or nothing to cut.
    """
    check_counts(count=count, size=size, step=step)
    check_counts(fragments=fragments, least=0)
    if not noise >= 0:
        raise ValueError(f"noise must be a number, 0 or more, got {noise}")
    rng, digits = random.Random(f"scenes {seed}"), images.numpy()
    noisy = np.random.default_rng(rng.getrandbits(64))  # apart: noise moves nothing
    made = [_scene(rng, digits, size, fragments, step) for _ in range(count)]
    scenes, rows, boxes = zip(*made, strict=True)
    scenes = np.stack(scenes)
    scenes = scenes + noisy.normal(0, noise, scenes.shape) if noise else scenes
    scenes = torch.from_numpy(scenes.clip(0, 1)).to(images.dtype)
    return scenes, labels[torch.tensor(rows)], torch.tensor(boxes)


def _scene(rng, digits, size, fragments, step):
    """Draw a scene; returns it, the row of its whole digit and that one's box."""
    scene = np.zeros((digits.shape[1], size, size), digits.dtype)
    row = rng.randrange(len(digits))
    boxes = [_paste(rng, scene, digits[row], [], step)]
    for _ in range(fragments):
        boxes.append(_paste(rng, scene, _fragment(rng, digits, row), boxes))
    return scene, row, boxes[0]


def _fragment(rng, digits, row):
    """Cut a piece half as high and wide from anywhere in a digit of another row."""
    full_height, full_width = digits.shape[2:]
    height, width = full_height // 2, full_width // 2
    for _ in range(TRIES):
        other = rng.randrange(len(digits))
        top = rng.randrange(full_height - height + 1)
        left = rng.randrange(full_width - width + 1)
        piece = digits[other, :, top : top + height, left : left + width]
        if other != row and piece.mean() >= INK:
            return piece
    raise ValueError("beside the whole digit there is none bright enough to cut up")


def _paste(rng, scene, piece, boxes, step=1):
    """Put a piece where it touches none of ``boxes``, and return its own box."""
    size = scene.shape[-1]
    height, width = piece.shape[1:]
    for _ in range(TRIES if max(height, width) <= size else 0):
        top = rng.randrange(0, size - height + 1, step)
        left = rng.randrange(0, size - width + 1, step)
        box = top, left, top + height, left + width
        if not any(_touch(box, other) for other in boxes):
            scene[:, top : top + height, left : left + width] = piece
            return box
    raise ValueError(
        f"a scene of {size} × {size} pixels has no room for {len(boxes) + 1} pieces: "
        "make it larger, or take fewer fragments"
    )


def _touch(box, other):
    """Tell whether no blank row or column lies between two boxes."""
    return all(
        box[axis] <= other[axis + 2] and other[axis] <= box[axis + 2] for axis in (0, 1)
    )
