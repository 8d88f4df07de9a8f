"""Colors: the palette of the book's figures, on white paper and on dark.

Pictures take theirs from here, live figures as variables of CSS (``--accent``), dark
files of pictures their paper; the book's own style says the same in book.css.

This module does not know who draws with the colors.
"""

# What is looked at, what a reader moves, surfaces, lines, and what all lies on.
LIGHT = {
    "accent": "#1f62c8",
    "mark": "#b4390a",
    "faint": "#0000001a",
    "line": "#767676",
    "paper": "#fff",
}
DARK = {
    "accent": "#7db7ff",
    "mark": "#ffa36b",
    "faint": "#ffffff24",
    "line": "#8f8f8f",
    "paper": "#14181e",
}
