"""Stand between the report and one grader, so that all that it starts ends with it.

A program for POSIX systems. It runs the command that it is given, on the first line of
the standard input, until the command ends, or the standard input does: then the report
wants no more of it, or is no more.

Where Linux allows it, the command sees no other process, no network, and files that it
can read and not write, but for an empty folder in memory; the kernel ends what is in
there with the first process. Elsewhere what left the process group is found on Linux,
as long as nobody ends this program, and is not on macOS.
"""

import contextlib
import ctypes
import glob
import os
import resource
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path

LINUX = sys.platform == "linux"
LIBC = ctypes.CDLL(None)
# From the kernel's headers: mounts, shared memory, users, processes, network.
ALONE = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
NOBODY = 65534
PROCESSES = 500  # and threads, beyond those that there are


def main(gigabytes, *command):
    """Run a command whose processes have so much memory each, and exit as it does."""
    job = sys.stdin.buffer.readline()
    _limit(float(gigabytes))
    if LINUX:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
        if _may_be_alone():
            _be_alone()
    ended, alive = os.pipe()  # whose other end is closed when the child ends
    child = os.fork()
    if child == 0:
        _run(command, job)
    os.close(alive)
    select.select([sys.stdin, ended], [], [])
    sys.exit(_end(child))


def _limit(gigabytes):
    limits = {"CORE": 0, "FSIZE": 100_000_000}  # bytes
    limits["DATA"] = int(min(gigabytes * 2**30, sys.maxsize))
    if LINUX:
        limits["NPROC"] = PROCESSES + len(glob.glob("/proc/[0-9]*/task/*"))
    for name, most in limits.items():
        limit = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(limit)[1]
        most = hard if 0 <= hard < most else most
        resource.setrlimit(limit, (most, most))


def _may_be_alone():
    """Try it in a process of its own, since nobody wants to be half alone."""
    trial = os.fork()
    if trial == 0:
        with contextlib.suppress(OSError):
            _be_alone()
            os._exit(0)
        os._exit(1)
    return os.waitpid(trial, 0)[1] == 0


def _be_alone():
    """Leave the rest of the machine behind. Raises OSError."""
    user, group, folder = os.getuid(), os.getgid(), os.getcwd()
    _check(LIBC.unshare(ALONE))
    # Who is not root in here has no right, after exec, to undo what follows.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user or NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group or NOBODY} {group} 1")
    call, change = ctypes.c_long(SYS_MOUNT_SETATTR), (MOUNT_ATTR_RDONLY, 0, 0, 0)
    change, size = struct.pack("4Q", *change), ctypes.c_size_t(32)
    _check(LIBC.syscall(call, AT_FDCWD, b"/", AT_RECURSIVE, change, size))
    for place in (os.fsencode(folder), b"/dev/shm"):
        _check(LIBC.mount(b"tmpfs", place, b"tmpfs", 0, b"size=1g"))
    os.chdir(folder)


def _check(failed):
    if failed:
        raise OSError


def _run(command, job):
    """Run a command in a process group of its own: as the first process, if alone."""
    code = 127
    try:
        os.setsid()
        _end_with_parent()
        ran = subprocess.run(command, input=job, preexec_fn=_end_with_parent)
        code = ran.returncode
    finally:
        os._exit(code % 256)


def _end_with_parent():
    if LINUX:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(child):
    """End a process and all that came of it; return how it had ended."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    while orphans := _children():
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)
    return code % 256


def _children():
    """Return the processes that Linux handed to this one when theirs ended."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [*map(int, path.read_text().split())] if path.exists() else []


if __name__ == "__main__":
    main(*sys.argv[1:])
