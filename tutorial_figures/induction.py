"""A small model that learns in the page to complete names that it has read before.

Its forward and backward pass are in induction_model.js, and a test holds them equal to
torch's. Where no JavaScript runs, the same run is shown as it was stored, in
induction_run.json; a test holds that equal to what the page computes.
"""

import functools
import json

import numpy as np

from .figure import ACCENT, MARK, Figure, canvas
from .fragment import HERE

# Of the model, of its texts, and of its training by Adam.
SIZES = {
    "vocab": 20,
    "d_model": 24,
    "tokens": 24,
    "names": 5,
    "letters": 3,
    "batch": 32,
    "rate": 0.02,
    "warmup": 20,
    "steps": 200,
    "seed": 0,
}
CURVES = {"loss": ACCENT, "prefix": MARK, "accuracy": "0.3"}


def show_induction(*, title=None):
    """Show a model of two layers that learns induction while the reader looks on.

    It begins the same for everybody. Without JavaScript the stored run is shown: loss,
    prefix-matching score and accuracy by step, and the two maps of one text at the end.
    Olsson et al. (2022) found such heads, and describe the score.
    """
    return Figure(
        "induction",
        {"sizes": SIZES},
        text=_sentence(stored_run()),
        title=title,
        shared=("colors.js", "induction_model.js"),
        draw=lambda _: _draw(stored_run()),
    )


@functools.cache
def stored_run():
    """Return the stored run: curves by "step", "maps" of a "text", and "without".

    The last are the accuracies without the head of layer 0, and without that of 1.
    """
    return json.loads((HERE / "induction_run.json").read_text(encoding="utf-8"))


def _sentence(run):
    last = {name: run[name][-1] for name in ("step", *CURVES)}
    first, second = run["without"]
    return (
        "A model of two attention layers that learns to complete names it has read. In "
        f"{last['step']} steps its loss falls from {run['loss'][0]:.2f} to "
        f"{last['loss']:.2f}, its prefix-matching score rises from "
        f"{run['prefix'][0]:.2f} to {last['prefix']:.2f}, and {last['accuracy']:.2f} "
        "of the letters that can be known are right; without the head of layer 0 "
        f"{first:.2f}, without that of layer 1 {second:.2f}."
    )


def _draw(run):
    fig = canvas(6.4, 5.2)
    above, below = fig.subfigures(2, height_ratios=[1, 2])
    for ax, (name, color) in zip(above.subplots(1, 3), CURVES.items(), strict=True):
        ax.plot(run["step"], run[name], color=color, lw=2)
        ax.set(title=name, ylim=(0, 1.1 * max(1, *run[name])), xlabel="step")
        ax.spines[["top", "right"]].set_visible(False)
    for layer, ax in enumerate(below.subplots(1, 2)):
        ax.imshow(run["maps"][layer], cmap="Blues", vmin=0, vmax=1)
        positions = np.arange(len(run["text"]))
        ax.set_xticks(positions, run["text"], fontsize=7)
        ax.set_yticks(positions, run["text"], fontsize=7)
        ax.set(title=f"layer {layer}", xlabel="key", ylabel="query")
    return fig
