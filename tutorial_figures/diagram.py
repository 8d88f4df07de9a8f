"""The Transformer's diagram: where its boxes stand, and what flows between them.

Vaswani et al. (2017), figure 1, bottom up: boxes compute, plain words are what goes
between them. Places are in units of which the picture is ``WIDTH`` wide, down from the
upper left corner; page and picture draw the same numbers.
"""

from typing import NamedTuple

from .figure import ACCENT

WIDTH, HEIGHT = 390, 550
BOX, NAME, MASK = 116, 132, 32  # the widths of a box, of a frame's name, of a mask
ROW, ATTENTION = 26, 36  # the heights of boxes
LEFT = {"encoder": 38, "decoder": 222}
BYPASS = {"encoder": 26, "decoder": 348}
FRAME = {"encoder": (8, 160), "decoder": (204, 181)}  # from where, and how wide
LAYER = {"encoder": (16, 146), "decoder": (214, 142)}
WORDS = {"encoder": "English tokens", "decoder": "<bos> and French tokens"}
SUB_LAYERS = {
    "encoder": ("self-attention", "feed-forward"),
    "decoder": ("causal self-attention", "cross-attention", "feed-forward"),
}
LABELS = {
    "self-attention": "self-\nattention",
    "causal self-attention": "causal self-\nattention",
    "cross-attention": "cross-\nattention",
    "position": "+ position",
    "encoder layer": "layer × N",
    "decoder layer": "layer × N",
}
# Rows are queries and columns are keys. In two of them the last column is padding.
MASKS = {
    "self-attention": ["110", "110", "110"],
    "causal self-attention": ["100", "110", "111"],
    "cross-attention": ["1110", "1110", "1110"],
}
CELL = 7
TIP = 4  # half the width of an arrow's head
LETTERS = 11.4  # points, in the picture
LINE = "0.35"
# From pale to strong: a frame, a layer, attention. Orange and blue as in Fig. 11.1.
TINTS = {
    "encoder": ("#fbf2ee", "#f6e5de", "#edc6b6"),
    "decoder": ("#eff4fb", "#e0e9f7", "#bcd0ef"),
}


class Box(NamedTuple):
    """A part to click, at ``place`` (x, y, width, height), and a frame named by it."""

    about: str
    name: str
    place: tuple
    label: str = ""
    frame: tuple = ()


class Diagram:
    """What is drawn: boxes, lines as lists of points, texts and masks with middles."""

    def __init__(self):
        self.boxes = []
        self.texts = []
        self.masks = []
        self.lines = []
        self.dashed = []
        self.heads = []

    def add(self, about, place, *, of="", after="", **more):
        """Add a box, named by the tower ``of`` which it is and the layer before it."""
        name = f"{of}: {about}" if of else about
        name = f"{name} after {after}" if after else name
        label = LABELS.get(about, about)
        self.boxes.append(Box(about, name, place, **{"label": label, **more}))

    def arrow(self, *points):
        """Draw a line through ``points``, its head at the last: up, or to the right."""
        (before, _), (x, y) = points[-2:]
        self.lines.append(points)
        sides = [(x - TIP, y + 6), (x + TIP, y + 6)]
        if before < x:
            sides = [(x - 6, y - TIP), (x - 6, y + TIP)]
        elif before > x:
            sides = [(x + 6, y - TIP), (x + 6, y + TIP)]
        self.heads.append([(x, y), *sides])

    def box_above(self, about, x, y, *, gap=9, **more):
        """Add a box ``gap`` above ``y``, an arrow to it, and return its upper edge."""
        top = y - gap - ROW
        self.arrow((x + BOX / 2, y), (x + BOX / 2, y - gap))
        self.add(about, (x, top, BOX, ROW), **more)
        return top

    def close(self, about, x, y, *, first, around, floor):
        """Frame all boxes since ``first``, and return the upper edge of its name.

        The name stands on the frame, in the stream that leaves at ``y``; ``around`` is
        where the frame begins and how wide it is, ``floor`` where it ends below.
        """
        left, width = around
        middle = x + BOX / 2
        top = y - 6 - ROW
        self.lines.append(((middle, y), (middle, y - 6)))
        frame = (left, top + ROW / 2, width, floor - top - ROW / 2)
        self.boxes.insert(first, _framed(about, (middle - NAME / 2, top), frame))
        return top


def _framed(about, corner, frame):
    return Box(about, about, (*corner, NAME, ROW), LABELS.get(about, about), frame)


def transformer():
    """Lay the Transformer out."""
    diagram = Diagram()
    encoded = _add_tower(diagram, "encoder")
    written = _add_tower(diagram, "decoder")
    _carry_memory(diagram, encoded)
    _explain_masks(diagram, encoded - 100)
    ceiling = written - 12
    frame = (1, ceiling, WIDTH - 2, HEIGHT - 24 - ceiling)
    diagram.boxes.insert(0, _framed("Transformer", (12, ceiling - ROW / 2), frame))
    top = diagram.box_above("softmax", LEFT["decoder"], written, gap=26)
    middle = LEFT["decoder"] + BOX / 2
    diagram.arrow((middle, top), (middle, top - 9))
    diagram.texts.append((middle, top - 14, "next French token"))
    return diagram


def _add_tower(diagram, tower):
    """Stack a tower's boxes and return the upper edge of its name."""
    x = LEFT[tower]
    first = len(diagram.boxes)
    diagram.texts.append((x + BOX / 2, HEIGHT - 4, WORDS[tower]))
    embedding = diagram.box_above("embedding", x, HEIGHT - 16, gap=24, of=tower)
    position = y = diagram.box_above("position", x, embedding, of=tower)
    inner = len(diagram.boxes)
    for sub_layer in SUB_LAYERS[tower]:
        y = _add_layer(diagram, tower, sub_layer, y)
    layer = {"first": inner, "around": LAYER[tower], "floor": position - 4}
    y = diagram.close(f"{tower} layer", x, y, **layer)
    if tower == "decoder":
        y = diagram.box_above("linear", x, y)
        _tie(diagram, embedding + ROW / 2, y + ROW / 2)
    whole = {"first": first, "around": FRAME[tower], "floor": HEIGHT - 33}
    return diagram.close(tower, x, y, **whole)


def _add_layer(diagram, tower, layer, y):
    """Stack a layer and its add & norm, with the stream that goes around it."""
    x = LEFT[tower]
    middle = LEFT[tower] + BOX / 2
    tap = y - 8
    if layer in MASKS:
        y = _add_attention(diagram, tower, layer, y)
    else:
        y = diagram.box_above(layer, x, y, gap=18, of=tower)
    y = diagram.box_above("add & norm", x, y, of=tower, after=layer)
    aside = BYPASS[tower]
    edge = x if tower == "encoder" else x + BOX
    around = [(middle, tap), (aside, tap), (aside, y + ROW / 2), (edge, y + ROW / 2)]
    diagram.arrow(*around)
    return y


def _add_attention(diagram, tower, layer, y):
    """Stack attention and its mask; keys and values fork off, or come from aside."""
    x = LEFT[tower]
    middle = LEFT[tower] + BOX / 2
    foot = y - 26
    width = BOX - MASK - 4
    top = foot - ATTENTION
    diagram.arrow((middle, y), (middle, foot))
    if layer == "cross-attention":
        diagram.texts.append((middle - 8, foot + 12, "Q"))
    else:
        for prong in (x + 18, x + 38):
            diagram.arrow((middle, y - 14), (prong, y - 14), (prong, foot))
    diagram.add(layer, (x, top, width, ATTENTION), of=tower)
    place = (x + width + 4, top, MASK, ATTENTION)
    diagram.add(f"mask of {layer}", place, of=tower, label="")
    diagram.masks.append((x + BOX - MASK / 2, top + ATTENTION / 2, MASKS[layer]))
    return top


def _carry_memory(diagram, y):
    """Lead the memory from the encoder's top down to the keys and values."""
    frames = {box.about: box.place for box in diagram.boxes}
    x, top, _, height = frames["cross-attention"]
    middle = LEFT["encoder"] + BOX / 2
    aside = LEFT["decoder"] - 36
    diagram.arrow((middle, y), (middle, y - 9))
    diagram.texts.append((middle, y - 14, "memory"))
    for share, name in ((1 / 4, "K"), (3 / 4, "V")):
        enters = top + share * height
        diagram.arrow(
            (middle + 30, y - 18), (aside, y - 18), (aside, enters), (x, enters)
        )
        diagram.texts.append((aside + 10, enters - 3, name))


def _explain_masks(diagram, y):
    """Say what the small grids mean, where the shorter tower leaves room."""
    x = LEFT["encoder"]
    for line, text in enumerate(("grids: a row is a query,", "a column is a key")):
        diagram.texts.append((x + BOX / 2, y + 15 * line, text))
    for line, (cell, text) in enumerate((("1", "may attend"), ("0", "hidden"))):
        diagram.masks.append((x + 24, y + 31 + 15 * line, [cell]))
        diagram.texts.append((x + 69, y + 35 + 15 * line, text))


def _tie(diagram, embedding, linear):
    """Join the French embedding to the linear map, between two heights."""
    x = LEFT["decoder"] + BOX
    edge = LEFT["decoder"] + BOX + 32
    middle = (embedding + linear) / 2
    for end, gap in ((embedding, 24), (linear, -24)):
        diagram.dashed.append([(x, end), (edge, end), (edge, middle + gap)])
    diagram.add("tied", (edge - ROW / 2, middle - 24, ROW, 48))


def drawing():
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
    return "".join(_subpath(line) for line in lines)


def _subpath(line):
    return "M" + " ".join(f"{x:g},{y:g}" for x, y in line)


def picture(_=None):
    """Return the diagram as a matplotlib figure, which depends on no data."""
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
    for about, name, place, label, frame in boxes:
        tints = TINTS.get(name[:7], ("white",))  # both towers have names of 7 letters
        if frame:
            _draw_rectangle(ax, frame, fc=tints["layer" in about])
        fill = tints[2] if "attention" in about else "white"
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
