"""What longer benchmarks share: clock, cells of chapters, rows that outlast a stop."""

import csv
import datetime
import operator
import platform
import time
from pathlib import Path

import torch

from tools.notebooks import code_cells, read_notebook, source_of


class Clock:
    """The CPU seconds that this process has used since the clock was made."""

    def __init__(self):
        self.start = time.process_time()

    def seconds(self):
        return time.process_time() - self.start


def defined_in(chapter, ids):
    """Return what the cells with these ids of a notebook define, by name."""
    names = {}
    for cell in code_cells(read_notebook(chapter)):
        if cell["id"] in ids:
            exec(source_of(cell), names)
    return names


def provenance(*libraries):
    """Say on what, with what (besides torch) and when a row was measured."""
    lines = Path("/proc/cpuinfo")
    lines = lines.read_text().splitlines() if lines.exists() else []
    models = [line.split(": ")[1] for line in lines if "model name" in line]
    return {
        "machine": models[0] if models else platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        **{library.__name__: library.__version__ for library in libraries},
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def read_done(path, key):
    """Return what the columns ``key`` hold in the rows that are there."""
    if not path.exists():
        return set()
    with path.open(newline="", encoding="utf-8") as file:
        return set(map(operator.itemgetter(*key), csv.DictReader(file)))


def append(path, row):
    """Write a row at the end of the file, which is made if need be."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row.keys(), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
