"""Dark: a figure drawn for white paper, on a dark one.

Its colors are the twins that ``colors`` gives to those of the palette and to the scales
of heatmaps. A color that is not from there keeps its hue, and light turns dark: black
is white, a deep blue a light one. Pictures of things, and what is drawn on them, stay
as they are.

This module does not know what the colors mean.
"""

import colorsys
from contextlib import contextmanager

from matplotlib.colors import is_color_like, to_hex, to_rgb, to_rgba, to_rgba_array

from tutorial_lib.plotting.colors import (
    CURVES,
    DARK_SCALES,
    PALETTE,
    ink_numbers,
    is_scaled,
    scale,
)

TWINS = {to_hex(light): to_rgb(dark) for light, dark in (*PALETTE.values(), *CURVES)}

COLORS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


@contextmanager
def on_dark(figure):
    """Turn a matplotlib figure dark for as long as the context lasts."""
    scaled = [ax for ax in figure.axes if is_scaled(ax)]
    maps = [(ax.images[0], ax.images[0].get_cmap()) for ax in scaled]
    for image, light in maps:
        image.set_cmap(scale(light.name, DARK_SCALES))
    figure.draw_without_rendering()  # now all its ticks are there
    colors = [
        (artist, name, getattr(artist, f"get_{name}")())
        for artist in _recolored(figure)
        for name in COLORS
        if hasattr(artist, f"get_{name}") and hasattr(artist, f"set_{name}")
    ]
    for artist, name, color in colors:
        getattr(artist, f"set_{name}")(darkened(color))
    for ax in scaled:
        ink_numbers(ax)
    try:
        yield
    finally:
        for artist, name, color in colors[::-1]:
            getattr(artist, f"set_{name}")(color)
        for image, light in maps:
            image.set_cmap(light)


def darkened(colors):
    """Return a color, or a list of them, as dark paper has it, as opaque as before."""
    if is_color_like(colors):
        return _darken(to_rgba(colors))
    return [_darken(color) for color in to_rgba_array(colors)]


def _darken(color):
    *rgb, opacity = color
    if twin := TWINS.get(to_hex(rgb)):
        return (*twin, opacity)
    hue, light, saturation = colorsys.rgb_to_hls(*rgb)
    return (*colorsys.hls_to_rgb(hue, 1 - 0.9 * light, saturation), opacity)


def _recolored(figure):
    """List what is no image, stands on none, and has colors that are no numbers."""
    kept = {
        artist
        for ax in figure.axes
        if ax.images and not is_scaled(ax)
        for artist in (*ax.texts, *ax.lines, *ax.patches, *ax.collections)
    }
    found = [artist for artist in figure.findobj() if artist not in kept]
    texts = [artist for artist in found if hasattr(artist, "get_bbox_patch")]
    found += [text.get_bbox_patch() for text in texts]  # which are not their children
    found += [getattr(text, "arrow_patch", None) for text in texts]
    return [one for one in found if getattr(one, "get_array", lambda: None)() is None]
