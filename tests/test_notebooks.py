"""The chapters as they are stored: executed, clean, small and complete."""

import ast
import base64
import itertools
import re
from pathlib import Path

import pytest

from tools import notebooks
from tools.execute import (
    CELL_METADATA,
    JUPYTER_METADATA,
    NOTEBOOK_METADATA,
)
from tools.notebooks import (
    chapters,
    read_notebook,
    short_name,
    source_of,
    tags_of,
)
from tutorial_lib.definitions import as_python

ROOT = Path(__file__).parents[1]
NOTEBOOKS = chapters(ROOT)
FIGURE_CALL = re.compile(
    r"\bshow_(architecture|attention|induction|kernel_regression|learning|patch_attention"
    r"|objects|positions|sampling|softmax|windows)\("
)
UNSTABLE = re.compile(
    r"0x[0-9a-f]{6,}|/tmp/|\d\s?(ns|µs|ms|seconds)\b|\d\d:\d\d:\d\d|it/s\b"
)
WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def is_excursion(path):
    return not short_name(path).isdigit()


def code_cells(path):
    return notebooks.code_cells(read_notebook(path))


def shown_by(cell):
    """Return what a cell shows, as one dictionary from type to text."""
    shown = {}
    for output in cell["outputs"]:
        if "text" in output:
            shown[output["name"]] = "".join(output["text"])
        for kind, content in output.get("data", {}).items():
            shown[kind] = "".join(content)
    return shown


def lines_of_code(source):
    """Count a cell's lines that are neither blank, comment nor docstring."""
    documented = set()
    for node in ast.walk(ast.parse(as_python(source))):
        definition = isinstance(node, (ast.ClassDef, ast.FunctionDef))
        if definition and ast.get_docstring(node) is not None:
            first = node.body[0]
            documented.update(range(first.lineno, first.end_lineno + 1))
    return sum(
        bool(line.split("#")[0].strip()) and number not in documented
        for number, line in enumerate(source.splitlines(), start=1)
    )


def named(cells, wrong):
    """Name the cells that ``wrong`` is true of."""
    return [cell["id"] for cell in cells if wrong(cell)]


def test_every_cell_was_run_once_from_top_to_bottom(path):
    counts = [cell["execution_count"] for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_cell_shows_an_error_or_a_warning(path):
    def failed(cell):
        kinds = {output["output_type"] for output in cell["outputs"]}
        expected = "raises-exception" in tags_of(cell)
        return "stderr" in shown_by(cell) or ("error" in kinds and not expected)

    assert named(code_cells(path), failed) == []


def test_no_cell_was_run_without_the_data_it_asks_for(path):
    def lacking(cell):
        return any(
            "could not be downloaded" in text for text in shown_by(cell).values()
        )

    assert named(code_cells(path), lacking) == []


def test_cells_are_named_by_short_words_and_once(path):
    names = [cell["id"] for cell in read_notebook(path)["cells"]]
    assert [name for name in names if len(name) > 32 or not WORD.fullmatch(name)] == []
    assert len(set(names)) == len(names)


def test_only_the_metadata_that_the_book_uses_is_stored(path):
    notebook = read_notebook(path)
    assert notebook["metadata"] == NOTEBOOK_METADATA
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= CELL_METADATA, cell["id"]
        assert set(cell["metadata"].get("jupyter", {})) <= JUPYTER_METADATA, cell["id"]


def test_the_file_is_written_as_jupyter_writes_it(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


def test_the_first_code_cell_sets_up_colab(path):
    first = code_cells(path)[0]
    assert first["id"] == "colab-setup"
    assert tags_of(first) == ["remove-cell"]
    assert first["metadata"]["cellView"] == "form"
    assert first["outputs"] == []


def test_the_chapter_is_small_enough_to_load_anywhere(path):
    assert path.stat().st_size <= 700_000
    for cell in code_cells(path):
        picture = base64.b64decode(shown_by(cell).get("image/png", ""))
        assert len(picture) <= 60_000, cell["id"]


def test_no_line_of_code_is_wider_than_the_page(path):
    def is_wide(cell):
        return any(len(line) > 88 for line in source_of(cell).splitlines())

    assert named(code_cells(path), is_wide) == []


def test_there_is_a_map_of_weights_and_a_figure_to_move(path):
    sources = [source_of(cell) for cell in code_cells(path)]
    if is_excursion(path):
        return
    map_of_weights = re.compile(
        r"show_(heatmaps|attention|generation|patch_attention)\(|"
        r"show_images\(.*weights=",
        re.DOTALL,
    )
    assert any(map_of_weights.search(source) for source in sources)
    moves = [FIGURE_CALL.search(source) or "explore(" in source for source in sources]
    assert any(moves)


def test_every_picture_has_a_caption_a_name_and_an_alternative_text(path):
    cells = read_notebook(path)["cells"]
    for cell, behind in itertools.pairwise(cells):
        if cell["cell_type"] == "code" and is_static_figure(shown_by(cell)):
            about = cell["metadata"].get("mystnb", {})
            assert "caption" in tags_of(behind), cell["id"]
            assert about.get("figure", {}).get("name", "").startswith("fig-"), cell[
                "id"
            ]
            assert len(about.get("image", {}).get("alt", "")) > 20, cell["id"]


def is_static_figure(shown):
    """Tell a figure from one to move, which brings its own alternative text."""
    is_drawn = "image/png" in shown or "image/svg+xml" in shown
    return is_drawn and "<script>" not in shown.get("text/html", "")


def test_every_exercise_is_a_stub_a_check_and_a_solution(path):
    kinds = [
        kind
        for cell in code_cells(path)
        for kind in tags_of(cell)
        if kind in ("exercise", "check", "solution")
    ]
    least = 0 if is_excursion(path) else 3
    assert least <= kinds.count("exercise") <= 5
    assert kinds == ["exercise", "check", "solution"] * kinds.count("exercise")


def test_every_exercise_has_a_heading_with_its_number_and_its_minutes(path):
    text = "\n".join(
        source_of(cell)
        for cell in read_notebook(path)["cells"]
        if cell["cell_type"] == "markdown"
    )
    numbers = re.findall(r"^### Exercise (\w+)\.(\d+) · \S", text, re.MULTILINE)
    exercises = sum("exercise" in tags_of(cell) for cell in code_cells(path))
    chapter = short_name(path).lstrip("0")
    if is_excursion(path):
        chapter = numbers[0][0] if numbers else ""
        assert re.fullmatch("[A-Z]?", chapter)
    assert numbers == [(chapter, str(n)) for n in range(1, exercises + 1)]
    assert len(re.findall(r"\bminutes?\b", text)) >= exercises


def test_no_cell_prints_what_changes_from_run_to_run(path):
    def is_unstable(cell):
        shown = shown_by(cell)
        text = shown.get("stdout", "") + shown.get("text/plain", "")
        return UNSTABLE.search(text)

    assert named(code_cells(path), is_unstable) == []


def test_no_cell_hides_its_result_behind_a_semicolon(path):
    def hides(cell):  # which nbval does not honor: the result would be unexpected
        return source_of(cell).rstrip().endswith(";")

    assert named(code_cells(path), hides) == []


def test_what_training_prints_comes_with_an_asserted_claim(path):
    for section in sections(read_notebook(path)["cells"]):
        for position, cell in enumerate(section):
            if "nbval-ignore-output" in tags_of(cell):
                claims = [each for each in section if "claim" in tags_of(each)]
                near = [*section[position : position + 2], *claims]
                assert "assert " in "".join(map(source_of, near)), cell["id"]


def sections(cells):
    """Split cells where a Markdown cell begins with a heading; return the code."""
    parts = [[]]
    for cell in cells:
        if cell["cell_type"] == "code":
            parts[-1].append(cell)
        elif re.match("##? ", source_of(cell)):
            parts.append([])
    return parts


def test_every_chapter_asserts_what_it_claims(path):
    assert any("assert " in source_of(cell) for cell in code_cells(path))
