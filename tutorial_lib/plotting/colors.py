"""Colors: the palette of the book's figures, on white paper and on dark.

A query is blue, a key orange and a value green, wherever one is drawn. Pictures take
their colors from here, live figures as variables of CSS (``--accent``), dark pictures
the twin of each color; the book's own style says the same in book.css.

This module does not know who draws with the colors.
"""

# Queries, keys and values; text, and text that stands back; what is looked at, what a
# reader moves, surfaces, lines, and what all lies on.
LIGHT = {
    "query": "#1f62c8",
    "key": "#c2410c",
    "value": "#15803d",
    "ink": "#1d2430",
    "quiet": "#57606a",
    "accent": "#1f62c8",
    "mark": "#b4390a",
    "faint": "#0000001a",
    "line": "#767676",
    "paper": "#fff",
}
DARK = {
    "query": "#7db7ff",
    "key": "#ffa36b",
    "value": "#74d18f",
    "ink": "#dfe4ea",
    "quiet": "#a4adb9",
    "accent": "#7db7ff",
    "mark": "#ffa36b",
    "faint": "#ffffff24",
    "line": "#8f8f8f",
    "paper": "#14181e",
}
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
UNDEFINED = "#c8ccd2"  # a cell that has no number
GLARE = 0.05  # light that even black gives off, by WCAG 2


def to_light(color):
    """Return the light that red, green and blue, 0 to 1, make: color profile sRGB."""
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]


def luminance(light):
    """Return how bright the light of red, green and blue is, by WCAG 2."""
    red, green, blue = light
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Return the contrast of two colors (red, green, blue), 1 to 21, by WCAG 2."""
    low, high = sorted(luminance(to_light(color)) for color in (one, other))
    return (high + GLARE) / (low + GLARE)
