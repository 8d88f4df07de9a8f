"""Film the live figure of chapter 1 for the front page of the repository."""

import io
import sys
from pathlib import Path

import browser
from PIL import Image
from playwright.sync_api import sync_playwright

PAGE = "notebooks/01_queries_keys_values.html"
SIZE = {"width": 1000, "height": 900}
WANTED = ("Loire", "Danube", "Vienna")
FRAMES, PAUSE = 20, 12  # of each place, and those that its last one is shown for


def film(page):
    """Yield what the figure shows while its query learns three places, one by one."""
    figure = page.locator("[data-figure]", has=page.get_by_role("button", name="Learn"))
    figure.scroll_into_view_if_needed()
    for place in WANTED:
        figure.get_by_role("combobox").select_option(label=place)
        figure.get_by_role("button", name="Reset").click()
        for _ in range(FRAMES):
            yield figure.screenshot()
            figure.get_by_role("button", name="Step").click()


def main(html, target):
    """Write the film of the book in the folder ``html`` as a GIF."""
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=browser.require_chromium(), args=[*browser.FLAGS]
        )
        page = chromium.new_page(viewport=SIZE)
        page.goto((Path(html) / PAGE).resolve().as_uri())
        pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png in film(page)]
        chromium.close()
    palette = pictures[FRAMES - 1].quantize(64)
    first, *rest = [picture.quantize(palette=palette, dither=0) for picture in pictures]
    times = ([120] * (FRAMES - 1) + [PAUSE * 120]) * len(WANTED)
    first.save(target, append_images=rest, save_all=True, duration=times, loop=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
