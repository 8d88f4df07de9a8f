"""Dark: a figure drawn for white paper, on a dark one.

A color of the palette, or a scale of colors, becomes its twin. Any other color keeps
the contrast with the paper that it had with white: black turns white, a deep blue a
light one. Pictures of things, and what is drawn on them, stay as they are.

This module does not know what the colors mean.
"""

from contextlib import contextmanager

from matplotlib.colors import is_color_like, to_hex, to_rgb, to_rgba, to_rgba_array

from tutorial_lib.plotting.colors import (
    DARK,
    DARK_SCALES,
    GLARE,
    LIGHT,
    luminance,
    to_light,
)
from tutorial_lib.plotting.scales import ink_numbers, is_scaled, scale

PAPER = DARK["paper"]
TWINS = {to_hex(LIGHT[name]): to_rgb(DARK[name]) for name in LIGHT}

# Per kind of artist, the names of what matplotlib calls its colors.
COLORS = {
    "Line2D": ("color", "markerfacecolor", "markeredgecolor"),
    "Patch": ("facecolor", "edgecolor"),
    "Text": ("color",),
    "Collection": ("facecolor", "edgecolor"),
}


@contextmanager
def on_dark(figure):
    """Turn a matplotlib figure dark for as long as the context lasts."""
    undo = []

    def change(artist, names, turned):
        before = {name: getattr(artist, f"get_{name}")() for name in names}
        for name, color in before.items():
            undo.append((artist, name, color))
            getattr(artist, f"set_{name}")(turned(color))

    scaled = [ax for ax in figure.axes if is_scaled(ax)]
    for ax in scaled:
        change(ax.images[0], ["cmap"], _twin)
    figure.draw_without_rendering()  # now all its ticks are there
    for artist in _recolored(figure):
        change(artist, _colors_of(artist), darkened)
    for ax in scaled:
        ink_numbers(ax)
    try:
        yield
    finally:
        for artist, name, before in reversed(undo):
            getattr(artist, f"set_{name}")(before)


def _twin(scale_on_white):
    return scale(scale_on_white.name, DARK_SCALES)


def darkened(colors):
    """Return a color, or a list of them, as dark paper has it, as opaque as before."""
    if is_color_like(colors):
        return _darken(to_rgba(colors))
    return [_darken(color) for color in to_rgba_array(colors)]


def _darken(color):
    """Find the twin, or the same hue at another luminance: brighter, then paler."""
    *rgb, opacity = color
    if twin := TWINS.get(to_hex(rgb)):
        return (*twin, opacity)
    light = to_light(rgb)
    contrast = (1 + GLARE) / (luminance(light) + GLARE)
    paper = luminance(to_light(to_rgb(PAPER)))
    wanted = min(contrast * (paper + GLARE) - GLARE, 1.0)
    if any(light):
        brighter = min(wanted / luminance(light), 1 / max(light))
        light = [brighter * part for part in light]
    missing = wanted - luminance(light)
    paler = missing / (1 - luminance(light)) if missing > 0 else 0.0
    light = [part + paler * (1 - part) for part in light]
    return (*map(_from_light, light), opacity)


def _from_light(part):
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _recolored(figure):
    """List every artist of a figure that is no image and stands on none."""
    kept = {
        id(artist)
        for ax in figure.axes
        if ax.images and not is_scaled(ax)
        for artist in (*ax.texts, *ax.lines, *ax.patches, *ax.collections)
    }
    found = []
    for artist in figure.findobj():
        if id(artist) not in kept:
            found.append(artist)
            found += _attached(artist)
    return found


def _attached(artist):
    """List what belongs to a text without being one of its children."""
    if not hasattr(artist, "get_bbox_patch"):
        return []
    arrow = getattr(artist, "arrow_patch", None)
    return [part for part in (artist.get_bbox_patch(), arrow) if part is not None]


def _colors_of(artist):
    if getattr(artist, "get_array", lambda: None)() is not None:
        return ()  # its colors stand for numbers
    kinds = {kind.__name__ for kind in type(artist).__mro__}
    return next((names for kind, names in COLORS.items() if kind in kinds), ())
