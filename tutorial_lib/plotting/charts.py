"""Charts: curves, bars, images and the picture of one look-up."""

from tutorial_lib.plotting.panels import BLUE, CYCLE, GREY, ORANGE, array, open_panels


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
            for colour, (label, y) in zip(CYCLE * 3, lines.items(), strict=False):
                dashed = label.startswith("true")
                line = {"color": GREY, "ls": "--"} if dashed else {"color": colour}
                ax.plot(array(x), array(y), label=label, **line)
            for colour, (label, place) in zip(
                CYCLE[1:], (marks or {}).items(), strict=False
            ):
                ax.axvline(place, color=colour, ls=":", label=label)
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
    middle = (rows - 1) / 2
    with open_panels(1, 1, size=(7.4, 0.62 * rows + 0.8)) as (fig, axes):
        ax = axes.item()
        for i, weight in enumerate(array(weights)):
            line = {"lw": 0.4 + 7 * weight, "alpha": 0.15 + 0.85 * weight}
            ax.plot([0, 1], [middle, i], color=BLUE, solid_capstyle="round", **line)
            ax.plot([2, 3], [i, middle], color=ORANGE, solid_capstyle="round", **line)
            ax.text(1.5, i, f"{weight:.2f}", ha="center", va="center", fontsize=10)
            _box(ax, 1, i, keys[i], BLUE)
            _box(ax, 2, i, values[i], ORANGE)
        _box(ax, 0, middle, query, BLUE)
        _box(ax, 3, middle, output, ORANGE)
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


def _box(ax, x, y, text, colour):
    style = {"boxstyle": "round,pad=0.4", "fc": "white", "ec": colour, "lw": 1.4}
    ax.text(x, y, text, ha="center", va="center", fontsize=10, bbox=style)
