"""History: what a training run has been through, one entry a step.

This module does not know what was trained, nor how.
"""

from dataclasses import dataclass, field
from itertools import accumulate


@dataclass
class History:
    """The steps of a training run, as lists of the same length.

    ``steps`` and ``epochs`` count from 1; ``losses`` are means over a batch, before
    the step; ``learning_rates`` are those of the optimizer's first group;
    ``gradient_norms`` are taken before clipping. ``interrupted`` says whether Ctrl-C
    ended the run early.
    """

    steps: list = field(default_factory=list)
    epochs: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    learning_rates: list = field(default_factory=list)
    gradient_norms: list = field(default_factory=list)
    interrupted: bool = False

    def append(self, *, epoch, loss, learning_rate, gradient_norm):
        """Add one step."""
        self.steps.append(len(self.steps) + 1)
        self.epochs.append(epoch)
        self.losses.append(loss)
        self.learning_rates.append(learning_rate)
        self.gradient_norms.append(gradient_norm)

    def plot(self, *, yscale="log"):
        """Draw the losses, thinned out in a long run, and their running mean: a figure.

        ``yscale`` is matplotlib's: take "linear" for losses that reach 0. Raises
        ValueError if the run has no step.
        """
        from tutorial_lib.plotting import show_curves

        if not self.steps:
            raise ValueError("this history has no step to plot: train first")
        thin = -(-len(self.steps) // 500)  # more points than that only make a blot
        radius = max(len(self.steps) // 40, 1)
        return show_curves(
            self.steps,
            {f"mean of {2 * radius + 1} steps": running_mean(self.losses, radius)},
            points=(self.steps[::thin], self.losses[::thin]),
            points_label="each step" if thin == 1 else f"one step in {thin}",
            xlabel="step",
            ylabel="loss",
            yscale=yscale,
        )


def running_mean(values, radius):
    """Average each value with those up to ``radius`` places away that there are."""
    sums = [0, *accumulate(values)]
    ends = [min(i + radius + 1, len(values)) for i in range(len(values))]
    starts = [max(i - radius, 0) for i in range(len(values))]
    return [
        (sums[end] - sums[start]) / (end - start)
        for start, end in zip(starts, ends, strict=True)
    ]
