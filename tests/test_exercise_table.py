"""The report as a table: nobody is lost, whatever was handed in and however it ends."""

import csv
import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tools.__main__ import main
from tools.classroom import report
from tools.classroom.process import Outcome

ROOT = Path(__file__).parents[1]
LIMITS = {"seconds": 90, "gigabytes": 1}
FEW = 10  # seconds, before what another thread should have done is a failure


def passed(remark=""):
    return Outcome(1, {"1.1": ("passed", remark)})


def hand_in(folder, *names):
    """Write notebooks whose only cell is their name; return their paths."""
    paths = [folder / f"{name}.ipynb" for name in names]
    for path in paths:
        cell = {"cell_type": "code", "source": path.stem}
        path.write_text(json.dumps({"cells": [cell]}))
    return paths


@pytest.fixture
def graded_by(monkeypatch):
    """Return a function by which submissions are graded one by one by another.

    It is called with the name of each and with the event that says to stop.
    """
    monkeypatch.setattr(report, "PROCESSES", 1)

    def replace(grade):
        def by_name(root, cells, *, stop, **rules):
            return grade(cells[0].source, stop)

        monkeypatch.setattr(report, "grade", by_name)

    yield replace
    signal.signal(signal.SIGINT, signal.default_int_handler)


def rows(path):
    """Return {student: row} of a table."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = csv.DictReader(io.StringIO(text))
    return {row["student"]: row for row in found}


def test_the_table_has_a_row_for_each_student_and_a_column_for_each_exercise():
    outcomes = [
        ("eve", Outcome(problem="not a notebook")),
        ("bob", Outcome(10, {"10.1": ("open", "")})),
        ("ada", Outcome(2, {"2.10": ("failed", "no-scale"), "2.9": ("passed", "")})),
        ("=ada()", Outcome(2, {"2.9": ("failed", "error:\nodd")})),
    ]
    assert report.table(outcomes) == (
        "student,chapter,2.9,2.10,10.1,passed,remarks\n"
        "'=ada(),2,failed,,,0,2.9 error: odd\n"
        "ada,2,passed,failed,,1,2.10 no-scale\n"
        "bob,10,,,open,0,\n"
        "eve,,,,,,could not be graded: not a notebook\n"
    )


def test_students_are_named_by_their_files_and_by_their_folders_where_that_is_needed():
    paths = [Path("in/ada/ch03.ipynb"), Path("in/bob/ch03.ipynb")]
    assert report.students(paths) == ["ada/ch03", "bob/ch03"]
    assert report.students([Path("ada.ipynb"), Path("in/bob.ipynb")]) == ["ada", "bob"]


def test_files_folders_and_patterns_name_each_notebook_once(tmp_path, monkeypatch):
    for name in ("b.ipynb", "a.ipynb", "notes.txt", ".ipynb_checkpoints/a.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    both = [Path("a.ipynb"), Path("b.ipynb")]
    assert report.find_notebooks(["*.ipynb", "a.ipynb", "."]) == both
    with pytest.raises(ValueError, match="there is no c"):
        report.find_notebooks(["c.ipynb"])


def test_a_name_is_itself_before_it_is_a_pattern(tmp_path, monkeypatch):
    hand_in(tmp_path, "ada[1]", "ada1")
    monkeypatch.chdir(tmp_path)
    assert report.find_notebooks(["ada[1].ipynb"]) == [Path("ada[1].ipynb")]


def test_the_command_line_writes_the_table_in_order(tmp_path, monkeypatch, capsys):
    def judge(root, cells, **rules):
        return passed(f"{cells[0].source} {rules['seconds']}")

    monkeypatch.setattr(report, "grade", judge)
    monkeypatch.chdir(ROOT)
    files = hand_in(tmp_path, "c", "a", "b")
    out = tmp_path / "report.csv"
    arguments = ["exercises", "--report", *map(str, files), "--out", str(out)]
    assert main([*arguments, "--seconds", "5"]) == 0
    assert capsys.readouterr().out == f"3 submissions are in {out}.\n"
    remarks = [row["remarks"] for row in rows(out).values()]
    assert remarks == ["1.1 a 5.0", "1.1 b 5.0", "1.1 c 5.0"]
    assert {path.name for path in tmp_path.glob("*.csv*")} == {"report.csv"}
    assert main(arguments[:-2]) == 0
    assert capsys.readouterr().out == out.read_text().replace("5.0", "60")


@pytest.mark.parametrize("limit", ["seconds", "gigabytes"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_what_is_no_limit_is_refused_in_one_sentence(limit, value, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["exercises", "--report", "notebooks", f"--{limit}={value}"]) == 1
    sentence = f"--{limit} {value} is no finite number above 0\n"
    assert capsys.readouterr().err == sentence


def test_what_is_no_notebook_has_a_row_with_a_reason(tmp_path, graded_by):
    graded_by(lambda name, stop: passed())
    hand_in(tmp_path, "ada")
    (tmp_path / "empty.ipynb").touch()
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / "lost.ipynb").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.ipynb")
    out = tmp_path / "table.csv"
    for named in ([str(tmp_path)], [*map(str, tmp_path.glob("*.ipynb"))]):
        report.write_report(ROOT, named, out, **LIMITS)
        remarks = {name: row["remarks"] for name, row in rows(out).items()}
        start = "could not be graded: not a notebook: "
        assert remarks.pop("ada") == ""
        assert all(remark.startswith(start) for remark in remarks.values())
        reasons = {name: remark[len(start) :] for name, remark in remarks.items()}
        assert reasons["folder"] == "it is a folder"
        assert reasons["pipe"] == "it is a pipe or a device"
        assert reasons["lost"] == "FileNotFoundError: No such file or directory"
        assert len(reasons) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
def test_names_and_remarks_of_any_bytes_are_written_and_are_no_formulas(
    tmp_path, graded_by, capsysbinary
):
    graded_by(lambda name, stop: passed("caf\udce9 \x1b[31m"))
    hand_in(tmp_path, "\t=1", "\r=2", " =3", "=4", "+5", "-6", "@7", "＝8", "a\nb", "é")
    [latin] = hand_in(tmp_path, "x")
    latin.rename(os.fsdecode(os.fsencode(tmp_path) + b"/Ren\xe9.ipynb"))
    out = tmp_path / "table.csv"
    report.write_report(ROOT, [str(tmp_path)], out, **LIMITS)
    names = {r"\t=1", r"\r=2", "' =3", "'=4", "'+5", "'-6", "'@7", "'＝8", r"a\nb", "é"}
    assert rows(out).keys() == names | {r"Ren\udce9"}
    assert rows(out)["é"]["remarks"] == r"1.1 caf\udce9 \x1b[31m"
    capsysbinary.readouterr()
    report.write_report(ROOT, [str(tmp_path)], None, **LIMITS)
    assert capsysbinary.readouterr().out == out.read_bytes()


def test_all_are_read_before_the_first_is_run(tmp_path, graded_by):
    def delete_all(name, stop):
        for path in tmp_path.glob("*.ipynb"):
            path.write_text("{}")
        return passed(name)

    graded_by(delete_all)
    hand_in(tmp_path, "ada", "zoe")
    out = tmp_path / "table.csv"
    report.write_report(ROOT, [str(tmp_path)], out, **LIMITS)
    assert [row["1.1"] for row in rows(out).values()] == ["passed", "passed"]


def test_rows_are_kept_as_they_come_and_the_old_table_until_all_are_there(
    tmp_path, graded_by
):
    out, seen = tmp_path / "table.csv", []
    out.write_text("old")

    def look(name, stop):
        growing, deadline = tmp_path / "table.unfinished.csv", time.monotonic() + FEW
        while name == "2" and "1" not in rows(growing) and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append([out.read_text(), [*rows(growing)]])
        return passed()

    graded_by(look)
    hand_in(tmp_path, "1", "2")
    report.write_report(ROOT, [str(tmp_path)], out, **LIMITS)
    assert seen == [["old", []], ["old", ["1"]]]
    assert [*rows(out)] == ["1", "2"]
    assert not (tmp_path / "table.unfinished.csv").exists()


def test_a_fault_in_grading_one_loses_no_other(tmp_path, graded_by):
    def fail(name, stop):
        return passed() if name == "ada" else 1 / 0

    graded_by(fail)
    hand_in(tmp_path, "ada", "zoe")
    out = tmp_path / "table.csv"
    report.write_report(ROOT, [str(tmp_path)], out, **LIMITS)
    remarks = [row["remarks"] for row in rows(out).values()]
    assert remarks == ["", "could not be graded: division by zero"]


@pytest.mark.parametrize("times", [1, 2, 5])
def test_ctrl_c_however_often_keeps_what_was_graded(tmp_path, graded_by, times):
    def interrupt(name, stop):
        if name == "1":
            return passed()
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(FEW)
        return Outcome(problem="stopped by Ctrl-C")

    graded_by(interrupt)
    hand_in(tmp_path, "1", "2", "3")
    out = tmp_path / "table.csv"
    report.write_report(ROOT, [str(tmp_path)], out, **LIMITS)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # while the command ends
    remarks = [row["remarks"] for row in rows(out).values()]
    assert remarks == ["", *["could not be graded: stopped by Ctrl-C"] * 2]


def test_after_a_report_ctrl_c_means_what_it_did(tmp_path, graded_by):
    graded_by(lambda name, stop: passed())
    hand_in(tmp_path, "ada")
    report.write_report(ROOT, [str(tmp_path)], tmp_path / "table.csv", **LIMITS)
    with pytest.raises(ValueError, match="there is no nowhere"):
        report.write_report(ROOT, ["nowhere"], None, **LIMITS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_table_that_cannot_be_written_is_known_before_anything_is_graded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(report, "grade", lambda *_, **__: pytest.fail("graded"))
    (tmp_path / "folder.csv").mkdir()
    for name in ("ada.ipynb", "folder.csv", "nowhere/report.csv"):
        with pytest.raises(ValueError, match=r"not, choose another|cannot be written"):
            report.write_report(ROOT, [str(tmp_path)], tmp_path / name, **LIMITS)


def test_a_table_that_cannot_be_written_in_the_end_is_shown(
    tmp_path, graded_by, capsys
):
    def fill_the_place(name, stop):
        (tmp_path / "table.csv").mkdir()
        return passed()

    graded_by(fill_the_place)
    hand_in(tmp_path, "ada")
    with pytest.raises(ValueError, match=r"table.csv cannot be written \("):
        report.write_report(ROOT, [str(tmp_path)], tmp_path / "table.csv", **LIMITS)
    assert "ada,1,passed,1," in capsys.readouterr().out
