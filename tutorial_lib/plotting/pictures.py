"""Pictures: the ideas that chapters open with, drawn by hand, an SVG file each.

They stand in the folder ``svg``. A line is as thick as the weight it stands for;
queries are blue, keys orange and values green. A picture is drawn on white, and turns
dark on a page as figures do. JupyterLab shows the PNG file beside it (``python -m
tools pictures``) until the notebook has run.
"""

import base64
from importlib.resources import files


class Picture:
    """A drawing, which a notebook shows and stores as its text, ``svg``, and a PNG."""

    def __init__(self, svg, png):
        self.svg = svg
        self.png = png

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {
            "image/svg+xml": self.svg,
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": "A picture",
        }
        if "<image" in self.svg:  # a photograph, which does not turn dark
            return data, {"image/svg+xml": {"needs_background": "light"}}
        return data


def show_picture(name):
    """Show the picture ``name``, a file of the folder ``svg`` without its ending.

    Raises ValueError, with the names of all pictures, if there is none of this name.
    """
    folder = files("tutorial_lib.plotting").joinpath("svg")
    names = {file.name.partition(".")[0] for file in folder.iterdir()}
    if name not in names:
        known = ", ".join(sorted(names))
        raise ValueError(f"there is no picture {name}: choose one of {known}")
    svg = folder.joinpath(f"{name}.svg").read_text(encoding="utf-8")
    return Picture(svg, folder.joinpath(f"{name}.png").read_bytes())
