"""Whatever a submission starts ends with it, and reaches nobody else meanwhile."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tools.classroom.process import GUARD

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

# The guard as a module: to ask whether it may be alone, and to say that it may not.
PYTHON = [*GUARD[:-1], "-c"]
MODULE = (
    f"import sys; sys.path.insert(0, {str(Path(GUARD[-1]).parent)!r}); import guard"
)
ASK = [*PYTHON, f"{MODULE}; sys.exit(not (guard.LINUX and guard._may_be_alone()))"]
BESIDE = "guard._may_be_alone = lambda: False; guard.main(*sys.argv[1:])"
BESIDE = [*PYTHON, f"{MODULE}; {BESIDE}"]
NOBODY = 65534
LONG = 60  # seconds, before something that never ends has failed

ORPHANS = """
    import os, time
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            os.fork()
            print("begun", flush=True)
            time.sleep(600)
    """


@pytest.fixture
def alone():
    """Return the guard as it is, where the system lets it be alone."""
    if subprocess.run(ASK).returncode:
        pytest.skip("needs Linux 5.12 that allows user namespaces")
    return GUARD


@pytest.fixture(params=["alone", "beside"])
def guard(request):
    """Return the guard as it is, and as it is where it may not be alone."""
    return BESIDE if request.param == "beside" else request.getfixturevalue("alone")


@pytest.fixture
def folder():
    """Make an empty folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def start(folder):
    """Return a function that starts a program under a guard, in an empty folder."""
    with contextlib.ExitStack() as stack:

        def begin(guard, program, *, gigabytes=1, python=sys.executable, **options):
            reading, writing = os.pipe()
            os.write(writing, b"the job\n")
            process = subprocess.Popen(
                [*guard, str(gigabytes), python, "-c", textwrap.dedent(program)],
                cwd=folder,
                stdin=reading,
                stdout=subprocess.PIPE,
                text=True,
                **options,
            )
            os.close(reading)
            stack.callback(process.wait, LONG)
            stack.callback(os.close, writing)  # first: the guard ends by it
            return process

        yield begin


def printed(process):
    """Return what is printed until nobody is left who could print."""
    return process.communicate(timeout=LONG)[0]


def test_a_command_reads_its_job_and_ends_as_it_would_by_itself(guard, start):
    process = start(guard, "import sys; print(input()); sys.exit(3)")
    assert printed(process) == "the job\n"
    assert process.returncode == 3
    process = start(guard, "import os; os.kill(os.getpid(), 9)")
    assert printed(process) == ""
    assert process.returncode == 256 - 9


@on_linux
def test_what_left_the_process_group_ends_with_the_command(guard, start):
    assert printed(start(guard, ORPHANS + "time.sleep(0.5)")).count("begun") <= 6


def test_what_is_in_the_process_group_ends_with_the_command(guard, start):
    program = "import os, time\nif os.fork() == 0: time.sleep(600)"
    assert printed(start(guard, program)) == ""


@on_linux
def test_all_ends_when_the_report_is_killed(guard, tmp_path):
    program = textwrap.dedent(ORPHANS + "time.sleep(600)")
    report = f"""
        import subprocess, sys, time
        guard = {[*guard, "1", sys.executable, "-c", program]!r}
        guard = subprocess.Popen(guard, stdin=subprocess.PIPE)
        guard.stdin.write(b"job\\n")
        guard.stdin.flush()
        time.sleep(600)
        """
    command = [sys.executable, "-c", textwrap.dedent(report)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("begun")  # perhaps of two at once
    process.kill()
    printed(process)


def test_who_ends_what_started_it_ends_itself_at_most(guard, start):
    program = "import os; os.kill(os.getppid(), 9); print('still here', flush=True)"
    process = start(guard, program)
    printed(process)
    assert process.returncode in (0, 256 - 9)


@on_linux
def test_a_command_ends_with_the_guard_that_it_ended(start):
    program = """
        import os, time
        with open(f"/proc/{os.getppid()}/stat") as file:
            guard = int(file.read().split()[3])
        os.kill(guard, 9)
        time.sleep(600)
        """
    assert printed(start(BESIDE, program)) == ""


def test_alone_a_command_sees_no_process_no_network_and_cannot_write(
    alone, start, folder, tmp_path
):
    program = f"""
        import json, os, socket
        found = [os.listdir("."), os.getpid(), os.getppid()]
        def attempt(reach, *arguments):
            try:
                found.append(str(reach(*arguments)))
            except OSError as error:
                found.append(type(error).__name__ + " " + error.strerror)
        attempt(open, {str(tmp_path / "theirs")!r}, "w")
        attempt(os.kill, {os.getpid()}, 0)
        attempt(open, "/proc/{os.getpid()}/mem", "r+")
        attempt(socket.create_connection, ("127.0.0.1", 9), 1)
        attempt(os.kill, os.getppid(), 9)
        open("mine", "w").write("x")
        open("/dev/shm/mine", "w").write("x")
        print(json.dumps(found))
        """
    ours = json.loads(printed(start(alone, program)))
    assert ours == [[], 2, 1, *ours[3:]]
    theirs, other, memory, network, init = ours[3:]
    assert theirs == "OSError Read-only file system"
    assert other == "ProcessLookupError No such process"
    assert memory != "None"
    assert "Error" in memory
    assert network == "OSError Network is unreachable"
    assert init == "None"
    assert [*folder.iterdir()] == []
    assert not (tmp_path / "theirs").exists()


@on_linux
def test_a_process_has_no_more_memory_than_it_may(guard, start):
    program = """
        try:
            bytearray(2**30)
        except MemoryError:
            print("no")
        """
    assert printed(start(guard, program, gigabytes=0.5)) == "no\n"
    assert printed(start(guard, program, gigabytes=1.5)) == ""


@on_linux
def test_who_is_not_root_has_no_more_processes_than_a_few_hundred(guard, start):
    program = """
        import os, time
        try:
            for _ in range(20_000):
                if os.fork() == 0:
                    time.sleep(600)
        except BlockingIOError:
            print("no")
        """
    if os.getuid():
        assert printed(start(guard, program)) == "no\n"
        return
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    python = shutil.which("python3", path="/usr/bin:/bin") or "python3"
    look = [python, "-c", f"open({GUARD[-1]!r})"]
    if subprocess.run(look, **nobody).returncode:
        pytest.skip("needs a Python, and a book, that others than root may read")
    process = start([python, *guard[1:]], program, python=python, **nobody)
    assert printed(process) == "no\n"
