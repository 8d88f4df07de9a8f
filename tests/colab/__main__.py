"""Run the notebooks as Google Colab would, one at a time, and say what differs.

    PYTHONPATH=tests python -m colab PYTHON [CHAPTER]

PYTHON is that of an environment with what Colab has preinstalled. Each notebook stands
alone in an empty folder. Its first cell installs the library and may change nothing
that is there; the others must show what the book shows.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from colab.host import ROOT, Host, changes, publish
from tools.notebooks import chapters

SETUP = "colab-setup"
LIMIT = 60  # seconds from the first cell to the first figure
SHOWN = 3  # cells that fail, of each chapter


def main(arguments=None):
    """Run the chapters asked for; return 1 if one failed, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m colab", description=__doc__.splitlines()[0]
    )
    parser.add_argument("python", help="of the environment that is like Colab's")
    parser.add_argument("chapter", nargs="?", default="", help="for example 06")
    options = parser.parse_args(arguments)
    try:
        chapters(ROOT, [options.chapter])
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(prefix="colab-") as folder:
        repository = publish(ROOT, Path(folder) / "repository")
        host = Host(options.python, repository, folder)
        notebooks = chapters(repository, [options.chapter])
        print(f"{'seconds':26} install   first figure   total", flush=True)
        failed = [path.stem for path in notebooks if not try_notebook(host, path)]
    print(
        f"Not as in the book: {', '.join(failed)}" if failed else "All as in the book"
    )
    return 1 if failed else 0


def try_notebook(host, path):
    """Run one notebook, print a line of the table and what is wrong; tell if fine."""
    host.restore()
    cells, printed = host.run(path)
    trouble = [
        f"cell {cell['id']}: {cell['failure']}" for cell in cells if cell["failure"]
    ]
    trouble = shortened(trouble) or [printed] * bool(printed)
    trouble += changes(host.preinstalled(), host.installed())
    print(line(path.stem, cells) + ("   FAILED" if trouble else ""))
    for text in [*costs(cells), *trouble]:
        print(indented(text))
    sys.stdout.flush()
    return not trouble


def line(name, cells):
    """Return what a chapter took as a line of the table."""
    install = seconds([cell for cell in cells if cell["id"] == SETUP])
    first = seconds(until_the_first_figure(cells))
    mark = "!" if first > LIMIT else " "
    return f"{name:26} {install:7.0f}   {first:12.0f}{mark} {seconds(cells):6.0f}"


def costs(cells):
    """Say which cells cost most, if the first figure takes longer than it may."""
    before = until_the_first_figure(cells)
    if seconds(before) <= LIMIT:
        return []
    longest = sorted(before, key=lambda cell: -cell["seconds"])[:4]
    named = ", ".join(f"{cell['id']} {cell['seconds']:.0f} s" for cell in longest)
    return [f"! more than {LIMIT} s to the first figure: {named}"]


def until_the_first_figure(cells):
    """Return the cells up to and with the first that shows a picture."""
    shows = [cell["pictures"] > 0 for cell in cells]
    return cells[: shows.index(True) + 1] if True in shows else cells


def seconds(cells):
    """Return what the cells took together."""
    return sum(cell["seconds"] for cell in cells)


def shortened(trouble):
    """Return the first few sentences, and how many more there are."""
    more = len(trouble) - SHOWN
    return trouble[:SHOWN] + [f"and {more} more cells"] * (more > 0)


def indented(text):
    """Return ``text`` set in below the line that it belongs to."""
    return "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    sys.exit(main())
