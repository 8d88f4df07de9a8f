"""A plugin of pytest for nbval's cells: what each of them took, and how it ended.

nbval compares texts and leaves pictures aside, whose bytes depend on the machine: here
a cell fails, too, if it shows fewer pictures than the book or more. The first cell's
output is pip's, and no page shows it.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest
from nbval.plugin import NbCellError

SETUP = "colab-setup"
SHOWN = 300  # characters of an output that differs
LINES = 15  # of a traceback, its last
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def pytest_collection_modifyitems(items):
    """Compare what cells print, but for the one that installs the library."""
    for item in items:
        if item.cell.id == SETUP:
            item.options["check"] = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run a cell, time it, and count what it draws."""
    start = time.monotonic()
    try:
        yield
    finally:
        item.seconds = time.monotonic() - start
    wanted, got = pictures(item.cell.outputs), pictures(item.test_outputs)
    if wanted != got:
        item.raise_cell_error(f"Pictures: {wanted} in the book, {got} here")


def pictures(outputs):
    """Count the outputs that have a picture."""
    return sum("image/png" in output.get("data", {}) for output in outputs or [])


@pytest.hookimpl(tryfirst=True)
def pytest_assertrepr_compare(left, right):
    """Show two texts from shortly before they differ: a figure's has one long line."""
    left, right = str(left), str(right)
    pairs = enumerate(zip(left, right, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))
    start = max(0, same - SHOWN // 4)
    wanted, got = left[start : start + SHOWN], right[start : start + SHOWN]
    return [f"from character {start}", f"wanted: {wanted!r}", f"got:    {got!r}"]


def reason(error):
    """Say in plain text why nbval lets a cell fail."""
    if not isinstance(error, NbCellError):
        return f"{type(error).__name__}: {error}"
    text = COLOUR.sub("", getattr(error, "inner_traceback", None) or "")
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join([f"{error}", *lines[-LINES:]])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Write a line about a cell that ran, or could not."""
    report = yield
    if report.when == "call" or report.failed:
        line = {
            "id": item.cell.id,
            "seconds": getattr(item, "seconds", 0.0),
            "pictures": pictures(item.test_outputs),
            "failure": reason(call.excinfo.value) if report.failed else None,
        }
        with Path(os.environ["COLAB_RECORD"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report
