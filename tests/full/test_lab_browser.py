"""A notebook in a real JupyterLab, as a student has it: controls, folds, interrupts."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes

pytest.importorskip("jupyterlab")
playwright = pytest.importorskip("playwright.sync_api")
PATIENCE = 120_000  # milliseconds, beside busy neighbors
OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.news_url=",
]
RUN_ALL = "void window.jupyterapp.commands.execute('notebook:run-all-cells')"
MARK = "node => getComputedStyle(node, '::before').content"
PREPARE = """\
from tutorial_lib.notebook import claim, prepare_notebook
from tutorial_lib.notebook import explore
prepare_notebook()"""
EXPLORE = """\
def draw(number=2, word="so", grid=[[False, False]]):
    if number == 4:
        raise ValueError("Four is not allowed here.")
    return f"drawn {number} {word} {grid[0]}"

explore(draw, number=(1, 9), word="", grid=[[False, False]])"""
ANSWER = "# @title Answer\nprint('HIDDEN')"
CLAIM = "with claim('one is two'):\n    assert 1 == 2"
TRAIN = """\
import time, torch
from tutorial_lib.training import fit
model = torch.nn.Linear(1, 1)
def slow_loss(model, batch):
    print("training" if batch else "", end="")
    time.sleep(0.2)
    return model(torch.ones(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fit(model, [1] + [0] * 998, slow_loss, optimizer=optimizer, epochs=1)"""
CELLS = [
    new_code_cell(PREPARE),
    new_code_cell(EXPLORE),
    new_markdown_cell("<details><summary>Answer</summary>\n\nTOLD $x^2$\n\n</details>"),
    new_code_cell(ANSWER, metadata={"jupyter": {"source_hidden": True}}),
    new_code_cell(CLAIM),
    new_code_cell("print('the ' + 'end')"),
    new_code_cell(TRAIN),
    new_code_cell("print('after ' + 'all')"),
]
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start JupyterLab in a folder with one notebook; return its address."""
    folder = tmp_path_factory.mktemp("lab")
    notebook = new_notebook(cells=CELLS, metadata={"kernelspec": KERNEL})
    (folder / "try.ipynb").write_text(writes(notebook), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places = {f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA")}
    reader = {"TUTORIAL_STRICT": "", "TUTORIAL_WIDGETS": "", "TQDM_DISABLE": ""}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--ServerApp.port={port}"],
        cwd=folder,
        env=os.environ | places | reader | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}/lab"
        wait_for(address, server)
        yield address
    finally:
        server.terminate()
        server.wait()


def wait_for(address, server):
    """Wait until a server answers; fail if it has ended instead."""
    for _ in range(PATIENCE // 500):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            assert server.poll() is None, "JupyterLab did not start"
            time.sleep(0.5)
    raise AssertionError("JupyterLab does not answer")


@pytest.fixture(scope="module")
def page(browser, lab):
    """Open the notebook and run it as far as the training, which goes on."""
    page = browser.new_page(viewport={"width": 1000, "height": 2000})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{lab}/tree/try.ipynb")
    page.get_by_text("(ipykernel) | Idle").wait_for()
    page.evaluate(RUN_ALL)
    page.get_by_text("the end", exact=True).wait_for()
    page.get_by_text("training", exact=True).wait_for()
    page.locator(".noUi-handle").wait_for()
    yield page
    page.context.close()


def expect(page, text):
    """Wait until the picture below the controls says this."""
    playwright.expect(picture(page)).to_contain_text(text, timeout=PATIENCE)


def picture(page):
    return page.locator(".widget-output").first


def test_answers_are_folded_and_open_on_a_click(page):
    for text in ("TOLD", "HIDDEN"):
        answer = page.locator("details", has_text=text)
        assert answer.get_attribute("open") is None
        assert not answer.get_by_text(text).is_visible()
        answer.locator("summary").click()
        answer.get_by_text(text).wait_for()


def test_a_claim_that_fails_is_a_line(page):
    assert page.get_by_text("Not as in the book: one is two.").is_visible()


def test_an_interrupted_training_says_where_it_was_and_nothing_runs_after_it(page):
    page.evaluate(
        "void window.jupyterapp.commands.execute('notebook:interrupt-kernel')"
    )
    stopped = page.get_by_text("Stopped after step").first
    stopped.wait_for()
    assert "of 999; run the cell again" in stopped.inner_text()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    assert not page.get_by_text("after all", exact=True).count()


def test_controls_answer_to_the_keyboard(page):
    expect(page, "drawn 2 so [False, False]")
    page.locator(".noUi-handle").press("ArrowRight")
    expect(page, "drawn 3 so [False, False]")
    field = page.locator(".widget-text input")
    field.fill("and")
    field.press("Enter")
    expect(page, "drawn 3 and [False, False]")
    page.locator(".widget-toggle-button").nth(1).press("Space")
    expect(page, "drawn 3 and [False, True]")


def test_keys_in_the_controls_are_no_commands_of_jupyterlab(page):
    count = page.locator(".jp-Cell").count()
    for kind in (".widget-toggle-button >> nth=0", ".noUi-handle"):
        page.locator(kind).focus()
        for key in ("x", "a", "b", "d", "d", "Enter", "Enter"):
            page.keyboard.press(key)
        assert page.locator(kind).evaluate("node => node === document.activeElement")
    assert page.locator(".jp-Cell").count() == count
    expect(page, "drawn 3 and [False, True]")


def test_a_screen_reader_is_told_names_and_states(page):
    page.locator(".noUi-handle").focus()
    assert page.get_by_role("slider", name="number").count() == 1
    first, second = page.get_by_role("button", name="grid: row 0").all()
    expect(page, "drawn 3 and [False, True]")
    pressed = [button.get_attribute("aria-pressed") for button in (first, second)]
    assert pressed == ["false", "true"]
    assert [button.evaluate(MARK) for button in (first, second)] == ["none", '"✓"']
    first.press("Space")
    expect(page, "drawn 3 and [True, True]")
    assert first.get_attribute("aria-pressed") == "true"
    first.press("Space")
    expect(page, "drawn 3 and [False, True]")


def test_an_error_is_a_sentence_and_the_picture_stays(page):
    page.locator(".noUi-handle").press("ArrowRight")
    status = playwright.expect(page.locator(".jupyter-widgets [role=status]"))
    status.to_have_text("Four is not allowed here.", timeout=PATIENCE)
    expect(page, "drawn 3 and [False, True]")
    page.locator(".noUi-handle").press("ArrowRight")
    expect(page, "drawn 5 and [False, True]")
    status.to_have_text("", timeout=PATIENCE)


def test_a_bar_of_progress_is_not_in_the_saved_notebook(page, lab):
    contents = f"{lab.removesuffix('lab')}api/contents/try.ipynb"
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    response = page.request.get(contents)
    explored, trained = (response.json()["content"]["cells"][i] for i in (1, 6))
    assert view_in(explored) and not view_in(trained)
    assert "Stopped after step" in str(trained["outputs"])


def view_in(cell):
    return "jupyter.widget-view" in str(cell["outputs"])
