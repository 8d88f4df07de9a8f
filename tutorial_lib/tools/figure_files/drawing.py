"""Drawing: what happens in the kernel of a chapter whose figures are wanted.

Whatever the chapter shows, matplotlib figures and live ones, it then also hands over as
a file of the format that was asked for, under a type of output of our own. The same
figure gives the same bytes.

This module does not know which figures are wanted, nor what their names are.
"""

import ast
import base64
import io
import warnings
from contextlib import nullcontext

from tutorial_lib.tools.figure_files.dark import on_dark

PICTURE = "application/vnd.tutorial-lib.picture"  # the file, as base64
PREVIEW = "application/vnd.tutorial-lib.preview"  # a PNG of a PDF, which no page shows
CLAIM = "application/vnd.tutorial-lib.claim"  # the source of a claim that does not hold
PREVIEW_DPI = 80
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def hand_over(*, format, dpi, style):
    """Let this kernel hand over its figures, and go on where a claim does not hold."""
    from IPython import get_ipython

    shell = get_ipython()

    def file_of_static(figure):
        data = {PICTURE: _encoded(figure, format, dpi, style)}
        if format == "pdf":
            data[PREVIEW] = _encoded(figure, "png", PREVIEW_DPI, style)
        return data

    def file_of_live(figure):
        return {
            PICTURE: base64.b64encode(draw_live(figure, dpi, style)).decode(),
            "text/html": figure.html,
            "text/plain": figure.text,
        }

    bundles = shell.display_formatter.mimebundle_formatter
    bundles.for_type_by_name("matplotlib.figure", "Figure", file_of_static)
    bundles.for_type_by_name("tutorial_lib.figures.figure", "Figure", file_of_live)
    shell.ast_transformers.append(ToleratedClaims())


def _encoded(figure, format, dpi, style):
    return base64.b64encode(draw(figure, format, dpi, style)).decode()


def draw(figure, format, dpi, style):
    """Return the bytes of a matplotlib figure as a file, trimmed as in the book."""
    import matplotlib

    buffer = io.BytesIO()
    salted = matplotlib.rc_context({"svg.hashsalt": "tutorial_lib"})
    with salted, on_dark(figure) if style == "dark" else nullcontext():
        figure.savefig(
            buffer,
            format=format,
            dpi=dpi,
            bbox_inches="tight",
            facecolor=figure.get_facecolor(),
            metadata=UNDATED[format],
        )
    return buffer.getvalue()


def draw_live(figure, dpi, style):
    """Return the still picture of a live figure as PNG bytes, in all its colors."""
    import matplotlib.style

    from tutorial_lib.figures.figure import STYLE

    with matplotlib.style.context([*STYLE]), warnings.catch_warnings():
        # The live figure shows every script; the picture those its font has.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        picture = figure.draw()
        picture.suptitle(figure.title, fontsize=11)
        return draw(picture, "png", dpi, style)


class ToleratedClaims(ast.NodeTransformer):
    """Turn each assertion of a cell into one that is noted where it does not hold.

    Assertions inside functions and classes stay, because they guard what follows them.
    """

    def visit_Assert(self, node):
        """Wrap an assertion; what it raises besides AssertionError still counts."""
        note = (
            f"__import__({__name__!r}, fromlist=['note']).note({ast.unparse(node)!r})"
        )
        template = ast.parse(f"try:\n    ...\nexcept AssertionError:\n    {note}")
        [wrapped] = template.body
        for inner in ast.walk(wrapped):
            ast.copy_location(inner, node)
        wrapped.body = [node]
        return wrapped

    def _stays(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _stays


def note(claim):
    """Store in the outputs of the running cell that a claim does not hold."""
    from IPython.display import display

    display({CLAIM: claim}, raw=True)
