"""The repository as a stranger finds it."""

import re
import subprocess
from pathlib import Path

import pytest

from tutorial_exercises.exercise import EXERCISES, load_chapters

ROOT = Path(__file__).parents[1]
TOP_LEVEL = {
    ".ci",
    ".gitattributes",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "_config.yml",
    "_toc.yml",
    "benchmarks",
    "book",
    "notebooks",
    "pyproject.toml",
    "requirements.txt",
    "tests",
    "tools",
    "tutorial_exercises",
    "tutorial_figures",
    "tutorial_lib",
}
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures")
MODULES = sorted((ROOT / "tutorial_lib").rglob("*.py"))
CITATION = re.compile(  # Vaswani et al. (2017); Graves, Wayne and Danihelka, 2014
    r"(?<!and )(?<!, )\b([A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)* and [A-Z][a-z]+)?"
    r"(?:, | \()((?:19|20)\d\d)\b"
)


def tracked_files():
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    return listing.stdout.splitlines()


def test_nothing_but_the_decided_folders_stands_at_the_top():
    assert {file.split("/")[0] for file in tracked_files()} <= TOP_LEVEL


def test_nothing_that_is_made_is_tracked():
    made = re.compile(
        r"(^|/)(_build|\.environments|\.venv|__pycache__|\.ipynb_checkpoints|.*egg-info)/"
    )
    assert [file for file in tracked_files() if made.search(file)] == []


def test_the_readme_fits_on_80_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_the_readme_counts_rightly():
    readme = (ROOT / "README.md").read_text()
    notebooks = [path.read_text() for path in (ROOT / "notebooks").glob("*.ipynb")]
    questions = sum(text.count('"predict"') for text in notebooks)
    assert "about 70 questions" in readme and 65 < questions < 75
    exercises = sum(
        len(re.findall(r"### Exercise \d+\.\d", text)) for text in notebooks
    )
    assert f"{exercises} exercises" in readme
    load_chapters()
    tasks = {task for task in EXERCISES.values() if task.chapter < 99}
    mistakes = [one for task in tasks for one in task.known if one.sentence]
    assert "more than 700 known" in readme and 700 < len(mistakes) < 750
    assert "more than 700 known" in (ROOT / "book" / "intro.md").read_text()
    page = (ROOT / "book" / "elsewhere.md").read_text()
    count = re.search(r"(\d+) tests", page)[1]
    assert f"{count} comparisons" in readme


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


def test_a_package_is_needed_only_if_a_library_or_a_chapter_imports_it():
    packages = [path for one in PACKAGES for path in (ROOT / one).rglob("*.py")]
    texts = [path.read_text() for path in [*packages, *ROOT.glob("notebooks/*.ipynb")]]
    imported = re.findall(r'^ *"?(?:import|from) (\w+)', "\n".join(texts), re.M)
    called = {"scikit-learn": "sklearn"}
    unused = {one for one in dependencies() if called.get(one, one) not in imported}
    assert unused == set()


def test_every_work_that_is_cited_is_in_the_bibliography():
    entries = (ROOT / "book" / "references.bib").read_text()
    keys = set(re.findall(r"^@\w+\{(\w+),$", entries, re.MULTILINE))
    texts = [path.read_text() for path in [*MODULES, *ROOT.glob("notebooks/*.ipynb")]]
    cited = re.findall(CITATION, "\n".join(texts))
    assert len(cited) >= 5
    assert {f"{author}{year}".lower() for author, year in cited} - keys == set()


def test_every_work_in_the_bibliography_is_cited():
    bibliography = (ROOT / "book" / "references.bib").read_text()
    folders = "notebooks/*.ipynb", "book/*.md", "benchmarks/*.py"
    paths = [*MODULES, *(path for folder in folders for path in ROOT.glob(folder))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    by_key = set(re.findall(r"\w+", " ".join(re.findall(r"\{cite\}`(.*?)`", text))))
    uncited = []
    for key, entry in re.findall(r"^@\w+\{(\w+),(.*?)^\}", bibliography, re.M | re.S):
        numbers = re.findall(r"^  (?:eprint|doi|url) += \{(.*?)\}", entry, re.M)
        author, year = re.match(r"([a-z]+).*(\d{4})", key).groups()
        is_linked = any(number in text for number in numbers)
        is_named = re.search(rf"\b{author}\b[^\n]{{,40}}{year}", text, re.I)
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
    for title, folder in (named | {"tools": "tools"}).items():
        section = rf"^### {title}$(.*?)^##"
        [rows] = re.findall(section, page + "\n##", re.MULTILINE | re.DOTALL)
        for path in (ROOT / folder).iterdir():
            if path.name[0] != "_" and (path.suffix == ".py" or path.is_dir()):
                name = f"{path.name}{'/' if path.is_dir() else ''}"
                assert f"| `{name}` |" in rows, name
