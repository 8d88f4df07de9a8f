"""What passed is known in the next session, whatever becomes of the file."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from made_up import exercise

from tools.notebooks import ENVIRONMENT
from tools.sync import COLAB
from tutorial_exercises import check, progress
from tutorial_exercises.check import CHECKED
from tutorial_exercises.marks import kept

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep the marks in an empty folder."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path))
    return tmp_path


@pytest.fixture
def task():
    with exercise(lambda x: x) as task:
        task.cases(lambda: [("is right", 1)])
        yield task


def shown():
    """Return what progress says of the made-up exercise in a new session."""
    CHECKED.pop("98.1", None)
    return repr(progress(98))


def test_the_next_session_shows_what_passed_in_an_earlier_one(folder, task):
    assert "· Exercise 98.1" in shown()
    check(lambda x: 0, "98.1")
    assert "· Exercise 98.1" in shown()
    check(lambda x: x, "98.1")
    assert "✓ Exercise 98.1" in shown() and "1 of 1 exercises passed" in shown()
    check(lambda x: 0, "98.1")
    assert "✗ Exercise 98.1" in repr(progress(98))
    assert "· Exercise 98.1" in shown() and "0 of 1 exercises passed" in shown()

    def untouched(x): ...

    check(lambda x: x, "98.1")
    assert check(untouched, "98.1").status == "open"
    assert "✓ Exercise 98.1" in shown()


def test_marks_of_others_stay_and_a_heading_that_changed_does_not_count(folder, task):
    (folder / "marks.json").write_text('{"1.1": "Exercise 1.1 · Here", "98.1": "Old"}')
    assert "· Exercise 98.1" in shown()
    check(lambda x: x, "98.1")
    marks = json.loads((folder / "marks.json").read_text("utf-8"))
    assert marks == {"1.1": "Exercise 1.1 · Here", "98.1": task.heading}
    assert [path.name for path in folder.iterdir()] == ["marks.json"]


def test_a_damaged_file_costs_one_sentence_and_is_mended(folder, task):
    for content in ("{", "[]"):
        (folder / "marks.json").write_text(content)
        assert "Earlier marks cannot be read" in shown()
        assert "cannot be read" in check(lambda x: x, "98.1").note
        assert "✓" in shown()
        assert (folder / "marks.unreadable").read_text() == content


def test_a_file_that_an_editor_has_saved_keeps_its_marks(folder, task):
    marks = json.dumps({"1.1": "Exercise 1.1 · Here"})
    (folder / "marks.json").write_text(marks, encoding="utf-8-sig")
    assert not check(lambda x: x, "98.1").note
    assert "1.1" in kept()[0]


def test_without_a_home_folder_a_mark_lasts_for_the_session(task, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", "~nobody of this name/marks")
    card = check(lambda x: x, "98.1")
    assert card.passed and card.note.startswith("This mark lasts for this session")
    assert "✓ Exercise 98.1" in repr(progress(98))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root here")
def test_a_place_that_cannot_be_written_costs_one_sentence(folder, task, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(folder / "drive" / "not mounted"))
    card = check(lambda x: x, "98.1")
    assert card.passed and card.note.startswith("This mark lasts for this session")
    assert not (folder / "drive").exists()
    if os.geteuid():
        folder.chmod(stat.S_IRUSR)
        monkeypatch.setenv("TUTORIAL_PROGRESS", str(folder))
        assert "This mark lasts" in check(lambda x: x, "98.1").note


def test_a_student_in_colab_is_told_that_marks_vanish(tmp_path, task, monkeypatch):
    monkeypatch.delenv("TUTORIAL_PROGRESS", raising=False)
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "google.colab", None)
    assert "`keep_marks_on_drive`" in check(lambda x: x, "98.1").note
    assert "\nkeep_marks_on_drive = False" in COLAB
    assert (tmp_path / "tutorial_lib" / "marks.json").is_file()


def test_whoever_tests_or_grades_the_book_keeps_nothing(task, monkeypatch):
    monkeypatch.delenv("TUTORIAL_PROGRESS", raising=False)
    assert kept() == ({}, "") and check(lambda x: x, "98.1").note == ""
    assert ENVIRONMENT["TUTORIAL_PROGRESS"] == "off"
