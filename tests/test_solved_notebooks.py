"""Every chapter's exercises run with the solutions in their stubs.

The Makefile runs this file after the notebooks, beside the other tests.
"""

import pytest
from exercise_chapters import chapters, tags, text_of

CHAPTERS = chapters()


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[str(c.number) for c in CHAPTERS])
def test_the_notebook_runs_and_passes_with_the_student_s_code(chapter, monkeypatch):
    # No digits are compared, so that the processor's own, faster arithmetic will do.
    monkeypatch.delenv("MKL_CBWR", raising=False)
    cells = chapter.solved_notebook().cells
    cards = [text_of(cell) for cell in cells if "check" in tags(cell)]
    shown = "".join(text_of(cell) for cell in cells if cell.cell_type == "code")
    assert all(card.startswith("✅") for card in cards), cards
    assert f"{len(cards)} of {len(cards)} exercises" in shown
    assert "Using the library's" not in shown
