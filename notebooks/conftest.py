"""Run the notebooks for a comparison as they were run to be stored: without bars."""

import os

from tutorial_lib.tools.execute import QUIET

os.environ.update(QUIET)
