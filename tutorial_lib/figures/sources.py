"""The JavaScript and CSS of the figures, as pages carry them.

This module knows the rules the sources keep, stated in base.js, and nothing of what
they do.
"""

import functools
import pathlib
import re

HERE = pathlib.Path(__file__).parent
LITERAL = re.compile(r'("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)')


@functools.cache
def shipped(name):
    """Return the file ``name`` without its comments and the spaces it can spare.

    Whole-line comments and indentation go, and outside literals spaces at operators
    and line ends after an opening bracket, a comma or a semicolon.
    """
    source = (HERE / name).read_text(encoding="utf-8")
    lines = (line.strip() for line in source.splitlines())
    kept = "".join(f"{line}\n" for line in lines if line[:2] not in ("", "//", "/*"))
    return _squeeze_css(kept) if name.endswith(".css") else _squeeze_js(kept)


def _squeeze_css(code):
    return re.sub(r"(?<=[{};,])\n|(?<=:) | (?={)", "", code)


def _squeeze_js(code):
    parts = LITERAL.split(code)
    for i in range(0, len(parts), 2):
        spare = re.sub(r"(?<=[\w)\]]) ([+-]) (?=[\w(\[.])", r"\1", parts[i])
        spare = re.sub(r" ?([=<>*/?:,(){}&|]) ?", r"\1", spare)
        parts[i] = re.sub(r"([;{,(\[])\n", r"\1", spare)
    return "".join(parts)
