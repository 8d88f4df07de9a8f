"""Find Chromium, or say in a sentence how to get it.

It does not know what the browser is for.
"""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
)
MISSING = (
    "The PDF is printed by Chromium, and there is none: install it (Debian: apt "
    "install chromium), or set CHROMIUM to the path of Chromium or Chrome"
)


def find_chromium():
    """Return the path of a Chromium, or end the program with one sentence."""
    places = [
        shutil.which(name) for name in (os.environ.get("CHROMIUM"), *NAMES) if name
    ]
    found = next(filter(None, places), None)
    return found or sys.exit(MISSING)


if __name__ == "__main__":
    find_chromium()
