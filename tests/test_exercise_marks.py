"""What passed is known in the next session, whatever becomes of the file."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch
from made_up import called_with, exercise
from tutorial_lib.exercises.checking import CHECKED
from tutorial_lib.exercises.keeping import keep, kept

from tutorial_lib.exercises import check, keeping, locking, progress
from tutorial_lib.tools.classroom import process
from tutorial_lib.tools.execute import QUIET

ROOT = Path(__file__).parents[1]
ABOUT = keeping.ABOUT


def task(name, title="Made up", number="98.1"):
    return types.SimpleNamespace(name=name, title=title, number=number)


def names(*wanted):
    """Return which of these exercises the file marks."""
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
    keeping.SAID.clear()


def written(folder):
    return json.loads((folder / "progress.json").read_text(encoding="utf-8"))


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


def test_without_the_file_only_the_marks_are_gone(folder, made_up):
    check(lambda: 1, "answer")
    (folder / "progress.json").unlink()
    assert shown("98.1")[0].startswith("✅")  # this session still knows
    new_session()
    assert shown("98.1")[0].startswith("⬜")
    assert repr(
        check(lambda: 1, "answer")
    ) == "✅ Passed: Exercise 98.1 · Made up\n" + ("   ✓ is right")


def test_nothing_random_depends_on_the_file(folder, made_up):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    check(lambda: 1, "answer")
    assert torch.rand(1) == expected


# --- the file ----------------------------------------------------------------------


def test_the_file_can_be_read_by_anyone(folder):
    keep(task("answer", "Größe √d", "98.7"))
    text = (folder / "progress.json").read_bytes().decode("utf-8")
    assert '"title": "Größe √d"' in text
    mark = written(folder)["passed"]["answer"]
    assert time.strptime(mark.pop("on"), "%Y-%m-%d")
    assert mark == {"number": "98.7", "title": "Größe √d"}
    assert written(folder)["about"] == ABOUT


def test_a_mark_belongs_to_an_exercise_and_not_to_its_name_alone(folder):
    keep(task("answer", "Shares"))
    assert kept([task("answer", "Shares", number="98.4")])[0] == {"answer"}
    assert kept([task("answer", "Averages")])[0] == set()
    assert kept([task("other", "Shares")])[0] == set()


def test_what_is_marked_is_not_written_again(folder):
    keep(task("answer"))
    before = (folder / "progress.json").stat()
    keep(task("answer"))
    after = (folder / "progress.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_marks_and_words_of_others_stay(folder):
    theirs = {"passed": {"from_a_fork": {"title": "Other"}, "odd": 3}, "mine": "note"}
    (folder / "progress.json").write_text(json.dumps(theirs), encoding="utf-8-sig")
    assert keep(task("answer")) == ""
    found = written(folder)
    assert found["mine"] == "note"
    assert list(found["passed"]) == ["from_a_fork", "odd", "answer"]
    assert names("odd", "answer") == {"answer"}


def keep_many(start, letter):
    start.wait()
    for number in range(8):
        keep(task(f"{letter}{number}"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_notebooks_at_once_lose_nothing(folder):
    system = multiprocessing.get_context("fork")
    start = system.Event()
    writers = [system.Process(target=keep_many, args=(start, w)) for w in "abcde"]
    for writer in writers:
        writer.start()
    start.set()
    for writer in writers:
        writer.join(60)
    assert len(written(folder)["passed"]) == 5 * 8


def test_threads_at_once_lose_nothing(folder):
    start = threading.Event()
    writers = [threading.Thread(target=keep_many, args=(start, w)) for w in "abc"]
    for writer in writers:
        writer.start()
    start.set()
    for writer in writers:
        writer.join(60)
    assert len(written(folder)["passed"]) == 3 * 8


def test_a_reader_never_sees_half_a_file(folder, monkeypatch):
    keep(task("first"))
    seen, replace = [], os.replace

    def watched(old, new):
        seen.append(names("first", "second"))
        replace(old, new)

    monkeypatch.setattr(keeping.os, "replace", watched)
    keep(task("second"))
    assert seen == [{"first"}]  # until the new file is whole, the old one stands
    assert names("first", "second") == {"first", "second"}


def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(
    folder, monkeypatch
):
    keep(task("first"))

    def full(number):
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(keeping.os, "fsync", full)
    assert "No space left on device" in keep(task("second"))
    assert names("first", "second") == {"first"}
    assert {path.name for path in folder.iterdir()} == {
        "progress.json",
        "progress.lock",
    }


def test_whoever_holds_the_lock_is_waited_for_but_not_for_ever(folder, monkeypatch):
    with locking.alone(folder / "progress.lock"):
        monkeypatch.setattr(locking, "PATIENCE", 0.1)
        start = time.monotonic()
        assert keep(task("answer")) == ""
        assert 0.1 <= time.monotonic() - start < 2
    assert names("answer") == {"answer"}


def test_a_folder_that_knows_no_locks_will_do(folder, monkeypatch):
    def unknown(file, wanted=True):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locking, "_lock", unknown)
    start = time.monotonic()
    assert keep(task("answer")) == ""
    assert time.monotonic() - start < 1
    assert names("answer") == {"answer"}


# --- trouble -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"3", b'{"passed": []}', b"[" * 100_000],
    ids=["empty", "half", "not-utf-8", "list", "number", "no-marks", "deep"],
)
def test_a_damaged_file_is_named_once_and_set_aside(folder, made_up, content):
    (folder / "progress.json").write_bytes(content)
    card = repr(progress(98))
    assert card.startswith("⬜") and card.count("is damaged") == 1
    assert str(folder) in card

    result = check(lambda: 1, "answer")
    assert result.passed
    assert "was damaged: it is now `progress.damaged.json`" in result.note
    assert result.note in repr(result)
    assert (folder / "progress.damaged.json").read_bytes() == content
    assert kept([made_up]) == ({"answer"}, "")


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
    assert [*folder.iterdir()] == []
    drive.parent.mkdir(parents=True)
    assert keep(task("answer")) == ""
    assert (drive / "progress.json").is_file()


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
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path(home))


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.local/share"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data"),
        ("linux", {"XDG_DATA_HOME": "data"}, "home/.local/share"),
        ("darwin", {}, "home/Library/Application Support"),
        ("win32", {}, "home/AppData/Local"),
        ("win32", {"LOCALAPPDATA": "local"}, "local"),
        ("linux", {"TUTORIAL_PROGRESS": ""}, "home/.local/share"),
    ],
)
def test_the_file_lies_with_the_user_s_data(
    monkeypatch, platform, environment, expected
):
    at_home(monkeypatch, "home")
    for name, folder in environment.items():
        monkeypatch.setenv(name, folder)
    monkeypatch.setattr(sys, "platform", platform)
    assert keeping._place() == Path(expected, "tutorial_lib", "progress.json")


def test_a_named_folder_may_begin_with_the_home(monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", "~/marks")
    assert keeping._place() == Path.home() / "marks" / "progress.json"


def test_the_first_mark_makes_the_folder(folder, monkeypatch):
    at_home(monkeypatch, folder)
    assert keep(task("answer")) == ""
    assert names("answer") == {"answer"}


def test_somebody_without_a_home_can_still_check(folder, made_up, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    at_home(monkeypatch, folder)
    monkeypatch.setattr(Path, "home", nowhere)
    assert "(Could not determine home directory):" in check(lambda: 1, "answer").note
    assert "Earlier marks cannot be read" in repr(progress(98))


# --- what is stored and tested -----------------------------------------------------


def test_whoever_tests_the_book_keeps_nothing(folder, monkeypatch):
    assert os.environ["PYTEST_VERSION"]
    monkeypatch.setattr(Path, "home", lambda: folder)
    for value in ("off", ""):
        monkeypatch.setenv("TUTORIAL_PROGRESS", value)
        assert keep(task("answer")) == ""
        assert kept([task("answer")]) == (set(), "")
    assert [*folder.iterdir()] == []


def test_the_tests_themselves_begin_with_nothing_kept():
    assert os.environ["TUTORIAL_PROGRESS"] == "off"


def test_notebooks_that_are_run_or_graded_keep_nothing():
    assert QUIET["TUTORIAL_PROGRESS"] == "off"
    assert process.SET["TUTORIAL_PROGRESS"] == "off"
    assert "\nexport TUTORIAL_PROGRESS = off\n" in (ROOT / "Makefile").read_text()


SESSION = """\
from tutorial_lib.exercises import check, progress
print(progress())
check([200.0, 0.0, 0.0], "1.4")
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
    assert "Chapter 1: 1 of 4 exercises passed, 1 of them earlier" in ran.stdout
    assert "Chapter 1: 2 of 4 exercises passed, 1 of them earlier" in ran.stdout
    assert [line[0] for line in repr(progress(1)).splitlines()[:4]] == [*"✅⬜⬜☑"]
