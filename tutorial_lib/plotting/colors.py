"""Colors: the palette of the book's figures, and where a color stands for a number.

A query is blue, a key orange and a value green, wherever one is drawn. Static figures
take the light colors; live ones have them, and beside each its twin for dark pages, as
variables of CSS (``--accent``). The book's own style says them once more in book.css.
"""

PALETTE = {  # on white paper, and on dark
    "query": ("#1f62c8", "#7db7ff"),
    "key": ("#c2410c", "#ffa36b"),
    "value": ("#15803d", "#74d18f"),
    "ink": ("#1d2430", "#dfe4ea"),  # text
    "quiet": ("#57606a", "#a4adb9"),  # text that stands back
    "accent": ("#1f62c8", "#7db7ff"),  # what is looked at
    "mark": ("#b4390a", "#ffa36b"),  # what a reader moves
    "faint": ("#0000001a", "#ffffff24"),  # surfaces
    "line": ("#767676", "#8f8f8f"),
    "paper": ("#fff", "#14181e"),
}
LIGHT = {name: light for name, (light, _) in PALETTE.items()}
DARK = {name: dark for name, (_, dark) in PALETTE.items()}
# Curves beyond a blue, an orange and a green one.
CURVES = (("#7e22ce", "#bb8bff"), ("#0e7490", "#1699bd"), ("#a16207", "#c0760a"))
# From no weight, which is the paper, to the weight 1; and from low scores over 0, the
# paper again, to high ones. On either paper, more color is more.
LIGHT_SCALES = {
    "weights": "#ffffff #deebf7 #c6dbef #9ecae1 #6baed6 #4292c6 #2171b5 #08519c "
    "#08306b",
    "scores": "#053061 #2166ac #4393c3 #92c5de #d1e5f0 #ffffff #fddbc7 #f4a582 "
    "#d6604d #b2182b #67001f",
}
DARK_SCALES = {
    "weights": "#14181e #19304d #1d4474 #23599b #2f73bf #4f92da #7eb2ee #add0fa "
    "#dcebff",
    "scores": "#add0fa #7eb2ee #4f92da #2a66ab #1c3c66 #14181e #56302a #974a3a "
    "#d5705a #ff9d87 #ffcdbf",
}
ON_PAPER = "on paper"  # the group id of an image that turns dark with the page
UNDEFINED = "#c8ccd2"  # a cell that has no number
MIDDLE = (
    0.25  # the luminance at which black and white can be read equally, light or dark
)


def scale(name, scales=LIGHT_SCALES):
    """Return one of the ``scales`` by its name, as a colormap of matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = scales[name].split()
    odd = 257  # so that one of the colors is exactly that of the middle
    made = LinearSegmentedColormap.from_list(name, colors, N=odd)
    return made.with_extremes(bad=UNDEFINED)


def turns_dark(ax):
    """Say whether an image in ``ax`` is on a scale of the book, or drawn on paper."""
    return any(
        image.get_gid() == ON_PAPER or image.get_cmap().name in LIGHT_SCALES
        for image in ax.images
    )


def ink_on(cell):
    """Return the colors of a number on a ``cell`` of this color, and of its outline.

    The outline is what keeps a number legible on a cell of medium brightness, on a page
    that shows the figure as it is, and on a dark one that turns light and dark around.
    """
    red, green, blue = cell[:3]
    if luminance((red, green, blue)) > MIDDLE:
        return "black", (red / 2 + 0.5, green / 2 + 0.5, blue / 2 + 0.5)
    return "white", (red / 2, green / 2, blue / 2)


def luminance(color):
    """Return how bright a color (red, green, blue) is, 0 to 1, by WCAG 2."""
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
