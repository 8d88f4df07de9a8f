"""What tests share: the order in which they run, browsers, and pages opened in them.

Where there is no Chromium the tests that need one are skipped with the way to get it;
with REQUIRE_BROWSER=1 they fail instead.
"""

import contextlib
import functools
import http.server
import importlib
import itertools
import os
import pathlib
import shutil
import signal
import sys
import threading
import urllib.parse
from collections import Counter

import hypothesis
import nbval.kernel
import pytest
from jupyter_client import KernelManager

from tools.notebooks import ENVIRONMENT, connection

# For the kernels that tests start, and for torch, which reads it when it is imported:
# nothing that this file imports may import torch.
os.environ.update(ENVIRONMENT)
sys.path.append(str(pathlib.Path(__file__).parents[1] / "book" / "_print"))
CHROMIUM = importlib.import_module("browser")  # the one place that finds it
# The same examples every time, however slow the machine, and nothing kept of them.
hypothesis.settings.register_profile(
    "book", derandomize=True, deadline=None, database=None
)
hypothesis.settings.load_profile("book")
VIEWPORT = {"width": 1000, "height": 800}
# Faults only, since a list of all that is right takes as long again; and axe-core does
# not fetch style sheets by itself, which it may not do from a file.
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
    "preload": False,
}


def kernel_manager(**options):
    """Return what starts a kernel that is reached by files of its own, for nbval."""
    return KernelManager(config=connection(), **options)


nbval.kernel.KernelManager = kernel_manager


def pytest_collection_modifyitems(items):
    """Begin with what takes long: notebooks, browsers, files of many tests."""
    tests = Counter(item.path for item in items)
    browsing = {
        item.path for item in items if "browser" in getattr(item, "fixturenames", ())
    }

    def order(item):
        is_other = item.path.suffix != ".ipynb"
        return is_other, item.path not in browsing, -tests[item.path]

    items.sort(key=order)


@pytest.fixture(scope="session")
def chromium():
    """Return the path of Chromium."""
    executable = CHROMIUM.find_chromium()
    message = f"needs Chromium: {CHROMIUM.WAY_OUT}"
    if executable is None and os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(message)
    if executable is None:
        pytest.skip(message)
    return executable


# The scope is a module: while the driver runs, its event loop counts as running in
# this thread, and the kernels of other tests would meet it.
@pytest.fixture(scope="module")
def driver():
    """Start what drives a browser for a module's tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(driver, chromium):
    """Start Chromium for a module's tests."""
    started = driver.chromium.launch(executable_path=chromium, args=[*CHROMIUM.FLAGS])
    yield started
    started.close()


@pytest.fixture(scope="module")
def firefox(driver):
    """Start Firefox for a module's tests."""
    from playwright.sync_api import Error

    named = os.environ.get("FIREFOX", "firefox-esr")
    program = shutil.which(named) or shutil.which("firefox")
    if program is None:
        way_out = "install it (Debian: apt install firefox-esr), or set FIREFOX to it"
        pytest.skip(f"needs Firefox: {way_out}")
    try:
        started = driver.firefox.launch(channel="moz-firefox", executable_path=program)
    except Error as error:
        if "unknown command" not in error.message:
            raise
        pytest.skip(f"needs a newer Firefox than {program}: update it")
    yield started
    started.close()


@pytest.fixture
def page_at(browser):
    """Return a function that opens a file or an address as a page of its own.

    Its options are those of Playwright's ``new_context``; ``script`` runs before the
    page's own. The test fails at its end if a page reported an error, or asked another
    host for anything.
    """
    problems = []
    with contextlib.ExitStack() as stack:

        def open_page(address, **options):
            opening = opened(browser, address, problems, **options)
            return stack.enter_context(opening)

        yield open_page
    assert problems == []


@contextlib.contextmanager
def opened(browser, address, problems, **options):
    """Open a page, and add to the problems those that it has until it is closed."""
    url = _url(address)
    page = _new_page(browser, **options)
    _watch(page, urllib.parse.urlsplit(url).netloc, problems.append)
    try:
        page.goto(url)
        yield page
    finally:
        page.context.close()


# What a page has stored would meet the next one that is loaded into it.
FORGET = """if (top === window && location.protocol === "file:") {
  localStorage.clear();
  sessionStorage.clear();
}"""


@pytest.fixture(scope="module")
def loaded(browser):
    """Return a function that loads a file into a page that is already open.

    It gives the page, of which there is one for the same options, and the list of
    problems that it has until another file is loaded. A loaded file begins anew, and
    with nothing stored. What may have been set in the page itself is set back: the
    mouse, the size, the color scheme, the medium and the clock.
    """
    pages = {}
    problems = {}

    def load(file, **options):
        key = repr(sorted(options.items()))
        if key not in pages:
            script = f"{FORGET}\n{options.get('script') or ''}"
            pages[key] = _new_page(browser, **options | {"script": script})
            _watch(pages[key], "", lambda problem: problems[key].append(problem))
        page = pages[key]
        problems[key] = []
        page.mouse.move(0, 0)
        page.set_viewport_size(options.get("viewport", VIEWPORT))
        scheme = options.get("color_scheme", "light")
        page.emulate_media(color_scheme=scheme, media="screen")
        if vars(page).pop("is_stopped", False):
            page.clock.resume()
        page.goto("about:blank")  # else another anchor in the same file loads nothing
        page.goto(_url(file))
        return page, problems[key]

    yield load
    for page in pages.values():
        page.context.close()


@pytest.fixture
def reload_at(loaded):
    """Return what ``page_at`` does, for files, but load them into open pages."""
    problems_of_all = []

    def open_page(file, **options):
        page, problems = loaded(file, **options)
        problems_of_all.append(problems)
        return page

    yield open_page
    assert [*itertools.chain(*problems_of_all)] == []


def _url(address):
    if "://" in str(address):
        return str(address)
    return pathlib.Path(address).resolve().as_uri()


def _new_page(browser, *, script=None, **options):
    context = browser.new_context(**{"viewport": VIEWPORT} | options)
    if script:
        context.add_init_script(script)
    page = context.new_page()
    page.set_default_timeout(30_000)
    return page


def _watch(page, host, note):
    """Note what the page reports as an error, and requests to any other host."""

    def note_request(request):
        address = urllib.parse.urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != host:
            note(f"request to {request.url}")

    def note_message(message):
        if message.type == "error":
            note(f"console: {message.text}")

    page.on("request", note_request)
    page.on("console", note_message)
    page.on("pageerror", lambda error: note(f"error: {error}"))


# A figure starts once it is nearly in sight, and so not before the page is there.
STARTED = (
    "[...document.querySelectorAll('[data-figure]')].every((host) => host.shadowRoot)"
)


@pytest.fixture
def shown(reload_at, tmp_path):
    """Return a function that saves a figure and opens its page.

    The picture in it, which is seen where the figure cannot start, is drawn only if
    it is to be ``pictured``.
    """
    from figures_in_browser import DRAWN, without_picture

    def open_figure(figure, *, pictured=False, **options):
        figure = figure if pictured else without_picture(figure)
        figure.save(tmp_path / "figure.html")
        page = reload_at(tmp_path / "figure.html", **options)
        if not pictured:
            page.wait_for_function(STARTED)
            page.evaluate(DRAWN)
        return page

    return open_figure


class Quiet(http.server.SimpleHTTPRequestHandler):
    """What serves a folder, and knows that browsers ask for an icon."""

    def do_GET(self):
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *about):
        pass


@pytest.fixture
def serve():
    """Return a function that serves a folder and gives its address."""
    with contextlib.ExitStack() as stack:

        def start(folder):
            handler = functools.partial(Quiet, directory=str(folder))
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            stack.enter_context(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.server_port}"

        yield start


@pytest.fixture(scope="session")
def axe_violations():
    """Return a function that lists what axe-core finds wrong with a page (WCAG A, AA).

    ``only`` and ``but`` name rules of axe-core: to try alone, or to leave out.
    """
    from axe_playwright_python.base import AXE_SCRIPT

    def find(page, *, only=(), but=()):
        disabled = {rule: {"enabled": False} for rule in but}
        options = {**AXE, "rules": disabled}
        if only:
            options["runOnly"] = [*only]
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(AXE_SCRIPT)
        results = page.evaluate("options => axe.run(options)", options)
        return [
            f"{violation['id']}: {node['html'][:120]}"
            for violation in results["violations"]
            for node in violation["nodes"]
        ]

    return find


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt, also in a process that was begun in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
