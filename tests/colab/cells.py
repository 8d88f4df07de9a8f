"""A plugin of pytest for nbval's cells: what each of them took, and how it ended.

nbval compares texts and leaves pictures aside, whose bytes depend on the machine: here
a cell fails, too, if it shows fewer pictures than the book or more. The first cell's
output is pip's, and no page shows it.
"""

import json
import os
import time
from pathlib import Path

import pytest

SETUP = "colab-setup"


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Write a line about a cell that ran, or could not."""
    report = yield
    if report.when == "call" or report.failed:
        line = {
            "id": item.cell.id,
            "seconds": getattr(item, "seconds", 0.0),
            "pictures": pictures(item.test_outputs),
            "failure": report.longreprtext if report.failed else None,
        }
        with Path(os.environ["COLAB_RECORD"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report
