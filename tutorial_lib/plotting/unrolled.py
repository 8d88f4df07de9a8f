"""Unrolled: a translator with one context vector, drawn word by word."""

from tutorial_lib.plotting.panels import BLUE, GREY, ORANGE, open_panels

_INPUT, _STATE, _BACKWARD, _OUTPUT = 0.0, 1.0, 1.9, 2.6


def show_unrolled(source, target):
    """Draw an encoder that reads in both directions, one vector c, and a decoder.

    ``source`` and ``target`` are lists of a few words. Every decoder state gets the
    word before, and c; dashed lines carry a written word to where it is read.
    """
    columns = len(source) + len(target) + 2
    with open_panels(1, 1, size=(0.78 * columns, 2.8)) as (fig, axes):
        ax = axes.item()
        context = _draw_encoder(ax, source)
        _draw_decoder(ax, target, context)
        ax.set(xlim=(-0.6, columns - 0.4), ylim=(-0.3, 3.3))
        ax.axis("off")
    return fig


def _draw_encoder(ax, source):
    """Draw the words and both directions; return the place of the context."""
    last, context = len(source) - 1, (len(source), (_STATE + _BACKWARD) / 2)
    for x, word in enumerate(source):
        _text(ax, x, _INPUT, word)
        _arrow(ax, (x - 0.12, _INPUT), (x - 0.12, _STATE), GREY)
        _arrow(ax, (x + 0.12, _INPUT), (x + 0.12, _BACKWARD), GREY)
        if x < last:
            _arrow(ax, (x, _STATE), (x + 1, _STATE), BLUE)
            _arrow(ax, (x + 1, _BACKWARD), (x, _BACKWARD), BLUE)
        for y, name in ((_STATE, "→"), (_BACKWARD, "←")):
            _box(ax, x, y, name, BLUE)
    _arrow(ax, (last, _STATE), context, BLUE)
    _arrow(ax, (0, _BACKWARD), context, BLUE, bend=-0.35)
    _box(ax, *context, "c", ORANGE)
    _text(ax, last / 2, 3.15, "encoder", color=GREY)
    return context


def _draw_decoder(ax, target, context):
    first = context[0] + 1
    inputs, outputs = ["<bos>", *target], [*target, "<eos>"]
    for x, (read, written) in enumerate(zip(inputs, outputs, strict=True), first):
        _text(ax, x, _INPUT, read)
        _text(ax, x, _OUTPUT, written)
        bend = 0.0 if x == first else -0.24
        _arrow(ax, context, (x, _STATE), ORANGE, bend=bend)
        _arrow(ax, (x, _INPUT), (x, _STATE), GREY)
        _arrow(ax, (x, _STATE), (x, _OUTPUT), GREY)
        if x > first:
            _arrow(ax, (x - 1, _STATE), (x, _STATE), BLUE)
            ax.plot([x - 0.8, x - 0.2], [_OUTPUT - 0.22, _INPUT + 0.22], ":", c=GREY)
        _box(ax, x, _STATE, "s", BLUE)
    _text(ax, first + len(target) / 2, 3.15, "decoder", color=GREY)


def _text(ax, x, y, text, *, color="black"):
    ax.text(x, y, text, ha="center", va="center", fontsize=9, color=color)


def _box(ax, x, y, text, color):
    style = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": color, "lw": 1.4}
    ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=style)


def _arrow(ax, start, end, color, *, bend=0.0):
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.1, "mutation_scale": 9}
    style |= {"shrinkA": 11, "shrinkB": 11, "connectionstyle": f"arc3,rad={bend}"}
    ax.annotate("", end, start, arrowprops=style, zorder=0)
