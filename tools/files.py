"""Files: read as text, and written whole or not at all."""

import os
from pathlib import Path


def read_text(path):
    """Return a UTF-8 file's text, without the byte-order mark that some editors write.

    Raises OSError, and ValueError if it is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error.reason}") from None


def write_whole(path, content):
    """Write text or bytes under another name first, so that no half is ever there.

    Raises OSError, which names the file, and leaves what was there, if that fails.
    """
    content = content.encode() if isinstance(content, str) else content
    fresh = Path(f"{path}.new")
    try:
        fresh.write_bytes(content)
        os.replace(fresh, path)
    except OSError as error:
        error.filename = f"{path}"  # of a full disk the system names none
        raise
    finally:
        fresh.unlink(missing_ok=True)
