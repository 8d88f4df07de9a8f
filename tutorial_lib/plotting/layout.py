"""Layout: how heatmaps are put side by side, and the size of their cells.

A figure is as wide as a phone can show, so the words along the axes decide how many
panels stand in a row. This module knows no color and no number.
"""

from typing import NamedTuple

from tutorial_lib.plotting.panels import LETTER, WIDTH

LARGEST = 0.5  # inches of a cell
NARROW, SLANTED = 0.17, 0.21  # inches that words below a panel need, each
COLOR_BAR, GAP = 0.75, 0.12  # inches


class Layout(NamedTuple):
    """Panels of (query, key) in rows and columns, with cells of ``cell`` inches.

    Labels are texts, none at all for an axis without; ``margin`` is what stands beside
    the panels, in inches.
    """

    rows: int
    columns: int
    queries: int
    keys: int
    cell: float
    query_labels: list
    key_labels: list
    margin: float

    def size(self, titles):
        """Return the inches of the figure, rather too high: figures are trimmed."""
        lines = max((str(title).count("\n") + 1 for title in titles or []), default=0)
        words = 0.7 * _inches(self.key_labels) if self._turns() else 0.1
        height = self.rows * (self.cell * self.queries + 0.2 * lines + GAP)
        width = self.columns * (self.cell * self.keys + GAP)
        return width + self.margin, height + words + 1.2

    def letter(self, ax, title, xlabel, ylabel):
        """Write a panel's title, and labels or numbers along its axes."""
        ax.spines[:].set(visible=True, lw=0.5)
        ax.locator_params(integer=True, nbins=6)
        ax.tick_params(length=0 if self.query_labels or self.key_labels else 2)
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        if self.key_labels or not xlabel:
            style = turned if self._turns() else {}
            ax.set_xticks(**self._words(self.key_labels), **style)
        if self.query_labels or not ylabel:
            ax.set_yticks(**self._words(self.query_labels))
        fits = _inches(str(title).split("\n")) < self.cell * self.keys + GAP
        ax.set_title(title, fontsize=10 if fits else 8)

    def _words(self, labels):
        places = [i for i, label in enumerate(labels) if label]
        style = {"fontsize": min(10, 62 * self.cell / _share(labels))}
        return {"ticks": places, "labels": [labels[i] for i in places], **style}

    def _turns(self):
        return _inches(self.key_labels) > self.cell / _share(self.key_labels)


def lay_out(shape, query_labels, key_labels, *, is_given, has_bar):
    """Choose rows and columns, if they are not given, and the size of the cells."""
    rows, columns, queries, keys = shape
    query_labels, key_labels = (
        [] if labels is None else [str(label) for label in labels]
        for labels in (query_labels, key_labels)
    )
    words = _inches(query_labels) + 0.4
    needed = (NARROW, SLANTED)[max(map(len, key_labels), default=0) > 3]
    needed = needed * _share(key_labels) if key_labels else min(0.9 / keys, LARGEST)

    def margin(columns):
        return words + COLOR_BAR * (has_bar and columns == 1)

    def cell(columns):
        panel = (WIDTH - margin(columns)) / columns - GAP
        return min(LARGEST, panel / keys, WIDTH / queries)

    if not is_given:
        count, most = columns, 2 if columns == 4 else min(columns, 3)
        columns = next((c for c in range(most, 1, -1) if cell(c) >= needed), 1)
        rows = -(-count // columns)
    sizes = rows, columns, queries, keys, cell(columns)
    return Layout(*sizes, query_labels, key_labels, margin(columns))


def _inches(labels):
    """Return the inches that the longest label takes, at 10 points."""
    return LETTER * max(map(len, labels), default=0)


def _share(labels):
    """Return the share of the cells that have a label."""
    return sum(map(bool, labels)) / len(labels) if any(labels) else 1.0
