"""What can be read: the contrast between two colors."""

from tutorial_lib.plotting.colors import luminance


def contrast(one, other):
    """Return the contrast of two colors (red, green, blue), 1 to 21, by WCAG 2."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)
