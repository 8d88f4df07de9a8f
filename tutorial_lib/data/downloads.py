"""Data files: fetched once, checked, resumed where they broke off, read as text.

Files lie in one cache folder, the environment variable ``TUTORIAL_DATA`` or the
system's usual place. A file gets its name there only when its checksum is right; until
then what has arrived is called NAME.part. One process at a time fetches a file.

This module knows no corpus: addresses, checksums and names come from outside.
"""

import gzip
import os
import urllib.parse
import zipfile
import zlib
from pathlib import Path

from tutorial_lib.progress_bar import progress_bar

SECONDS = 30  # how long a server may stay silent
CHUNK = 1 << 13  # bytes written at a time, and the most that a broken line loses


class DataError(RuntimeError):
    """A data file is missing or damaged: the message names it and says the way out."""


def cache_folder():
    """Return the folder that holds downloaded files, a Path; it need not exist."""
    import pooch

    return Path(os.environ.get("TUTORIAL_DATA") or pooch.os_cache("tutorial_lib"))


def fetch(address, checksum, *, folder=None, progress=True):
    """Return the path of a file, downloaded unless a good copy lies in ``folder``.

    ``checksum`` is SHA-256, or another as ``"sha1:…"``. ``folder`` is the cache folder
    unless given. A download that broke off goes on where it stopped. Raises DataError
    if the file cannot be had or its checksum is wrong; no part of it bears its name.
    """
    import pooch
    import requests

    path = Path(folder or cache_folder()) / _name(address)
    part = path.with_name(f"{path.name}.part")

    def download(address, temporary, _):
        _continue(address, part, progress)
        part.replace(temporary)  # which pooch checks, and only then renames

    try:
        pooch.retrieve(
            address, checksum, fname=path.name, path=path.parent, downloader=download
        )
    except requests.RequestException as error:
        raise _unavailable(path, address, _reason(error, address, part)) from None
    except ValueError:
        reason = f"what arrived does not have the checksum {checksum} and was deleted"
        raise _unavailable(path, address, reason) from None
    except OSError as error:
        raise _unavailable(path, address, str(error)) from None
    return path


def _continue(address, part, progress):
    """Append to ``part`` what it lacks, or start again if the server cannot do that."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}  # the bytes that the checksum is of
    if have:
        headers["Range"] = f"bytes={have}-"
    with requests.get(
        address, headers=headers, stream=True, timeout=SECONDS
    ) as response:
        if have and response.status_code == requests.codes.range_not_satisfiable:
            part.unlink()
            return _continue(address, part, progress)
        response.raise_for_status()
        if response.status_code != requests.codes.partial_content:
            have = 0
        rest = response.headers.get("Content-Length")
        total = have + int(rest) if rest else None
        with (
            open(part, "ab" if have else "wb") as file,
            progress_bar(total, unit="B", done=have, shown=progress) as bar,
        ):
            bar.unit_scale = True  # kB, MB
            bar.set_description(part.stem)
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))


def _reason(error, address, part):
    import requests

    host = urllib.parse.urlsplit(address).netloc
    if error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}"
    reason = f"the connection to {host} failed"
    if isinstance(error, requests.Timeout):
        reason = f"no word from {host} for {SECONDS} seconds"
    if part.exists() and (have := part.stat().st_size):
        reason += (
            f", {have:,} bytes are kept in {part.name} and the next try adds to it"
        )
    return reason


def _unavailable(path, address, reason):
    found = " (what lies there now has another checksum)" if path.exists() else ""
    return DataError(
        f"{path.name} could not be downloaded: {reason}. Try again later, or download "
        f"{address} yourself and save it as {path}{found}"
    )


def _name(address):
    return urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1]


def read_lines(path, address, *, member=None):
    """Return the lines of a UTF-8 text file, plain, gzip, or ``member`` of a zip.

    Lines end at a newline and nowhere else, so that parallel files stay parallel.
    Raises DataError, which names ``address`` as the place to have the file from, if it
    is missing, truncated or not UTF-8.
    """
    path = Path(path)
    try:
        text = _read(path, member).decode("utf-8")
    except FileNotFoundError:
        raise damaged(path, address, "there is no such file") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise damaged(path, address, f"line {line} is not UTF-8") from None
    except (OSError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise damaged(path, address, str(error)) from None
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def _read(path, member):
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".zip":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if Path(name).name == member]
        return archive.read(names[0] if names else member)


def damaged(path, address, reason):
    """Return a DataError: the file at ``path`` is no good, with reason and way out."""
    return DataError(
        f"{path} cannot be read: {reason}. Download {address} (again) and save it there"
    )
