"""Builds the package as setuptools does, but refuses a Python that the pins do not fit.

An editable install (`-e .`) is that of `requirements.txt` and `book/students.txt`,
which pin versions with wheels for Python 3.10 to 3.13: elsewhere pip would try to
compile them. A plain install, as in Colab, pins nothing and is left alone.

This module runs before anything is installed, so it imports nothing but setuptools.
"""

import sys

from setuptools.build_meta import *  # noqa: F403
from setuptools.build_meta import get_requires_for_build_editable as _requirements

OLDEST = (3, 10)
NEWEST = (3, 13)


def get_requires_for_build_editable(config_settings=None):
    """Return what an editable install needs; or leave with a sentence."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        sys.exit(
            "The book's versions need Python 3.10 to 3.13, and this is Python "
            f"{sys.version_info[0]}.{sys.version_info[1]}. Make the environment with: "
            "uv venv --python 3.13"
        )
    return _requirements(config_settings)
