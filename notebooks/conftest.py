"""Every chapter is run once: compared with what is stored, then solved.

nbval runs the cells one after the other and compares what they show. Behind them the
chapter's exercises follow, solved, in the same kernel. A chapter that has passed is not
run again before its cells, their outputs, or what it imports change; FORCE=1 runs all.
"""

import contextlib
import hashlib
import os
from pathlib import Path

import nbval.kernel
import pytest
from solving import solved_cells

from tools.dependencies import fingerprint
from tools.files import write_whole
from tools.notebooks import CELL_TIMEOUT, ENVIRONMENT
from tools.sheets import Sheet

ROOT = Path(__file__).parents[1]
os.environ.update(ENVIRONMENT)


def started_twice(start):
    """Start a kernel again that dies at once: another process may have its port."""

    def started(**options):
        with contextlib.suppress(RuntimeError):
            return start(**options)
        return start(**options)

    return started


nbval.kernel.start_new_kernel = started_twice(nbval.kernel.start_new_kernel)


class Solved(pytest.Item):
    """A chapter's exercises, solved, in the kernel that ran the chapter."""

    def runtest(self):
        """Run the solved exercises and all that uses their answers."""
        shown, cards, sheet = "", [], Sheet(self.path)
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


def pytest_collection_modifyitems(config, items):
    """Leave out chapters that have passed; let the solved exercises follow the rest."""
    kept, left = [], []
    for item in items:
        chapter = item.parent
        if type(chapter).__name__ != "IPyNbFile":
            kept.append(item)
        elif has_passed(chapter.path):
            left.append(item)
        else:
            kept.append(item)
            chapter.cells = getattr(chapter, "cells", 0) + 1
            if chapter.cells == count_cells(chapter):
                kept.append(Solved.from_parent(chapter, name="solved"))
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def count_cells(chapter):
    """Count the cells that nbval runs of a chapter."""
    return sum(cell.cell_type == "code" for cell in chapter.nb.cells)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Note which chapters fail, and once one has passed whole, what it was."""
    report = yield
    chapter = item.parent
    if report.failed:
        chapter.failed = True
    is_last = isinstance(item, Solved) and call.when == "call"
    if is_last and not getattr(chapter, "failed", False):
        stamp(item.path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(stamp(item.path), state(item.path))
    return report


def has_passed(path):
    """Whether a chapter has passed as it is now, and nobody wants it run again."""
    if os.environ.get("FORCE") or not stamp(path).is_file():
        return False
    return stamp(path).read_text() == state(path)


def stamp(path):
    """Return the file that says in which state a chapter has passed."""
    return ROOT / "_build" / "passed" / f"{path.stem}.sha256"


def state(path):
    """Return a digest of all that decides whether a chapter passes."""
    stored = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{stored} {fingerprint(ROOT, path)}"
