"""Downloads from a server of our own, which breaks off, refuses and lies on request."""

import gzip
import hashlib
import http.server
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tutorial_lib.data import downloads
from tutorial_lib.data.downloads import (
    DataError,
    cache_folder,
    fetch,
    read_lines,
    read_shakespeare,
)

CONTENT = bytes(range(256)) * 2_000  # 512,000 bytes: several chunks
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve CONTENT as its server says: with its status, and ``break_after`` bytes."""

    def do_GET(self):
        server = self.server
        server.asked += 1
        server.meeting.wait(300)
        if server.status != 200:
            self.send_error(server.status)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(server.content)))
            self.end_headers()
            self.wfile.write(server.content[: server.break_after])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.status = 0, 200
        server.meeting = threading.Barrier(1)  # how many ask before one is answered
        server.content, server.break_after = CONTENT, None
        server.address = f"http://127.0.0.1:{server.server_port}/pairs.bin?raw=1"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


class Bar:
    """A progress bar as pooch needs it, which keeps its counts."""

    total, count = 1, 0

    def __call__(self, total, *, unit):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def set_description(self, name, *, refresh):
        self.name = name

    def update(self, count):
        self.count += count

    def reset(self):
        self.counted, self.count = self.count, 0

    def close(self):
        self.closed = True


@pytest.fixture
def bar(monkeypatch):
    """Replace the progress bar by one that keeps its counts."""
    bar = Bar()
    monkeypatch.setattr(downloads, "progress_bar", bar)
    return bar


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def refuse(server, folder, *, checksum=CHECKSUM):
    """Fetch what cannot be had, and return the one line that says so."""
    with pytest.raises(DataError) as caught:
        fetch(server.address, checksum, folder=folder)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("pairs.bin could not be downloaded: ")
    assert f"download {server.address} yourself" in message
    assert f"save it as {folder / 'pairs.bin'}" in message
    return message


def test_a_file_is_fetched_once(server, tmp_path):
    path = fetch(server.address, CHECKSUM, folder=tmp_path / "new")
    assert path == tmp_path / "new" / "pairs.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(server.address, CHECKSUM, folder=tmp_path / "new") == path
    assert server.asked == 1
    assert names(path.parent) == ["pairs.bin"]


def test_two_processes_may_fetch_a_file_at_once(server, tmp_path):
    server.meeting = threading.Barrier(2)
    code = "import sys; from tutorial_lib.data.downloads import fetch\n"
    code += "fetch(*sys.argv[1:3], folder=sys.argv[3])"
    command = [sys.executable, "-c", code, server.address, CHECKSUM, tmp_path / "new"]
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert server.asked == 2
    assert names(tmp_path / "new") == ["pairs.bin"]
    assert (tmp_path / "new" / "pairs.bin").read_bytes() == CONTENT


def test_the_bar_counts_every_byte(server, tmp_path, bar):
    fetch(server.address, CHECKSUM, folder=tmp_path)
    assert (bar.name, bar.total, bar.counted) == ("pairs.bin", 512_000, 512_000)
    assert bar.closed


def test_a_broken_download_leaves_nothing_behind(server, tmp_path):
    server.break_after = 200_000
    message = refuse(server, tmp_path)
    assert f"the connection to 127.0.0.1:{server.server_port} failed" in message
    assert names(tmp_path) == []
    server.break_after = None
    assert fetch(server.address, CHECKSUM, folder=tmp_path).read_bytes() == CONTENT


def test_an_interruption_by_hand_leaves_nothing_behind(server, tmp_path, bar):
    def interrupt(count):
        assert len(names(tmp_path)) == 1  # pooch's own, under another name
        assert names(tmp_path) != ["pairs.bin"]
        raise KeyboardInterrupt

    bar.update = interrupt
    with pytest.raises(KeyboardInterrupt):
        fetch(server.address, CHECKSUM, folder=tmp_path)
    assert names(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    server.content = CONTENT[::-1]
    message = refuse(server, tmp_path)
    assert f"not have the checksum {CHECKSUM} and was deleted" in message
    assert names(tmp_path) == []


def test_a_good_file_takes_the_place_of_a_bad_one(server, tmp_path):
    (tmp_path / "pairs.bin").write_bytes(b"saved by hand, and wrong")
    assert fetch(server.address, CHECKSUM, folder=tmp_path).read_bytes() == CONTENT


def test_a_bad_file_saved_by_hand_is_spoken_of(server, tmp_path):
    (tmp_path / "pairs.bin").write_bytes(b"saved by hand, and wrong")
    server.status = 404
    assert "what lies there now has another checksum" in refuse(server, tmp_path)


def test_other_checksums_say_their_kind(server, tmp_path):
    checksum = f"sha1:{hashlib.sha1(CONTENT).hexdigest()}"
    assert fetch(server.address, checksum, folder=tmp_path).read_bytes() == CONTENT
    (tmp_path / "pairs.bin").unlink()
    refuse(server, tmp_path, checksum=f"sha1:{'0' * 40}")


def test_a_file_that_is_gone_is_named_with_the_answer(server, tmp_path):
    server.status = 404
    message = refuse(server, tmp_path)
    assert "answered 404 Not Found" in message
    assert "what lies there now" not in message
    assert names(tmp_path) == []


def test_offline_says_who_was_asked_and_the_way_out(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server.address = f"http://127.0.0.1:{port}/pairs.bin"
    assert f"the connection to 127.0.0.1:{port} failed" in refuse(server, tmp_path)
    assert names(tmp_path) == []


def test_a_silent_server_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        server.address = f"http://127.0.0.1:{port}/pairs.bin"
        message = refuse(server, tmp_path)
    assert f"the connection to 127.0.0.1:{port} failed (ReadTimeout)" in message


def test_a_folder_that_cannot_be_made_is_spoken_of(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "file" in refuse(server, tmp_path / "file" / "folder")


def test_the_cache_folder_is_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("TUTORIAL_DATA")
    assert cache_folder().name == "tutorial_lib"


LINES = ["Go.\tVa\u202f!", "", "One\u2028line\x0b.\tÉté."]
TEXT = "\n".join(LINES).encode()


def save(path, text):
    """Write text as the kind of file that the name says."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("pairs/_about.txt", "About")
            archive.writestr("pairs/fra.txt", text)
    else:
        path.write_bytes(text)
    return path


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("name", ["fra.txt", "fra.gz", "fra.zip"])
def test_lines_end_at_newlines_only(tmp_path, name, end):
    path = save(tmp_path / name, TEXT + end)
    assert read_lines(path, "http://there", member="fra.txt") == LINES


def test_line_ends_of_windows_are_no_part_of_a_line(tmp_path):
    path = save(tmp_path / "fra.txt", TEXT.replace(b"\n", b"\r\n"))
    assert read_lines(path, "http://there") == LINES


@pytest.mark.parametrize("name", ["fra.txt", "fra.gz", "fra.zip"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path, name):
    path = save(tmp_path / name, b"\xef\xbb\xbf" + TEXT)
    assert read_lines(path, "http://there", member="fra.txt") == LINES


def spoiled(path):
    """Read a spoiled file, and return the one line that says what is wrong."""
    with pytest.raises(DataError) as caught:
        read_lines(path, "http://there/it", member="fra.txt")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path} cannot be read: ")
    assert "Download http://there/it (again) and save it there" in message
    return message


@pytest.mark.parametrize("name", ["fra.gz", "fra.zip"])
def test_a_truncated_file_is_named_with_the_way_out(tmp_path, name):
    path = save(tmp_path / name, TEXT * 100)
    path.write_bytes(path.read_bytes()[:-30])
    spoiled(path)


@pytest.mark.parametrize("name", ["fra.gz", "fra.zip"])
def test_a_page_in_place_of_a_file_is_named_with_the_way_out(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"<html>Please log in</html>")
    spoiled(path)


def test_a_flipped_byte_is_noticed(tmp_path):
    path = save(tmp_path / "fra.gz", TEXT * 100)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    spoiled(path)


@pytest.mark.parametrize(
    ("flag", "method", "reason"),
    [(1, 0, "is encrypted"), (0, 99, "compression method"), (32, 0, "patched data")],
)
def test_a_zip_that_cannot_be_unpacked_is_named(tmp_path, flag, method, reason):
    path = save(tmp_path / "fra.zip", TEXT)
    content = bytearray(path.read_bytes())
    # Where the header of a member, and its entry in the directory, have the two.
    for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place += content.rindex(start)  # the last member is fra.txt
        content[place : place + 4] = bytes([flag, 0, method, 0])
    path.write_bytes(content)
    assert reason in spoiled(path)


def test_a_zip_whose_packing_is_damaged_is_named(tmp_path):
    path = tmp_path / "fra.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("fra.txt", TEXT * 100)
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)
    spoiled(path)


def test_another_encoding_is_named_with_its_line(tmp_path):
    path = save(tmp_path / "fra.txt", "Go.\tVa !\nSummer.\tÉté.".encode("latin-1"))
    assert "line 2 is not UTF-8" in spoiled(path)


def test_a_missing_file_and_a_missing_member_are_named(tmp_path):
    assert "there is no such file" in spoiled(tmp_path / "fra.txt")
    with zipfile.ZipFile(tmp_path / "fra.zip", "w") as archive:
        archive.writestr("deu.txt", TEXT)
    assert "fra.txt" in spoiled(tmp_path / "fra.zip")


SHAKESPEARE = Path(__file__).parents[2] / "shared" / "data" / "shakespeare"


def test_a_play_is_read_as_it_stands(tmp_path):
    (tmp_path / "input.txt").write_bytes(b"First Citizen:\nSpeak.\n\nAll:\n")
    assert read_shakespeare(folder=tmp_path) == "First Citizen:\nSpeak.\n\nAll:\n"
    (tmp_path / "input.txt").unlink()
    with pytest.raises(DataError, match=r"no such file.*Download .*char-rnn"):
        read_shakespeare(folder=tmp_path)


@pytest.mark.skipif(not SHAKESPEARE.is_dir(), reason="there is no copy of Shakespeare")
def test_shakespeare_has_the_checksum_and_the_size_that_are_told():
    text = read_shakespeare(folder=SHAKESPEARE)
    assert (len(text), len({*text})) == (1_115_394, 65)
    assert hashlib.sha256(text.encode()).hexdigest() == downloads.SHAKESPEARE[1]
