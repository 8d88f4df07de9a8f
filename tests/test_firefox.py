"""In Firefox the figures, and a chapter's questions, do what they do in Chromium.

These are tests of other files, run again. Left out are those that need what only
Chromium lets itself be told (dark, without JavaScript, on paper, or a finger), and some
that no browser has a part in.
"""

import inspect
import os
import re
import shutil

import pytest
import test_attention_browser
import test_figures_browser
import test_small_book
from playwright.sync_api import Error

PAGES = re.compile("before_a_choice|wrong_choice|keyboard|link_to_what|does_not_guess")
ONLY_CHROMIUM = "dark|colours_of|javascript|cannot|barriers|open_to|finger"
OF_NO_BROWSER = "twice|hidden|screen_readers|stay_there"
LEFT_OUT = re.compile(f"{ONLY_CHROMIUM}|{OF_NO_BROWSER}")
book, built = test_small_book.book, test_small_book.built
chapter_at = test_small_book.chapter_at


@pytest.fixture(scope="module")
def browser(driver):
    """Start Firefox for the tests of this module."""
    names = filter(None, (os.environ.get("FIREFOX"), "firefox-esr", "firefox"))
    firefox = next(filter(None, map(shutil.which, names)), None)
    if firefox is None:
        way_out = "install it (Debian: apt install firefox-esr), or set FIREFOX to it"
        pytest.skip(f"needs Firefox: {way_out}")
    try:
        started = driver.firefox.launch(channel="moz-firefox", executable_path=firefox)
    except Error as error:
        if "unknown command" not in error.message:
            raise
        pytest.skip(f"needs a newer Firefox than {firefox}: update it")
    yield started
    started.close()


def again(module, wanted):
    """Return the tests of a module whose names are wanted, by name."""
    found = dict(inspect.getmembers(module, inspect.isfunction))
    return {name: found[name] for name in found if name[:5] == "test_" and wanted(name)}


globals().update(again(test_small_book, PAGES.search))
for module in (test_attention_browser, test_figures_browser):
    globals().update(again(module, lambda name: not LEFT_OUT.search(name)))
