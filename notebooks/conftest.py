"""Every chapter is run once: compared with what is stored, then solved.

nbval runs the cells one after the other and compares what they show. Behind them the
chapter's exercises follow, solved, in the same kernel.
"""

import os

import nbval.kernel
import pytest
from solving import solved_cells

from tools.notebooks import CELL_TIMEOUT, ENVIRONMENT, connection
from tools.sheets import Sheet

os.environ.update(ENVIRONMENT)


class KernelManager(nbval.kernel.KernelManager):
    """A kernel that nbval reaches as the book's tools do."""

    def __init__(self, **options):
        super().__init__(config=connection(), **options)


nbval.kernel.KernelManager = KernelManager


class Solved(pytest.Item):
    """A chapter's exercises, solved, in the kernel that ran the chapter."""

    def runtest(self):
        """Run the solved exercises and all that uses their answers."""
        shown = ""
        cards = []
        sheet = Sheet(self.path)
        for name, source, is_check in solved_cells(sheet):
            text = self.run(name, source)
            shown += text
            cards += [text] * is_check
        assert [card for card in cards if not card.startswith("✅")] == []
        if sheet.tasks:  # an excursion may have none
            assert f"{len(cards)} of {len(cards)} exercises" in shown
        assert "Using the library's" not in shown

    def run(self, name, source):
        """Run one cell in the chapter's kernel; return all it shows, as text."""
        shown = []

        def keep(message):
            content = message["content"]
            if message["msg_type"] == "error":
                trace = "\n".join(content["traceback"])
                pytest.fail(f"cell {name}, solved:\n{source}\n{trace}", pytrace=False)
            shown.append(content.get("text", ""))
            shown.append(content.get("data", {}).get("text/plain", ""))

        client = self.parent.kernel.kc
        client.execute_interactive(source, output_hook=keep, timeout=CELL_TIMEOUT)
        return "".join(shown)

    def reportinfo(self):
        """Name the chapter where a report wants a line."""
        return self.path, None, f"{self.path.stem}, solved"


def pytest_collection_modifyitems(items):
    """Let the solved exercises follow the cells of their chapter."""
    ordered = []
    for item in items:
        ordered.append(item)
        chapter = item.parent
        if type(chapter).__name__ == "IPyNbFile":
            chapter.cells = getattr(chapter, "cells", 0) + 1
            if chapter.cells == count_cells(chapter):
                ordered.append(Solved.from_parent(chapter, name="solved"))
    items[:] = ordered


def count_cells(chapter):
    """Count the cells that nbval runs of a chapter."""
    return sum(cell.cell_type == "code" for cell in chapter.nb.cells)
