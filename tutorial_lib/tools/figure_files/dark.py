"""Dark: a figure drawn for white paper, on a dark one.

Every color keeps the contrast with the paper that it had with white: black turns white,
the paper's own white turns dark, a blue becomes as much lighter as it needs to be. What
lies on a color scale keeps its color, and so does what is written or drawn on it, or
brings a halo of its own.

This module does not know what the colors mean.
"""

from contextlib import contextmanager

from tutorial_lib.plotting.colors import DARK

PAPER = DARK["paper"]
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green and blue, by WCAG 2
GLARE = 0.05  # light that even black gives off, by WCAG 2

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
    figure.draw_without_rendering()  # now all its ticks are there
    undo = []
    for artist in _recolored(figure):
        for name in _colors_of(artist):
            before = getattr(artist, f"get_{name}")()
            undo.append((artist, name, before))
            getattr(artist, f"set_{name}")(darkened(before))
    try:
        yield
    finally:
        for artist, name, before in reversed(undo):
            getattr(artist, f"set_{name}")(before)


def darkened(colors):
    """Return a color, or a list of them, with the contrast on PAPER it has on white.

    How opaque a color is stays as it is.
    """
    from matplotlib.colors import is_color_like, to_rgba, to_rgba_array

    if is_color_like(colors):
        return _darken(to_rgba(colors))
    return [_darken(color) for color in to_rgba_array(colors)]


def _darken(color):
    """Find the same hue at another luminance: brighter first, then paler."""
    *rgb, opacity = color
    if min(rgb) == 1:
        return (*_paper(), opacity)
    light = [_to_light(part) for part in rgb]
    contrast = (1 + GLARE) / (_luminance(light) + GLARE)
    paper = _luminance(map(_to_light, _paper()))
    wanted = min(contrast * (paper + GLARE) - GLARE, 1.0)
    if any(light):
        brighter = min(wanted / _luminance(light), 1 / max(light))
        light = [brighter * part for part in light]
    missing = wanted - _luminance(light)
    paler = missing / (1 - _luminance(light)) if missing > 0 else 0.0
    light = [part + paler * (1 - part) for part in light]
    return (*map(_from_light, light), opacity)


def _paper():
    from matplotlib.colors import to_rgb

    return to_rgb(PAPER)


def _luminance(light):
    return sum(share * part for share, part in zip(LUMINANCE, light, strict=True))


def _to_light(part):
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _from_light(part):
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _recolored(figure):
    """List every artist of a figure that is no part of a color scale or an image."""
    kept = {
        id(artist)
        for ax in figure.axes
        if ax.images
        for artist in (*ax.texts, *ax.lines, *ax.patches, *ax.collections)
    }
    found = []
    for artist in figure.findobj():
        if id(artist) not in kept and not artist.get_path_effects():
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
