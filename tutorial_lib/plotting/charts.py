"""Charts: curves, bars, images, and pictures of a look-up and of a translator."""

from itertools import accumulate

from tutorial_lib.plotting.panels import BLUE, CYCLE, GREY, ORANGE, array, open_panels

_INPUT, _STATE, _BACKWARD, _OUTPUT = 0.0, 1.0, 1.9, 2.6  # heights in show_unrolled


def show_curves(
    x,
    curves,
    *,
    points=None,
    points_label="data",
    marks=None,
    xlabel="",
    ylabel="",
    xscale="linear",
    yscale="linear",
):
    """Show labeled curves over ``x``, in one panel or in several side by side.

    ``curves`` maps a label to values (x,); a curve whose label starts with "true" is
    dashed. A dictionary of such dictionaries makes one panel each, titled by its key.
    ``points`` is a pair (x, y) scattered into every panel under ``points_label``;
    ``marks`` maps a label to the place of a vertical line. The scales are matplotlib's:
    linear, log or symlog.
    """
    nested = isinstance(next(iter(curves.values())), dict)
    panels = curves if nested else {"": curves}
    size = (7.4 / len(panels), 2.4) if nested else (6.4, 3.4)
    with open_panels(1, len(panels), size=size, sharey=True) as (fig, axes):
        for ax, (title, lines) in zip(axes.flat, panels.items(), strict=True):
            if points is not None:
                ax.scatter(*points, s=14, color=GREY, alpha=0.6, label=points_label)
            for color, (label, y) in zip(CYCLE * 3, lines.items(), strict=False):
                dashed = label.startswith("true")
                line = {"color": GREY, "ls": "--"} if dashed else {"color": color}
                ax.plot(array(x), array(y), label=label, **line)
            for color, (label, place) in zip(
                CYCLE[1:], (marks or {}).items(), strict=False
            ):
                ax.axvline(place, color=color, ls=":", label=label)
            ax.set(title=title, xlabel=xlabel, xscale=xscale, yscale=yscale)
        axes.flat[0].set_ylabel(ylabel)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        if len(labels) > (1 if nested else 4):  # too many to leave the curves room
            fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        elif len(labels) > 1:
            axes.flat[0].legend()
    return fig


def show_bars(bars, labels, *, xlabel="", ylabel="weight"):
    """Show one bar chart for each title in ``bars``, side by side on one scale.

    ``bars`` maps a title to values (bar,); ``labels`` names the bars. Every bar carries
    its value, rounded to two decimals.
    """
    size = (max(7.4 / len(bars), 0.3 * len(labels) + 0.8), 2.5)
    with open_panels(1, len(bars), size=size, sharey=True) as (fig, axes):
        for ax, (title, values) in zip(axes.flat, bars.items(), strict=True):
            drawn = ax.bar(range(len(labels)), array(values), color=BLUE, width=0.7)
            ax.bar_label(drawn, fmt="%.2f", padding=2, fontsize=8)
            ax.set_xticks(range(len(labels)), labels, rotation=40, ha="right")
            ax.set(title=title, xlabel=xlabel)
            ax.margins(y=0.15)
        axes.flat[0].set_ylabel(ylabel)
    return fig


def show_lookup(weights, *, query, keys, values, output):
    """Draw one attention step: a query, the keys it matches, the values it reads.

    ``weights`` (key,) set the width of the lines; ``query``, ``keys``, ``values`` and
    ``output`` are the texts in the boxes.
    """
    rows = len(keys)
    middle, large = (rows - 1) / 2, {"pad": 0.4, "fontsize": 10}
    with open_panels(1, 1, size=(7.4, 0.62 * rows + 0.8)) as (fig, axes):
        ax = axes.item()
        for i, weight in enumerate(array(weights)):
            line = {"lw": 0.4 + 7 * weight, "alpha": 0.15 + 0.85 * weight}
            ax.plot([0, 1], [middle, i], color=BLUE, solid_capstyle="round", **line)
            ax.plot([2, 3], [i, middle], color=ORANGE, solid_capstyle="round", **line)
            ax.text(1.5, i, f"{weight:.2f}", ha="center", va="center", fontsize=10)
            _box(ax, 1, i, keys[i], BLUE, **large)
            _box(ax, 2, i, values[i], ORANGE, **large)
        _box(ax, 0, middle, query, BLUE, **large)
        _box(ax, 3, middle, output, ORANGE, **large)
        for x, title in enumerate(["query", "keys", "values", "output"]):
            ax.text(x, -0.85, title, ha="center", color=GREY)
        ax.text(1.5, -0.85, "weights", ha="center", color=GREY)
        ax.set(xlim=(-0.45, 3.45), ylim=(rows - 0.4, -1.1))
        ax.axis("off")
    return fig


def show_images(images, *, titles=None, columns=8):
    """Show grey images (image, height, width) in rows of ``columns``, dark on white."""
    rows = -(-len(images) // columns)
    columns = min(columns, len(images))
    height = 1.25 if titles else 1.0
    with open_panels(rows, columns, size=(0.95, height)) as (fig, axes):
        for i, ax in enumerate(axes.flat):
            ax.axis("off")
            if i < len(images):
                ax.imshow(array(images[i]), cmap="Greys")
                ax.set_title(titles[i] if titles else "", fontsize=9)
    return fig


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


def _box(ax, x, y, text, color, *, pad=0.35, fontsize=9):
    style = {"boxstyle": f"round,{pad=}", "fc": "white", "ec": color, "lw": 1.4}
    ax.text(x, y, text, ha="center", va="center", fontsize=fontsize, bbox=style)


def _arrow(ax, start, end, color, *, bend=0.0):
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.1, "mutation_scale": 9}
    style |= {"shrinkA": 11, "shrinkB": 11, "connectionstyle": f"arc3,rad={bend}"}
    ax.annotate("", end, start, arrowprops=style, zorder=0)


def show_losses(history, *, yscale="log"):
    """Draw a training run's losses, thinned out if they are many, and their mean.

    ``history`` is what ``tutorial_lib.training.fit`` returns; ``yscale`` is
    matplotlib's: take "linear" for losses that reach 0. Raises ValueError if the run
    has no step.
    """
    steps = history.steps
    if not steps:
        raise ValueError("this history has no step to plot: train first")
    thin = -(-len(steps) // 500)  # more points than that only make a blot
    radius = max(len(steps) // 40, 1)
    return show_curves(
        steps,
        {f"mean of {2 * radius + 1} steps": running_mean(history.losses, radius)},
        points=(steps[::thin], history.losses[::thin]),
        points_label="each step" if thin == 1 else f"one step in {thin}",
        xlabel="step",
        ylabel="loss",
        yscale=yscale,
    )


def running_mean(values, radius):
    """Average each value with those up to ``radius`` places away that there are."""
    sums, places = [0, *accumulate(values)], range(len(values))
    ends = [(max(i - radius, 0), min(i + radius + 1, len(values))) for i in places]
    return [(sums[end] - sums[start]) / (end - start) for start, end in ends]
