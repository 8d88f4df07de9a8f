"""Every figure works in Firefox: it draws, answers a key, and reports no error.

What it draws and answers is tried in Chromium.
"""

import pytest
from figures_in_browser import FIGURES, every_figure, move_by_keys, readout


@pytest.fixture(scope="module")
def browser(firefox):
    """Show the pages of this module in Firefox."""
    return firefox


@every_figure
def test_a_figure_draws_and_answers_a_key(name, shown):
    page = shown(FIGURES[name](title="A title"))
    before = readout(page)
    move_by_keys(page, name)
    assert before and readout(page) != before
    assert not page.locator("img").is_visible()
