"""The chapters with exercises, as tests see them.

An example chapter that exists only for the tests stands beside the book's.
"""

import ast
import asyncio
import functools
import importlib
import itertools
import linecache
from pathlib import Path

import nbformat
import torch
import zmq
from nbclient import NotebookClient

import tutorial_exercises
from tools.notebooks import connection
from tutorial_exercises.check import find
from tutorial_exercises.exercise import EXERCISES

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "example_chapter"
tutorial_exercises.__path__.append(str(EXAMPLE))
torch.set_num_threads(1)  # answers are small, and threads wait for each other

_numbers = itertools.count()


def define(source, name, names=None):
    """Run source that defines `name`, as a cell would: tracebacks can quote it."""
    file = f"<cell {next(_numbers)}>"
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = (len(source), None, lines, file)
    namespace = dict(names or {}, __name__="answers")
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


class Chapter:
    """The exercises of a chapter, or of an excursion: their names, and the notebook."""

    def __init__(self, number, module=""):
        self.module = module or f"chapter_{number:02d}"
        module = importlib.import_module(f"tutorial_exercises.{self.module}")
        self.source = Path(module.__file__).read_text(encoding="utf-8")
        self.names = vars(module)
        find("")  # imports all chapters
        every = {*EXERCISES.values()}
        own = [task for task in every if task.solution.__module__ == module.__name__]
        self.exercises = sorted(own, key=lambda task: task.order)
        self.number = self.exercises[0].chapter

    def notebook_path(self):
        """Return the path of the notebook, or None."""
        is_chapter = self.module.startswith("chapter_")
        name = f"{self.number:02d}_*" if is_chapter else self.module
        return next((ROOT / "notebooks").glob(f"{name}.ipynb"), None)

    @functools.cached_property
    def notebook(self):
        """The notebook with its stored outputs."""
        return nbformat.read(self.notebook_path(), 4)

    def stubs(self):
        """Yield (exercise, index of the stub's cell, expression that is checked)."""
        cells = self.notebook.cells
        for number, cell in enumerate(cells):
            if "check" in tags(cell):
                call = ast.parse(cell.source).body[-1].value
                key = getattr(call.args[-1], "value", None) or call.args[-1].id
                before = [i for i in range(number) if "exercise" in tags(cells[i])]
                yield find(key), before[-1], call.args[0].id


def tags(cell):
    """Return a cell's tags."""
    return cell.metadata.get("tags", [])


def executed(notebook, folder=ROOT / "notebooks"):
    """Run a notebook in a kernel and return it."""
    client = NotebookClient(
        notebook,
        config=connection(),
        resources={"metadata": {"path": str(folder)}},
        timeout=300,
    )
    return asyncio.run(execute(client))


async def execute(client):
    """Let nbclient execute its notebook, and see to it that no reply is overlooked."""
    looking = asyncio.create_task(look_for_replies(client))
    try:
        return await client.async_execute()
    finally:
        looking.cancel()


async def look_for_replies(client):
    """Ask the sockets of a client once a second whether something has come.

    A socket of zmq announces that once. If anybody asks for its events just then,
    nbclient hears nothing, and finds the reply when the time of the cell is over.
    """
    while True:
        await asyncio.sleep(1)
        if client.kc is not None and client.kc.channels_running:
            for channel in (client.kc.shell_channel, client.kc.iopub_channel):
                channel.socket.get(zmq.EVENTS)


def text_of(cell):
    """Return everything a cell shows, as text."""
    data = (output.get("data", {}) for output in cell.outputs)
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return printed + "".join(entry.get("text/plain", "") for entry in data)


def chapters():
    """Return every chapter of the book that has exercises."""
    paths = sorted((ROOT / "tutorial_exercises").glob("chapter_??.py"))
    return [Chapter(int(path.stem[-2:])) for path in paths]


def excursions():
    """Return every excursion whose exercises stand in a file of its name."""
    paths = sorted((ROOT / "tutorial_exercises").glob("x_*.py"))
    return [Chapter(path.stem[2], path.stem) for path in paths]
