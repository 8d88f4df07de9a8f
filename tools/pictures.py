"""The pictures of chapters as PNG files beside their SVG files.

JupyterLab shows no SVG in a notebook that has not run on its machine yet, so notebooks
store both. A PNG file carries the checksum of the drawing that it was made from.
"""

import importlib
import io
import sys
from hashlib import sha256
from pathlib import Path

from PIL import Image, PngImagePlugin

FOLDER = Path("tutorial_lib", "plotting", "svg")
PAGE = """<body style="margin: 0; background: white">{}"""


def draw(root):
    """Draw the pictures under ``root`` that have changed; return their names."""
    stale = [file for file in sorted(Path(root, FOLDER).glob("*.svg")) if drifted(file)]
    if stale:
        for file, png in zip(stale, _rendered(root, stale), strict=True):
            _store(file, png)
    return [file.stem for file in stale]


def drifted(file):
    """Whether the PNG file beside an SVG file was made from another drawing."""
    png = file.with_suffix(".png")
    if not png.is_file():
        return True
    with Image.open(png) as image:
        return image.info.get("svg") != checksum(file)


def checksum(file):
    """Return the checksum of a drawing, whatever the ends of its lines are."""
    return sha256(file.read_text(encoding="utf-8").encode()).hexdigest()


def _rendered(root, files):
    """Yield a PNG of each drawing as Chromium shows it, on white."""
    from playwright.sync_api import sync_playwright

    sys.path.append(str(Path(root, "book", "_print")))
    chromium = importlib.import_module("browser")
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium.require_chromium(), args=[*chromium.FLAGS]
        )
        page = browser.new_page()
        for file in files:
            page.set_content(PAGE.format(file.read_text(encoding="utf-8")))
            yield page.locator("svg").first.screenshot()
        browser.close()


def _store(file, png):
    """Write a PNG file in few colors, which are enough for a drawing."""
    about = PngImagePlugin.PngInfo()
    about.add_text("svg", checksum(file))
    with Image.open(io.BytesIO(png)) as image:
        few = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(file.with_suffix(".png"), optimize=True, pnginfo=about)
