"""Pictures: the ideas that chapters open with, drawn by hand, an SVG file each.

They stand in the folder ``svg``. A line is as thick as the weight it stands for;
queries are blue, keys orange and values green. A picture is drawn on white, and turns
dark on a page as figures do.
"""

from importlib.resources import files


class Picture:
    """A drawing, which a notebook shows and stores as its text, ``svg``."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"image/svg+xml": self.svg, "text/plain": "A picture"}
        if "<image" in self.svg:  # a photograph, which does not turn dark
            return data, {"image/svg+xml": {"needs_background": "light"}}
        return data


def show_picture(name):
    """Show the picture ``name``, a file of the folder ``svg`` without its ending.

    Raises ValueError, with the names of all pictures, if there is none of this name.
    """
    pictures = {}
    for file in files("tutorial_lib.plotting").joinpath("svg").iterdir():
        pictures[file.name.removesuffix(".svg")] = file
    if name not in pictures:
        known = ", ".join(sorted(pictures))
        raise ValueError(f"there is no picture {name}: choose one of {known}")
    return Picture(pictures[name].read_text(encoding="utf-8"))
