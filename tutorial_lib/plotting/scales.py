"""Scales: where a color stands for a number, and how a number is written on it.

A scale has its name from ``colors``, by which dark figures know it again. This module
does not know what the numbers are.
"""

from tutorial_lib.plotting.colors import LIGHT_SCALES, UNDEFINED, contrast


def scale(name, scales=LIGHT_SCALES):
    """Return one of the ``scales`` by its name, as a colormap of matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = scales[name].split()
    odd = 257  # so that one of the colors is exactly that of the middle
    made = LinearSegmentedColormap.from_list(name, colors, N=odd)
    return made.with_extremes(bad=UNDEFINED)


def is_scaled(ax):
    """Say whether ``ax`` holds an image on a scale of the book."""
    return any(image.get_cmap().name in LIGHT_SCALES for image in ax.images)


def ink_numbers(ax):
    """Write each number that stands on a cell of the image in what can be read there.

    A number's box, if it has one, gets the color of the cell.
    """
    [image] = ax.images
    cells = image.to_rgba(image.get_array())
    rows, columns = cells.shape[:2]
    for number in ax.texts:
        x, y = map(round, number.get_position())
        if not (0 <= y < rows and 0 <= x < columns):
            continue
        cell = cells[y, x]
        black, white = (contrast(cell[:3], 3 * [ink]) for ink in (0, 1))
        number.set_color("black" if black > white else "white")
        if box := number.get_bbox_patch():
            box.set_facecolor(cell)
