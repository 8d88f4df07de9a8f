"""The progress bar: seen where somebody looks, and gone when it is done."""

import asyncio
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from tools.notebooks import connection, read_notebook, run
from tutorial_lib.notebook import Stopped, progress_bar

LOOP = """
import time
from tutorial_lib.notebook import progress_bar
print("before")
with progress_bar(8) as bar:
    for loss in range(8):
        time.sleep(0.15)
        bar.set_postfix_str(f"loss {loss}", refresh=False)
        bar.update()
print("after")
"""
NO_BAR = [{"name": "stdout", "output_type": "stream", "text": ["before\n", "after\n"]}]


@pytest.fixture(autouse=True)
def _visible(monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of one cell, with the bar in it."""
    cell = nbformat.v4.new_code_cell(LOOP, id="loop")
    path = tmp_path / "loop.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def run_in_terminal(code, **environment):
    """Return what a program prints, and what its terminal is sent besides."""
    pty = pytest.importorskip("pty")  # which Windows lacks
    reader, writer = pty.openpty()
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
        check=True,
    )
    os.write(writer, b"END")
    sent = os.read(reader, 100_000).decode()
    os.close(writer)
    os.close(reader)
    return ran.stdout, sent.removesuffix("END")


def test_a_terminal_shows_one_line_that_is_wiped_at_the_end():
    printed, sent = run_in_terminal(LOOP)
    assert printed == "before\nafter\n"
    shown = sent.split("\r")
    assert any("/8 [" in line and "loss" in line for line in shown)
    assert "\n" not in sent
    assert shown[-2].strip() == shown[-1] == ""


def test_it_is_silent_where_it_is_told_to_be():
    assert run_in_terminal(LOOP, TQDM_DISABLE="1")[1] == ""
    hidden = LOOP.replace("progress_bar(8)", "progress_bar(8, shown=False)")
    assert run_in_terminal(hidden)[1] == ""


def test_what_is_over_at_once_shows_nothing():
    assert run_in_terminal(LOOP.replace("sleep(0.15)", "sleep(0)"))[1] == ""


def test_a_log_file_gets_nothing():
    ran = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""


@pytest.mark.parametrize("shown", [True, False])
def test_an_interrupt_ends_the_cell_and_says_in_one_line_where(shown):
    bar = progress_bar(9, unit="run", shown=shown)
    with pytest.raises(KeyboardInterrupt) as raised, bar as opened:
        opened.update(2)
        opened.update()
        raise KeyboardInterrupt
    said = "Stopped after run 3 of 9; run the cell again"
    assert raised.type is Stopped
    assert raised.value._render_traceback_() == [said]


def test_an_interrupt_before_the_total_is_known_says_so():
    said = r"Stopped after step 0 of \?;"
    with pytest.raises(Stopped, match=said), progress_bar(None):
        raise KeyboardInterrupt


def test_a_notebook_shows_a_widget_and_keeps_nothing_of_it(notebook):
    content = nbformat.read(notebook, as_version=4)
    shown = []
    client = NotebookClient(content, config=connection(), kernel_name="python3")
    handle = client.process_message

    def listen(message, cell, index):
        shown.append(message["content"].get("data", {}))
        return handle(message, cell, index)

    client.process_message = listen
    asyncio.run(client.async_execute())
    assert any("application/vnd.jupyter.widget-view+json" in data for data in shown)
    kept = [one.data for one in content.cells[0].outputs if "data" in one]
    assert kept == [{}]


def test_a_notebook_of_the_book_stores_no_bar(notebook):
    content, failure = run(read_notebook(notebook), notebook.parent)
    assert failure is None
    assert content["cells"][0]["outputs"] == NO_BAR
    assert "widgets" not in content["metadata"]
