"""Find Chromium, or say in a sentence how to get it."""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
WAY_OUT = (
    "install it (Debian: apt install chromium), or set CHROMIUM to the path of "
    "Chromium or Chrome"
)
MISSING = f"The PDF is printed by Chromium, and there is none: {WAY_OUT}"


def find_chromium():
    """Return the path of a Chromium, or None."""
    named = filter(None, (os.environ.get("CHROMIUM"), *NAMES))
    return next(filter(None, map(shutil.which, named)), None)


def require_chromium():
    """Return the path of a Chromium, or end the program with one sentence."""
    return find_chromium() or sys.exit(MISSING)


if __name__ == "__main__":
    require_chromium()
