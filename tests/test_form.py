"""The form of a chapter, by rules that a notebook keeps or breaks.

A rule is a function of a notebook, a dictionary, that yields what is wrong with it. It
sees the notebook as pages do: captions beside their figures, answers unfolded.
"""

import ast
import functools
import importlib
import itertools
import json
import re
import sys
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import pytest
from statements import statements
from test_notebooks import FIGURE_CALL, lines_of_code

from tools.execute import CELL_METADATA, JUPYTER_METADATA
from tools.notebooks import (
    chapters,
    code_cells,
    read_notebook,
    short_name,
    source_of,
    tags_of,
)
from tutorial_lib.definitions import as_python

pytest.importorskip("sphinx")
pytest.importorskip("pybtex")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))
MODULES = "chapter_form", "citations", "notebook_form"
FORM, CITATIONS, PAGES = map(importlib.import_module, MODULES)

FOLDED = {"setup": "# @title Setup", "picture": "# @title The picture"}
FOLDED = FOLDED | {"aside": "# @title ", "claim": "# @title Checked\nwith claim("}
# What neither a reader of the page reads nor a limit counts.
APART = {"check", "claim", "exercise", "picture", "remove-cell", "setup", "solution"}
CALL = 12  # lines of a figure's call, as it is formatted: one argument a line
ASIDES = 140  # lines of code that may be folded, besides those that are read
BEGINNING = ["title", "remove-cell", "setup", "picture"]
ROAD = 3, 4, 5, 6  # sections
END = ["In real models", "Exercises", "Summary", "Further reading"]
PLUMBING = re.compile(r"set_size_inches|\.axes\b|ticks")
CITATION = re.compile(r"\[([^\]]*)\]\(\.\./book/bibliography\.md(?:#(\w+))?\)")


def texts(notebook):
    """Return the Markdown cells."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def read(notebook):
    """Return the code cells that are read on the page."""
    return [cell for cell in code_cells(notebook) if not APART & {*tags_of(cell)}]


def parsed(cell):
    return ast.parse(as_python(source_of(cell)))


# --- The rules --------------------------------------------------------------------


def tags_fit_their_cells(notebook):
    try:
        FORM.mark(deepcopy(notebook["cells"]))
    except ValueError as fault:
        yield str(fault)


def cells_are_folded_everywhere(notebook):
    for cell in code_cells(notebook):
        for tag in FOLDED.keys() & {*tags_of(cell)}:
            if not source_of(cell).startswith(FOLDED[tag]):
                yield f"{cell['id']} does not begin with {FOLDED[tag]}"
            about = cell["metadata"]
            hidden = about.get("jupyter", {}).get("source_hidden")
            if about.get("cellView") != "form" or not hidden:
                yield f"{cell['id']} is not folded in Colab and Jupyter"


def asserts_are_claims(notebook):
    exercises = False  # where a claim may use an answer, and show what comes of it
    for cell in notebook["cells"]:
        exercises = exercises or "## Exercises" in source_of(cell).split("\n")
        if cell["cell_type"] != "code" or "exercise" in tags_of(cell):
            continue
        is_claim = "claim" in tags_of(cell)
        if is_claim != any(map(asserts, ast.walk(parsed(cell)))):
            yield f"{cell['id']}: asserts stand in claims, and claims hold asserts"
        if is_claim and cell["outputs"] and not exercises:
            yield f"{cell['id']} is a claim and shows something"


def asserts(node):
    """Tell whether a node asserts, as ``assert`` and ``assert_close`` do."""
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(node, ast.Assert) or name.startswith("assert")


def guards_are_claims(notebook):
    for cell in read(notebook):
        for node in ast.walk(parsed(cell)):
            if isinstance(node, ast.If) and "corpus" in ast.unparse(node.test):
                yield f"{cell['id']} has a guard for other data"


def what_answers_show_is_folded(notebook):
    for cell in code_cells(notebook):
        shows = "answer" in tags_of(cell) and "claim" not in tags_of(cell)
        if shows and re.match("# @title (?!Answer)", source_of(cell)):
            yield f"{cell['id']} is an answer and is shown open in a notebook"


def no_later_cell_needs_an_answer(notebook):
    hidden = {}  # name -> the answer that binds it
    for cell in code_cells(notebook):
        if "claim" in tags_of(cell):
            continue
        is_answer = "answer" in tags_of(cell)
        for part in statements(cell, source_of(cell)):
            for name in sorted((part.needs - part.binds) & hidden.keys()):
                if not is_answer:
                    yield f"{cell['id']} needs {name} of the answer {hidden[name]}"
            for name in part.binds:
                hidden.pop(name, None)
            if is_answer:
                hidden = hidden | dict.fromkeys(part.binds, cell["id"])


def answers_are_sentences(notebook):
    for cell in texts(notebook):
        if "answer" in tags_of(cell) and re.match(r"\W*\(?[a-d]\)", source_of(cell)):
            yield f"{cell['id']} begins with a letter"


def sections_are_in_order(notebook):
    kinds = [["title"], *(tags_of(cell) for cell in notebook["cells"][1:4])]
    for kind, tags in itertools.zip_longest(BEGINNING, kinds, fillvalue=[]):
        if kind not in tags:
            yield f"{kind} is not in its place at the beginning"
    sections = re.findall(r"^## (.+)$", _text(notebook), re.MULTILINE)
    road = len(sections) - len(END)
    if sections[road:] != END or road not in ROAD:
        yield f"the sections are {sections}"
    heading = source_of(notebook["cells"][0]).split("\n")[0]
    if not re.fullmatch(r"# \d+ · \S.*", heading):
        yield f"the title is {heading}"


def the_opening_is_short(notebook):
    words = len(source_of(notebook["cells"][0]).split("\n", 1)[-1].split())
    if words > 180:
        yield f"the opening has {words} words"


def the_page_is_not_long(notebook):
    asides = [cell for cell in read(notebook) if "aside" in tags_of(cell)]
    lines = sum(lines_of_code(source_of(cell)) for cell in asides)
    if lines > ASIDES:
        yield f"{lines} lines of code are folded"
    questions = sum("predict" in tags_of(cell) for cell in notebook["cells"])
    written = _text(notebook).count("**Predict.**")
    if questions > 8 or questions != written:
        yield f"{questions} of {written} questions are tagged predict, of 8 at most"


def a_figure_is_one_call(notebook):
    for cell in code_cells(notebook):
        static = "figure" in cell["metadata"].get("mystnb", {})
        if static or FIGURE_CALL.search(source_of(cell)):
            last = parsed(cell).body[-1]
            is_call = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
            if not is_call or last.end_lineno - last.lineno >= CALL:
                yield f"{cell['id']} does not end with one call of {CALL} lines at most"
        if PLUMBING.search(source_of(cell)):
            yield f"{cell['id']} mends a figure by hand"


def the_picture_is_one_call(notebook):
    for cell in code_cells(notebook):
        if "picture" in tags_of(cell) and len(parsed(cell).body) > 1:
            yield f"{cell['id']} does more than one call"


def citations_name_their_entries(notebook):
    for link_text, key in CITATION.findall(_text(notebook)):
        name, _, year = labels().get(key, "").rstrip(")").rpartition(" (")
        if not name or name.split(" and ")[0].split(" et")[0] not in link_text:
            yield f"[{link_text}] names nobody of {key or 'the list'}"
        elif not re.search(rf"\b{year}\b", link_text):
            yield f"[{link_text}] is of {year}"


def _text(notebook):
    return "\n".join(map(source_of, texts(notebook)))


@functools.cache
def labels():
    """Return what the bibliography calls its entries, by their keys."""
    from pybtex.database import parse_file

    style = CITATIONS.AuthorYear()
    entries = parse_file(ROOT / "book" / "references.bib").entries.values()
    entries = style.sort(entries)
    keys = [entry.key for entry in entries]
    return dict(zip(keys, style.format_labels(entries), strict=True))


EXCURSIONS_TOO = [
    tags_fit_their_cells,
    cells_are_folded_everywhere,
    asserts_are_claims,
    guards_are_claims,
    what_answers_show_is_folded,
    no_later_cell_needs_an_answer,
    answers_are_sentences,
    citations_name_their_entries,
]
CHAPTERS_ONLY = [
    sections_are_in_order,
    the_opening_is_short,
    the_page_is_not_long,
    a_figure_is_one_call,
    the_picture_is_one_call,
]
RULES = [*EXCURSIONS_TOO, *CHAPTERS_ONLY]


# --- The chapters -----------------------------------------------------------------


def test_no_place_among_the_options_gives_the_right_one_away():
    cells = [cell for path in chapters(ROOT) for cell in read_notebook(path)["cells"]]
    right = [tag for cell in cells for tag in tags_of(cell) if tag.startswith("right-")]
    shares = [right.count(f"right-{place}") / len(right) for place in (1, 2, 3)]
    assert min(shares) > 0.2 and max(shares) < 0.45, shares


@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_a_notebook_keeps_the_rules(path):
    rules = RULES if short_name(path).isdigit() else EXCURSIONS_TOO
    notebook = read_notebook(path)
    PAGES.as_page(notebook, PAGES.papers(ROOT / "book" / "references.bib"))
    faults = [fault for rule in rules for fault in rule(notebook)]
    assert faults == []


# --- The rules themselves ---------------------------------------------------------


def text(name, source, *tags):
    about = {"cell_type": "markdown", "id": name, "metadata": {"tags": [*tags]}}
    return about | {"source": source}


def code(name, source, *tags, **metadata):
    if APART & {*tags}:
        metadata = metadata | {"cellView": "form", "jupyter": {"source_hidden": True}}
    about = {"cell_type": "code", "id": name, "metadata": metadata | {"tags": [*tags]}}
    return about | {"execution_count": 1, "outputs": [], "source": source}


FIGURE = {"figure": {"caption": "What.", "name": "fig-what"}, "image": {"alt": "It."}}
CLAIMED = '# @title Checked\nwith claim("{}"):\n    {}'
GOOD = [
    text("title", "# 1 · Looking up\n\nWhat is asked?"),
    code("colab-setup", "# @title Colab", "remove-cell"),
    code("setup", "# @title Setup\nimport torch", "setup"),
    code("drawn", "# @title The picture\nshow_lookup(1)", "picture", mystnb=FIGURE),
    code("core", "weights = 1\nprint(weights)", "core"),
    text("one", "## One"),
    text("question", "**Predict.** Which?\n\n- this\n- that", "predict", "right-2"),
    code("run", "2", "answer"),
    text("told", "It is that, as [Cho et al. (2014b)](KEYcho2014) say.", "answer"),
    code("claim-that", CLAIMED.format("that", "assert 2 > 1"), "claim"),
    text("two", "## Two\n\n## Three"),
    code("plot", "x = 1\nshow_curves(\n    x\n)", mystnb=FIGURE),
    text("end", "## Four\n\n## In real models\n\n## Exercises"),
    code("stub", "def f():\n    assert ...", "exercise"),
    code("used", CLAIMED.format("f", "print(f())\n    assert f()"), "claim"),
    text("last", "## Summary\n\n## Further reading"),
]
GOOD[8]["source"] = GOOD[8]["source"].replace("KEY", "../book/bibliography.md#")
GOOD[14]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": "1"}]


def changed(name, old="", new="", *, tags=None, **entries):
    """Return the good notebook with another cell of this name."""
    cells = deepcopy(GOOD)
    [cell] = [cell for cell in cells if cell["id"] == name]
    assert old in cell["source"]
    cell["source"] = cell["source"].replace(old, new, 1)
    cell["metadata"] = cell["metadata"] | ({} if tags is None else {"tags": tags})
    cell.update(entries)
    return {"cells": cells}


def without(name):
    return {"cells": [cell for cell in deepcopy(GOOD) if cell["id"] != name]}


BAD = [
    (tags_fit_their_cells, changed("question", "\n- this\n- that"), "two to four"),
    (
        tags_fit_their_cells,
        changed("question", "- that", "- b\n- c\n- d\n- e"),
        "two to",
    ),
    (
        tags_fit_their_cells,
        changed("question", "- that", "- that\n\nSo?"),
        "two to four",
    ),
    (tags_fit_their_cells, changed("question", "**Predict.** W", "W"), "begins with"),
    (
        tags_fit_their_cells,
        changed("question", tags=["predict", "right-3"]),
        "to right-2",
    ),
    (
        tags_fit_their_cells,
        changed("question", tags=["predict", "right-0"]),
        "to right-2",
    ),
    (tags_fit_their_cells, changed("question", tags=["predict"]), "right-1 to right-2"),
    (
        tags_fit_their_cells,
        changed("question", tags=[]),
        "run: an answer needs a Predict",
    ),
    (tags_fit_their_cells, changed("run", tags=[]), "question: a Predict needs cells"),
    (
        tags_fit_their_cells,
        changed("told", "It", "### So\n\nIt"),
        "told: an answer has no",
    ),
    (
        tags_fit_their_cells,
        changed("claim-that", "with claim", "if claim"),
        "a claim with # @title Checked",
    ),
    (
        cells_are_folded_everywhere,
        changed("setup", "Setup", "Imports"),
        "setup does not begin",
    ),
    (
        cells_are_folded_everywhere,
        changed("drawn", metadata={"tags": ["picture"]}),
        "drawn is not folded",
    ),
    (
        asserts_are_claims,
        changed("core", "print", "assert "),
        "core: asserts stand in claims",
    ),
    (
        asserts_are_claims,
        changed("core", "print", "torch.testing.assert_close"),
        "core: asserts",
    ),
    (
        asserts_are_claims,
        changed("claim-that", "assert 2 > 1", "2"),
        "claims hold asserts",
    ),
    (asserts_are_claims, changed("claim-that", outputs=["2"]), "shows something"),
    (
        guards_are_claims,
        changed("core", "p", "if corpus == 'x':\n    p"),
        "core has a guard",
    ),
    (
        what_answers_show_is_folded,
        changed("run", "2", "# @title It\n2"),
        "is shown open",
    ),
    (
        no_later_cell_needs_an_answer,
        changed("run", "2", "f = 2\nprint(f)\nshow_curves = 3"),
        "plot needs show_curves of the answer run",
    ),
    (
        answers_are_sentences,
        changed("told", "It is", "(b). It is"),
        "told begins with a letter",
    ),
    (
        citations_name_their_entries,
        changed("told", "#cho2014"),
        "names nobody of the",
    ),
    (
        citations_name_their_entries,
        changed("told", "#cho", "#x"),
        "names nobody of x",
    ),
    (
        citations_name_their_entries,
        changed("told", "Cho", "He"),
        "names nobody of cho",
    ),
    (citations_name_their_entries, changed("told", "2014b", "2014"), "is of 2014b"),
    (sections_are_in_order, without("drawn"), "picture is not in its place"),
    (
        sections_are_in_order,
        changed("end", "## Four\n\n", "## 4\n\n## 5\n\n## 6\n\n## 7\n\n"),
        "the sections are ['One'",
    ),
    (
        sections_are_in_order,
        changed("end", "In real models", "Goals"),
        "the sections are",
    ),
    (sections_are_in_order, changed("title", "1 ·", "1."), "the title is # 1."),
    (the_opening_is_short, changed("title", "is asked", "a " * 179), "has 181 words"),
    (
        the_page_is_not_long,
        changed("core", "1", "1" + "\nx = 1" * 139, tags=["aside"]),
        "141 lines of code are folded",
    ),
    (the_page_is_not_long, changed("two", "## Three", "**Predict.** And?"), "1 of 2"),
    (a_figure_is_one_call, changed("plot", "show", "y = show"), "plot does not end"),
    (
        a_figure_is_one_call,
        changed("plot", "    x", "    x,\n" * 11),
        "plot does not end",
    ),
    (
        a_figure_is_one_call,
        changed("plot", "x = 1", "g.set_size_inches(1)"),
        "plot mends",
    ),
    (
        the_picture_is_one_call,
        changed("drawn", "show", "x = 1\nshow"),
        "than one",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_keeps_the_rule(rule):
    assert [*rule({"cells": deepcopy(GOOD)})] == []


@pytest.mark.parametrize(("rule", "notebook", "fault"), BAD)
def test_a_bad_notebook_breaks_the_rule(rule, notebook, fault):
    assert fault in "\n".join(rule(notebook))


def test_a_build_warns_of_a_bad_notebook_by_its_name_and_its_cell_s(
    tmp_path, monkeypatch
):
    settings = SimpleNamespace(output_folder=tmp_path)
    env = SimpleNamespace(doc2path="{}.ipynb".format, mystnb_config=settings)
    warned = []
    page = "notebooks/01_up"

    def warn(text, fault, location):
        warned.append((str(fault), location))

    monkeypatch.setattr(FORM.LOGGER, "warning", warn)
    for cells in (GOOD, without("question")["cells"]):
        source = [json.dumps({"cells": cells})]
        FORM.mark_notebook(SimpleNamespace(env=env), page, source)
    assert warned == [("cell run: an answer needs a Predict before it", page)]


def test_what_the_form_needs_is_stored():
    for cell in GOOD:
        assert {*cell["metadata"]} <= CELL_METADATA
        assert {*cell["metadata"].get("jupyter", {})} <= JUPYTER_METADATA


def test_what_use_says_is_left_out_of_a_page_and_nothing_else():
    said = "Using the library's plant_mark until yours passes its check.\n"
    told = {"output_type": "stream", "name": "stdout", "text": [said, "0.93\n"]}
    alone = {"output_type": "stream", "name": "stdout", "text": said}
    picture = {"output_type": "display_data", "data": {"image/png": ""}, "metadata": {}}
    cell = {"cell_type": "code", "outputs": [told, alone, picture]}
    FORM.leave_out_used(cell)
    assert cell["outputs"] == [{**told, "text": "0.93\n"}, picture]
