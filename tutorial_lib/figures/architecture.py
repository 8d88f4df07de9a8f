"""The Transformer as a diagram to click through to the code of its parts.

What the boxes are and where they stand is in ``architecture_parts`` and ``diagram``.
This module knows no model: classes and functions go in, and only their source is read.
"""

from .architecture_parts import ABOUT
from .diagram import CELL, HEIGHT, WIDTH, transformer
from .figure import ACCENT, Figure
from .listing import cut_at_comments, lines_with, source_of

FILES = ("architecture.js", "architecture.css")
PARTS = tuple(dict.fromkeys(about.part for about in ABOUT.values()))
LETTERS = 10.5  # points
TINT, PALE, LINE = "#dce7f7", "#f2f4f7", "0.35"
TEXT = (
    "The Transformer as a diagram, read from the bottom up. Left, the encoder: English "
    "words, embedding, position, then N blocks of self-attention and feed-forward, "
    "each followed by add and norm; what comes out is the memory. Right, the decoder: "
    "bos and French words, embedding, position, then N blocks of causal "
    "self-attention, cross-attention and feed-forward, each followed by add and norm; "
    "then a linear map, tied to the French embedding, and softmax for the next French "
    "word. An arrow leads from the memory to the keys and values of cross-attention, "
    "whose queries come from below. Small grids show what each attention hides: "
    "self-attention the padding, causal self-attention the future, cross-attention the "
    "padding of the source."
)


def show_architecture(code, *, title=None):
    """Show the encoder-decoder Transformer; a click on a part shows its code.

    ``code`` maps each part to the class or function that computes it: "model",
    "encoder", "decoder", "encoder block", "decoder block", "embedding", "position",
    "attention", "length mask", "causal mask", "feed-forward", "residual" and "softmax".
    The norm stands after each layer, as in Vaswani et al. (2017), figure 1. Raises
    ValueError for parts that are missing or unknown, and for code without a source in
    Python.
    """
    _check_parts(code)
    sources = {part: _source(part, code[part]) for part in PARTS}
    about = {
        name: {**about._asdict(), "marks": lines_with(sources[about.part], about.marks)}
        for name, about in ABOUT.items()
    }
    listings = {
        part: {"name": code[part].__name__, "cuts": cut_at_comments(source)}
        for part, source in sources.items()
    }
    data = {"about": about, "code": listings, **_drawing()}
    return Figure("architecture", FILES, data, text=TEXT, title=title, draw=_draw)


def _check_parts(code):
    unknown = [part for part in code if part not in PARTS]
    missing = [part for part in PARTS if part not in code]
    for fault, parts in (("does not know", unknown), ("misses", missing)):
        if parts:
            raise ValueError(
                f"the diagram {fault} {', '.join(map(repr, parts))}: map a class or "
                f"function to each of {', '.join(PARTS)}"
            )


def _source(part, value):
    source = source_of(value)
    if source is None:
        raise ValueError(
            f"no source found for {part!r}, got {value!r}: pass a class or function "
            "that is written in Python"
        )
    return source


def _drawing():
    """Return the diagram as the page draws it: lines as the paths of SVG."""
    diagram = transformer()
    paths = {
        "line": _path(diagram.lines),
        "tie": _path(diagram.dashed),
        "head": _path(diagram.heads),
    }
    boxes = [box._asdict() for box in diagram.boxes]
    size = {"width": WIDTH, "height": HEIGHT, "cell": CELL}
    marks = {"texts": diagram.texts, "masks": diagram.masks, "paths": paths}
    return {"boxes": boxes, **marks, **size}


def _path(lines):
    points = (" ".join(f"{x:g},{y:g}" for x, y in line) for line in lines)
    return "".join(f"M{line}" for line in points)


def _draw():
    from matplotlib.figure import Figure as Canvas

    fig = Canvas(figsize=(WIDTH / 66, HEIGHT / 66))
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), aspect="equal")
    ax.axis("off")
    diagram = transformer()
    _draw_boxes(ax, diagram.boxes)
    for line in diagram.lines:
        ax.plot(*zip(*line, strict=True), color=LINE, lw=1)
    for line in diagram.dashed:
        ax.plot(*zip(*line, strict=True), color=LINE, lw=1, ls=(0, (3, 2)))
    for head in diagram.heads:
        ax.fill(*zip(*head, strict=True), color=LINE, lw=0)
    for x, y, text in diagram.texts:
        ax.text(x, y, text, ha="center", va="baseline", fontsize=LETTERS)
    for x, y, mask in diagram.masks:
        _draw_mask(ax, (x, y), mask)
    return fig


def _draw_boxes(ax, boxes):
    middle = {"ha": "center", "va": "center", "fontsize": LETTERS, "zorder": 4}
    for about, _, place, label, frame in boxes:
        if frame:
            _draw_rectangle(ax, frame, fc=PALE if "block" in about else "white")
        fill = TINT if "attention" in about else "white"
        _draw_rectangle(ax, place, fc=fill, zorder=3)
        x, y, width, height = place
        weight = "bold" if frame else "normal"
        turned = {"rotation": 90 if about == "tied" else 0, "weight": weight}
        ax.text(x + width / 2, y + height / 2, label, **turned, **middle)


def _draw_mask(ax, middle, mask):
    for row, cells in enumerate(mask):
        for column, seen in enumerate(cells):
            x = middle[0] + CELL * (column - len(cells) / 2)
            y = middle[1] + CELL * (row - len(mask) / 2)
            look = {"fc": ACCENT} if seen == "1" else {"fc": "white", "hatch": "/" * 6}
            _draw_rectangle(ax, (x, y, CELL, CELL), lw=0.6, zorder=4, **look)


def _draw_rectangle(ax, place, *, lw=0.9, **look):
    from matplotlib.patches import Rectangle

    x, y, width, height = place
    ax.add_patch(Rectangle((x, y), width, height, ec=LINE, lw=lw, **look))
