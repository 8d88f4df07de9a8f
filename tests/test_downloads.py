"""Downloads from a server of our own, which breaks off, refuses and lies on request."""

import hashlib
import http.server
import socket
import threading
import zipfile
from pathlib import Path

import pytest

from tutorial_lib.data import downloads
from tutorial_lib.data.downloads import (
    DataError,
    cache_folder,
    fetch,
    read_shakespeare,
    read_tatoeba,
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


def test_a_file_is_fetched_once_and_every_byte_counted(server, tmp_path, bar):
    path = fetch(server.address, CHECKSUM, folder=tmp_path / "new")
    assert path == tmp_path / "new" / "pairs.bin"
    assert path.read_bytes() == CONTENT
    assert (bar.name, bar.total, bar.counted) == ("pairs.bin", 512_000, 512_000)
    assert bar.closed
    assert fetch(server.address, CHECKSUM, folder=tmp_path / "new") == path
    assert server.asked == 1
    assert names(path.parent) == ["pairs.bin"]


def test_a_broken_download_leaves_nothing_behind(server, tmp_path):
    server.break_after = 200_000
    message = refuse(server, tmp_path)
    assert "connection" in message.lower()
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
    assert "does not match the known hash" in message and CHECKSUM in message
    assert len(message.splitlines()) == 1
    refuse(server, tmp_path, checksum=f"sha1:{'0' * 40}")
    assert names(tmp_path) == []
    checksum = f"sha1:{hashlib.sha1(server.content).hexdigest()}"
    assert fetch(server.address, checksum, folder=tmp_path).exists()


def test_a_bad_file_saved_by_hand_is_spoken_of_and_replaced(server, tmp_path):
    (tmp_path / "pairs.bin").write_bytes(b"saved by hand, and wrong")
    server.status = 404
    message = refuse(server, tmp_path)
    assert "404 Client Error" in message
    assert "what lies there now has another checksum" in message
    server.status = 200
    assert fetch(server.address, CHECKSUM, folder=tmp_path).read_bytes() == CONTENT


def test_offline_says_who_was_asked_and_the_way_out(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server.address = f"http://127.0.0.1:{port}/pairs.bin"
    message = refuse(server, tmp_path)
    assert "host='127.0.0.1', port=" in message and "refused" in message
    assert "what lies there now" not in message
    assert names(tmp_path) == []


def test_a_silent_server_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.downloaders.DEFAULT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        server.address = f"http://127.0.0.1:{port}/pairs.bin"
        message = refuse(server, tmp_path)
    assert "Read timed out" in message


def test_the_cache_folder_is_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("TUTORIAL_DATA")
    assert cache_folder().name == "tutorial_lib"


PLAY = ["First Citizen:", "", "One\u2028line\x0b.", "Été."]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("before", "newline"), [(b"", "\n"), (b"\xef\xbb\xbf", "\n"), (b"", "\r\n")]
)
def test_lines_end_at_newlines_only(tmp_path, before, newline, end):
    (tmp_path / "shakespeare").mkdir()
    content = before + (newline.join(PLAY) + end).encode()
    (tmp_path / "shakespeare" / "input.txt").write_bytes(content)
    assert read_shakespeare(folder=tmp_path) == "\n".join([*PLAY, ""])


@pytest.mark.parametrize("end", ["", "\r"])
def test_lines_of_an_old_mac_end_at_carriage_returns(tmp_path, end):
    (tmp_path / "shakespeare").mkdir()
    content = ("\r".join(PLAY) + end).encode()
    (tmp_path / "shakespeare" / "input.txt").write_bytes(content)
    assert read_shakespeare(folder=tmp_path) == "\n".join([*PLAY, ""])


ENGLISH, FRENCH, GERMAN = "I see the cat.", "Je vois le chat.", "Ich sehe die Katze."


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            (ENGLISH, GERMAN),
            "column 2 is not French: of 200 lines, 0 have one of its mo",
        ),
        ((FRENCH, ENGLISH), "column 1 is not English: of 200 lines"),
        (("1", "eng", ENGLISH), "column 1 is not English"),
        (("1", ENGLISH, "2", FRENCH), "line 1 has 4 columns, not 2 or 3"),
    ],
)
def test_columns_of_something_else_are_refused(tmp_path, columns, message):
    (tmp_path / "tatoeba").mkdir()
    path = tmp_path / "tatoeba/fra.txt"
    path.write_text(200 * ("\t".join(columns) + "\n"))
    with pytest.raises(DataError, match=message) as caught:
        read_tatoeba(folder=tmp_path)
    assert "\n" not in str(caught.value)
    path.write_text(200 * f"{ENGLISH}\t{FRENCH}\n" + "\n")  # an empty line does no harm
    assert read_tatoeba(folder=tmp_path) == 200 * [(ENGLISH, FRENCH)]
    path.write_text("\n\n")
    with pytest.raises(DataError, match="it has no line"):
        read_tatoeba(folder=tmp_path)


@pytest.fixture
def zipped(tmp_path, monkeypatch):
    """Fetch Tatoeba as a zip file that lies here, and return its path."""
    path = tmp_path / "fra-eng.zip"
    monkeypatch.setattr(downloads, "fetch", lambda *_, folder: path)
    return path


@pytest.mark.parametrize("member", ["fra.txt", "fra-eng/fra.txt"])
def test_a_zip_file_is_unpacked(zipped, member):
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("_about.txt", "About")
        archive.writestr(member, "Go.\tVa !\nRun.\tCours.\tTatoeba #1\n")
    assert read_tatoeba() == [("Go.", "Va !"), ("Run.", "Cours.")]
    assert read_tatoeba(first=1) == [("Go.", "Va !")]


def spoil(archive, how):
    """Return the bytes of a zip file, spoiled in one of many ways."""
    content = bytearray(archive)
    if how == "truncated":
        return content[:-30]
    if how == "a page":
        return b"<html>Please log in</html>"
    if how == "a flipped byte":
        content[60] ^= 255
        return content
    flag, method = {"encrypted": (1, 0), "unknown method": (0, 99)}[how]
    # Where the header of the member, and its entry in the directory, have the two.
    for start, position in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position += content.rindex(start)
        content[position : position + 4] = bytes([flag, 0, method, 0])
    return content


@pytest.mark.parametrize(
    "how", ["truncated", "a page", "a flipped byte", "encrypted", "unknown method"]
)
def test_a_zip_that_cannot_be_unpacked_is_named_with_the_way_out(zipped, how):
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("fra.txt", "Go.\tVa !\n" * 100)
    zipped.write_bytes(spoil(zipped.read_bytes(), how))
    with pytest.raises(DataError) as caught:
        read_tatoeba()
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{zipped} cannot be read: ")
    assert f"Download {downloads.TATOEBA} (again) and save it there" in message


def test_without_a_home_folder_one_sentence_says_what_to_name(monkeypatch):
    monkeypatch.setenv("TUTORIAL_DATA", "~nobody of this name/data")
    with pytest.raises(DataError, match=r"name one in .* TUTORIAL_DATA"):
        read_shakespeare()


def test_a_folder_of_the_user_s_home_may_be_written_with_a_tilde(monkeypatch):
    monkeypatch.setenv("TUTORIAL_DATA", "~/data")
    assert downloads.cache_folder() == Path.home() / "data"
