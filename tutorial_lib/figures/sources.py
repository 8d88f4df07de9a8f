"""The JavaScript and CSS of the figures, as pages carry them.

This module knows the rules the sources keep, stated in base.js, and nothing of what
they do.
"""

import functools
import pathlib
import re

HERE = pathlib.Path(__file__).parent
LITERAL = re.compile(r'("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)')
OPEN_LINE = re.compile(r"(?<=[,(\[=>?:])\n|\n(?=[)\].?:])")
# Whole statements, a line each, of which one const can declare all.
DECLARATIONS = re.compile(r"^const .*;(?:\nconst .*;)+$", re.MULTILINE)
BLOCK_END = re.compile(r"^}\n", re.MULTILINE)

# What code can spare outside literals, in this order.
SPARE = [
    (r"(?<=[\w)\]]) ([+-]) (?=[\w(\[.])", r"\1"),  # but a - -b keeps its spaces
    (r" ?([=<>*/%?:,(){}&|]) ?| (?=\[)|^ | $", r"\1"),
    (r"(?<=[;{,(\[=>])\n|\n(?=[})\].?:])", ""),  # where no statement can end
    (r"[;,](?=\n?[})\]])", ""),
    (r"(?<![\w.?])0(?=\.\d)", ""),
    (r"(?<!\w)\((\w+)\)=>", r"\1=>"),
    (r"\btrue\b", "!0"),
    (r"\bconst\b", "let"),  # oxlint has seen that nothing is assigned twice
]


@functools.cache
def shipped(name):
    """Return the file ``name`` without its comments and all that it can spare."""
    source = (HERE / name).read_text(encoding="utf-8")
    lines = (line.strip() for line in source.splitlines())
    kept = "".join(f"{line}\n" for line in lines if line[:2] not in ("", "//", "/*"))
    return _squeeze_css(kept) if name.endswith(".css") else _squeeze_js(kept)


def _squeeze_css(code):
    return re.sub(r"(?<=[{};,])\n|(?<=[:,]) | (?={)|;\n(?=})", "", code)


def _squeeze_js(code):
    code = OPEN_LINE.sub("", code)
    code = DECLARATIONS.sub(lambda run: run[0].replace(";\nconst ", ", "), code)
    code = BLOCK_END.sub("}", code)
    parts = LITERAL.split(code)
    for pattern, kept in SPARE:
        parts[::2] = [re.sub(pattern, kept, part) for part in parts[::2]]
    return "".join(parts)
