"""Drawing: what happens in the kernel of a chapter whose figures are wanted.

Whatever the chapter shows, matplotlib figures and live ones, it then also hands over as
a file of the format that was asked for, under a type of output of our own. The same
figure gives the same bytes.

This module does not know which figures are wanted, nor what their names are.
"""

import base64

PICTURE = "application/vnd.tutorial-lib.picture"  # the file, as base64


def hand_over(format, dpi, style, credit):
    """Let this kernel hand over its figures as svg, pdf or png, light or dark.

    ``credit`` stands below those that are shown from here on.
    """
    import matplotlib.figure
    from IPython import get_ipython

    import tutorial_figures.figure
    from tutorial_lib.plotting.figure import draw

    drawn = {"dpi": dpi, "dark": style == "dark", "credit": credit}

    def file_of_static(figure):
        return {PICTURE: _encoded(draw(figure, format, **drawn))}

    def file_of_live(figure):
        still = figure.still(format, **drawn)  # in all its colors
        data = {"text/html": figure.html, "text/plain": figure.text}
        return {PICTURE: _encoded(still), **data}

    bundles = get_ipython().display_formatter.mimebundle_formatter
    bundles.for_type(matplotlib.figure.Figure, file_of_static)
    bundles.for_type(tutorial_figures.figure.Figure, file_of_live)


def _encoded(content):
    return base64.b64encode(content).decode()
