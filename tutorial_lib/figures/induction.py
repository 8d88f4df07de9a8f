"""A small model that learns in the page to go on with what has been before.

Its forward and backward pass are in induction_model.js, and a test holds them equal to
torch's. Where no JavaScript runs, a run that was stored is shown instead. This module
knows no model, only the sizes of one and what a run of it has shown.
"""

import numpy as np

from .figure import ACCENT, MARK, Figure
from .inputs import as_array, as_text, check_weights

SIZES = ("vocab", "d_model", "tokens", "shortest", "longest", "batch", "steps")
MOST_TOKENS = 40
CURVES = {"loss": ACCENT, "prefix": MARK, "accuracy": "0.3"}


def show_induction(sizes, run, *, rate=0.02, warmup=20, seed=0, title=None):
    """Show a model of two layers that learns induction while the reader looks on.

    ``sizes`` maps "vocab", "d_model" and "tokens" to the sizes of the model, "shortest"
    and "longest" to those of the blocks that its texts repeat, and "batch" and "steps"
    to those of the training, by Adam at ``rate`` after so many steps of ``warmup``.
    ``seed`` decides where the page begins, the same for every reader.

    ``run`` is a run of such a model: "loss", "prefix" and "accuracy" are lists, one
    number for each of "step"; "maps" are its weights (2, token, token) on the words
    "text". Raises ValueError for sizes or a run that do not fit.
    """
    _check_sizes(sizes)
    maps = as_array(run["maps"], "maps")
    words = [as_text(word) for word in run["text"]]
    if maps.shape != (2, len(words), len(words)):
        raise ValueError(
            f"two maps of {len(words)} words each are needed, got {maps.shape}"
        )
    check_weights(maps)
    curves = {name: as_array(run[name], name) for name in ("step", *CURVES)}
    if len({len(curve) for curve in curves.values()}) > 1 or not len(curves["step"]):
        raise ValueError("step, loss, prefix and accuracy must be equally long")
    data = {**{name: int(sizes[name]) for name in SIZES}, "rate": float(rate)}
    data |= {"warmup": int(warmup), "seed": int(seed)}
    return Figure(
        "induction",
        {"sizes": data},
        text=_sentence(curves),
        title=title,
        draw=lambda: _draw(curves, maps, words),
        shared=("colors.js", "induction_model.js"),
    )


def _check_sizes(sizes):
    missing = [name for name in SIZES if name not in sizes]
    if missing:
        raise ValueError(f"sizes lack {', '.join(missing)}")
    if not sizes["tokens"] <= MOST_TOKENS or not sizes["vocab"] <= 26:
        raise ValueError(f"at most {MOST_TOKENS} tokens and 26 words can be shown")
    shortest, longest = sizes["shortest"], sizes["longest"]
    if not 2 <= shortest <= longest <= sizes["vocab"] or 2 * longest > sizes["tokens"]:
        raise ValueError(
            "blocks must have 2 words at least, at most the vocabulary, and fit twice "
            f"into a text, got {shortest} to {longest}"
        )
    if longest < shortest + 2:
        raise ValueError("blocks must differ in length: longest is too near shortest")


def _sentence(curves):
    last = {name: curve[-1] for name, curve in curves.items()}
    return (
        "A model of two attention layers that learns to go on with what has been "
        f"before. In a stored run, after {last['step']:.0f} steps, its loss fell from "
        f"{curves['loss'][0]:.2f} to {last['loss']:.2f}, {last['accuracy']:.2f} of the "
        "words that can be known were right, and the prefix score rose from "
        f"{curves['prefix'][0]:.2f} to {last['prefix']:.2f}."
    )


def _draw(curves, maps, words):
    from matplotlib.figure import Figure as Canvas

    fig = Canvas(figsize=(6.4, 5.6), layout="constrained")
    above, below = fig.subfigures(2, height_ratios=[1, 2])
    ticks = {"xlabel": "step"}
    for ax, (name, color) in zip(above.subplots(1, 3), CURVES.items(), strict=True):
        ax.plot(curves["step"], curves[name], color=color, lw=2)
        ax.set(title=name, ylim=(0, 1.1 * max(1, curves[name].max())), **ticks)
        ax.spines[["top", "right"]].set_visible(False)
    for layer, ax in enumerate(below.subplots(1, 2)):
        ax.imshow(maps[layer], cmap="Blues", vmin=0, vmax=1)
        places = np.arange(len(words))
        ax.set_xticks(places, words, fontsize=7)
        ax.set_yticks(places, words, fontsize=7)
        ax.set(title=f"layer {layer}", xlabel="key", ylabel="query")
    return fig
