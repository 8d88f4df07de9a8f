"""Consoles: text for those whose encoding lacks some characters."""

import sys


def printable(text):
    """Return text with a question mark for what the console cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
