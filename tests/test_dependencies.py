"""Which files of the library a notebook's outputs depend on."""

from pathlib import Path

import pytest

from tools.dependencies import fingerprint, library_files
from tools.notebooks import read_notebook, write_notebook

BOOK = Path(__file__).parents[1]
FILES = {
    "tutorial_lib/__init__.py": "",
    "tutorial_lib/masks.py": "import torch\n",
    "tutorial_lib/attention.py": "from tutorial_lib.masks import causal_mask\n",
    "tutorial_lib/apart.py": "",
    "tutorial_lib/late.py": "def f():\n    import tutorial_lib.apart\n",
    "tutorial_figures/__init__.py": (
        "from .map import show_map\nfrom .plot import show_plot\n"
    ),
    "tutorial_figures/map.py": 'from . import base\nSHARED = ("colors.js",)\n',
    "tutorial_figures/colors.js": "",
    "tutorial_figures/map.js": "",
    "tutorial_figures/map.css": "",
    "tutorial_figures/plot.py": "",
    "tutorial_figures/plot.js": "",
    "tutorial_figures/base.py": "",
    "tutorial_exercises/__init__.py": "from .check import check\n",
    "tutorial_exercises/check.py": "",
    "tutorial_exercises/chapter_01.py": "import tutorial_lib.late\n",
    "tutorial_exercises/chapter_02.py": "import tutorial_lib.attention\n",
}


@pytest.fixture
def book(tmp_path):
    """Make a small library; return a function that tells what a chapter needs of it."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "requirements.txt").write_text("torch==2\n")

    def needs(*sources):
        path = write(tmp_path, *sources)
        files = library_files(tmp_path, path)
        names = {f.relative_to(tmp_path).as_posix() for f in files}
        return names - {"tutorial_lib/__init__.py"}

    needs.root = tmp_path
    return needs


def write(root, *sources, prose="# One"):
    path = root / "notebooks" / "01_one.ipynb"
    about = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    cells = [{"cell_type": "markdown", "id": "p", "metadata": {}, "source": prose}]
    for i, source in enumerate(sources):
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(code | {"id": f"c{i}", "metadata": {}, "source": source})
    write_notebook(path, {"cells": cells, **about})
    return path


OWN = {"tutorial_exercises/chapter_01.py"}
OWN |= {"tutorial_lib/late.py", "tutorial_lib/apart.py"}  # what these exercises lead to


def test_what_an_import_imports_counts_as_well(book):
    found = book("from tutorial_lib.attention import MultiHeadAttention")
    assert found == {"tutorial_lib/attention.py", "tutorial_lib/masks.py"} | OWN


def test_an_import_inside_a_function_or_behind_a_magic_counts(book):
    assert book("%matplotlib inline\nimport tutorial_lib.late") == OWN


def test_a_name_handed_on_by_a_package_leads_to_its_module_alone(book):
    found = book("from tutorial_figures import show_map")
    figures = {"__init__.py", "map.py", "map.js", "map.css", "colors.js", "base.py"}
    assert found == {f"tutorial_figures/{name}" for name in figures} | OWN
    whole = {"tutorial_figures/plot.py", "tutorial_figures/plot.js"}
    assert book("import tutorial_figures") == found | whole
    assert book("from tutorial_figures import *") == found | whole


@pytest.mark.parametrize(
    ("chapter", "name"), [("06", "attention"), ("13", "induction")]
)
def test_a_chapter_depends_on_the_scripts_and_the_style_of_its_figures(chapter, name):
    [path] = BOOK.glob(f"notebooks/{chapter}_*.ipynb")
    found = {file.name for file in library_files(BOOK, path)}
    assert {f"{name}.py", f"{name}.js", f"{name}.css", "base.js", "base.css"} <= found
    assert "windows.js" not in found


def test_the_exercises_of_another_chapter_do_not_count(book):
    found = book("from tutorial_exercises import check")
    assert (
        found == {"tutorial_exercises/__init__.py", "tutorial_exercises/check.py"} | OWN
    )


def test_a_notebook_without_the_library_depends_on_none_of_it(book):
    assert book("import torch", "%%bash\nls $(") == set()


def test_a_fingerprint_changes_with_code_library_and_pins_and_not_with_prose(book):
    root, cells = book.root, ["import tutorial_lib.attention", "1"]
    before = fingerprint(root, write(root, *cells))
    assert fingerprint(root, write(root, *cells, prose="# Another")) == before
    (root / "tutorial_figures" / "plot.js").write_text("other")
    assert fingerprint(root, root / "notebooks" / "01_one.ipynb") == before
    found = {before, fingerprint(root, write(root, *cells, "2"))}
    path = write(root, *cells)
    for changed in ("tutorial_lib/masks.py", "requirements.txt"):
        (root / changed).write_text("# other\n")
        found.add(fingerprint(root, path))
    assert len(found) == 4
    assert len(read_notebook(path)["cells"]) == 3
