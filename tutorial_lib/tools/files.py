"""Files that are written whole or not at all.

This module does not know what stands in them.
"""

import contextlib
import os
from pathlib import Path


def write_whole(path, content):
    """Write text or bytes under another name first, so that no half is ever there.

    Raises OSError, and leaves what was there, if that fails.
    """
    path = Path(path)
    content = content.encode() if isinstance(content, str) else content
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.write_bytes(content)
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
