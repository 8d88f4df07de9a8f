"""Drawing: what happens in the kernel of a chapter whose figures are wanted.

Whatever the chapter shows, matplotlib figures and live ones, it then also hands over as
a file of the format that was asked for, under a type of output of our own. The same
figure gives the same bytes.

This module does not know which figures are wanted, nor what their names are.
"""

import ast
import base64

PICTURE = "application/vnd.tutorial-lib.picture"  # the file, as base64
PREVIEW = "application/vnd.tutorial-lib.preview"  # a PNG of a PDF, which no page shows
CLAIM = "application/vnd.tutorial-lib.claim"  # the source of a claim that does not hold
PREVIEW_DPI = 80


def hand_over(*, format, dpi, style):
    """Let this kernel hand over its figures, and go on where a claim does not hold."""
    from IPython import get_ipython

    from tutorial_lib.plotting.figure import draw

    shell = get_ipython()
    dark = style == "dark"

    def file_of_static(figure):
        data = {PICTURE: _encoded(draw(figure, format, dpi=dpi, dark=dark))}
        if format == "pdf":
            preview = draw(figure, "png", dpi=PREVIEW_DPI, dark=dark)
            data[PREVIEW] = _encoded(preview)
        return data

    def file_of_live(figure):
        still = figure.still("png", dpi=dpi, dark=dark)  # in all its colors
        data = {"text/html": figure.html, "text/plain": figure.text}
        return {PICTURE: _encoded(still), **data}

    bundles = shell.display_formatter.mimebundle_formatter
    bundles.for_type_by_name("matplotlib.figure", "Figure", file_of_static)
    bundles.for_type_by_name("tutorial_figures.figure", "Figure", file_of_live)
    shell.ast_transformers.append(ToleratedClaims())


def _encoded(content):
    return base64.b64encode(content).decode()


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
