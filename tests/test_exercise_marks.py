"""What passed is known in the next session, whatever becomes of the files."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from made_up import called_with, exercise
from platformdirs import macos, unix, windows

from tools.notebooks import ENVIRONMENT
from tutorial_exercises import check, marks, progress
from tutorial_exercises.check import CHECKED
from tutorial_exercises.marks import keep, kept

ROOT = Path(__file__).parents[1]


def task(name, title="Made up", number="98.1"):
    return types.SimpleNamespace(name=name, title=title, number=number)


def names(*wanted):
    """Return which of these exercises are marked."""
    return kept(map(task, wanted))[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep the marks in an empty folder, and begin a session."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path))
    new_session()
    yield tmp_path
    new_session()


def new_session():
    """Forget what a new kernel would not know."""
    CHECKED.clear()
    marks.SAID.clear()


def names_in(folder):
    return {path.name for path in folder.iterdir()}


# --- what a student sees -----------------------------------------------------------


def open_answer():
    """Still a stub."""


def shown(number):
    """Return what progress says of a made-up exercise, and its last line."""
    lines = repr(progress(98)).splitlines()
    return next(line for line in lines if f"Exercise {number} " in line), lines[-1]


@pytest.fixture
def made_up():
    with exercise(oracle=lambda: 1) as made_up:
        made_up.step("is right")(called_with())
        yield made_up


def test_the_next_session_shows_what_passed_in_an_earlier_one(folder, made_up):
    check(lambda: 1, "answer")
    line, last = shown("98.1")
    assert line == "✅ Passed: Exercise 98.1 · Made up"
    assert last.endswith("Chapter 98: 1 of 1 exercises passed")

    new_session()
    line, last = shown("98.1")
    assert line == "☑️ Passed earlier: Exercise 98.1 · Made up"
    assert last.endswith("Chapter 98: 1 of 1 exercises passed, 1 of them earlier")
    assert repr(progress()) == repr(progress(98))  # without an argument: what was begun


def test_what_this_session_finds_goes_before_an_earlier_mark(folder, made_up):
    check(lambda: 1, "answer")
    new_session()

    check(open_answer, "answer")  # the stub of a fresh notebook says nothing new
    assert shown("98.1")[0] == "☑️ Passed earlier: Exercise 98.1 · Made up"

    check(lambda: 2, "answer")
    line, last = shown("98.1")
    assert line == "❌ Not right yet: Exercise 98.1 · Made up (passed earlier)"
    assert last.endswith("0 of 1 exercises passed")

    check(lambda: 1, "answer")
    assert shown("98.1")[0] == "✅ Passed: Exercise 98.1 · Made up"


def test_earlier_marks_are_told_by_words_and_are_grey(folder, made_up):
    check(lambda: 1, "answer")
    assert '<li class="pass">' in progress(98)._repr_html_()
    new_session()
    text = progress(98)._repr_html_()
    assert '<li class="earlier">' in text and "Passed earlier: Exercise 98.1" in text
    assert ".earlier" not in text  # no rule of its own: it keeps the card's grey


@pytest.mark.parametrize("answer", [lambda: 2, open_answer, None])
def test_only_what_passes_is_marked(folder, made_up, answer):
    check(answer, "answer")
    assert [*folder.iterdir()] == []
    assert repr(progress(98)).startswith(("❌", "⬜"))


def test_without_its_file_only_the_mark_is_gone(folder, made_up):
    check(lambda: 1, "answer")
    (folder / "answer.txt").unlink()
    assert shown("98.1")[0].startswith("✅")  # this session still knows
    new_session()
    assert shown("98.1")[0].startswith("⬜")
    assert repr(
        check(lambda: 1, "answer")
    ) == "✅ Passed: Exercise 98.1 · Made up\n" + ("   ✓ is right")


def test_nothing_random_depends_on_the_files(folder, made_up):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    check(lambda: 1, "answer")
    assert torch.rand(1) == expected


# --- the files ---------------------------------------------------------------------


def test_a_mark_is_a_file_that_anyone_can_read(folder):
    keep(task("answer", "Größe √d", "98.7"))
    keep(task("98.8", "A value", "98.8"))
    assert names_in(folder) == {"answer.txt", "98.8.txt"}
    assert (folder / "answer.txt").read_text(encoding="utf-8") == "Größe √d"


def test_a_mark_belongs_to_an_exercise_and_not_to_its_name_alone(folder):
    keep(task("answer", "Shares"))
    assert kept([task("answer", "Shares", number="98.4")])[0] == {"answer"}
    assert kept([task("answer", "Averages")])[0] == set()
    assert kept([task("other", "Shares")])[0] == set()


def test_what_is_marked_is_not_written_again(folder):
    keep(task("answer"))
    before = (folder / "answer.txt").stat()
    keep(task("answer"))
    after = (folder / "answer.txt").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_marks_and_words_of_others_stay(folder):
    (folder / "from_a_fork.txt").write_text("Other")
    (folder / "notes.md").write_text("mine")
    assert keep(task("answer")) == ""
    assert names_in(folder) == {"from_a_fork.txt", "notes.md", "answer.txt"}
    assert (folder / "from_a_fork.txt").read_text() == "Other"


def test_notebooks_at_once_lose_nothing(folder):
    one, other = task("first"), task("second")
    assert names("first", "second") == set()  # both have looked before either writes
    assert keep(one) == keep(other) == ""
    assert names("first", "second") == {"first", "second"}


# --- trouble -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"Made", b"\xff\xfe", b"Made up, and more"],
    ids=["empty", "half", "not-utf-8", "more"],
)
def test_a_damaged_mark_does_not_count_and_is_mended(folder, made_up, content):
    (folder / "answer.txt").write_bytes(content)
    assert kept([made_up]) == (set(), "")
    result = check(lambda: 1, "answer")
    assert result.passed and result.note == ""
    assert kept([made_up]) == ({"answer"}, "")


def test_a_folder_that_cannot_be_read_costs_one_sentence(folder, made_up, monkeypatch):
    (folder / "answer.txt").mkdir()
    found, sentence = kept([made_up])
    assert found == set()
    assert sentence.startswith("Earlier marks cannot be read (`")
    assert sentence.endswith("answer.txt`: Is a directory).")
    card = repr(progress(98))
    assert card.startswith("⬜") and card.count("cannot be read") == 1
    assert "only (`" in check(lambda: 1, "answer").note


def test_a_place_that_cannot_be_written_costs_one_sentence(
    folder, made_up, monkeypatch
):
    (folder / "file").touch()
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(folder / "file"))
    first, second = check(lambda: 1, "answer"), check(lambda: 1, "answer")
    assert first.passed and second.passed
    assert first.note.startswith("This mark lasts for this session only (`")
    assert "set <code>TUTORIAL_PROGRESS</code> to a folder" in first._repr_html_()
    assert second.note == ""
    assert shown("98.1")[0].startswith("✅")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere"
)
def test_a_read_only_folder_costs_one_sentence(folder):
    folder.chmod(0o500)
    assert "Permission denied" in keep(task("answer"))
    assert kept([task("answer")]) == (set(), "")


def test_a_drive_that_is_not_mounted_is_not_made_up(folder, monkeypatch):
    drive = folder / "drive" / "MyDrive" / "attention"
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(drive))
    assert "No such file or directory" in keep(task("answer"))
    found, sentence = kept([task("answer")])
    assert found == set() and "MyDrive`: No such file or directory)." in sentence
    assert [*folder.iterdir()] == []
    drive.parent.mkdir(parents=True)
    assert keep(task("answer")) == ""
    assert (drive / "answer.txt").is_file()


def test_a_student_in_colab_is_told_once_that_marks_vanish(
    folder, made_up, monkeypatch
):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert keep(task("on_the_drive")) == ""
    at_home(monkeypatch, folder)
    assert "mount your Drive" in check(lambda: 1, "answer").note
    assert keep(task("another")) == ""
    assert names("another") == {"another"}  # for as long as the runtime lasts


# --- places ------------------------------------------------------------------------


def at_home(monkeypatch, home):
    """Name no folder, and do as if no test was running."""
    for name in ("TUTORIAL_PROGRESS", "PYTEST_VERSION", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda name: "local")


@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        (unix.Unix, {}, "/home/.local/share"),
        (unix.Unix, {"XDG_DATA_HOME": "/data"}, "/data"),
        (macos.MacOS, {}, "/home/Library/Application Support"),
        (windows.Windows, {}, "local"),
        (unix.Unix, {"TUTORIAL_PROGRESS": ""}, "/home/.local/share"),
    ],
)
def test_the_marks_lie_with_the_user_s_data(monkeypatch, system, environment, expected):
    at_home(monkeypatch, "/home")
    for name, folder in environment.items():
        monkeypatch.setenv(name, folder)
    monkeypatch.setattr("platformdirs.PlatformDirs", system)
    assert marks._folder() == Path(expected, "tutorial_lib")


def test_a_named_folder_may_begin_with_the_home(monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", "~/marks")
    assert marks._folder() == Path.home() / "marks"


def test_the_first_mark_makes_the_folder(folder, monkeypatch):
    at_home(monkeypatch, folder)
    assert keep(task("answer")) == ""
    assert names("answer") == {"answer"}


def test_somebody_without_a_home_can_still_check(folder, made_up, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", "~nobody-here/marks")
    assert "(Could not determine home directory):" in check(lambda: 1, "answer").note
    assert "Earlier marks cannot be read" in repr(progress(98))


# --- what is stored and tested -----------------------------------------------------


def test_whoever_tests_the_book_keeps_nothing(folder, monkeypatch):
    assert os.environ["PYTEST_VERSION"]
    monkeypatch.setenv("HOME", str(folder))
    for value in ("off", ""):
        monkeypatch.setenv("TUTORIAL_PROGRESS", value)
        assert keep(task("answer")) == ""
        assert kept([task("answer")]) == (set(), "")
    assert [*folder.iterdir()] == []


def test_the_tests_themselves_begin_with_nothing_kept():
    assert os.environ["TUTORIAL_PROGRESS"] == "off"


def test_notebooks_that_are_run_or_graded_keep_nothing():
    assert ENVIRONMENT["TUTORIAL_PROGRESS"] == "off"


SESSION = """\
from tutorial_exercises import check, progress
print(progress())
check(15, "1.4")
check(..., "1.1")
print(progress())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the place is that of Linux")
def test_a_session_knows_the_one_before_and_the_one_after_knows_it(folder, monkeypatch):
    place = folder / "tutorial_lib"
    place.mkdir()
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(place))
    assert check(2.1972, "1.1").passed
    monkeypatch.delenv("TUTORIAL_PROGRESS")
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))

    command = [sys.executable, "-c", SESSION]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert ran.stdout.startswith("☑️ Passed earlier: Exercise 1.1")
    assert "Chapter 1: 1 of 5 exercises passed, 1 of them earlier" in ran.stdout
    assert "Chapter 1: 2 of 5 exercises passed, 1 of them earlier" in ran.stdout
    assert [line[0] for line in repr(progress(1)).splitlines()[:4]] == [*"✅⬜⬜☑"]
