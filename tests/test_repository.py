"""The files of the repository: pins, links, citations, the page of the library."""

import re
import subprocess
from pathlib import Path

import pytest

from tools.notebooks import chapters, read_notebook, source_of
from tutorial_lib.installed import MINILM, SMOLLM2

ROOT = Path(__file__).parents[1]
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
MODULES = sorted((ROOT / "tutorial_lib").rglob("*.py"))
CITATION = re.compile(  # Vaswani et al. (2017); Graves, Wayne and Danihelka, 2014
    r"(?<!and )(?<!, )\b([A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)* and [A-Z][a-z]+)?"
    r"(?:, | \()((?:19|20)\d\d)\b"
)


def texts():
    """Return what is written in the library, in cells of notebooks, and on pages."""
    paths = [*MODULES, *ROOT.glob("book/*.md"), *ROOT.glob("benchmarks/*.py")]
    pages = [path.read_text(encoding="utf-8") for path in paths]
    for path in chapters(ROOT):
        pages += [source_of(cell) for cell in read_notebook(path)["cells"]]
    return "\n".join(pages)


def tracked_files():
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    return listing.stdout.splitlines()


def test_nothing_that_is_made_is_tracked():
    made = re.compile(
        r"(^|/)(_build|\.environments|\.venv|__pycache__|\.ipynb_checkpoints|.*egg-info)/"
    )
    assert [file for file in tracked_files() if made.search(file)] == []


@pytest.mark.parametrize(
    "made",
    [
        "mine/",
        "course/",
        "masters/",
        "out/",
        "slides/",
        "build/",
        "_build/",
        "my/",
        "attention.zip",
    ],
)
def test_what_a_teacher_s_commands_make_is_not_committed_by_chance(made):
    asked = ["git", "check-ignore", "-q", made]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 128:
        pytest.skip("not a git checkout")
    assert done.returncode == 0


def test_the_license_names_every_folder():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    paths = [Path(file) for file in tracked_files()]
    folders = {f"{path.parts[0]}/" for path in paths if len(path.parts) > 1}
    inner = {path.parts[1] for path in paths if path.parts[0] == "book"}
    folders.update(f"book/{name}/" for name in inner if name.startswith("_"))
    assert {folder for folder in folders if folder not in text} == set()


def test_the_readme_fits_on_80_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_links_to_exists(page):
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_book_is_built_without_torch():
    pinned = (ROOT / "book" / "requirements.txt").read_text()
    assert "jupyter-book==" in pinned
    assert not re.search(r"^(torch|numpy|nvidia|matplotlib==)", pinned, re.MULTILINE)


def pins(file):
    lines = (ROOT / file).read_text().splitlines()
    return {line for line in lines if re.match(r"[a-z0-9]", line)}


def names(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_the_two_environments_pin_the_same_versions():
    book, everything = pins("book/requirements.txt"), pins("requirements.txt")
    assert all("==" in pin for pin in book | everything)
    shared = {pin for pin in everything if pin.split("==")[0] in names(book)}
    assert {pin.split(" ;")[0] for pin in shared} == {
        pin.split(" ;")[0] for pin in book
    }


def dependencies():
    """Return the names of what the packages need, wherever they run."""
    project = (ROOT / "pyproject.toml").read_text()
    [listed] = re.findall(r"^dependencies = \[(.*?)^\]", project, re.M | re.S)
    return names(re.findall(r'"(.*)"', listed))


def test_students_get_the_book_s_versions_and_no_tools_of_its_makers():
    students = pins("book/students.txt")
    assert students <= pins("requirements.txt")
    assert {"ipywidgets", "jupyterlab", "torch"} <= names(students)
    besides = {
        "ipywidgets",
        "jupyterlab",
        "scipy",
    }  # scikit-learn warns with a newer one
    assert names(students) <= dependencies() | besides
    assert "\n-e .\n" in (ROOT / "book" / "students.txt").read_text()


def test_the_models_are_installed_in_the_versions_that_the_library_loads():
    text = (ROOT / "book" / "models.txt").read_text()
    assert pins("book/models.txt") == {
        f"{package.name}=={package.version} \\" for package in (SMOLLM2, MINILM)
    }
    assert len(re.findall(r"^    --hash=sha256:[0-9a-f]{64}$", text, re.M)) == 2


def test_a_package_is_needed_only_if_a_library_or_a_chapter_imports_it():
    packages = [path for one in PACKAGES for path in (ROOT / one).rglob("*.py")]
    written = "\n".join([path.read_text() for path in packages] + [texts()])
    imported = re.findall(r"^ *(?:import|from) (\w+)", written, re.M)
    called = {"scikit-learn": "sklearn"}
    unused = {one for one in dependencies() if called.get(one, one) not in imported}
    assert unused == set()


def test_every_work_that_is_cited_is_in_the_bibliography():
    entries = (ROOT / "book" / "references.bib").read_text()
    keys = set(re.findall(r"^@\w+\{(\w+),$", entries, re.MULTILINE))
    cited = re.findall(CITATION, texts())
    assert len(cited) >= 5
    assert {f"{author}{year}".lower() for author, year in cited} - keys == set()


def test_every_work_in_the_bibliography_is_cited():
    bibliography = (ROOT / "book" / "references.bib").read_text()
    text = texts()
    lowered = text.lower()
    by_key = set(re.findall(r"\w+", " ".join(re.findall(r"\{cite\}`(.*?)`", text))))
    uncited = []
    for key, entry in re.findall(r"^@\w+\{(\w+),(.*?)^\}", bibliography, re.M | re.S):
        numbers = re.findall(r"^  (?:eprint|doi|url) += \{(.*?)\}", entry, re.M)
        author, year = re.match(r"([a-z]+).*(\d{4})", key).groups()
        is_linked = any(number in text for number in numbers)
        is_named = re.search(rf"{author}\b[^\n]{{,40}}{year}", lowered)
        if not (is_linked or is_named or key in by_key):
            uncited.append(key)
    assert uncited == []


def test_the_library_page_shows_what_is_read_and_names_every_other_file():
    page = (ROOT / "book" / "library.md").read_text(encoding="utf-8")
    shown = {f"{name}.py" for name in re.findall(r"\{library\} (\S+)", page)}
    kept = {str(path.relative_to(ROOT)) for path in MODULES}
    apart = ("tutorial_lib/__init__", "tutorial_lib/data/__", "tutorial_lib/plotting/")
    apart = (*apart, "tutorial_lib/interpret/__", "tutorial_lib/notebook/__")
    guides = {"tutorial_figures/__init__.py", "tutorial_lib/plotting/__init__.py"}
    assert shown - guides == {name for name in kept if not name.startswith(apart)}
    assert guides <= shown
    named = {"figures": "tutorial_figures", "plotting": "tutorial_lib/plotting"}
    named["tools"] = "tools"
    for title, folder in named.items():
        section = rf"^### {title}$(.*?)^##"
        [rows] = re.findall(section, page + "\n##", re.MULTILINE | re.DOTALL)
        for path in (ROOT / folder).iterdir():
            if path.name[0] != "_" and (path.suffix == ".py" or path.is_dir()):
                name = f"{path.name}{'/' if path.is_dir() else ''}"
                assert f"| `{name}` |" in rows, name
