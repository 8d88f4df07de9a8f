"""A real browser for the tests of figures and pages; nobody's own progress.

Where no Chromium is found these tests are skipped with the way to get one; with
REQUIRE_BROWSER=1 they fail instead.
"""

import os
import pathlib
import shutil
import urllib.parse

import pytest

os.environ["TUTORIAL_PROGRESS"] = "off"  # also for the kernels that tests start
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NO_CHROMIUM = (
    "needs Chromium: install it (Debian: apt install chromium), or set CHROMIUM to "
    "the path of Chromium or Chrome"
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Faults only, since a list of all that is right takes as long again; and axe-core does
# not fetch style sheets by itself, which it may not do from a file.
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
    "preload": False,
}


def find_chromium():
    """Return the path of a Chromium, or None."""
    places = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES)]
    return next((place for place in places if place), None)


# The scope is a module: while the driver runs, its event loop counts as running in
# this thread, and the kernels of other tests would meet it.
@pytest.fixture(scope="module")
def browser():
    """Start Chromium for a module's tests."""
    executable = find_chromium()
    if executable is None:
        required = os.environ.get("REQUIRE_BROWSER") == "1"
        (pytest.fail if required else pytest.skip)(NO_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page_at(browser):
    """Return a function that opens a file or an address as a page.

    Its options are those of Playwright's ``new_context``; ``script`` runs before the
    page's own. The test fails at its end if a page reported an error, or asked another
    host for anything.
    """
    contexts, problems = [], []

    def open_page(place, *, script=None, **options):
        url = place if "://" in str(place) else pathlib.Path(place).resolve().as_uri()
        options.setdefault("viewport", {"width": 1000, "height": 800})
        context = browser.new_context(**options)
        contexts.append(context)
        if script:
            context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(30_000)
        _watch(page, urllib.parse.urlsplit(url).netloc, problems)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def _watch(page, host, problems):
    """Note what the page reports as an error, and requests to any other host."""

    def note_request(request):
        address = urllib.parse.urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != host:
            problems.append(f"request to {request.url}")

    def note_message(message):
        if message.type == "error":
            problems.append(f"console: {message.text}")

    page.on("request", note_request)
    page.on("console", note_message)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))


@pytest.fixture
def barriers():
    """Return a function that lists what axe-core finds wrong with a page (WCAG A, AA).

    ``part`` is a CSS selector to look inside; without it the whole page is looked at.
    ``rules`` are those of axe-core to try alone.
    """
    from axe_playwright_python.sync_playwright import Axe

    def find(page, part=None, rules=()):
        options = AXE | {"runOnly": [*rules]} if rules else AXE
        results = Axe().run(page, part, options).response
        return [
            f"{violation['id']}: {node['html'][:120]}"
            for violation in results["violations"]
            for node in violation["nodes"]
        ]

    return find
