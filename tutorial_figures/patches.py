"""Attention over an image: point at a patch and see which patches it attends to.

Or put questions to an image, and see which patches each of them attends to.

Weights and an image go in.
"""

import base64
import io
import math

import numpy as np

from tutorial_lib.plotting.images import show_images

from .figure import Figure
from .inputs import as_array, as_data, as_layers, as_text, choose, where

MOST_PATCHES = 256
MOST_PIXELS = 65_536
TELLING = 0.1  # a weight that can still be seen among colors from 0 to 1
EXACT, QUALITY = 10_000, 75  # bytes of an image that is sent unchanged; of others


def show_patch_attention(
    weights,
    image,
    *,
    layer=None,
    head=0,
    class_token=True,
    first=None,
    questions=(),
    title=None,
):
    """Show which patches of an image each patch, or the class token, attends to.

    ``weights`` are (query, key), (head, query, key), (layer, head, query, key) with
    ``layer`` given, or a list or dictionary with one (1, head, query, key) per layer,
    for one image: over the patches row by row, and with ``class_token`` over that token
    before them. ``image`` is (height, width) or
    (channel, height, width), in 0…1: one channel is ink, dark on white, which weights
    color; three are a photograph, veiled where nobody looks. The patches are
    squares; their size follows from the numbers of patches and pixels. ``layer`` and
    ``head`` (a number or "mean") are shown first, and what the patch ``first`` (row,
    column) attends to; without it the class token, or the patch in the middle. Full
    strength is the query's largest weight for a patch, or 1, as a reader chooses, if
    half of the queries give a weight of 0.1; equal weights would be 1 / 50 among 50
    tokens.

    With ``questions``, a text for each query, the weights are (…, question, patch),
    there is no class token, and ink is veiled like a photograph.
    Raises ValueError for scores, NaN, maps of several images, an image outside 0…1 or
    of another size, a ``first`` patch that it has not, more than 256 patches, 65,536
    pixels or 1 MB.
    """
    weights = as_layers(weights, layer)
    questions = [as_text(question) for question in questions]
    class_token = bool(class_token) and not questions
    pixels = as_pixels(image)  # (height, width, 3), or (height, width) for ink
    if questions and pixels.ndim == 2:  # ink, dark on white
        pixels = np.stack(3 * [255 - pixels], axis=-1)
    _check_queries(weights.shape, len(questions))
    patch = _patch_size(weights.shape[-1], pixels.shape[:2], class_token)
    shown, weights_shown = choose(weights, layer, head)
    grid = [length // patch for length in pixels.shape[:2]]
    data = {"shown": shown, "classToken": class_token, "grid": grid, "patch": patch}
    data.update({"questions": questions or None} | as_data(weights))
    data.update({"first": _as_first(first, grid), "faded": pixels.ndim == 3})
    data["faint"] = bool(np.median(weights.max(axis=-1)) < TELLING)
    data["picture"] = as_picture(pixels)
    say = _answers if questions else _sentence
    return Figure(
        "patches",
        data,
        text=say(weights_shown, data),
        title=title,
        shared=("colors.js", "heads.js"),
        draw=lambda _: _draw(weights_shown, pixels, data),
    )


def as_pixels(image):
    """Return an image as bytes: ink (height, width), colors (height, width, 3).

    Raises ValueError for one that is no image, or not in 0…1.
    """
    image = as_array(image, "pixels of the image")
    channels = image.shape[0] if image.ndim == 3 else 1
    if image.ndim not in (2, 3) or channels not in (1, 3) or image.size == 0:
        raise ValueError(
            "image must be (height, width) or (channel, height, width) with 1 or 3 "
            f"channels, got {image.shape}: pass one image, channels first"
        )
    if image.min() < 0 or image.max() > 1 + 1e-3:
        raise ValueError(
            f"image must lie between 0 and 1, got {image.min():.3g} to "
            f"{image.max():.3g}: divide bytes by 255, 16 bits by 65,535, or undo a "
            "normalization"
        )
    if image.size // channels > MOST_PIXELS:
        raise ValueError(
            f"{image.shape[-2]} × {image.shape[-1]} pixels are more than the "
            f"{MOST_PIXELS:,} a page should carry: pass a smaller copy of the image, "
            "cut into as many patches"
        )
    image = image.reshape(channels, *image.shape[-2:]).transpose(1, 2, 0)
    image = image if channels == 3 else image[..., 0]
    return np.round(255 * image).clip(0, 255).astype(np.uint8)


def as_picture(pixels):
    """Return pixels as the address of a file: exact if they are few, else a JPEG."""
    from PIL import Image

    kind = "png" if pixels.ndim == 2 or pixels.size <= EXACT else "jpeg"
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, quality=QUALITY, optimize=True)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def _check_queries(shape, questions):
    """Refuse weights that are not of every token, or not of every question."""
    *_, queries, tokens = shape
    if questions and queries != questions:
        raise ValueError(f"{questions} questions need as many queries, got {queries}")
    if not questions and queries != tokens:
        raise ValueError(
            f"weights are {queries} queries × {tokens} keys: here both are the same "
            "tokens, pass all rows of a self-attention"
        )


def _patch_size(tokens, pixels, class_token):
    """Return how wide the patches are, or say why there are none."""
    patches = tokens - bool(class_token)
    patch = _side(patches, *pixels)
    if patch is None:
        other = _side(patches + (1 if class_token else -1), *pixels)
        advice = "pass the image that the model saw" if other is None else (
            f"pass class_token={not class_token}"
        )  # fmt: skip
        raise ValueError(
            f"{tokens} tokens are {patches} patches{' and a class token' * class_token}"
            f", but an image of {pixels[0]} × {pixels[1]} pixels is not cut into "
            f"{patches} squares: {advice}"
        )
    if patches > MOST_PATCHES:
        raise ValueError(
            f"{patches} patches are more than the {MOST_PATCHES} a reader can tell "
            "apart: take larger patches or a smaller image"
        )
    return patch


def _side(patches, height, width):
    side = math.isqrt(height * width // patches) if patches > 0 else 0
    fits = side and not height % side and not width % side
    return side if fits and height * width == patches * side**2 else None


def _as_first(place, grid):
    """Return the place (row, column) of a patch to be shown first, if one is named."""
    if place is None:
        return None
    row, column = place
    if row not in range(grid[0]) or column not in range(grid[1]):
        raise ValueError(
            f"there is no patch ({row}, {column}) among {grid[0]} × {grid[1]}: count "
            "rows and columns from 0"
        )
    return [row, column]


def _first_query(data):
    """Return the token shown first and its name."""
    if data["classToken"] and data["first"] is None:
        return 0, "class token"
    row, column = data["first"] or [length // 2 for length in data["grid"]]
    query = data["classToken"] + row * data["grid"][1] + column
    return query, f"patch ({row}, {column})"


def _sentence(weights, data):
    rows, columns = data["grid"]
    patch = data["patch"]
    shown = where(data)
    (query, name), offset = _first_query(data), int(data["classToken"])
    over = weights[query, offset:]
    largest = divmod(int(over.argmax()), columns)
    looks = f"{name[0].upper()}{name[1:]} attends most to"
    if offset:
        subject, receiver = ("The class token", "itself") if query == 0 else (
            name[0].upper() + name[1:], "the class token"
        )  # fmt: skip
        given = f"{subject} gives {receiver} {weights[query, 0]:.3f}."
        looks = f"{given} Of the patches it attends most to"
    return (
        f"Attention weights{shown and f' ({shown})'} among {rows} × {columns} patches "
        f"of {patch} × {patch} pixels{' and a class token' * offset}. {looks} "
        f"{largest}, {over.max():.3f}; equal shares would be {1 / len(weights):.3f}."
    )


def _answers(weights, data):
    """Say of every question (question, patch) which patch it attends to."""
    rows, columns = data["grid"]
    patch = data["patch"]
    parts = [
        f"{question} Attends most to {divmod(int(over.argmax()), columns)}, "
        f"{over.max():.3f}."
        for question, over in zip(data["questions"], weights, strict=True)
    ]
    size = f"{rows} × {columns} patches of {patch} × {patch} pixels"
    return " ".join([f"Questions to an image of {size}.", *parts])


def _draw(weights, pixels, data):
    """Draw an image once for every question, or once for the first query.

    A photograph stands beside it as it is.
    """
    maps, titles, outline = weights, data["questions"], None
    if titles is None:
        query, name = _first_query(data)
        offset = int(data["classToken"])
        maps = weights[query : query + 1, offset:]
        receiver = "the class token" if query else "itself"
        given = f"gives {receiver} {weights[query, 0]:.3f}" * offset
        titles = ["\n".join(filter(None, [name, where(data), given]))]
        asks = np.arange(maps.size) == query - offset
        outline = [asks.reshape(data["grid"])] if asks.any() else None
    maps = [*maps.reshape(-1, *data["grid"])]
    image = np.moveaxis(pixels, 2, 0) / 255 if data["faded"] else pixels / 255
    if data["faded"] and not data["questions"]:
        maps, titles = [None, *maps], ["image", *titles]
        outline = outline and [None, *outline]
    shown = {"titles": titles, "outline": outline, "columns": 2}
    return show_images([image] * len(maps), maps, **shown)
